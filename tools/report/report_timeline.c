/* The measured iterations of a report file as a timeline, see report_timeline.h. */
#include "tools/report/report_timeline.h"

#include "tools/output/say.h"

#include <inttypes.h>

static bool add(const struct report_file *file, const struct reported *iteration,
                struct timeline_export *export, uint64_t begin_ns)
{
    const struct report_kind *kind = &file->kinds[iteration->kind];
    struct view view;

    if (report_file_has_view(iteration)) {
        if (!report_file_view(file, iteration, &view)) {
            return false;
        }
        timeline_export_view(export, &view, begin_ns);
        view_finish(&view);
    }
    timeline_export_iteration(export, iteration->iteration, kind->label, kind->mode, begin_ns,
                              iteration->time_ns);
    return true;
}

bool report_timeline_add(const struct report_file *file, uint64_t number,
                         struct timeline_export *export, uint64_t *last_ns)
{
    uint64_t begin_ns = 0;
    bool has_view = false;
    bool has_iteration = number == 0;

    for (size_t i = 0; i < file->count; i++) {
        const struct reported *iteration = &file->iterations[i];

        if (number != 0 && iteration->iteration != number) {
            continue;
        }
        if (!add(file, iteration, export, begin_ns)) {
            return false;
        }
        has_iteration = true;
        if (report_file_has_view(iteration)) {
            has_view = true;
            *last_ns = begin_ns;
        }
        begin_ns += iteration->time_ns;
    }
    if (!has_iteration) {
        say("%s: there is no iteration %" PRIu64, file->path, number);
    } else if (!has_view) {
        say("%s: has no timeline%s: run with CAPUCHIN_TIMELINE=1, and CAPUCHIN_SAMPLE_EVERY=1 for "
            "all iterations",
            file->path, number != 0 ? " of this iteration" : "");
    }
    return has_view;
}
