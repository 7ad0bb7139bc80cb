/*
 * Live counters: what `capuchin top` shows of a context, handed from the context's thread to the
 * thread that serves them (live_server_add), once per finished iteration.
 *
 * Three samples change hands: one is being filled, one is being read, and one is the newest that
 * is complete. Filling and reading exchange theirs for it with one atomic operation, so neither
 * waits for the other, and the training thread makes no system call. Release and acquire order what
 * is in the samples.
 */
#ifndef CAPU_RUNTIME_LIVE_H
#define CAPU_RUNTIME_LIVE_H

#include "capuchin/context.h"
#include "capuchin/status.h"
#include "policy/format/report.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LIVE_TIMES = 120,
    LIVE_STALLS = 8,
    LIVE_KINDS = 7, /* of capu_kind */
    LIVE_NAME_BYTES = 64,
    LIVE_TEXT_BYTES = 256
};

struct live_stall {
    uint64_t access;
    uint64_t wait_ns;
    char op[LIVE_NAME_BYTES]; /* longer names are cut off */
    char replay[LIVE_NAME_BYTES];
};

struct live_sample {
    uint64_t published_ns; /* of the monotonic clock; 0: no iteration has finished */
    struct report report;  /* its pointers are NULL; the texts follow */
    char label[LIVE_NAME_BYTES];
    char floor_op[LIVE_NAME_BYTES];
    char plan_error[LIVE_TEXT_BYTES];
    uint64_t held_bytes;             /* of device memory, when the report was complete */
    uint64_t kind_bytes[LIVE_KINDS]; /* of the tensors alive where most bytes are alive */
    uint64_t times_ns[LIVE_TIMES];   /* of the newest iterations, the oldest first */
    size_t time_count;
    uint64_t stalls_iteration;             /* the newest timed iteration that had stalls; 0: none */
    struct live_stall stalls[LIVE_STALLS]; /* its longest, the longest first */
    size_t stall_count;
};

/* What does not change after the context was created. */
struct live_subject {
    char device[LIVE_NAME_BYTES];
    char planner[LIVE_NAME_BYTES];
    uint32_t mode;
    uint64_t budget_bytes;    /* until the first report */
    uint64_t d2h_bytes_per_s; /* 0: not known */
    uint64_t h2d_bytes_per_s;
};

/* Exchanged as one number: the index of the newest sample, and whether it was read. */
struct live {
    struct live_subject subject; /* set before it is served */
    struct live *next;           /* of the server */
    uint64_t number;             /* of the server, from 1 in order of creation */
    uint64_t kinds_ns;           /* of the context's thread: when it last summed up kind_bytes */
    struct live_sample own;      /* of the context's thread: what the next sample begins with */
    struct live_sample samples[3];
    atomic_uint newest;
    unsigned filled; /* of the context's thread */
    unsigned read;   /* of the server's */
};

/* NULL: no host memory. */
struct live *live_create(const struct live_subject *subject);
void live_destroy(struct live *live);

/* Publishes live->own. The context's thread. */
void live_publish(struct live *live);

/* The newest sample, which stays as it is until the next call. The server's thread. */
const struct live_sample *live_newest(struct live *live);

/* Copies a text, cut off after a whole character if it is too long. */
void live_copy_text(char *to, size_t bytes, const char *from);

/* Notes a finished iteration's time and its stalls in live->own. */
void live_note_report(struct live *live, const struct report *report);

/* One line of JSON with all contexts of the list, see docs/top.md; `now_ns` is of the monotonic
   clock. The caller frees it. NULL: no host memory. The server's thread. */
char *live_json(struct live *first, uint64_t now_ns);

/*
 * Serves the live counters of all contexts of the process on one local socket, for `capuchin top`.
 *
 * The socket is PID.sock in the user's folder for sockets (base/user_folder.h), with mode 0600. Who
 * connects gets one line of JSON (live_json) if it is the same user, and is
 * disconnected; what it sends is never read. There is one thread while there is a context to serve.
 *
 * A child of fork does not serve: it has no such thread. If it creates a context of its own, it
 * gets a socket of its own.
 *
 * Shared by all contexts of the process, and the only such state: one process is one program to who
 * watches it. Thread: any.
 */

/* Serves these counters, too; the first ones open the socket and start the thread. FILE_FAILED (the
   socket cannot be created) and SYSTEM_LIMIT (there is no more descriptor or thread), both with a
   text. `live` is borrowed until live_server_remove. */
capu_status live_server_add(struct live *live, char *text, size_t text_bytes);

/* The last ones end the thread and remove the socket. Not in a child. */
void live_server_remove(struct live *live);

#endif
