/*
 * The sections of a page that show a view, one iteration: memory, tensors, links and pages over
 * time.
 *
 * Ops, tensors and stays are tables of data in the page; the script sums up from the stays what is
 * held at each moment, so that it can also name what is resident.
 */
#include "tools/page/page_sections.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 60 };

const struct view *page_view(const struct page *page)
{
    return page->measured != NULL ? page->measured : page->planned;
}

/* A number, and nothing for 0, which most are: pages stay small. */
static void put_number(struct html *html, uint64_t number)
{
    if (number > 0) {
        html_format(html, "%" PRIu64, number);
    }
}

/* Memory over time: what is held, by kind, and where compute stood still. */

static int by_op_wait(const void *left, const void *right)
{
    const struct view_op *a = *(const struct view_op *const *)left;
    const struct view_op *b = *(const struct view_op *const *)right;

    if (a->wait_ns != b->wait_ns) {
        return a->wait_ns > b->wait_ns ? -1 : 1;
    }
    return a < b ? -1 : a > b;
}

static void put_op_row(struct html *html, const struct view_op *op)
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
static void put_op_table(struct html *html, const struct view *view)
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
    qsort(ops, view->op_count, sizeof(*ops), by_op_wait);
    html_table_begin(html, "memory-table",
                     view->op_count > ROWS ? "The sixty ops that waited longest"
                                           : "Ops, those that waited longest first",
                     columns);
    for (uint32_t i = 0; i < view->op_count && i < ROWS; i++) {
        put_op_row(html, ops[i]);
    }
    html_table_end(html);
    free(ops);
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
        html_raw(html, ",");
        put_number(html, op->wait_ns);
        html_raw(html, ",");
        html_raw(html, op->wait_ns > 0 ? view_wait_name(op->wait) : "");
        html_raw(html, ",");
        put_number(html, op->waited_ns);
        html_raw(html, ",");
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
static void put_view_marks(struct html *html, const struct view *view)
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
    put_op_table(html, view);
    put_ops(html, view);
    put_view_marks(html, view);
    html_section_end(html);
}

/* Tensors over time: where each one is, those that compute waited for first. */

static int by_tensor_wait(const void *left, const void *right)
{
    const struct view_tensor *a = *(const struct view_tensor *const *)left;
    const struct view_tensor *b = *(const struct view_tensor *const *)right;

    if (a->waited_ns != b->waited_ns) {
        return a->waited_ns > b->waited_ns ? -1 : 1;
    }
    if (a->copied_bytes != b->copied_bytes) {
        return a->copied_bytes > b->copied_bytes ? -1 : 1;
    }
    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    return a < b ? -1 : a > b;
}

static void put_tensor_row(struct html *html, const struct view_tensor *tensor)
{
    html_raw(html, "<tr><td class=\"name\">");
    html_name(html, tensor->name);
    html_format(html, "</td><td>%s</td><td>", view_kind_name(tensor->kind));
    html_bytes(html, tensor->bytes);
    html_raw(html, "</td><td>");
    html_bytes(html, tensor->copied_bytes);
    html_raw(html, "</td><td>");
    html_ns(html, tensor->waited_ns);
    html_raw(html, "</td></tr>\n");
}

static void put_tensor_table(struct html *html, const struct view *view)
{
    static const char *const columns[] = {"Tensor",  "Kind",        "#Size",
                                          "#Copied", "#Waited for", NULL};
    const struct view_tensor **tensors = malloc((view->tensor_count + 1) * sizeof(*tensors));

    if (tensors == NULL) {
        html->has_failed = true;
        return;
    }
    for (uint32_t i = 0; i < view->tensor_count; i++) {
        tensors[i] = &view->tensors[i];
    }
    qsort(tensors, view->tensor_count, sizeof(*tensors), by_tensor_wait);
    html_table_begin(html, "tensors-table",
                     view->tensor_count > ROWS
                         ? "The sixty tensors that compute waited for longest"
                         : "Tensors, those that compute waited for longest first",
                     columns);
    for (uint32_t i = 0; i < view->tensor_count && i < ROWS; i++) {
        put_tensor_row(html, tensors[i]);
    }
    html_table_end(html);
    free(tensors);
}

/* Tensors, which have their numbers from 0 in this order. Numbers left out are 0. */
static void put_tensors(struct html *html, const struct view *view)
{
    html_csv_begin(html, "tensors-csv", "Tensors", "name,kind,held_bytes,waited_ns");
    for (uint32_t i = 0; i < view->tensor_count; i++) {
        const struct view_tensor *tensor = &view->tensors[i];

        html_csv_name(html, tensor->name);
        html_format(html, ",%d,", (int)tensor->kind);
        put_number(html, tensor->held_bytes);
        html_raw(html, ",");
        put_number(html, tensor->waited_ns);
        html_raw(html, "\n");
    }
    html_csv_end(html);
}

