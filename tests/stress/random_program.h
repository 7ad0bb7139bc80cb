/*
 * Random programs: every byte is compared with the same program on plain memory.
 *
 * A program allocates, splits, describes and frees tensors. It runs ops on whole tensors, on parts
 * and on ranges over several, uploads, downloads, copies and zeroes, and accesses memory itself. It
 * does so inside iterations and segments and between them, and asks for reports and states
 * anywhere. A shadow per tensor holds what plain memory would contain and whether it is defined.
 * Each step checks that an op fails exactly when it reads an undefined tensor.
 */
#ifndef CAPU_TESTS_STRESS_RANDOM_PROGRAM_H
#define CAPU_TESTS_STRESS_RANDOM_PROGRAM_H

#include "tests/support/lineage.h"
#include "tests/support/mixing.h"
#include "tests/support/rig.h"

#include <check.h>

enum {
    PROGRAM_TENSORS = 24,
    PROGRAM_LARGEST_PAGES = 14,
    PROGRAM_TEXT = 256,
    PROGRAM_LINEAGES = 4096,
    PROGRAM_LABELS = 4
};

/* A tensor, and its contents on plain memory. */
struct shadow {
    unsigned char *address;
    unsigned char *bytes;
    uint64_t count;
    size_t blob; /* number of the allocation; pieces of one allocation share it */
    bool is_live;
    bool is_transient;
    bool is_defined;
    bool is_overwritten; /* some op has overwritten it completely without reading it */
    bool is_kept;  /* written outside an iteration, or not given up until the last one ended */
    bool is_gone;  /* perhaps given up before it was described as persistent */
    uint64_t turn; /* in which it was written last, and that iteration's label */
    const char *label;
    struct lineage *lineage; /* belongs to the program: shadows move, lineages must not */
};

struct program {
    struct rig rig;
    uint64_t state; /* of the random number generator */
    uint64_t salt;  /* changes the numbers in ops and uploads, but not which ops there are */
    struct shadow tensors[PROGRAM_TENSORS];
    size_t tensor_count;
    size_t blob_count;
    bool in_iteration;
    bool in_segment;
    bool is_visiting;  /* steps work on persistent tensors */
    bool is_sweeping;  /* iterations touch the tensors one after the other, as layers do */
    size_t picks;      /* in the iteration under way */
    uint64_t turns;    /* iterations so far */
    const char *label; /* of the newest */
    struct loss {
        const char *label;
        uint64_t turn;
    } losses[PROGRAM_LABELS]; /* the one iteration per label in which contents may be lost */
    size_t loss_count;
    struct lineage *lineages[PROGRAM_LINEAGES]; /* of all tensors that ever were */
    size_t lineage_count;
    uint64_t pages; /* that all tensors together fill, at most so far */
    bool is_pure;   /* ops read and write whole tensors and update none, so they are replayable */
    uint64_t ops;
    uint64_t given_up; /* calls that failed because a plan had discarded contents */
    uint64_t refused;  /* calls that failed because of a device fault, and were repeated */
    bool is_lost;      /* a failure has ended the context or the program */
    uint64_t pending;  /* visits of tensors with copies under way, while a plan is active */
    bool is_short;     /* host memory is limited: the bytes of uploads need not be kept */
    capu_graph *graph; /* not NULL: iterations may be captured, so they neither read nor look */
    bool is_captured;  /* the iteration under way is */
    bool is_plain;     /* the iteration was launched: steps change plain memory only */
    bool may_starve;   /* host memory may run out; then calls fail without any effect */
    uint64_t starved;  /* calls that failed for lack of host memory */
    char where[PROGRAM_TEXT];
};

#define PROGRAM_HOLDS(program_, condition_)                                  \
    ck_assert_msg(condition_, "%s: %s (%s)", (program_)->where, #condition_, \
                  capu_last_error((program_)->rig.context))
#define PROGRAM_WORKS(program_, call_)                                      \
    do {                                                                    \
        capu_status answer_;                                                \
                                                                            \
        PROGRAM_TRIES(program_, answer_, call_);                            \
        (program_)->is_lost |= random_is_starved(program_, answer_);        \
        PROGRAM_HOLDS(program_, answer_ == CAPU_OK || (program_)->is_lost); \
    } while (0)

/* Repeats a call until it is not hit by an injected device fault. */
#define PROGRAM_TRIES(program_, status_, call_)               \
    do {                                                      \
        (status_) = (program_)->is_plain ? CAPU_OK : (call_); \
    } while (random_is_refused(program_, status_))

/* Whether a call failed because of an injected fault and must be repeated. */
bool random_is_refused(struct program *program, capu_status status);

/* Whether a call failed because host memory ran out, in a program where that may happen. */
bool random_is_starved(struct program *program, capu_status status);

/* From now on some device calls of one kind, which `number` selects, fail. */
void random_faults(struct program *program, uint64_t number);

/* The program's next random number, below `below`. */
uint64_t random_draw(struct program *program, uint64_t below);

/* A random tensor. */
struct shadow *random_pick(struct program *program);

/* What guided mode may give up (random_losses.c). A tensor gets a lineage when it is made; it
   changes with each write by an op that read `sources`. */
void random_trace(struct program *program, struct shadow *tensor);
void random_note_write(struct program *program, struct shadow *tensor, bool is_replayable,
                       struct shadow *const *sources, size_t count);

/* The same for an op, from its operands. */
void random_note_op(struct program *program, const struct mixing *op, struct shadow *const *tensors,
                    bool is_replayable);

/* An iteration begins or ends. Called before in_iteration changes. */
void random_note_turn(struct program *program);

/* Whether a call on these tensors may fail with this status, although all of them are defined. */
bool random_may_fail(struct program *program, const struct shadow *const *tensors, size_t count,
                     capu_status status);

/* Allocates a tensor, or a blob that is split at arbitrary offsets. */
void random_allocate(struct program *program);

/* Frees the allocation with this number. */
void random_free(struct program *program, size_t blob);

/* Checks the consistency of the context's data structures. */
void random_check(struct program *program);

/* Begins an iteration, or ends the open one. */
void random_turn(struct program *program, const char *label);

/* Does something with the existing tensors. */
void random_work(struct program *program);

/* Splits a piece off a tensor; describes a tensor in another way. */
void random_split(struct program *program);
void random_describe(struct program *program);

/* Frees an allocation and allocates the same size again, often at the same address. Sometimes
   describes the new tensor. */
void random_replace(struct program *program);

/* Resizes an allocation; with plans only to smaller sizes, since what they may give up is not
   followed across a move. */
void random_resize(struct program *program);

/* Between iterations: works on persistent tensors, `count` times. Nothing has waited for the
   iteration: copies that its plan has started for the next one may be under way. */
void random_visit(struct program *program, uint64_t count);

/* Inside an iteration: reads a transient tensor. */
void random_read_late(struct program *program);

/* Does anything that a program can do. */
void random_step(struct program *program);

/* Compares every defined byte, and destroys the context and the shadows. */
void random_finish(struct program *program);

/* Runs TEST_PROGRAMS / share programs, with seeds from TEST_SEED on. If streams are delayed, the
   seed also determines the delays. */
void random_programs(const struct rig_options *options, uint64_t share,
                     void (*run)(uint64_t seed, struct rig_options options, void *user),
                     void *user);

#endif
