/*
 * Memory over time, from a view: what is held, by kind, and where compute stood still.
 *
 * The page has ops, tensors and stays as tables of data; the script sums up from the stays what is
 * held at each moment, so that it can also name what is resident.
 */
#include "tools/page/page_sections.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ROWS = 60 };

static int by_wait(const void *left, const void *right)
{
    const struct view_op *a = *(const struct view_op *const *)left;
    const struct view_op *b = *(const struct view_op *const *)right;

    if (a->wait_ns != b->wait_ns) {
        return a->wait_ns > b->wait_ns ? -1 : 1;
    }
    return a < b ? -1 : a > b;
}

static void put_row(struct html *html, const struct view_op *op)
{
    html_raw(html, "<tr><td>");
    html_count(html, op->number);
    html_raw(html, "</td><td class=\"name\">");
    if (op->is_replay) {
        html_raw(html, "replay of ");
    }
    html_name(html, op->name);
    html_raw(html, "</td><td>");
    html_ns(html, op->wait_ns);
    html_raw(html, "</td><td>");
    html_raw(html, op->wait_ns > 0 ? view_wait_name(op->wait) : "");
    html_raw(html, "</td><td>");
    html_ns(html, (uint64_t)op->begin_ns);
    html_raw(html, "</td><td>");
    html_ns(html, (uint64_t)(op->end_ns - op->begin_ns) - op->waited_ns);
    html_raw(html, "</td><td>");
    html_ns(html, op->waited_ns);
    html_raw(html, "</td></tr>\n");
}

/* The ops that waited longest. */
static void put_table(struct html *html, const struct view *view)
{
    static const char *const columns[] = {"#Number", "Op",    "#Waited",     "For",
                                          "#Begins", "#Runs", "#For others", NULL};
    const struct view_op **ops = malloc((view->op_count + 1) * sizeof(*ops));

    if (ops == NULL) {
        html->has_failed = true;
        return;
    }
    for (uint32_t i = 0; i < view->op_count; i++) {
        ops[i] = &view->ops[i];
    }
    qsort(ops, view->op_count, sizeof(*ops), by_wait);
    html_table_begin(html, "memory-table",
                     view->op_count > ROWS ? "The sixty ops that waited longest"
                                           : "Ops, those that waited longest first",
                     columns);
    for (uint32_t i = 0; i < view->op_count && i < ROWS; i++) {
        put_row(html, ops[i]);
    }
    html_table_end(html);
    free(ops);
}

/* A number, and nothing for 0, which most are: pages stay small. */
static void put_number(struct html *html, uint64_t number)
{
    if (number > 0) {
        html_format(html, "%" PRIu64, number);
    }
    html_raw(html, ",");
}

/* Ops. Without a number it is the next one, without begin_ns the op begins when the one before it
   ends; other numbers left out are 0. What the unlimited run holds is given by its changes. */
static void put_ops(struct html *html, const struct view *view)
{
    int64_t end_ns = 0;
    uint64_t unlimited = 0;
    uint32_t next = 0;

    html_csv_begin(html, "ops-csv", "Ops",
                   "op,replay_for,name,begin_ns,duration_ns,wait_ns,wait_for,waited_ns,unlimited_"
                   "change_bytes");
    for (uint32_t i = 0; i < view->op_count; i++) {
        const struct view_op *op = &view->ops[i];

        if (op->number != next) {
            html_format(html, "%" PRIu32, op->number);
        }
        html_raw(html, ",");
        if (op->is_replay) {
            html_format(html, "%" PRIu32, op->before);
        }
        html_raw(html, ",");
        html_csv_name(html, op->name);
        html_raw(html, ",");
        if (op->begin_ns != end_ns) {
            html_format(html, "%" PRId64, op->begin_ns);
        }
        html_raw(html, ",");
        put_number(html, (uint64_t)(op->end_ns - op->begin_ns));
        put_number(html, op->wait_ns);
        html_raw(html, op->wait_ns > 0 ? view_wait_name(op->wait) : "");
        html_raw(html, ",");
        put_number(html, op->waited_ns);
        if (op->unlimited_bytes != unlimited) {
            html_format(html, "%" PRId64, (int64_t)(op->unlimited_bytes - unlimited));
        }
        html_raw(html, "\n");
        end_ns = op->end_ns;
        unlimited = op->unlimited_bytes;
        next = op->number + 1;
    }
    html_csv_end(html);
}