/* The letters of the states in the data. */
static const char state_letters[VIEW_STATE_COUNT] = {
    [VIEW_RESIDENT] = 'r', [VIEW_LEAVING] = 'l', [VIEW_ON_HOST] = 'h',
    [VIEW_COMING] = 'c',   [VIEW_DROPPED] = 'd', [VIEW_REPLAYED] = 'p',
};

/* Stays. Without a tensor it is the one of the line before, and without begin_ns the stay begins
   when that line's ends; the first stay of a tensor begins with the iteration then. Without
   duration_ns it lasts until the end. */
static void put_stays(struct html *html, const struct view *view)
{
    uint32_t tensor = VIEW_NONE;
    int64_t end_ns = 0;

    html_csv_begin(html, "stays-csv", "Where tensors are", "tensor,state,begin_ns,duration_ns");
    for (uint32_t i = 0; i < view->stay_count; i++) {
        const struct view_stay *stay = &view->stays[i];

        if (stay->tensor != tensor) {
            html_format(html, "%" PRIu32, stay->tensor);
            end_ns = 0;
        }
        html_format(html, ",%c,", state_letters[stay->state]);
        if (stay->begin_ns != end_ns) {
            html_format(html, "%" PRId64, stay->begin_ns);
        }
        html_raw(html, ",");
        if (stay->end_ns != (int64_t)view->time_ns) {
            html_format(html, "%" PRId64, stay->end_ns - stay->begin_ns);
        }
        html_raw(html, "\n");
        tensor = stay->tensor;
        end_ns = stay->end_ns;
    }
    html_csv_end(html);
}

/* Evictions with a return, for the arrows. */
static void put_moves(struct html *html, const struct view *view)
{
    html_csv_begin(html, "moves-csv", "Evictions with a return",
                   "tensor,in_trigger,back_op,wait_ns");
    for (uint32_t i = 0; i < view->move_count; i++) {
        const struct view_move *move = &view->moves[i];

        if (move->in_trigger != VIEW_NONE && move->back_op != VIEW_NONE) {
            html_format(html, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",", move->tensor,
                        move->in_trigger, move->back_op);
            put_number(html, move->wait_ns);
            html_raw(html, "\n");
        }
    }
    html_csv_end(html);
}

void page_tensors(struct html *html, const struct page *page)
{
    const struct view *view = page_view(page);

    if (view == NULL) {
        return;
    }
    html_section_begin(html, "tensors", "Tensors over time", view_source_name(view->source));
    html_raw(html, "<p>A row per tensor, and one per group of tensors whose names differ only in "
                   "numbers, as in repeated layers and parts of one allocation. Those that compute "
                   "waited for longest come first. Arrows lead from the op that triggers a return "
                   "to the one that needs "
                   "the tensor.</p>\n");
    html_picture(html, "tensors", "Where each tensor is over the time of the iteration");
    put_tensor_table(html, view);
    put_tensors(html, view);
    put_stays(html, view);
    put_moves(html, view);
    html_section_end(html);
}

/*
 * The two directions of the link: when it was busy, and at which rate. Planned and measured copies
 * are shown together, but never added up.
 */

/* The copies in one direction. */
struct traffic {
    uint64_t count;
    uint64_t bytes;
    uint64_t busy_ns;
};

static struct traffic traffic_of(const struct view *view, enum view_direction direction)
{
    struct traffic traffic = {0};

    for (uint32_t i = 0; i < view->copy_count; i++) {
        const struct view_copy *copy = &view->copies[i];

        if (copy->direction == direction) {
            traffic.count++;
            traffic.bytes += copy->bytes;
            traffic.busy_ns += (uint64_t)(copy->end_ns - copy->begin_ns);
        }
    }
    return traffic;
}

static void put_rate(struct html *html, double bytes_per_s)
{
    html_raw(html, "<td>");
    if (bytes_per_s > 0.0) {
        html_format(html, "<data value=\"%.9g\">%.2f GB/s</data>", bytes_per_s, bytes_per_s / 1e9);
    } else {
        html_raw(html, "<data value=\"\">unknown</data>");
    }
    html_raw(html, "</td>");
}

static void put_link_row(struct html *html, const struct view *view, enum view_direction direction)
{
    struct traffic traffic = traffic_of(view, direction);
    uint64_t assumed = direction == VIEW_OUT ? view->d2h_bytes_per_s : view->h2d_bytes_per_s;
    double busy = view->time_ns > 0 ? 100.0 * (double)traffic.busy_ns / (double)view->time_ns : 0.0;

    html_format(html, "<tr><td>%s</td><td>%s</td><td>",
                direction == VIEW_OUT ? "out, to the host" : "in, back to the device",
                view_source_name(view->source));
    html_count(html, traffic.count);
    html_raw(html, "</td><td>");
    html_bytes(html, traffic.bytes);
    html_raw(html, "</td><td>");
    html_ns(html, traffic.busy_ns);
    html_raw(html, "</td><td>");
    html_percent(html, busy < 100.0 ? 100.0 - busy : 0.0);
    html_raw(html, "</td>");
    put_rate(html, (double)assumed);
    put_rate(html,
             traffic.busy_ns > 0 ? 1e9 * (double)traffic.bytes / (double)traffic.busy_ns : 0.0);
    html_raw(html, "</tr>\n");
}

