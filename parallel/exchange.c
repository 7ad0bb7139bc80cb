/*
 * Messages between ranks, see exchange.h.
 *
 * All messages go from one rank to one rank, so a rank that waits knows for whom. Waiting polls
 * with short sleeps: MPI libraries progress only in calls and spin in those that wait, and the
 * cores are for the ops.
 */
#include "parallel/exchange.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Sleeps become longer, up to NAP_NS. A rank that has ended may have sent everything before; what
   is on its way arrives within GRACE_NS. */
enum { FIRST_NAP_NS = 5000, NAP_NS = 200000, GRACE_NS = 200000000, TAG = 1 };

const char *group_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        [GROUP_ALLREDUCE] = "allreduce", [GROUP_BROADCAST] = "broadcast",
        [GROUP_ALLGATHER] = "allgather", [GROUP_REDUCE_SCATTER] = "reduce-scatter",
        [GROUP_FAILURE] = "failure",     [GROUP_LEAVE] = "leave",
    };

    return kind >= GROUP_ALLREDUCE && kind <= GROUP_LEAVE ? names[kind] : "unknown";
}

const char *group_type_name(uint32_t type)
{
    static const char *const names[] = {
        [CAPU_PARALLEL_BYTE] = "byte", [CAPU_PARALLEL_F32] = "f32", [CAPU_PARALLEL_F64] = "f64",
        [CAPU_PARALLEL_I32] = "i32",   [CAPU_PARALLEL_I64] = "i64",
    };

    return type >= CAPU_PARALLEL_BYTE && type <= CAPU_PARALLEL_I64 ? names[type] : "unknown";
}

size_t group_type_bytes(uint32_t type)
{
    static const size_t bytes[] = {
        [CAPU_PARALLEL_BYTE] = 1, [CAPU_PARALLEL_F32] = 4, [CAPU_PARALLEL_F64] = 8,
        [CAPU_PARALLEL_I32] = 4,  [CAPU_PARALLEL_I64] = 8,
    };

    return type >= CAPU_PARALLEL_BYTE && type <= CAPU_PARALLEL_I64 ? bytes[type] : 0;
}

uint64_t exchange_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* FNV-1a. base/hash.h is part of libcapuchin, of which this library sees only the headers in
 * include.
 */
