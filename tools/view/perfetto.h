/*
 * Writes traces for Perfetto (ui.perfetto.dev), in its protobuf format: processes, tracks with
 * slices, counters, and flows between slices. Only the few fields that these need are written, by
 * their numbers; docs/report.md says what our traces contain.
 *
 * Slices of one track must not overlap and must come in order; tracks may come in any order.
 * Errors are kept: after one, nothing more is written, and perfetto_finish returns it.
 */
#ifndef CAPU_TOOLS_PERFETTO_H
#define CAPU_TOOLS_PERFETTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capuchin/status.h"
#include "policy/format/string_buffer.h"

struct perfetto {
    struct string_buffer text;
    struct string_buffer message; /* being made: a packet, and parts of it */
    struct string_buffer part;
    struct string_buffer detail;
    capu_status status;
};

/* Something to show with a slice. */
struct perfetto_note {
    const char *name;
    const char *text; /* NULL: a number */
    uint64_t number;
};

enum { PERFETTO_NOTES = 6 };

struct perfetto_slice {
    uint64_t track;
    uint64_t begin_ns;
    uint64_t end_ns;
    const char *category;
    const char *name;
    const uint64_t *flows; /* each connects all events with this number, which is not 0 */
    size_t flow_count;
    bool ends_flows;                            /* it is their last one */
    bool is_instant;                            /* it has no end */
    struct perfetto_note notes[PERFETTO_NOTES]; /* up to one without a name */
};

/* Tracks have numbers of the caller's choice, unique in the trace and not 0, `rank` their order
   among those of one parent. */
void perfetto_process(struct perfetto *trace, uint64_t track, int32_t pid, const char *name);
void perfetto_track(struct perfetto *trace, uint64_t track, uint64_t parent, const char *name,
                    int32_t rank);
/* A track of bytes. */
void perfetto_counter(struct perfetto *trace, uint64_t track, uint64_t parent, const char *name,
                      int32_t rank);

void perfetto_slice(struct perfetto *trace, const struct perfetto_slice *slice);
/* From here on the counter has this value. */
void perfetto_count(struct perfetto *trace, uint64_t track, uint64_t ns, uint64_t value);

/* Ends the trace, which is in *text then; the caller finishes that. NO_HOST_MEMORY: text is empty.
   A zeroed struct is an empty trace, and so is a finished one. */
capu_status perfetto_finish(struct perfetto *trace, struct string_buffer *text);

#endif
