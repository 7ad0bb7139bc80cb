/*
 * Timelines for profilers: views as a trace that Perfetto opens. Planned and measured iterations
 * are two processes with the same tracks: iterations, compute, replays, out, in, host, and counters
 * of bytes. A flow leads from each eviction over its return to the back-access. Slices have the
 * names that NVTX ranges have in Nsight.
 *
 * Views are added one by one, in order of time for each process, and need not be kept.
 */
#ifndef CAPU_TOOLS_TIMELINE_EXPORT_H
#define CAPU_TOOLS_TIMELINE_EXPORT_H

#include "tools/view/perfetto.h"
#include "tools/view/view.h"

/* Slices of a track must not overlap. Tensors on the host do, and measured times of ops may by a
   nanosecond, as they are rounded: then there are several tracks of one name. */
struct timeline_rows {
    uint64_t *ends_ns; /* per track: of its last slice */
    size_t count;
    size_t capacity;
};

enum timeline_row_kind {
    TIMELINE_COMPUTE,
    TIMELINE_REPLAYS,
    TIMELINE_OUT,
    TIMELINE_IN,
    TIMELINE_HOST,
    TIMELINE_ROW_KINDS
};

struct timeline_export {
    struct perfetto trace;
    bool is_described[2]; /* per enum view_source: its tracks exist */
    bool has_kind[2][VIEW_KIND_COUNT];
    struct timeline_rows rows[2][TIMELINE_ROW_KINDS];
    struct string_buffer name; /* of the slice being made */
    uint64_t flows;            /* given out so far */
    bool has_origin;
    uint64_t origin_ns; /* of the trace: the first iteration begins here, so that nothing is before
                           0 */
};

/* Adds an iteration that begins so many nanoseconds after the first one. */
void timeline_export_view(struct timeline_export *export, const struct view *view,
                          uint64_t begin_ns);

/* Adds an iteration of which only this is known. `mode` as in reports. */
void timeline_export_iteration(struct timeline_export *export, uint64_t number, const char *label,
                               const char *mode, uint64_t begin_ns, uint64_t time_ns);

/* Frees what was added; the struct is zeroed. */
void timeline_export_discard(struct timeline_export *export);

/* Writes the file. False: an error has been printed. The struct is zeroed in any case. */
bool timeline_export_write(struct timeline_export *export, const char *path);

#endif
