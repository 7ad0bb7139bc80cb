/*
 * What the cases of ranks_test.c share: a context and a group per rank, and tensors of numbers that
 * differ from rank to rank. A failed check prints rank, place and values, and ends the rank with 1.
 */
#ifndef CAPU_TESTS_PARALLEL_RANKS_H
#define CAPU_TESTS_PARALLEL_RANKS_H

#include "capuchin/capuchin.h"
#include "capuchin/parallel.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct ranks {
    capu_context *context;
    capu_parallel *group;
    int rank;
    int ranks;
};

/* Ends this rank at once, without MPI_Finalize: a rank that has failed may be waited for. */
#define FAIL(...)                                                     \
    do {                                                              \
        int at_;                                                      \
        MPI_Comm_rank(MPI_COMM_WORLD, &at_);                          \
        fprintf(stderr, "rank %d, %s:%d: ", at_, __FILE__, __LINE__); \
        fprintf(stderr, __VA_ARGS__);                                 \
        fputc('\n', stderr);                                          \
        _exit(1);                                                     \
    } while (0)

#define CHECK(condition_)                      \
    do {                                       \
        if (!(condition_)) {                   \
            FAIL("not true: %s", #condition_); \
        }                                      \
    } while (0)

#define WORKS(ranks_, call_)                                                                \
    do {                                                                                    \
        capu_status status_ = (call_);                                                      \
        if (status_ != CAPU_OK) {                                                           \
            FAIL("%s: %s: %s; %s", #call_, capu_status_name(status_),                       \
                 capu_last_error((ranks_)->context), capu_parallel_error((ranks_)->group)); \
        }                                                                                   \
    } while (0)

/* Whatever happens to mpirun, no rank is left behind; CAPUCHIN_* variables are forgotten. */
void ranks_start(void);

/* What a case asks for; zero fields are defaults. */
struct ranks_options {
    uint64_t budget_bytes;
    uint32_t mode; /* capu_mode */
    uint64_t bucket_bytes;
    uint64_t wait_limit_ns;
    const char *report_path;
};

/* Context and group of this rank. */
void ranks_open(struct ranks *ranks, const struct ranks_options *options);

/* Group first, then the context. */
void ranks_close(struct ranks *ranks);

/* Allocates `count` floats with this name and kind, whose contents are undefined. */
float *ranks_tensor(struct ranks *ranks, const char *name, capu_kind kind, size_t count);

/* The float number i of a tensor that rank r has filled with `seed`. Sums of these depend on the
   order in which they are added. */
float ranks_number(uint64_t seed, int rank, size_t i);

/* An op that writes ranks_number(seed, this rank, i) to each element. */
void ranks_fill(struct ranks *ranks, float *tensor, size_t count, uint64_t seed);

/* An op that adds one tensor to another. */
void ranks_add(struct ranks *ranks, float *to, const float *from, size_t count);

/* Copies a tensor to the host; the caller frees it. */
float *ranks_read(struct ranks *ranks, const float *tensor, size_t count);

/* The sum over all ranks of ranks_number, in the order of the ranks. */
float ranks_sum(uint64_t seed, int ranks, size_t i);

/* Fails unless element i of the tensor is expected(seed, i), for all. */
void ranks_expect_sum(struct ranks *ranks, const float *tensor, size_t count, uint64_t seed);

#endif
