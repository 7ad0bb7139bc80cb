/* The sections of a page that compare: budgets with each other, and all iterations of a report. */
#include "tools/page/page_sections.h"
#include "tools/predict/predict.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The budget curve: what budgets cost, no plan being cheaper than the bound. */

/* What the iteration of the report cost, in percent over its own ops. Below 0: not known. */
static double reported_overhead(const struct page *page)
{
    const struct reported *counters;

    if (page->account == NULL) {
        return -1.0;
    }
    counters = &page->account->counters;
    if (!counters->is_timed || counters->compute_ns == 0 ||
        counters->time_ns < counters->compute_ns) {
        return -1.0;
    }
    return 100.0 * ((double)counters->time_ns / (double)counters->compute_ns - 1.0);
}

static void put_overhead(struct html *html, double overhead)
{
    html_raw(html, "<td>");
    if (overhead < 0.0) {
        html_raw(html, "<data value=\"\">no plan</data>");
    } else {
        html_percent(html, overhead);
    }
    html_raw(html, "</td>");
}

static void put_budgets_table(struct html *html, const struct page *page)
{
    const struct curves *curves = page->curves;
    const char *columns[CURVES_MAX + 3] = {"#Budget, %", "#Budget"};
    char titles[CURVES_MAX][32];

    for (unsigned i = 0; i < curves->item_count; i++) {
        snprintf(titles[i], sizeof(titles[i]), "#%s", curve_name(&curves->items[i]));
        columns[2 + i] = titles[i];
    }
    html_table_begin(html, "budgets-table", "Overhead by budget, in percent of the ops' own time",
                     columns);
    for (unsigned at = 0; at < curves->count; at++) {
        html_raw(html, "<tr><td>");
        html_count(html, curves->percent[at]);
        html_raw(html, "</td><td>");
        html_bytes(html, curves_budget(page->subject, curves->percent[at]));
        html_raw(html, "</td>");
        for (unsigned i = 0; i < curves->item_count; i++) {
            put_overhead(html, curves->items[i].overhead[at]);
        }
        html_raw(html, "</tr>\n");
    }
    html_table_end(html);
}

static void put_budgets_csv(struct html *html, const struct page *page)
{
    const struct curves *curves = page->curves;

    html_csv_begin(html, "budgets-csv", "Budgets",
                   "budget_percent,budget_bytes,planner,overhead_percent");
    for (unsigned i = 0; i < curves->item_count; i++) {
        for (unsigned at = 0; at < curves->count; at++) {
            double overhead = curves->items[i].overhead[at];

            html_format(html, "%u,%" PRIu64 ",%s,", curves->percent[at],
                        curves_budget(page->subject, curves->percent[at]),
                        curve_name(&curves->items[i]));
            if (overhead >= 0.0) {
                html_format(html, "%.9g", overhead);
            }
            html_raw(html, "\n");
        }
    }
    html_csv_end(html);
}

/* What the picture shows besides the curves. */
static void put_budgets_marks(struct html *html, const struct page *page)
{
    json_t *marks =
        json_pack("{s:I,s:I}", "floor_bytes", (json_int_t)page->subject->trace_index.floor_bytes,
                  "peak_bytes", (json_int_t)page->subject->trace_index.peak_bytes);
    double overhead = reported_overhead(page);

    if (overhead >= 0.0) {
        json_object_set_new(marks, "run_bytes",
                            json_integer((json_int_t)page->account->counters.budget_bytes));
        json_object_set_new(marks, "run_percent", json_real(overhead));
    } else if (page->account == NULL && page->planned != NULL && page->planned->ideal_ns > 0) {
        json_object_set_new(marks, "plan_bytes",
                            json_integer((json_int_t)page->planned->budget_bytes));
        json_object_set_new(
            marks, "plan_percent",
            json_real(100.0 *
                      ((double)page->planned->time_ns / (double)page->planned->ideal_ns - 1.0)));
    }
    html_json(html, "budgets-marks", marks);
}

void page_budgets(struct html *html, const struct page *page)
{
    if (page->curves == NULL) {
        html_section_begin(html, "budgets", "What other budgets would cost", NULL);
        html_raw(html,
                 page->subject != NULL
                     ? "<p>Not in this page: <code>capuchin sweep TRACE --html FILE</code> "
                       "makes plans for a range of budgets.</p>\n"
                     : "<p>Not in this page. Record a trace with "
                       "<code>CAPUCHIN_TRACE=FILE</code> in guided mode and add <code>--trace "
                       "FILE</code>.</p>\n");
        html_section_end(html);
        return;
    }
    html_section_begin(html, "budgets", "What other budgets would cost",
                       reported_overhead(page) >= 0.0 ? "curves planned, the point measured"
                                                      : "planned");
    html_raw(html, "<p>What an iteration takes longer than its ops by themselves. No plan can be "
                   "below the bound, and none exists left of the wall. A gap is a budget for which "
                   "the planner found no plan.</p>\n");
    html_picture(html, "budgets", "Overhead in percent over the budget");
    put_budgets_table(html, page);
    put_budgets_csv(html, page);
    put_budgets_marks(html, page);
    html_section_end(html);
}

/*
 * All iterations of a report as a strip.
 *
 * A report may have millions of them. The page takes so many as it can show: of a long report each
 * stretch of equal length gives its fastest and its slowest iteration, besides those that left
 * their plan or installed one, as long as there is room, so that no outlier is lost.
 */

enum { ITERATIONS_SHOWN = 4000, ITERATION_ROWS = 100 };

static bool is_event(const struct reported *iteration)
{
    return iteration->diverged != 0 || iteration->install_ns > 0;
}

/* Marks the iterations that the page takes. */
static void choose_iterations(const struct report_file *file, bool *is_chosen)
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

static void put_iterations_csv(struct html *html, const struct report_file *file,
                               const bool *is_chosen)
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

static void put_iteration_row(struct html *html, const struct report_file *file,
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

static void put_iterations_table(struct html *html, const struct report_file *file,
                                 const struct reported **slowest)
{
    static const char *const columns[] = {"#Iteration", "Label",    "Mode",  "#Time", "#Median",
                                          "#Waiting",   "#Replays", "#Plan", "Event", NULL};

    for (size_t i = 0; i < file->count; i++) {
        slowest[i] = &file->iterations[i];
    }
    qsort(slowest, file->count, sizeof(*slowest), by_slowness);
    html_table_begin(html, "iterations-table",
                     file->count > ITERATION_ROWS ? "The slowest hundred iterations"
                                                  : "All iterations",
                     columns);
    for (size_t i = 0; i < file->count && i < ITERATION_ROWS; i++) {
        put_iteration_row(html, file, slowest[i]);
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
    choose_iterations(file, is_chosen);
    html_section_begin(html, "iterations", "All iterations", "measured");
    html_format(html, "<p>Each bar is an iteration. %s</p>\n",
                file->count > ITERATIONS_SHOWN
                    ? "There are more than a page can hold; of each stretch it has the fastest and "
                      "the slowest, and those that left their plan or began with a new one."
                    : "Bars without parts are of iterations whose ops were not timed.");
    html_picture(html, "iterations", "Time of each iteration, and its parts");
    put_iterations_table(html, file, slowest);
    put_iterations_csv(html, file, is_chosen);
    html_section_end(html);
free_lists:
    free(is_chosen);
    free(slowest);
}
