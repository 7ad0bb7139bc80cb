/* A reported iteration taken apart: who waited, for what, and what moved. */
#ifndef CAPU_TOOLS_ACCOUNT_H
#define CAPU_TOOLS_ACCOUNT_H

#include "tools/report_file.h"

/* An op that waited for tensors to come back, all of them together, or for room; or an op that did
   when it was run again for this one. */
struct wait {
    const char *op;
    const char *replay; /* the latter's name, or "" */
    uint64_t access;
    uint64_t ns;
    uint64_t bytes;   /* brought back */
    size_t count;     /* tensors; 0: room, or a replay */
    size_t ahead;     /* of them: asked for before the op */
    const char *name; /* of the largest */
    uint64_t largest;
};

/* A tensor's comings and goings. */
struct mover {
    const char *name;
    uint64_t bytes;
    uint64_t out_bytes;
    uint64_t in_bytes;
    uint64_t ns;
    size_t recomputed;
};

/* An iteration taken apart. Names belong to the line. */
struct account {
    struct reported counters;
    const struct report_kind *kind;
    json_t *line;
    struct wait *waits;
    size_t wait_count;
    struct mover *movers;
    size_t mover_count;
    uint64_t back_ns;   /* ops waited for tensors to come back */
    uint64_t replay_ns; /* replays waited */
    size_t ahead;       /* tensors waited for though asked for ahead */
};

/* False: said why on standard error. `file` must outlive it. */
bool account_init(struct account *account, const struct report_file *file,
                  const struct reported *iteration);
void account_finish(struct account *account);

/* A text of the line, or "". */
const char *account_text(const struct account *account, const char *key);

/* Of the time: what neither an op, a replay nor a wait for memory accounts for. */
uint64_t account_idle_ns(const struct account *account);

#endif
