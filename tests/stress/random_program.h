/*
 * Random programs: every byte compared with the same program on plain memory.
 *
 * A program allocates, splits, describes, frees, runs ops on whole tensors, parts and ranges over
 * several, uploads, downloads, copies, zeroes and touches memory itself, in iterations, segments of
 * them and between them, and asks for reports and states anywhere. A shadow keeps what plain memory
 * would hold and which bytes are defined. Each step checks that an op is refused exactly when it
 * reads what was not written.
 */
#ifndef CAPU_TESTS_STRESS_RANDOM_PROGRAM_H
#define CAPU_TESTS_STRESS_RANDOM_PROGRAM_H

#include "tests/support/rig.h"

#include <check.h>

enum { PROGRAM_TENSORS = 24, PROGRAM_LARGEST_PAGES = 14, PROGRAM_TEXT = 256 };

/* A tensor, with what it would hold on plain memory. */
struct shadow {
    unsigned char *address;
    unsigned char *bytes;
    uint64_t count;
    size_t blob; /* tensors split from one allocation share it */
    bool is_live;
    bool is_transient;
    bool is_defined;
    bool is_overwritten; /* at some time wholly, without having been read by that op */
};

struct program {
    struct rig rig;
    uint64_t state; /* of the random numbers */
    uint64_t salt;  /* changes what ops compute and uploads bring, not what they are */
    struct shadow tensors[PROGRAM_TENSORS];
    size_t tensor_count;
    size_t blob_count;
    bool in_iteration;
    bool in_segment;
    bool has_left; /* some iteration has left its plan */
    bool is_pure;  /* ops read and write whole tensors and update none, so that they can be replayed
                    */
    uint64_t ops;
    uint64_t given_up; /* calls that a plan's end made impossible */
    uint64_t refused;  /* calls that failed with the device's, and were made again */
    bool is_lost;      /* what failed was the end of the context, or of the program */
    bool may_starve;   /* host memory may run out: then calls fail, and nothing has happened */
    uint64_t starved;  /* calls that failed so */
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

/* Makes a call until no fault of the device is in its way. */
#define PROGRAM_TRIES(program_, status_, call_) \
    do {                                        \
        (status_) = (call_);                    \
    } while (random_is_refused(program_, status_))

/* Whether a call failed because of a fault that was injected, and is to be made again. */
bool random_is_refused(struct program *program, capu_status status);

/* Whether a call failed because host memory ran out where it may. */
bool random_is_starved(struct program *program, capu_status status);

/* From now on some calls of one kind, which the program's number chooses, fail at the device. */
void random_faults(struct program *program, uint64_t number);

/* A number below `below`, the next of the program's sequence. */
uint64_t random_draw(struct program *program, uint64_t below);

/* Any of the tensors. */
struct shadow *random_pick(struct program *program);

/* Allocates a tensor, or a blob that is split at odd places. */
void random_allocate(struct program *program);

/* Frees the allocation whose tensors have this number. */
void random_free(struct program *program, size_t blob);

/* Checks the context's books. */
void random_check(struct program *program);

/* Begins an iteration, or ends the one that is open. */
void random_turn(struct program *program, const char *label);

/* Does something to the tensors that there are. */
void random_work(struct program *program);

/* Cuts a piece out of a tensor, or describes one otherwise. */
void random_split(struct program *program);
void random_describe(struct program *program);

/* Frees an allocation and allocates as much again: often the same addresses, undescribed or not. */
void random_replace(struct program *program);

/* Between iterations: reads one that is persistent. */
void random_read(struct program *program);

/* Does anything. */
void random_step(struct program *program);

/* Compares every defined byte, and destroys the context and the shadows. */
void random_finish(struct program *program);

/* Runs one program with each seed from TEST_SEED on, of TEST_PROGRAMS one in `share`. Where
   streams are delayed, each seed delays them otherwise. */
void random_programs(const struct rig_options *options, uint64_t share,
                     void (*run)(uint64_t seed, struct rig_options options, void *user),
                     void *user);

#endif
