/*
 * The inside of a group, shared by the files of this room.
 *
 * Threads: the context's thread creates and destroys the group and issues collectives; the thread
 * of the compute stream carries them out. Whichever thread talks to the other ranks holds `lock`,
 * and what it guards is written by that thread only. `error` is written before `has_ended` is set,
 * and never again.
 */
#ifndef CAPU_PARALLEL_GROUP_H
#define CAPU_PARALLEL_GROUP_H

#include "capuchin/parallel.h"

#include "parallel/watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { GROUP_NAME_BYTES = 64, GROUP_WHY_BYTES = 128, GROUP_TEXT_BYTES = 400 };

enum group_kind {
    GROUP_ALLREDUCE = 1,
    GROUP_BROADCAST = 2,
    GROUP_ALLGATHER = 3,
    GROUP_REDUCE_SCATTER = 4,
    GROUP_FAILURE = 5, /* the rank has failed; not a collective */
    GROUP_LEAVE = 6    /* the rank destroys its group */
};

/* What the ranks tell each other before a collective. Without padding: compared as bytes. */
struct group_header {
    uint64_t serial; /* counts the exchanges of the group */
    uint64_t bytes;  /* of the range on each rank */
    uint64_t name_hash;
    uint32_t kind; /* enum group_kind */
    uint32_t type; /* capu_parallel_type */
    uint32_t root;
    int32_t status; /* capu_status: why this rank cannot take part */
    char name[GROUP_NAME_BYTES];
    char why[GROUP_WHY_BYTES]; /* if status is not OK */
};

struct capu_parallel {
    capu_context *context; /* the caller's; outlives the group */
    bool is_simulated;     /* nothing is sent, and no op runs */
    int rank;
    int ranks;
    uint64_t bucket_bytes;
    uint64_t wait_limit_ns; /* 0: none */
    void *workspace;        /* of the context; NULL for one rank */

    pthread_mutex_t lock; /* guards the rest, but for has_ended and error */
    MPI_Comm comm;        /* a duplicate */
    uint64_t serial;
    struct watch watch;
    struct group_header *headers; /* one per rank */
    MPI_Request *requests;        /* two per rank: what comes from it, and what goes to it */
    bool is_broken;               /* no MPI call any more; requests may still be under way */

    atomic_bool has_ended;
    char error[GROUP_TEXT_BYTES];
};

/* "allreduce"; a constant. */
const char *group_kind_name(uint32_t kind);

/* "f32"; a constant. */
const char *group_type_name(uint32_t type);

/* Bytes of an element; 0: there is no such type. */
size_t group_type_bytes(uint32_t type);

/* Device memory that collectives need beside their operands, for buckets of this size
   (collectives.c). */
uint64_t collectives_workspace_bytes(uint64_t bucket_bytes, int ranks);

#endif