static uint64_t hash_name(const char *text)
{
    uint64_t value = UINT64_C(0xcbf29ce484222325);

    for (; *text != '\0'; text++) {
        value = (value ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return value;
}

struct group_header exchange_header(enum group_kind kind, uint32_t type, int root, const char *name)
{
    struct group_header header = {
        .name_hash = hash_name(name),
        .kind = kind,
        .type = type,
        .root = (uint32_t)root,
    };

    snprintf(header.name, sizeof(header.name), "%s", name);
    return header;
}

capu_status exchange_end(struct capu_parallel *group, const char *format, ...)
{
    va_list arguments;

    if (!atomic_load_explicit(&group->has_ended, memory_order_relaxed)) {
        va_start(arguments, format);
        vsnprintf(group->error, sizeof(group->error), format, arguments);
        va_end(arguments);
        atomic_store_explicit(&group->has_ended, true, memory_order_release);
    }
    return CAPU_OP_FAILED;
}

/* Ends the group after an MPI call that failed, or would never end. */
static capu_status break_off(struct capu_parallel *group, const char *name, int rank,
                             const char *what)
{
    group->is_broken = true;
    return exchange_end(group, "'%s': rank %d %s", name, rank, what);
}

static capu_status check_mpi(struct capu_parallel *group, const char *name, int rank, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "unknown MPI error";
    int length;

    if (code == MPI_SUCCESS) {
        return CAPU_OK;
    }
    (void)MPI_Error_string(code, text, &length);
    return break_off(group, name, rank, text);
}

capu_status exchange_receive(struct capu_parallel *group, const char *name, int rank, void *to,
                             uint64_t bytes)
{
    return check_mpi(
        group, name, rank,
        MPI_Irecv(to, (int)bytes, MPI_BYTE, rank, TAG, group->comm, &group->requests[2 * rank]));
}

capu_status exchange_send(struct capu_parallel *group, const char *name, int rank, const void *from,
                          uint64_t bytes)
{
    return check_mpi(group, name, rank,
                     MPI_Isend(from, (int)bytes, MPI_BYTE, rank, TAG, group->comm,
                               &group->requests[2 * rank + 1]));
}

/* Tests what is under way. *missing: a rank with which something is not complete; -1: none. */
static capu_status test_all(struct capu_parallel *group, const char *name, int *missing)
{
    *missing = -1;
    for (int i = 0; i < 2 * group->ranks; i++) {
        int is_complete = 1;
        capu_status status = CAPU_OK;

        if (group->requests[i] != MPI_REQUEST_NULL) {
            status = check_mpi(group, name, i / 2,
                               MPI_Test(&group->requests[i], &is_complete, MPI_STATUS_IGNORE));
        }
        if (status != CAPU_OK) {
            return status;
        }
        if (!is_complete && *missing < 0) {
            *missing = i / 2;
        }
    }
    return CAPU_OK;
}

capu_status exchange_wait(struct capu_parallel *group, const char *name)
{
    uint64_t start_ns = exchange_now_ns();
    uint64_t ended_ns = 0;
    long nap_ns = FIRST_NAP_NS;
    int ended = -1; /* the first rank that has; others follow it */
    int missing;
    capu_status status = test_all(group, name, &missing);

    while (status == CAPU_OK && missing >= 0) {
        const struct timespec nap = {.tv_nsec = nap_ns};
        uint64_t now_ns = exchange_now_ns();

        if (ended < 0) {
            ended = watch_ended(&group->watch);
            ended_ns = now_ns;
        }
        if (ended >= 0 && now_ns - ended_ns >= GRACE_NS) {
            return break_off(group, name, ended, "has ended");
        }
        if (group->wait_limit_ns > 0 && now_ns - start_ns >= group->wait_limit_ns) {
            return break_off(group, name, missing, "has not answered within the limit");
        }
        nanosleep(&nap, NULL);
        nap_ns = nap_ns * 2 < NAP_NS ? nap_ns * 2 : NAP_NS;
        status = test_all(group, name, &missing);
    }
    return status;
}

static void describe_header(char *text, size_t bytes, const struct group_header *header)
{
    if (header->kind == GROUP_LEAVE) {
        snprintf(text, bytes, "leaves the group");
    } else {
        snprintf(text, bytes, "has %s '%s' of %" PRIu64 " bytes (%s, root %u)",
                 group_kind_name(header->kind), header->name, header->bytes,
                 group_type_name(header->type), header->root);
    }
}

/* All ranks see the same headers, so they come to the same result. */
static capu_status compare_headers(struct capu_parallel *group)
{
    const struct group_header *first = &group->headers[0];
    char expected[160];
    char found[160];

    for (int i = 0; i < group->ranks; i++) {
        const struct group_header *header = &group->headers[i];

        if (header->status != CAPU_OK) {
            return exchange_end(group, "rank %d failed at '%s': %s: %s", i, header->name,
                                capu_status_name((capu_status)header->status), header->why);
        }
    }
    for (int i = 1; i < group->ranks; i++) {
        if (memcmp(&group->headers[i], first, sizeof(*first)) != 0) {
            describe_header(expected, sizeof(expected), first);
            describe_header(found, sizeof(found), &group->headers[i]);
            return exchange_end(group, "collectives differ: rank 0 %s, but rank %d %s", expected, i,
                                found);
        }
    }
    return CAPU_OK;
}

capu_status exchange_meet(struct capu_parallel *group, struct group_header *own)
{
    capu_status status = CAPU_OK;

    if (atomic_load_explicit(&group->has_ended, memory_order_relaxed)) {
        return CAPU_OP_FAILED;
    }
    own->serial = ++group->serial;
    group->headers[group->rank] = *own;
    for (int i = 0; i < group->ranks && status == CAPU_OK; i++) {
        if (i != group->rank) {
            status = exchange_receive(group, own->name, i, &group->headers[i], sizeof(*own));
        }
    }
    for (int i = 0; i < group->ranks && status == CAPU_OK; i++) {
        if (i != group->rank) {
            status = exchange_send(group, own->name, i, &group->headers[group->rank], sizeof(*own));
        }
    }
    status = status == CAPU_OK ? exchange_wait(group, own->name) : status;
    return status == CAPU_OK ? compare_headers(group) : status;
}

void exchange_give_up(struct capu_parallel *group, capu_status failure, const char *name,
                      const char *why)
{
    struct group_header header = exchange_header(GROUP_FAILURE, 0, 0, name);

    header.status = failure;
    snprintf(header.why, sizeof(header.why), "%s", why);
    if (!group->is_simulated) {
        /* Earlier collectives come first. If the context is lost they never run, and the others
           learn why now. */
        (void)capu_synchronize(group->context);
        pthread_mutex_lock(&group->lock);
        (void)exchange_meet(group, &header);
        pthread_mutex_unlock(&group->lock);
    }
    (void)exchange_end(group, "this rank failed at '%s': %s: %s", name, capu_status_name(failure),
                       why);
}
