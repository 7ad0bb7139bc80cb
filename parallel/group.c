/*
 * Groups from creation to end: see capuchin/parallel.h.
 *
 * Creating one is collective, so a rank that cannot go on still takes part in what the others wait
 * for, and all learn of it.
 */
#include "parallel/group.h"

#include "capuchin/memory.h"
#include "capuchin/parallel.h"
#include "capuchin/private.h"
#include "capuchin/status.h"
#include "parallel/exchange.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What ranks do together before they have a group, and capu_parallel_config. Any thread that may
   call MPI. */

enum { TEXT_BYTES = 400 };

/* Whether MPI is there, with what the library needs: WRONG_ORDER, UNSUPPORTED. */
static capu_status startup_check(char *text, size_t text_bytes)
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

/* Collective: OK if `own` is OK on all ranks. Else `own` where that is an error, and OP_FAILED,
   with a text that names the first such rank, on the others. */
static capu_status startup_agree(MPI_Comm comm, capu_status own, char *text, size_t text_bytes)
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
    uint64_t bytes = local == 0 ? capuchin_host_budget_default((uint64_t)count) : 0;

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
    return capuchin_link_measure(may_be_guided(config) ? config : &copy);
}

static capu_status fill_in_config(MPI_Comm comm, capu_config *config, char *text, size_t text_bytes)
{
    char number[24];
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
    snprintf(number, sizeof(number), "%d", rank);
    (void)capu_config_set(config, "rank", number); /* 0, too */
    config_set_number(config, "ranks", (uint64_t)ranks);
    config_set_number(config, "local_ranks", (uint64_t)local_ranks);
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
        status = fill_in_config(comm, config, text, sizeof(text));
    }
    if (status != CAPU_OK && config->error != NULL && config->error_bytes > 0) {
        snprintf(config->error, config->error_bytes, "%s",
                 text[0] != '\0' ? text : capu_status_text(status));
    }
    return status;
}

enum { DEFAULT_BUCKET_BYTES = 1 << 20, LEAST_PART_BYTES = 64, MOST_BUCKET_BYTES = 1 << 30 };

/* Copies the caller's options, whatever their version. */
static capu_status read_options(const capu_parallel_options *from, capu_parallel_options *options,
                                char *text, size_t text_bytes)
{
    *options = (capu_parallel_options)CAPU_PARALLEL_OPTIONS_INIT;
    if (from != NULL && from->size != sizeof(*options)) {
        snprintf(text, text_bytes, "capu_parallel_options of %zu bytes; this library's has %zu",
                 from->size, sizeof(*options));
        return CAPU_WRONG_STRUCT;
    }
    if (from != NULL) {
        *options = *from;
    }
    if (options->bucket_bytes > MOST_BUCKET_BYTES) {
        snprintf(text, text_bytes, "bucket_bytes is above 1 GiB");
        return CAPU_INVALID;
    }
    if (options->bucket_bytes == 0) {
        options->bucket_bytes = DEFAULT_BUCKET_BYTES;
    }
    return CAPU_OK;
}

/* What this rank needs for itself. */
static capu_status make_own(struct capu_parallel *group, char *text, size_t text_bytes)
{
    uint64_t least = (uint64_t)group->ranks * LEAST_PART_BYTES;
    capu_status status = CAPU_OK;

    if (group->bucket_bytes < least) {
        group->bucket_bytes = least;
    }
    group->headers = calloc((size_t)group->ranks, sizeof(*group->headers));
    group->requests = calloc(2 * (size_t)group->ranks, sizeof(MPI_Request));
    if (group->headers == NULL || group->requests == NULL) {
        snprintf(text, text_bytes, "no memory for a group");
        return CAPU_NO_HOST_MEMORY;
    }
    for (int i = 0; i < 2 * group->ranks; i++) {
        group->requests[i] = MPI_REQUEST_NULL;
    }
    if (group->ranks > 1) {
        status = capu_malloc(group->context,
                             collectives_workspace_bytes(group->bucket_bytes, group->ranks),
                             &group->workspace);
    }
    if (status == CAPU_OK && group->workspace != NULL) {
        status = CAPU_DESCRIBE(group->context, group->workspace, .name = "parallel workspace",
                               .kind = CAPU_WORKSPACE);
    }
    if (status != CAPU_OK) {
        snprintf(text, text_bytes, "workspace of a group: %s", capu_last_error(group->context));
    }
    return status;
}

static void free_own(struct capu_parallel *group)
{
    (void)capu_free(group->context, group->workspace);
    pthread_mutex_destroy(&group->lock);
    /* What is under way may still arrive. */
    if (!group->is_broken) {
        free(group->headers);
        free(group->requests);
    }
    free(group);
}

