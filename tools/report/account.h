/* The account of a reported iteration: which ops waited, for what, and which tensors moved. */
#ifndef CAPU_TOOLS_ACCOUNT_H
#define CAPU_TOOLS_ACCOUNT_H

#include "tools/report/report_file.h"

/* A wait of an op: for tensors to return, all of them together, or for free memory; or the wait of
   an op that was replayed for this one. */
struct wait {
    const char *op;
    const char *replay; /* name of the replayed op, or "" */
    uint64_t access;
    uint64_t ns;
    uint64_t bytes;   /* copied back */
    size_t count;     /* of tensors; 0: free memory, or a replay */
    size_t ahead;     /* how many of them were requested before the op */
    const char *name; /* of the largest */
    uint64_t largest;
};

/* The traffic of a tensor. */
struct mover {
    const char *name;
    uint64_t bytes;
    uint64_t out_bytes;
    uint64_t in_bytes;
    uint64_t ns;
    size_t recomputed;
    const char *ignored_hint; /* that the plan did not follow, or "" */
    const char *because;      /* why */
};

/* The strings belong to the line. */
struct account {
    struct reported counters;
    const struct report_kind *kind;
    json_t *line;
    struct wait *waits;
    size_t wait_count;
    struct mover *movers;
    size_t mover_count;
    uint64_t back_ns;   /* ops waited for tensors to return */
    uint64_t replay_ns; /* replays waited */
    size_t ahead;       /* tensors that were requested in advance and arrived late */
    size_t ignored;     /* tensors whose hints the plan did not follow */
};

/* False: an error has been printed. `file` must outlive the account. */
bool account_init(struct account *account, const struct report_file *file,
                  const struct reported *iteration);
void account_finish(struct account *account);

/* A string of the report, or "". */
const char *account_text(const struct account *account, const char *key);

/* The time in which the device neither computed nor waited for memory or for others. */
uint64_t account_idle_ns(const struct account *account);

#endif
