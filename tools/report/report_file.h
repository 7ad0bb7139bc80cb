/*
 * Reads report files: the JSON lines that the library writes with CAPUCHIN_REPORT, and with
 * CAPUCHIN_TIMELINE the timelines among them.
 */
#ifndef CAPU_TOOLS_REPORT_FILE_H
#define CAPU_TOOLS_REPORT_FILE_H

#include "policy/format/report.h"
#include "tools/view/timeline_export.h"
#include "tools/view/view.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The counters of an iteration. Its evictions can be many, so they are read again on request. */
struct reported {
#define REPORTED_FIELD(name, unit, text) uint64_t name;
    REPORT_COUNTERS(REPORTED_FIELD)
#undef REPORTED_FIELD
    bool is_timed; /* otherwise the times of its ops, waits and replays are unknown, and 0 here */
    size_t kind;   /* of file.kinds */
    long offset;   /* of the line in the file */
    long timeline_offset; /* of its timeline; 0: it has none */
    size_t timeline_line; /* its number in the file */
};

/* Iterations that should take the same time: those of a label in one mode. */
struct report_kind {
    char *label; /* owned, as is: */
    char *mode;
    size_t count;
    uint64_t median_ns;
    uint64_t median_compute_ns; /* of those whose ops were timed */
    size_t slowest;             /* of file.iterations */
};

struct report_file {
    const char *path;
    struct reported *iterations;
    size_t count;
    struct report_kind *kinds;
    size_t kind_count;
};

/* Reads the file. A last line that was cut off is left out. False: an error has been printed. */
bool report_file_read(struct report_file *file, const char *path);
void report_file_finish(struct report_file *file);

/* The whole line of an iteration; the caller owns it. NULL: an error has been printed. */
json_t *report_file_line(const struct report_file *file, const struct reported *iteration);

/* Whether the file has a timeline of the iteration: then there is a measured view of it. */
static inline bool report_file_has_view(const struct reported *iteration)
{
    return iteration->timeline_offset > 0;
}

/* The measured view of an iteration, from its timeline and its report. Pre: there is one. False: an
   error has been printed, and the view is zeroed. The caller finishes it. */
bool report_file_view(const struct report_file *file, const struct reported *iteration,
                      struct view *view);

/* The part of a whole, 0 of nothing; and the difference of counters, at least 0. */
static inline double report_share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0.0;
}

static inline uint64_t report_less(uint64_t from, uint64_t by)
{
    return from > by ? from - by : 0;
}

/* The measured iterations of a report file as a timeline. */

/* Adds all iterations, one after the other, or only one (`number` not 0). Those without a timeline
   are shown by their time alone; what happened between iterations is not known and not shown.
   *last_ns is when the last one with a timeline begins. False: an error has been printed; none that
   is to be added has a timeline, or one cannot be read. */
bool report_timeline_add(const struct report_file *file, uint64_t number,
                         struct timeline_export *export, uint64_t *last_ns);

#endif
