/*
 * Graphs: an iteration that is recorded once and launched many times, as CUDA graphs.
 *
 * A steady iteration in guided mode makes the same launches, copies, waits and replays each time.
 * Between capu_graph_begin and capu_graph_end it is captured: recorded as a graph instead of being
 * issued call by call, and run by one launch at the end. capu_graph_launch runs it again, without
 * any call per op. A capture can also be repeated each time, with other arguments: then the graph
 * is updated in place.
 *
 *     capu_graph *graph;
 *     capu_graph_create(context, &graph);
 *     for (;;) {
 *         ... capu_upload the inputs, which outlive the iteration ...
 *         if (capu_graph_launch(graph) == CAPU_OK) continue;
 *         is_captured = capu_graph_begin(graph, "train") == CAPU_OK;
 *         if (!is_captured) capu_iteration_begin(context, "train");
 *         ... ops ...
 *         is_captured ? capu_graph_end(graph) : capu_iteration_end(context);
 *     }
 *
 * A graph belongs to the plan under which it was captured, and to the memory that it names. What
 * has changed since is noticed and refused by name; then the iteration is captured again. While
 * graphs are launched, the plan stays: a better one is taken by the next iteration that is not a
 * launch. docs/cuda.md, "Graphs", says what may change between launches. So far graphs have run
 * over a CUDA runtime made for tests only, not on a GPU.
 *
 * Work of the program's own goes between capu_graph_begin and capu_graph_end, on the compute
 * stream: that is captured, so the work becomes part of the graph, in its place between the ops,
 * and runs at every launch. Work that touches tensors lies within an access, as always
 * (capu_access_begin).
 *
 * A program must not capture the compute stream by itself: calls of the library are refused at once
 * then, with WRONG_ORDER, and leave its capture intact. The library can see neither the end of such
 * a capture nor its launches. So it could neither keep the plan active for as long as they run nor
 * order its own copies after them.
 *
 * Only the cuda device has graphs. Thread: that of the context.
 */
#ifndef CAPU_INCLUDE_GRAPH_H
#define CAPU_INCLUDE_GRAPH_H

#include "capuchin/context.h"
#include "capuchin/status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct capu_graph capu_graph;

/*
 * Creates a graph with nothing in it. The caller destroys it, before the context; otherwise the
 * context does so when it is destroyed.
 * Errors: INVALID (`graph` is NULL), UNSUPPORTED (the device has no graphs, the mode is not guided,
 * or strict mode or timelines are on: then no iteration can be captured), NO_HOST_MEMORY.
 */
CAPU_API capu_status capu_graph_create(capu_context *context, capu_graph **graph);

/* Destroys a graph, once its launches have finished. NULL is fine. A capture that is open is given
   up; if it is this graph's, its iteration is ended by capu_iteration_end. */
CAPU_API void capu_graph_destroy(capu_graph *graph);

/*
 * Begins an iteration as capu_iteration_begin does, and captures it. What the graph had before is
 * replaced when the capture succeeds; if the work has the same shape, in place.
 *
 * Ops are then checked, recorded and reported as always, but nothing runs before capu_graph_end.
 * Run functions are called and launch as always; they must not wait for the stream or query it or
 * their events. If one does, CUDA discards the capture, and capu_graph_end returns OP_FAILED: what
 * the iteration did is lost. capu_malloc, capu_realloc, capu_free, capu_split,
 * capu_tensor_describe, capu_download and capu_synchronize return WRONG_ORDER meanwhile.
 *
 * What cannot be captured is refused, and no iteration is open then; begin it with
 * capu_iteration_begin. NOT_READY: it may work later. No plan is active for such iterations, the
 * plan has no places for tensors (capu_report.unplaced), or the iteration is one whose ops are
 * timed, as in the first iterations under a plan and then in one of sample_every.
 *
 * Stream order: compute stream. Errors: INVALID, NOT_READY, WRONG_ORDER (an iteration is open, or
 * the program captures the stream), and those of capu_iteration_begin.
 */
CAPU_API capu_status capu_graph_begin(capu_graph *graph, const char *label);

/*
 * Ends the capture and the iteration, and launches the graph: now the iteration runs.
 *
 * If the iteration turned out to be another one than planned, or an op failed, what had been
 * recorded was launched at once and the rest ran without a graph, as after capu_iteration_begin.
 * Then the iteration is ended all the same, and the result is NOT_READY with the reason; the graph
 * has nothing to launch.
 *
 * Stream order: compute stream. Errors: INVALID, WRONG_ORDER (the graph is not being captured, or a
 * segment is open), NOT_READY (see above), OVER_BUDGET (no device memory for the graph: destroy the
 * context), OP_FAILED (CUDA discarded the capture: destroy the context), and those of
 * capu_iteration_end.
 */
CAPU_API capu_status capu_graph_end(capu_graph *graph);

/*
 * Runs the captured iteration again: one launch on the compute stream. It counts as an iteration
 * and has a report, in which `timed` is 0 and the evictions are those of the capture; in the report
 * file `graph` is 1. Waits as capu_iteration_begin does, so the host is never more than two
 * iterations ahead.
 *
 * What was captured is repeated as it is: the same addresses, and the arguments that run functions
 * had then. New inputs are uploaded before: with capu_upload into tensors that outlive iterations,
 * or with capu_graph_upload where the captured iteration itself uploads. Arguments that change
 * are read from memory by the kernels, or captured again.
 *
 * Refused, and nothing has run, though transient tensors may be undefined as at the beginning of an
 * iteration: WRONG_ORDER with the reason, if the graph has nothing to launch,
 * if an iteration is open, if another plan is active, if memory was freed, split or described anew
 * since, or if a tensor is not as it was when the capture began, because it was written, evicted or
 * zeroed in between or is undefined. NOT_READY: the iteration is the one that is to be traced.
 *
 * Stream order: compute stream. Errors: INVALID, WRONG_ORDER, NOT_READY, NO_HOST_MEMORY,
 * DEVICE_FAILED, OP_FAILED, DEVICE_LOST.
 */
CAPU_API capu_status capu_graph_launch(capu_graph *graph);

/*
 * Replaces what later launches upload: where the captured iteration called capu_upload to `to` with
 * as many bytes, these bytes take the place of those that it had. Where it did so more than once,
 * the first of these uploads is meant. `from` is copied before the call returns. Does not wait.
 *
 * Errors: INVALID (NULL), WRONG_ORDER (the graph has nothing to launch), WRONG_ADDRESS (the
 * captured iteration does not upload so many bytes to there), DEVICE_FAILED, DEVICE_LOST.
 */
CAPU_API capu_status capu_graph_upload(capu_graph *graph, void *to, const void *from, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
