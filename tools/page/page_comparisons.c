/*
 * The sections of a page that compare: budgets with each other, what was planned with what was
 * measured, and all iterations of a report.
 */
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
 * Predicted against measured times, op by op and copy by copy, from a planned and a measured view
 * of the same iteration.
 *
 * Ops are matched by their numbers, copies by tensor, direction and order. That means something
 * only if both views are of the same ops and tensors, so this is checked first.
 */

/* So many pairs are in the data of a page; of more, those furthest off and every so manieth other.
 */
enum { WORST = 10, PAIRS_SHOWN = 1000 };

enum pair_kind { PAIR_OP, PAIR_OUT, PAIR_IN };

/* An op or a copy in both views. */
struct pair {
    enum pair_kind kind;
    uint32_t number; /* of the op, or of the one before which the copy was issued */
    const char *name;
    uint64_t planned_ns;
    uint64_t measured_ns;
};

/* A copy, and the name of its tensor. */
struct named_copy {
    const char *name;
    const struct view_copy *copy;
};

static bool are_same_ops(const struct view *planned, const struct view *measured)
{
    if (planned->number_count != measured->number_count) {
        return false;
    }
    for (uint32_t i = 0; i < planned->number_count; i++) {
        if (strcmp(planned->ops[planned->op_of_number[i]].name,
                   measured->ops[measured->op_of_number[i]].name) != 0) {
            return false;
        }
    }
    return true;
}

static int compare_copies(const struct named_copy *left, const struct named_copy *right)
{
    int order = strcmp(left->name, right->name);

    return order != 0 ? order : (int)left->copy->direction - (int)right->copy->direction;
}

static int by_copy(const void *left, const void *right)
{
    const struct named_copy *a = left;
    const struct named_copy *b = right;
    int order = compare_copies(a, b);

    return order != 0 ? order : (a->copy > b->copy) - (a->copy < b->copy);
}

/* The copies of a view by tensor, direction and order of issue; the caller frees them. NULL: memory
   ran out. */
static struct named_copy *sort_copies(const struct view *view)
{
    struct named_copy *copies = malloc(((size_t)view->copy_count + 1) * sizeof(*copies));

    if (copies == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < view->copy_count; i++) {
        copies[i].copy = &view->copies[i];
        copies[i].name = view->tensors[view->copies[i].tensor].name;
    }
    qsort(copies, view->copy_count, sizeof(*copies), by_copy);
    return copies;
}

static uint64_t duration_of(int64_t begin_ns, int64_t end_ns)
{
    return end_ns > begin_ns ? (uint64_t)(end_ns - begin_ns) : 0;
}

/* Appends the copies that both views have. Returns how many pairs there are. */
static size_t pair_copies(const struct page *page, const struct named_copy *planned,
                          const struct named_copy *measured, struct pair *pairs, size_t count)
{
    uint32_t p = 0;
    uint32_t m = 0;

    while (p < page->planned->copy_count && m < page->measured->copy_count) {
        const struct view_copy *plan = planned[p].copy;
        const struct view_copy *run = measured[m].copy;
        int order = compare_copies(&planned[p], &measured[m]);

        if (order == 0) {
            pairs[count++] = (struct pair){
                .kind = run->direction == VIEW_OUT ? PAIR_OUT : PAIR_IN,
                .number = run->issue,
                .name = measured[m].name,
                .planned_ns = duration_of(plan->begin_ns, plan->end_ns),
                .measured_ns = duration_of(run->begin_ns, run->end_ns),
            };
        }
        p += order <= 0;
        m += order >= 0;
    }
    return count;
}

static size_t pair_ops(const struct view *planned, const struct view *measured, struct pair *pairs)
{
    for (uint32_t i = 0; i < measured->number_count; i++) {
        const struct view_op *plan = &planned->ops[planned->op_of_number[i]];
        const struct view_op *run = &measured->ops[measured->op_of_number[i]];

        pairs[i] =
            (struct pair){.kind = PAIR_OP,
                          .number = i,
                          .name = run->name,
                          .planned_ns = duration_of(plan->begin_ns, plan->end_ns),
                          .measured_ns = duration_of(run->begin_ns, run->end_ns) - run->waited_ns};
    }
    return measured->number_count;
}

static uint64_t distance(const struct pair *pair)
{
    return pair->planned_ns > pair->measured_ns ? pair->planned_ns - pair->measured_ns
                                                : pair->measured_ns - pair->planned_ns;
}

