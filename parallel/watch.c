/* Watching processes, see watch.h. */
#define _GNU_SOURCE
#include "parallel/watch.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* How a rank can be found by others on its host. */
struct place {
    int64_t process;
    uint64_t device; /* the process's namespace of process numbers */
    uint64_t number;
    int64_t rank;
};

static struct place own_place(int rank)
{
    struct place place = {.process = getpid(), .rank = rank};
    struct stat space;

    if (stat("/proc/self/ns/pid", &space) == 0) {
        place.device = space.st_dev;
        place.number = space.st_ino;
    }
    return place;
}

/* Watches one process. A kernel that cannot is not an error. */
static capu_status add_process(struct watch *watch, const struct place *place)
{
    int file = (int)syscall(SYS_pidfd_open, (pid_t)place->process, 0);

    if (file < 0) {
        return errno == EMFILE || errno == ENFILE ? CAPU_SYSTEM_LIMIT
               : errno == ENOMEM                  ? CAPU_NO_HOST_MEMORY
               : errno == ESRCH                   ? CAPU_OP_FAILED
                                                  : CAPU_OK;
    }
    watch->processes[watch->count] = (struct pollfd){.fd = file, .events = POLLIN};
    watch->ranks[watch->count] = (int)place->rank;
    watch->count++;
    return CAPU_OK;
}

static capu_status add_processes(struct watch *watch, const struct place *places, int count,
                                 int own)
{
    capu_status status = CAPU_OK;

    for (int i = 0; i < count && status == CAPU_OK; i++) {
        if (i != own && places[i].device == places[own].device &&
            places[i].number == places[own].number) {
            status = add_process(watch, &places[i]);
        }
    }
    return status;
}

/* Over the ranks of one host. */
static capu_status open_on(struct watch *watch, MPI_Comm host, int rank)
{
    struct place own = own_place(rank);
    struct place *places;
    capu_status status = CAPU_OK;
    int count;
    int local;

    MPI_Comm_size(host, &count);
    MPI_Comm_rank(host, &local);
    places = calloc((size_t)count, sizeof(*places));
    watch->processes = calloc((size_t)count, sizeof(*watch->processes));
    watch->ranks = calloc((size_t)count, sizeof(*watch->ranks));
    if (places == NULL || watch->processes == NULL || watch->ranks == NULL) {
        /* The others must not wait for this rank. */
        status = CAPU_NO_HOST_MEMORY;
        count = 0;
    }
    if (MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_INT, MPI_MIN, host) != MPI_SUCCESS) {
        status = CAPU_OP_FAILED;
    }
    if (status == CAPU_OK && count > 0) {
        /* A process that takes part in the barrier was alive when it was opened, so its number did
           not belong to another one. */
        if (MPI_Allgather(&own, sizeof(own), MPI_BYTE, places, sizeof(own), MPI_BYTE, host) !=
            MPI_SUCCESS) {
            status = CAPU_OP_FAILED;
        } else {
            status = add_processes(watch, places, count, local);
            status = MPI_Barrier(host) == MPI_SUCCESS ? status : CAPU_OP_FAILED;
        }
    }
    free(places);
    return status;
}

capu_status watch_open(struct watch *watch, MPI_Comm comm)
{
    capu_status status = CAPU_OP_FAILED;
    MPI_Comm host;
    int rank;

    *watch = (struct watch){0};
    MPI_Comm_rank(comm, &rank);
    if (MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host) !=
        MPI_SUCCESS) {
        return CAPU_OP_FAILED;
    }
    status = open_on(watch, host, rank);
    MPI_Comm_free(&host);
    if (status != CAPU_OK) {
        watch_close(watch);
    }
    return status;
}

int watch_ended(struct watch *watch)
{
    if (watch->count > 0 && poll(watch->processes, (nfds_t)watch->count, 0) > 0) {
        for (int i = 0; i < watch->count; i++) {
            if (watch->processes[i].revents != 0) {
                return watch->ranks[i];
            }
        }
    }
    return -1;
}

void watch_close(struct watch *watch)
{
    for (int i = 0; i < watch->count; i++) {
        close(watch->processes[i].fd);
    }
    free(watch->processes);
    free(watch->ranks);
    *watch = (struct watch){0};
}