/* A tensor by its name. */
struct named {
    const char *name;
    uint32_t tensor;
};

static int by_name(const void *left, const void *right)
{
    const struct named *a = left;
    const struct named *b = right;
    int order = strcmp(a->name, b->name);

    return order != 0 ? order : (a->tensor > b->tensor) - (a->tensor < b->tensor);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const struct named *)left)->name, ((const struct named *)right)->name);
}

/* The tensors of a view by their names; the caller frees the list. NULL: memory ran out. */
static struct named *sort_names(const struct view *view)
{
    struct named *list = malloc(((size_t)view->tensor_count + 1) * sizeof(*list));

    for (uint32_t i = 0; list != NULL && i < view->tensor_count; i++) {
        list[i] = (struct named){.name = view->tensors[i].name, .tensor = i};
    }
    if (list != NULL) {
        qsort(list, view->tensor_count, sizeof(*list), by_name);
    }
    return list;
}

/* Copies, with the numbers that tensors have in `shown`; "" for one that it does not have. Without
   bytes it is all that the tensor holds, and without begin_ns it begins when the copy before it in
   its direction ends. */
static void put_copies_csv(struct html *html, const struct view *view, const struct view *shown)
{
    struct named *list = sort_names(shown);
    int64_t ends_ns[2] = {INT64_MIN, INT64_MIN};

    if (list == NULL) {
        html->has_failed = true;
        return;
    }
    html_csv_begin(html,
                   view->source == VIEW_PLANNED ? "copies-planned-csv" : "copies-measured-csv",
                   view->source == VIEW_PLANNED ? "Planned copies" : "Measured copies",
                   "direction,tensor,bytes,begin_ns,duration_ns");
    for (uint32_t i = 0; i < view->copy_count; i++) {
        const struct view_copy *copy = &view->copies[i];
        const struct named key = {.name = view->tensors[copy->tensor].name};
        const struct named *found =
            view == shown ? NULL
                          : bsearch(&key, list, shown->tensor_count, sizeof(*list), compare_names);
        uint32_t tensor = view == shown ? copy->tensor : found != NULL ? found->tensor : VIEW_NONE;

        html_raw(html, copy->direction == VIEW_OUT ? "out," : "in,");
        if (tensor != VIEW_NONE) {
            html_format(html, "%" PRIu32, tensor);
        }
        html_raw(html, ",");
        if (tensor == VIEW_NONE || copy->bytes != shown->tensors[tensor].held_bytes) {
            html_format(html, "%" PRIu64, copy->bytes);
        }
        html_raw(html, ",");
        if (copy->begin_ns != ends_ns[copy->direction]) {
            html_format(html, "%" PRId64, copy->begin_ns);
        }
        html_format(html, ",%" PRId64 "\n", copy->end_ns - copy->begin_ns);
        ends_ns[copy->direction] = copy->end_ns;
    }
    html_csv_end(html);
    free(list);
}

void page_links(struct html *html, const struct page *page)
{
    static const char *const columns[] = {"Direction",     "Source",         "#Copies",
                                          "#Bytes",        "#Busy",          "#Idle",
                                          "#Rate assumed", "#Rate achieved", NULL};
    const struct view *views[] = {page->planned, page->measured};
    bool has_both = page->planned != NULL && page->measured != NULL;

    if (page_view(page) == NULL) {
        return;
    }
    html_section_begin(html, "links", "Links",
                       has_both ? "planned pale, measured dark"
                                : view_source_name(page_view(page)->source));
    html_raw(html,
             "<p>Copies back to the device above the line, copies out below it. The height of "
             "a copy is its rate, latency included, so its area is its size. The dashed lines "
             "are the rates that plans assume.</p>\n");
    html_picture(html, "links", "Copies over the time of the iteration");
    html_table_begin(html, "links-table", "The two directions", columns);
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        if (views[i] != NULL) {
            put_link_row(html, views[i], VIEW_IN);
            put_link_row(html, views[i], VIEW_OUT);
        }
    }
    html_table_end(html);
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        if (views[i] != NULL) {
            put_copies_csv(html, views[i], page_view(page));
        }
    }
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

static void put_map_csv(struct html *html, const struct run *runs, size_t count)
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
    put_map_csv(html, runs, count);
    html_format(html, "<script type=\"application/json\" id=\"pages-marks\">%" PRIu32 "</script>\n",
                view->page_count);
    free(runs);
    html_section_end(html);
}
