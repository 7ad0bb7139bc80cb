/* Ranks over MPI, with libcapuchin-mpi. */
#include "examples/common/ranks.h"

#include "capuchin/parallel.h"

#include "examples/common/launched.h"
#include "examples/common/options.h"
#include "examples/common/try.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define ERROR_BYTES 512

static bool agree(bool is_fine)
{
    int own = is_fine ? 1 : 0;
    int all = 0;

    return MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD) == MPI_SUCCESS &&
           all == 1;
}

static capu_status configure(capu_config *config)
{
    return capu_parallel_config(MPI_COMM_WORLD, config);
}

bool ranks_open(struct ranks *ranks, int *argc, char ***argv)
{
    int provided = 0;
    int rank = 0;
    int count = 1;

    *ranks = (struct ranks){.peers = {.count = 1}};
    if (launched_by() == NULL) {
        return true;
    }
    /* capu_parallel_config checks what is provided. */
    if (MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS ||
        MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &count) != MPI_SUCCESS) {
        fprintf(stderr, "%s: MPI cannot be initialised\n", program_invocation_short_name);
        return false;
    }
    ranks->is_launched = true;
    ranks->peers = (struct run_peers){
        .rank = (uint32_t)rank, .count = (uint32_t)count, .agree = agree, .configure = configure};
    return true;
}

void ranks_close(struct ranks *ranks, int exit_code)
{
    if (!ranks->is_launched) {
        return;
    }
    if (exit_code != OPTIONS_EXIT_OK && ranks->peers.count > 1) {
        fflush(NULL);
        _exit(exit_code);
    }
    MPI_Finalize();
}

capu_status ranks_join(struct ranks *ranks, capu_context *context)
{
    capu_parallel_options options = CAPU_PARALLEL_OPTIONS_INIT;
    char error[ERROR_BYTES] = "";
    capu_status status;

    if (!ranks->is_launched) {
        return CAPU_OK;
    }
    options.bucket_bytes = ranks->bucket_bytes;
    options.wait_limit_ns = ranks->limit_ns;
    options.error = error;
    options.error_bytes = sizeof(error);
    status = capu_parallel_create(context, MPI_COMM_WORLD, &options, &ranks->group);
    if (status != CAPU_OK) {
        fprintf(stderr, "%s: cannot join the other ranks: %s: %s\n", program_invocation_short_name,
                capu_status_text(status), error);
    }
    return status;
}

void ranks_leave(struct ranks *ranks, capu_status status, const char *text)
{
    if (status != CAPU_OK && ranks->group != NULL) {
        capu_parallel_fail(ranks->group, status, text);
    }
    capu_parallel_destroy(ranks->group);
    ranks->group = NULL;
}

capu_status ranks_sum_floats(struct ranks *ranks, const char *name, float *address, size_t count)
{
    return ranks->group == NULL
               ? CAPU_OK
               : capu_parallel_allreduce(ranks->group, name, address, count, CAPU_PARALLEL_F32);
}

capu_status ranks_sum_doubles(struct ranks *ranks, const char *name, double *address, size_t count)
{
    return ranks->group == NULL
               ? CAPU_OK
               : capu_parallel_allreduce(ranks->group, name, address, count, CAPU_PARALLEL_F64);
}

capu_status ranks_copy(struct ranks *ranks, const char *name, void *address, size_t bytes)
{
    return ranks->group == NULL
               ? CAPU_OK
               : capu_parallel_broadcast(ranks->group, name, address, bytes, CAPU_PARALLEL_BYTE, 0);
}