/* What the script needs besides tables. */
static void put_marks(struct html *html, const struct view *view)
{
    json_t *kinds = json_array();

    for (int kind = 0; kind < VIEW_KIND_COUNT; kind++) {
        json_array_append_new(kinds, json_string(view_kind_name((enum view_kind)kind)));
    }
    html_json(html, "view",
              json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:b,s:o}", "source",
                        view_source_name(view->source), "time_ns", (json_int_t)view->time_ns,
                        "budget_bytes", (json_int_t)view->budget_bytes, "fixed_bytes",
                        (json_int_t)view->fixed_bytes, "peak_bytes", (json_int_t)view->peak_bytes,
                        "unlimited_peak_bytes", (json_int_t)view->unlimited_peak_bytes,
                        "page_bytes", (json_int_t)view->page_bytes, "d2h_bytes_per_s",
                        (json_int_t)view->d2h_bytes_per_s, "h2d_bytes_per_s",
                        (json_int_t)view->h2d_bytes_per_s, "has_places", view->has_places ? 1 : 0,
                        "kinds", kinds));
}

const struct view *page_view(const struct page *page)
{
    return page->measured != NULL ? page->measured : page->planned;
}

/* How to get a view, in a page without one. */
static void put_missing(struct html *html)
{
    html_raw(html,
             "<p>Not in this page. For what is measured, record the report with "
             "<code>CAPUCHIN_TIMELINE=1</code>. For what is planned, record "
             "<code>CAPUCHIN_TRACE=TRACE</code> and <code>CAPUCHIN_PLAN=PLAN</code> in guided mode "
             "and add <code>--trace TRACE --plan PLAN</code>.</p>\n");
}

void page_memory(struct html *html, const struct page *page)
{
    const struct view *view = page_view(page);

    html_section_begin(html, "memory", "Memory over time",
                       view != NULL ? view_source_name(view->source) : NULL);
    if (view == NULL) {
        put_missing(html);
        html_section_end(html);
        return;
    }
    html_raw(
        html,
        "<p>What tensors hold on the device, by kind. The dashed outline is the same iteration "
        "without a limit. Where the background is orange, compute stood still and waited for "
        "memory.</p>\n");
    if (view->source == VIEW_MEASURED && view->has_places) {
        html_raw(html, "<p>The plan keeps its pages for the whole iteration. Those that are empty "
                       "for a while are not drawn, but they count for the peak above.</p>\n");
    }
    if (page->account != NULL && page->measured == NULL) {
        html_raw(html, "<p>This is the plan. For what was measured, record the report with "
                       "<code>CAPUCHIN_TIMELINE=1</code>.</p>\n");
    }
    html_picture(html, "memory", "Device memory held over the time of the iteration, by kind");
    put_table(html, view);
    put_ops(html, view);
    put_marks(html, view);
    html_section_end(html);
}

/*
 * Pages over time, from a view with places: which tensor has which pages when. Of many runs of
 * pages the page takes those that cover most, pages times time, since the others would be too small
 * to see.
 */

enum { RUNS_SHOWN = 1500, MAP_ROWS = 40 };

/* A run of pages that a tensor has during a stay. */
struct run {
    const struct view_stay *stay;
    const struct view_place *place;
};

static double area_of(const struct run *run)
{
    return (double)run->place->count * (double)(run->stay->end_ns - run->stay->begin_ns);
}

