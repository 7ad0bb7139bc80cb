/*
 * The processes (ranks) of a run that a launcher such as mpirun has started, and what training
 * exchanges among them. A program that no launcher has started is one rank, and then nothing here
 * does anything.
 *
 * Built twice: ranks_mpi.c where MPI is found, ranks_alone.c elsewhere, which refuses several
 * ranks.
 *
 * All ranks call the functions that are marked "together" in one order, also with the collectives
 * of tensors, because any call of the library may wait for an earlier collective.
 */
#ifndef CAPU_EXAMPLES_COMMON_RANKS_H
#define CAPU_EXAMPLES_COMMON_RANKS_H

#include "capuchin/capuchin.h"

#include "examples/common/run.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capu_parallel;

struct ranks {
    struct run_peers peers;
    bool is_launched;
    uint64_t bucket_bytes;       /* of the collectives; 0: the default */
    uint64_t limit_ns;           /* how long a rank waits for others; 0: no limit */
    struct capu_parallel *group; /* of the context that has joined; NULL: none */
};

/* Together. Joins the processes that the launcher has started. False: an error has been printed. */
bool ranks_open(struct ranks *ranks, int *argc, char ***argv);

/* Ends the process's part with the exit code of main. After a failure with several ranks, another
   one may wait in MPI for this one, which then ends at once, without the functions that run at
   exit. */
void ranks_close(struct ranks *ranks, int exit_code);

/* Together. Makes a context a member of the group. On sim nothing is exchanged. */
capu_status ranks_join(struct ranks *ranks, capu_context *context);

/* Before the end of the context. With a failed status, the other ranks end instead of waiting;
   `text` says why this one failed. */
void ranks_leave(struct ranks *ranks, capu_status status, const char *text);

/* Together. Replaces each item by its sum over all ranks, added in their order. */
capu_status ranks_sum_floats(struct ranks *ranks, const char *name, float *address, size_t count);
capu_status ranks_sum_doubles(struct ranks *ranks, const char *name, double *address, size_t count);

/* Together. Copies the bytes of rank 0 to all other ranks. */
capu_status ranks_copy(struct ranks *ranks, const char *name, void *address, size_t bytes);

#endif
