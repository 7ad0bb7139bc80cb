/*
 * Tensors that a test mirrors on plain memory. Every call is made twice, on the library and on the
 * mirror, which gives the expected contents of device memory at any time.
 *
 * The work of every op is mixing_run (mixing.h): a wrong byte anywhere shows up in all that is
 * computed from it.
 *
 * A call that the library refuses has no effect on the mirror either. It must be one of these:
 *
 * - OVER_BUDGET, if the budget is below the floor. Then the program has ended: later calls do
 *   nothing, and `ended` tells the test.
 * - UNDEFINED_READ, if an input was never written in this iteration, as after a loss.
 * - CONTENTS_LOST, in guided mode with a budget below what is allocated, for contents of a
 *   transient tensor that cannot be recomputed (lineage.h), and in one iteration per label only.
 */
#ifndef CAPU_TESTS_SUPPORT_BUFFERS_H
#define CAPU_TESTS_SUPPORT_BUFFERS_H

#include "tests/support/lineage.h"
#include "tests/support/mixing.h"
#include "tests/support/rig.h"

enum { BUFFERS_MOST = 96, BUFFERS_LABELS = 32, BUFFERS_NAME = 32, BUFFERS_TEXT = 512 };

/* Device memory and its expected contents: an allocation, or a part that was split from one. */
struct buffer {
    char name[BUFFERS_NAME];
    unsigned char *address; /* NULL: freed */
    size_t bytes;
    unsigned char *expected;
    struct buffer *whole; /* of a part: its allocation, whose mirror it shares */
    struct buffer *parts; /* of a whole: the first of part_count parts, which follow each other */
    size_t part_count;
    bool is_persistent;
    bool is_defined;
    struct lineage lineage;
};

/* The buffers of one context. Set `rig` and `where`; the rest starts at zero. */
struct buffers {
    const struct rig *rig;
    const char *where; /* begins the message of each failure */
    struct buffer items[BUFFERS_MOST];
    size_t count;
    uint64_t pages; /* that all allocations together fill, now and at most */
    uint64_t most_pages;
    uint64_t iteration;
    const char *label; /* of the iteration; kept until the end */
    struct buffers_loss {
        const char *label;
        uint64_t iteration;
    } losses[BUFFERS_LABELS]; /* at most one iteration per label */
    size_t loss_count;
    char loss_text[BUFFERS_TEXT]; /* the error of the newest loss */
    capu_status ended;            /* not OK: the error that ended the program */
    char ended_text[BUFFERS_TEXT];
};

/* How an op uses a buffer. */
struct buffer_use {
    struct buffer *buffer;
    capu_role role;
};

/* Fails the test unless the call returns OK or ends the program. */
#define BUFFERS_OK(buffers_, call_) buffers_accept((buffers_), (call_), #call_)
void buffers_accept(struct buffers *buffers, capu_status status, const char *call);

/* Allocates and describes a buffer. Its full name is `name` and a number. */
struct buffer *buffers_make(struct buffers *buffers, const char *name, capu_kind kind,
                            capu_lifetime lifetime, size_t bytes);

/* Splits an allocation in equal parts, whose contents stay, and describes them. Returns the first
   part; the others follow it. An op on the whole then names all parts. */
struct buffer *buffers_split(struct buffers *buffers, struct buffer *whole, size_t part_count,
                             const char *name, capu_kind kind, capu_lifetime lifetime);

/* Describes a buffer again. False: it is too late, and the contents are lost. */
bool buffers_describe(struct buffers *buffers, struct buffer *buffer, capu_kind kind,
                      capu_lifetime lifetime);

/* Frees an allocation and its parts. */
void buffers_free(struct buffers *buffers, struct buffer *buffer);

/* Runs an op. It writes or updates buffers depending on all that it reads and on `by`. With
   CAPU_WRITE_REST_ZERO it writes only the first half. False: it was refused. */
bool buffers_run(struct buffers *buffers, const char *name, uint64_t by,
                 const struct buffer_use *uses, size_t count);

/* The transfers of capuchin/memory.h, on whole buffers. An upload is drawn from `value`. */
void buffers_zero(struct buffers *buffers, struct buffer *buffer);
void buffers_copy(struct buffers *buffers, struct buffer *to, struct buffer *from);
void buffers_upload(struct buffers *buffers, struct buffer *buffer, uint64_t value);

/* Downloads a buffer, and fails the test unless it has the expected contents. Returns a number
   drawn from them, for programs that decide by results. */
uint64_t buffers_check(struct buffers *buffers, struct buffer *buffer);

/* The program begins an iteration. */
void buffers_begin(struct buffers *buffers, const char *label);
void buffers_end(struct buffers *buffers);

/* Frees the mirror. */
void buffers_finish(struct buffers *buffers);

#endif