static int by_area(const void *left, const void *right)
{
    const struct run *a = left;
    const struct run *b = right;
    double area_a = area_of(a);
    double area_b = area_of(b);

    if (area_a != area_b) {
        return area_a > area_b ? -1 : 1;
    }
    return a->place < b->place ? -1 : a->place > b->place;
}

/* The runs of all stays, the largest first; the caller frees them. NULL: memory ran out. */
static struct run *list_runs(const struct view *view, size_t *count)
{
    size_t room = 1;
    struct run *runs;

    for (uint32_t i = 0; i < view->stay_count; i++) {
        room += view->stays[i].place_count;
    }
    runs = malloc(room * sizeof(*runs));
    *count = 0;
    for (uint32_t i = 0; runs != NULL && i < view->stay_count; i++) {
        const struct view_stay *stay = &view->stays[i];

        for (uint32_t p = 0; p < stay->place_count; p++) {
            runs[(*count)++] =
                (struct run){.stay = stay, .place = &view->places[stay->first_place + p]};
        }
    }
    if (runs != NULL) {
        qsort(runs, *count, sizeof(*runs), by_area);
    }
    return runs;
}

static void put_map_table(struct html *html, const struct view *view, const struct run *runs,
                          size_t count)
{
    static const char *const columns[] = {"Tensor",  "#First page", "#Pages",
                                          "#Begins", "#Lasts",      NULL};

    html_table_begin(html, "pages-table", "The runs of pages that were taken most", columns);
    for (size_t i = 0; i < count && i < MAP_ROWS; i++) {
        html_raw(html, "<tr><td class=\"name\">");
        html_name(html, view->tensors[runs[i].stay->tensor].name);
        html_raw(html, "</td><td>");
        html_count(html, runs[i].place->first);
        html_raw(html, "</td><td>");
        html_count(html, runs[i].place->count);
        html_raw(html, "</td><td>");
        html_ns(html, (uint64_t)runs[i].stay->begin_ns);
        html_raw(html, "</td><td>");
        html_ns(html, (uint64_t)(runs[i].stay->end_ns - runs[i].stay->begin_ns));
        html_raw(html, "</td></tr>\n");
    }
    html_table_end(html);
}

static void put_csv(struct html *html, const struct run *runs, size_t count)
{
    html_csv_begin(html, "pages-csv", "Pages", "tensor,begin_ns,duration_ns,first_page,pages");
    for (size_t i = 0; i < count && i < RUNS_SHOWN; i++) {
        html_format(html, "%" PRIu32 ",%" PRId64 ",%" PRId64 ",%" PRIu32 ",%" PRIu32 "\n",
                    runs[i].stay->tensor, runs[i].stay->begin_ns,
                    runs[i].stay->end_ns - runs[i].stay->begin_ns, runs[i].place->first,
                    runs[i].place->count);
    }
    html_csv_end(html);
}

void page_map(struct html *html, const struct page *page)
{
    const struct view *view = page_view(page);
    struct run *runs;
    size_t count;

    if (view == NULL) {
        return;
    }
    html_section_begin(html, "pages", "Pages over time", view_source_name(view->source));
    if (!view->has_places) {
        html_raw(html,
                 "<p>Not in this page: tensors have no places. Plans have them in guided mode "
                 "and with <code>capuchin plan --place</code>.</p>\n");
        html_section_end(html);
        return;
    }
    runs = list_runs(view, &count);
    if (runs == NULL) {
        html->has_failed = true;
        return;
    }
    html_format(html,
                "<p>Each rectangle is a tensor in its pages, in the colour of its kind. A mark is "
                "where pages pass from one tensor to another.%s</p>\n",
                count > RUNS_SHOWN ? " Of all runs of pages the picture has those that cover most."
                                   : "");
    html_picture(html, "pages", "Which tensor has which pages over the time of the iteration");
    put_map_table(html, view, runs, count);
    put_csv(html, runs, count);
    html_format(html, "<script type=\"application/json\" id=\"pages-marks\">%" PRIu32 "</script>\n",
                view->page_count);
    free(runs);
    html_section_end(html);
}