static int by_distance(const void *left, const void *right)
{
    const struct pair *a = *(const struct pair *const *)left;
    const struct pair *b = *(const struct pair *const *)right;

    if (distance(a) != distance(b)) {
        return distance(a) > distance(b) ? -1 : 1;
    }
    return a < b ? -1 : a > b;
}

static const char *pair_kind_name(enum pair_kind kind)
{
    static const char *const names[] = {
        [PAIR_OP] = "op", [PAIR_OUT] = "copy out", [PAIR_IN] = "copy in"};

    return names[kind];
}

static void put_pair_row(struct html *html, const struct pair *pair)
{
    const char *sign = pair->measured_ns > pair->planned_ns   ? "+"
                       : pair->measured_ns < pair->planned_ns ? "-"
                                                              : "";

    html_format(html, "<tr><td>%s</td><td class=\"name\">", pair_kind_name(pair->kind));
    html_name(html, pair->name);
    html_raw(html, "</td><td>");
    html_count(html, pair->number);
    html_raw(html, "</td><td>");
    html_ns(html, pair->planned_ns);
    html_raw(html, "</td><td>");
    html_ns(html, pair->measured_ns);
    html_format(html, "</td><td><data value=\"%s%" PRIu64 "\">%s%.3f ms</data></td></tr>\n", sign,
                distance(pair), sign, (double)distance(pair) / 1e6);
}

static void put_pair_csv(struct html *html, const struct pair *pair)
{
    html_format(html, "%s,%" PRIu32 ",", pair_kind_name(pair->kind), pair->number);
    if (pair->kind != PAIR_OP) { /* the names of ops are in their own table */
        html_csv_name(html, pair->name);
    }
    html_format(html, ",%" PRIu64 ",%" PRIu64 "\n", pair->planned_ns, pair->measured_ns);
}

static void put_pairs(struct html *html, const struct pair *pairs, size_t count)
{
    static const char *const columns[] = {"What",      "Name",        "#Number", "#Predicted",
                                          "#Measured", "#Difference", NULL};
    const struct pair **worst = malloc((count + 1) * sizeof(*worst));
    size_t step = count / (PAIRS_SHOWN / 2) + 1;

    if (worst == NULL) {
        html->has_failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        worst[i] = &pairs[i];
    }
    qsort((void *)worst, count, sizeof(*worst), by_distance);
    html_table_begin(html, "predictions-table", "The ten predictions that were furthest off",
                     columns);
    for (size_t i = 0; i < count && i < WORST; i++) {
        put_pair_row(html, worst[i]);
    }
    html_table_end(html);
    html_csv_begin(html, "predictions-csv", "Predictions",
                   "what,number,name,predicted_ns,measured_ns");
    for (size_t i = 0; i < count; i += i < PAIRS_SHOWN / 2 ? 1 : step) {
        put_pair_csv(html, worst[i]);
    }
    html_csv_end(html);
    free((void *)worst);
}

static void put_comparison(struct html *html, const struct page *page)
{
    size_t most = (size_t)page->measured->number_count + page->measured->copy_count;
    struct pair *pairs = malloc((most + 1) * sizeof(*pairs));
    struct named_copy *planned = sort_copies(page->planned);
    struct named_copy *measured = sort_copies(page->measured);

    if (pairs == NULL || planned == NULL || measured == NULL) {
        html->has_failed = true;
    } else {
        size_t count = pair_ops(page->planned, page->measured, pairs);

        put_pairs(html, pairs, pair_copies(page, planned, measured, pairs, count));
    }
    free(planned);
    free(measured);
    free(pairs);
}

void page_predictions(struct html *html, const struct page *page)
{
    if (page->measured == NULL) {
        return;
    }
    html_section_begin(html, "predictions", "Predicted against measured",
                       page->planned != NULL ? "predicted to the right, measured upwards" : NULL);
    if (page->planned == NULL) {
        html_raw(html,
                 "<p>Not in this page. Record <code>CAPUCHIN_TRACE=TRACE</code> and "
                 "<code>CAPUCHIN_PLAN=PLAN</code> as well, and add <code>--trace TRACE --plan "
                 "PLAN</code>.</p>\n");
    } else if (!are_same_ops(page->planned, page->measured)) {
        html_raw(html, "<p>The plan is for an iteration with other ops than this one, so there is "
                       "nothing to compare.</p>\n");
    } else {
        html_raw(html,
                 "<p>Each point is an op or a copy. On the line it took as long as predicted, "
                 "above the line longer.</p>\n");
        html_picture(html, "predictions", "Measured times over predicted ones");
        put_comparison(html, page);
    }
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
