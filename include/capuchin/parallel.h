/*
 * Several processes: collective operations on managed tensors, over MPI.
 *
 * The library libcapuchin-mpi is separate from libcapuchin, and comes from the same build. Each
 * process (rank) has a context of its own; this header lets the contexts of one
 * communicator exchange the contents of tensors, as ops of the compute stream:
 *
 *     MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
 *     capu_config config = CAPU_CONFIG_INIT;
 *     capu_parallel_config(MPI_COMM_WORLD, &config);            rank, shares of the machine
 *     capu_context_create(&config, &context);
 *     capu_parallel_create(context, MPI_COMM_WORLD, NULL, &group);
 *     ...
 *     capu_parallel_allreduce(group, "gradients", gradients, count, CAPU_PARALLEL_F32);
 *     ...
 *     capu_parallel_destroy(group);                             also after a failure
 *     capu_context_destroy(context);
 *     MPI_Finalize();
 *
 * One order. All ranks issue the collectives of this header, and their own blocking MPI calls, in
 * the same order, because any call of the library may wait for an earlier collective: a rank that
 * waits in MPI_Barrier before it issues a collective, while another one issues it first and then
 * calls capu_download, waits for ever. docs/parallel.md has an example that fails. Whether and in
 * which order a rank sends messages depends only on the calls of the program, never on memory,
 * mode, plan, divergence or timing: collectives are never replayed.
 *
 * Headers. Before a collective exchanges data, the ranks exchange a header: serial number, kind,
 * type, bytes, name, status. Until all headers are there, the op waits for others; that time is
 * capu_report.waited_ns, and neither compute nor stall. The rest is exchange_ns in the
 * report file. Headers that differ end the collective on all ranks, with the names of both.
 *
 * Failures. A collective that fails in flight makes later calls of the context return OP_FAILED,
 * and capu_last_error and capu_parallel_error name the collective and the rank. Then the group
 * makes no MPI call any more. If the cause is a rank that has ended (ranks on the same host are
 * watched) or one that did not answer within the limit, MPI itself may hang: end the process with
 * _exit. If the cause is a rank that said it has failed, or a mismatch, MPI_Finalize still works.
 * A rank whose own call fails before anything was sent (OVER_BUDGET, for example) tells the others,
 * whose collective then ends with its status and rank.
 *
 * Threads: all calls come from the context's thread. MPI must provide MPI_THREAD_MULTIPLE, since
 * the collectives run on the thread of the compute stream. Comments list statuses without the
 * prefix CAPU_. Device: host; others answer UNSUPPORTED.
 */
#ifndef CAPU_INCLUDE_PARALLEL_H
#define CAPU_INCLUDE_PARALLEL_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "capuchin/context.h"
#include "capuchin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The ranks of one communicator, each with its context. */
typedef struct capu_parallel capu_parallel;

/* The type of the elements. All ranks need one byte order and one type of processor. */
typedef enum capu_parallel_type {
    CAPU_PARALLEL_BYTE = 1, /* for broadcast and allgather only */
    CAPU_PARALLEL_F32 = 2,
    CAPU_PARALLEL_F64 = 3,
    CAPU_PARALLEL_I32 = 4, /* sums wrap around */
    CAPU_PARALLEL_I64 = 5
} capu_parallel_type;

/* Zero means "default" in every field. */
typedef struct capu_parallel_options {
    size_t size; /* sizeof(capu_parallel_options), as the caller was compiled */
    /* Data is exchanged in pieces of at most this size, and the group has a workspace of this size
       in device memory. The same on all ranks. Default: 1 MiB */
    uint64_t bucket_bytes;
    /* How long a rank waits for others at a time: for their headers, or for the next piece of
       data. Default: no limit; the end of a rank on the same host is noticed without one */
    uint64_t wait_limit_ns;
    /* Buffer for the error text of capu_parallel_create; borrowed for that call. Default: no text
     */
    char *error;
    size_t error_bytes;
} capu_parallel_options;

#define CAPU_PARALLEL_OPTIONS_INIT            \
    {                                         \
        .size = sizeof(capu_parallel_options) \
    }

/*
 * Fills in what a context should know about its place among others, before it is created:
 *
 * - The settings rank, ranks and local_ranks: the rank, how many there are, and how many share this
 *   host. `%r` in the names of report, trace and plan files becomes the rank, `%%` a percent sign.
 * - config->host_budget_bytes, if neither the field nor CAPUCHIN_HOST_BUDGET is set: the library's
 *   default, from the available memory as the first rank of each host reads it, divided by that
 *   host's ranks.
 * - The settings link_d2h and link_h2d, if they are not set and the mode may be guided: the rates
 * of the link while all ranks of the host copy at the same time.
 *
 * Collective over `comm`, which may be any intra-communicator; a program that was started without a
 * launcher is one rank. Errors, which are the same on all ranks, with a text in config->error:
 * INVALID (`config` is NULL), WRONG_STRUCT, WRONG_ORDER (MPI is not initialised, or finalised),
 * UNSUPPORTED (MPI provides less than MPI_THREAD_MULTIPLE; the text names MPI_Init_thread),
 * OP_FAILED (an MPI call failed), and those of capu_context_create for the device.
 */
