/* Before there is a group: see startup.h, and capu_parallel_config in capuchin/parallel.h. */
#include "parallel/startup.h"

#include "capuchin/parallel.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 400 };

capu_status startup_check(char *text, size_t text_bytes)
{
    int is_begun = 0;
    int has_ended = 0;
    int level = MPI_THREAD_SINGLE;

    MPI_Initialized(&is_begun);
    MPI_Finalized(&has_ended);
    if (!is_begun || has_ended) {
        snprintf(text, text_bytes,
                 "MPI is not in use: call MPI_Init_thread first, and not after "
                 "MPI_Finalize");
        return CAPU_WRONG_ORDER;
    }
    MPI_Query_thread(&level);
    if (level != MPI_THREAD_MULTIPLE) {
        snprintf(text, text_bytes,
                 "collectives run on a thread of the library, so MPI must provide "
                 "MPI_THREAD_MULTIPLE: begin it with MPI_Init_thread instead of MPI_Init");
        return CAPU_UNSUPPORTED;
    }
    return CAPU_OK;
}

capu_status startup_agree(MPI_Comm comm, capu_status own, char *text, size_t text_bytes)
{
    int first;
    int rank;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &first);
    rank = own != CAPU_OK ? rank : first;
    if (MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS) {
        snprintf(text, text_bytes, "MPI_Allreduce failed");
        return CAPU_OP_FAILED;
    }
    MPI_Comm_size(comm, &rank);
    if (own == CAPU_OK && first < rank) {
        snprintf(text, text_bytes, "rank %d failed", first);
        return CAPU_OP_FAILED;
    }
    return own;
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value != NULL && value[0] != '\0';
}

/* One reading for all ranks of a host: each would take what those before it have left. */
static void share_host_memory(MPI_Comm host, int local, int count, capu_config *config)
{
    uint64_t bytes = local == 0 ? capu_host_budget_default((uint64_t)count) : 0;

    MPI_Bcast(&bytes, 1, MPI_UINT64_T, 0, host);
    if (config->host_budget_bytes == 0 && !is_set("CAPUCHIN_HOST_BUDGET")) {
        config->host_budget_bytes = bytes;
    }
}

static bool may_be_guided(const capu_config *config)
{
    const char *mode = getenv("CAPUCHIN_MODE");

    return config->mode == CAPU_MODE_GUIDED ||
           (config->mode == CAPU_MODE_DEFAULT && mode != NULL && strcmp(mode, "guided") == 0);
}

/* All ranks of a host copy at the same time, as they will in training. */
static capu_status measure_link(MPI_Comm host, capu_config *config)
{
    capu_config copy = *config;
    int wanted = may_be_guided(config);

    MPI_Allreduce(MPI_IN_PLACE, &wanted, 1, MPI_INT, MPI_MAX, host);
    if (!wanted) {
        return CAPU_OK;
    }
    MPI_Barrier(host);
    return capu_link_measure(may_be_guided(config) ? config : &copy);
}

static capu_status fill_in(MPI_Comm comm, capu_config *config, char *text, size_t text_bytes)
{
    MPI_Comm host;
    int rank;
    int ranks;
    int local;
    int local_ranks;
    capu_status status;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host) !=
        MPI_SUCCESS) {
        snprintf(text, text_bytes, "MPI_Comm_split_type failed");
        return CAPU_OP_FAILED;
    }
    MPI_Comm_rank(host, &local);
    MPI_Comm_size(host, &local_ranks);
    config->rank = (uint64_t)rank;
    config->rank_count = (uint64_t)ranks;
    config->local_rank_count = (uint64_t)local_ranks;
    share_host_memory(host, local, local_ranks, config);
    status = measure_link(host, config);
    MPI_Comm_free(&host);
    if (status != CAPU_OK && config->error != NULL && config->error_bytes > 0) {
        snprintf(text, text_bytes, "%s", config->error);
    }
    return startup_agree(comm, status, text, text_bytes);
}

capu_status capu_parallel_config(MPI_Comm comm, capu_config *config)
{
    char text[TEXT_BYTES] = "";
    capu_status status;

    if (config == NULL) {
        return CAPU_INVALID;
    }
    if (config->size != sizeof(*config)) {
        return CAPU_WRONG_STRUCT;
    }
    status = startup_check(text, sizeof(text));
    if (status == CAPU_OK) {
        status = fill_in(comm, config, text, sizeof(text));
    }
    if (status != CAPU_OK && config->error != NULL && config->error_bytes > 0) {
        snprintf(config->error, config->error_bytes, "%s",
                 text[0] != '\0' ? text : capu_status_text(status));
    }
    return status;
}
