/*
 * All iterations of a report as a strip.
 *
 * A report may have millions of them. The page takes so many as it can show: of a long report each
 * stretch of equal length gives its fastest and its slowest iteration, besides those that left
 * their plan or installed one, as long as there is room, so that no outlier is lost.
 */

#include "tools/page/page_sections.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ITERATIONS_SHOWN = 4000, ROWS = 100 };

static bool is_event(const struct reported *iteration)
{
    return iteration->diverged != 0 || iteration->install_ns > 0;
}

/* Marks the iterations that the page takes. */
static void choose(const struct report_file *file, bool *is_chosen)
{
    size_t stretches = ITERATIONS_SHOWN / 4;
    size_t events = ITERATIONS_SHOWN / 2;

    if (file->count <= ITERATIONS_SHOWN) {
        memset(is_chosen, true, file->count * sizeof(*is_chosen));
        return;
    }
    for (size_t s = 0; s < stretches; s++) {
        size_t first = file->count * s / stretches;
        size_t end = file->count * (s + 1) / stretches;
        size_t fastest = first;
        size_t slowest = first;

        for (size_t i = first; i < end; i++) {
            uint64_t ns = file->iterations[i].time_ns;

            fastest = ns < file->iterations[fastest].time_ns ? i : fastest;
            slowest = ns > file->iterations[slowest].time_ns ? i : slowest;
            if (events > 0 && is_event(&file->iterations[i])) {
                is_chosen[i] = true;
                events--;
            }
        }
        is_chosen[fastest] = true;
        is_chosen[slowest] = true;
    }
}

static void put_number(struct html *html, uint64_t number)
{
    html_format(html, "%" PRIu64 ",", number);
}

static void put_timed(struct html *html, const struct reported *iteration, uint64_t ns)
{
    if (iteration->is_timed) {
        html_format(html, "%" PRIu64, ns);
    }
    html_raw(html, ",");
}

static void put_csv(struct html *html, const struct report_file *file, const bool *is_chosen)
{
    html_csv_begin(html, "iterations-csv", "Iterations",
                   "iteration,label,mode,time_ns,compute_ns,stall_ns,recompute_ns,replay_count,"
                   "install_ns,predicted_ns,plan_stage,peak_bytes,diverged");
    for (size_t i = 0; i < file->count; i++) {
        const struct reported *iteration = &file->iterations[i];

        if (!is_chosen[i]) {
            continue;
        }
        put_number(html, iteration->iteration);
        html_csv_name(html, file->kinds[iteration->kind].label);
        html_raw(html, ",");
        html_csv_name(html, file->kinds[iteration->kind].mode);
        html_raw(html, ",");
        put_number(html, iteration->time_ns);
        put_timed(html, iteration, iteration->compute_ns);
        put_timed(html, iteration, iteration->stall_ns);
        put_timed(html, iteration, iteration->recompute_ns);
        put_number(html, iteration->replay_count);
        put_number(html, iteration->install_ns);
        put_number(html, iteration->predicted_ns);
        put_number(html, iteration->plan_stage);
        put_number(html, iteration->peak_bytes);
        html_format(html, "%" PRIu64 "\n", iteration->diverged);
    }
    html_csv_end(html);
}

static int by_slowness(const void *left, const void *right)
{
    const struct reported *a = *(const struct reported *const *)left;
    const struct reported *b = *(const struct reported *const *)right;

    if (a->time_ns != b->time_ns) {
        return a->time_ns > b->time_ns ? -1 : 1;
    }
    return a->iteration < b->iteration ? -1 : a->iteration > b->iteration;
}

static void put_cell_ns(struct html *html, bool is_known, uint64_t ns)
{
    html_raw(html, "<td>");
    if (is_known) {
        html_ns(html, ns);
    } else {
        html_raw(html, "<data value=\"\">not timed</data>");
    }
    html_raw(html, "</td>");
}

static void put_row(struct html *html, const struct report_file *file,
                    const struct reported *iteration)
{
    const struct report_kind *kind = &file->kinds[iteration->kind];

    html_format(html, "<tr id=\"iteration-%" PRIu64 "\"><td>", iteration->iteration);
    html_count(html, iteration->iteration);
    html_raw(html, "</td><td>");
    html_name(html, kind->label);
    html_raw(html, "</td><td>");
    html_name(html, kind->mode);
    html_raw(html, "</td>");
    put_cell_ns(html, true, iteration->time_ns);
    put_cell_ns(html, true, kind->median_ns);
    put_cell_ns(html, iteration->is_timed, iteration->stall_ns);
    put_cell_ns(html, iteration->is_timed, iteration->recompute_ns);
    html_raw(html, "<td>");
    html_count(html, iteration->plan_stage);
    html_raw(html, "</td><td>");
    html_raw(html, iteration->diverged != 0       ? "left its plan"
                   : iteration->install_ns > 0    ? "new plan"
                   : iteration->predicted_ns == 0 ? "no plan"
                                                  : "");
    html_raw(html, "</td></tr>\n");
}

static void put_table(struct html *html, const struct report_file *file,
                      const struct reported **slowest)
{
    static const char *const columns[] = {"#Iteration", "Label",    "Mode",  "#Time", "#Median",
                                          "#Waiting",   "#Replays", "#Plan", "Event", NULL};

    for (size_t i = 0; i < file->count; i++) {
        slowest[i] = &file->iterations[i];
    }
    qsort(slowest, file->count, sizeof(*slowest), by_slowness);
    html_table_begin(html, "iterations-table",
                     file->count > ROWS ? "The slowest hundred iterations" : "All iterations",
                     columns);
    for (size_t i = 0; i < file->count && i < ROWS; i++) {
        put_row(html, file, slowest[i]);
    }
    html_table_end(html);
}

void page_iterations(struct html *html, const struct page *page)
{
    const struct report_file *file = page->report;
    const struct reported **slowest;
    bool *is_chosen;

    if (file == NULL) {
        return;
    }
    slowest = malloc(file->count * sizeof(*slowest));
    is_chosen = calloc(file->count, sizeof(*is_chosen));
    if (slowest == NULL || is_chosen == NULL) {
        html->has_failed = true;
        goto free_lists;
    }
    choose(file, is_chosen);
    html_section_begin(html, "iterations", "All iterations", "measured");
    html_format(html, "<p>Each bar is an iteration. %s</p>\n",
                file->count > ITERATIONS_SHOWN
                    ? "There are more than a page can hold; of each stretch it has the fastest and "
                      "the slowest, and those that left their plan or began with a new one."
                    : "Bars without parts are of iterations whose ops were not timed.");
    html_picture(html, "iterations", "Time of each iteration, and its parts");
    put_table(html, file, slowest);
    put_csv(html, file, is_chosen);
    html_section_end(html);
free_lists:
    free(is_chosen);
    free(slowest);
}