CAPU_API capu_status capu_parallel_config(MPI_Comm comm, capu_config *config);

/*
 * Makes a group of the contexts of all ranks of `comm`, which is duplicated. Ranks on the same host
 * watch each other from now on. `options` NULL means the defaults. Allocates the workspace from the
 * context (transient, kind workspace).
 *
 * Collective: all ranks succeed or all fail. Owner: the caller, until capu_parallel_destroy, which
 * comes before the end of the context. Errors: INVALID, WRONG_STRUCT, WRONG_ORDER and UNSUPPORTED
 * as above, UNSUPPORTED also for a device other than host, OP_FAILED (an MPI call or another rank
 * failed; bucket_bytes differ), NO_HOST_MEMORY, SYSTEM_LIMIT, and those of capu_malloc.
 */
CAPU_API capu_status capu_parallel_create(capu_context *context, MPI_Comm comm,
                                          const capu_parallel_options *options,
                                          capu_parallel **group);

/*
 * Waits for the context's work, tells the other ranks that this one leaves, waits until they leave
 * too, and frees the group. A rank that leaves while others issue a collective makes that
 * collective fail there, by name; so call it also on the way out of a failure, before MPI_Finalize.
 * NULL is allowed.
 */
CAPU_API void capu_parallel_destroy(capu_parallel *group);

/* This rank, and how many there are. 0 and 1 if the group is NULL. */
CAPU_API int capu_parallel_rank(const capu_parallel *group);
CAPU_API int capu_parallel_ranks(const capu_parallel *group);

/* Why the group has failed, naming collective and rank; "" if it has not. Valid until
   capu_parallel_destroy. */
CAPU_API const char *capu_parallel_error(const capu_parallel *group);

/*
 * Tells the other ranks that this one has failed, so that they end with this status and text
 * instead of waiting: for failures that are not the group's, such as a file that cannot be read.
 * Waits for the context's work and for the others, at most as long as wait_limit_ns. The group can
 * then only be destroyed. Does nothing if it has failed already.
 */
CAPU_API void capu_parallel_fail(capu_parallel *group, capu_status status, const char *text);

/*
 * The collectives. Each is one op, or several if its range has several tensors, issued on the
 * compute stream like capu_run; the call returns when they are enqueued. All ranks give the same
 * name, type, count and root, and ranges that are split into tensors of the same sizes. `name` is
 * for reports, traces and errors, and is kept like the name of an op.
 *
 * Errors: those of capu_run; INVALID (no name, no such type, a tensor that ends inside an element);
 * OP_FAILED once the group has failed. After an error that leaves the context usable the group has
 * failed, since the other ranks have been told.
 */

/*
 * Replaces each element of [address, address + count) by its sum over all ranks, added in the order
 * of the ranks, ((x0 + x1) + x2) + ...: the same bits on all ranks, for any bucket_bytes, and those
 * of one process that adds the same numbers in that order. The range may have several tensors: one
 * op takes one tensor, or neighbours that fit into bucket_bytes together.
 */
CAPU_API capu_status capu_parallel_allreduce(capu_parallel *group, const char *name, void *address,
                                             size_t count, capu_parallel_type type);

/* Copies the elements of `root` to all other ranks. There they are written, and need no contents
   before. Ops as for allreduce. */
CAPU_API capu_status capu_parallel_broadcast(capu_parallel *group, const char *name, void *address,
                                             size_t count, capu_parallel_type type, int root);

/* Stores the `count` elements at `from` of all ranks at `to`, which has room for count * ranks, in
   the order of the ranks. The ranges do not overlap. One op. */
CAPU_API capu_status capu_parallel_allgather(capu_parallel *group, const char *name, void *to,
                                             const void *from, size_t count,
                                             capu_parallel_type type);

/* Adds up the count * ranks elements at `from` of all ranks as allreduce does, and stores the part
   of this rank, `count` elements from count * rank, at `to`. The ranges do not overlap. One op. */
CAPU_API capu_status capu_parallel_reduce_scatter(capu_parallel *group, const char *name, void *to,
                                                  const void *from, size_t count,
                                                  capu_parallel_type type);

#ifdef __cplusplus
}
#endif

#endif
