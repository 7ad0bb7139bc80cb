/* The budget curve of a page: what budgets cost, no plan being cheaper than the bound. */

#include "tools/page/page_sections.h"
#include "tools/predict/predict.h"

#include <inttypes.h>

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

static void put_table(struct html *html, const struct page *page)
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

static void put_csv(struct html *html, const struct page *page)
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
static void put_marks(struct html *html, const struct page *page)
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
    put_table(html, page);
    put_csv(html, page);
    put_marks(html, page);
    html_section_end(html);
}