/* Duplicates the communicator, and learns whether all ranks are ready, with the same buckets. */
static capu_status join_ranks(struct capu_parallel *group, MPI_Comm comm, capu_status own,
                              char *text, size_t text_bytes)
{
    capu_status status = startup_agree(comm, own, text, text_bytes);
    int64_t buckets[2] = {(int64_t)group->bucket_bytes, -(int64_t)group->bucket_bytes};

    if (status != CAPU_OK) {
        return status;
    }
    if (MPI_Comm_dup(comm, &group->comm) != MPI_SUCCESS) {
        snprintf(text, text_bytes, "MPI_Comm_dup failed");
        return CAPU_OP_FAILED;
    }
    /* Errors come back, instead of ending the process. */
    MPI_Comm_set_errhandler(group->comm, MPI_ERRORS_RETURN);
    if (MPI_Allreduce(MPI_IN_PLACE, buckets, 2, MPI_INT64_T, MPI_MIN, group->comm) != MPI_SUCCESS ||
        buckets[0] != -buckets[1]) {
        snprintf(text, text_bytes, "bucket_bytes differ between ranks");
        status = CAPU_OP_FAILED;
    }
    if (status == CAPU_OK) {
        status = watch_open(&group->watch, group->comm);
        if (status != CAPU_OK) {
            snprintf(text, text_bytes, "watching the other ranks: %s", capu_status_text(status));
        }
        status = startup_agree(group->comm, status, text, text_bytes);
    }
    if (status != CAPU_OK) {
        watch_close(&group->watch);
        MPI_Comm_free(&group->comm);
    }
    return status;
}

static capu_status check_device(const capu_context *context, bool *is_simulated, char *text,
                                size_t text_bytes)
{
    const char *device = capu_context_device(context);

    *is_simulated = strcmp(device, "sim") == 0;
    if (!*is_simulated && strcmp(device, "host") != 0) {
        snprintf(text, text_bytes, "collectives need the host device; this context is on %s",
                 device);
        return CAPU_UNSUPPORTED;
    }
    return CAPU_OK;
}

static capu_status create_group(capu_context *context, MPI_Comm comm,
                                const capu_parallel_options *from, capu_parallel **out, char *text,
                                size_t text_bytes)
{
    capu_parallel_options options;
    struct capu_parallel *group;
    bool is_simulated = false;
    capu_status status = startup_check(text, text_bytes);

    if (status != CAPU_OK) {
        return status; /* the same everywhere: there is nothing to ask */
    }
    status = check_device(context, &is_simulated, text, text_bytes);
    if (status == CAPU_OK) {
        status = read_options(from, &options, text, text_bytes);
    }
    group = status == CAPU_OK ? calloc(1, sizeof(*group)) : NULL;
    if (group == NULL) {
        status = status == CAPU_OK ? CAPU_NO_HOST_MEMORY : status;
        return is_simulated ? status : startup_agree(comm, status, text, text_bytes);
    }
    group->context = context;
    group->is_simulated = is_simulated;
    group->bucket_bytes = options.bucket_bytes;
    group->wait_limit_ns = options.wait_limit_ns;
    pthread_mutex_init(&group->lock, NULL);
    MPI_Comm_rank(comm, &group->rank);
    MPI_Comm_size(comm, &group->ranks);
    status = make_own(group, text, text_bytes);
    if (!is_simulated) {
        status = join_ranks(group, comm, status, text, text_bytes);
    }
    if (status != CAPU_OK) {
        free_own(group);
        return status;
    }
    *out = group;
    return CAPU_OK;
}

capu_status capu_parallel_create(capu_context *context, MPI_Comm comm,
                                 const capu_parallel_options *options, capu_parallel **group)
{
    char text[GROUP_TEXT_BYTES] = "";
    capu_status status;

    context = context != NULL ? context : capu_context_current();
    if (context == NULL || group == NULL) {
        return CAPU_INVALID;
    }
    status = create_group(context, comm, options, group, text, sizeof(text));
    if (status != CAPU_OK && options != NULL && options->size == sizeof(*options) &&
        options->error != NULL && options->error_bytes > 0) {
        snprintf(options->error, options->error_bytes, "%s",
                 text[0] != '\0' ? text : capu_status_text(status));
    }
    return status;
}

void capu_parallel_destroy(capu_parallel *group)
{
    struct group_header header = exchange_header(GROUP_LEAVE, 0, 0, "capu_parallel_destroy");

    if (group == NULL) {
        return;
    }
    if (!group->is_simulated) {
        (void)capu_synchronize(group->context);
        pthread_mutex_lock(&group->lock);
        (void)exchange_meet(group, &header);
        pthread_mutex_unlock(&group->lock);
        watch_close(&group->watch);
        /* A group that has failed without being broken did so where all ranks met: nothing is under
           way, and all of them free it. */
        if (!group->is_broken) {
            MPI_Comm_free(&group->comm);
        }
    }
    free_own(group);
}

int capu_parallel_rank(const capu_parallel *group)
{
    return group != NULL ? group->rank : 0;
}

int capu_parallel_ranks(const capu_parallel *group)
{
    return group != NULL ? group->ranks : 1;
}

const char *capu_parallel_error(const capu_parallel *group)
{
    return group != NULL && atomic_load_explicit(&group->has_ended, memory_order_acquire)
               ? group->error
               : "";
}

void capu_parallel_fail(capu_parallel *group, capu_status status, const char *text)
{
    if (group != NULL) {
        exchange_give_up(group, status != CAPU_OK ? status : CAPU_OP_FAILED, "capu_parallel_fail",
                         text != NULL ? text : "");
    }
}
