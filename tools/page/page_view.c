/*
 * The sections of a page that show a view, one iteration: memory and tensors over time, and links.
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
              json_pack("{s:I,s:I,s:I,s:I,s:o}", "time_ns", (json_int_t)view->time_ns,
                        "budget_bytes", (json_int_t)view->budget_bytes, "fixed_bytes",
                        (json_int_t)view->fixed_bytes, "unlimited_peak_bytes",
                        (json_int_t)view->unlimited_peak_bytes, "kinds", kinds));
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
    if (view->source == VIEW_MEASURED && strcmp(view->mode, "guided") == 0) {
        html_raw(html, "<p>A plan may keep pages that are empty for a while. They are not drawn, "
                       "but they count for the peak above.</p>\n");
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
    html_csv_begin(html, "tensors-csv", "Tensors", "name,kind,held_bytes,copied_bytes,waited_ns");
    for (uint32_t i = 0; i < view->tensor_count; i++) {
        const struct view_tensor *tensor = &view->tensors[i];

        html_csv_name(html, tensor->name);
        html_format(html, ",%d,", (int)tensor->kind);
        put_number(html, tensor->held_bytes);
        html_raw(html, ",");
        put_number(html, tensor->copied_bytes);
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
 * The two directions of the link: for how long it was busy, and at which rate. Planned and measured
 * copies are shown together, but never added up.
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

void page_links(struct html *html, const struct page *page)
{
    static const char *const columns[] = {"Direction",     "Source",         "#Copies",
                                          "#Bytes",        "#Busy",          "#Idle",
                                          "#Rate assumed", "#Rate achieved", NULL};
    const struct view *views[] = {page->planned, page->measured};

    if (page_view(page) == NULL) {
        return;
    }
    html_section_begin(html, "links", "Links",
                       page->planned != NULL && page->measured != NULL
                           ? "planned and measured"
                           : view_source_name(page_view(page)->source));
    html_raw(html, "<p>All copies of the iteration, by direction. Plans are made for the rate "
                   "assumed; the rate achieved includes latencies.</p>\n");
    if (page->planned != NULL && page->measured != NULL &&
        !are_same_ops(page->planned, page->measured)) {
        html_raw(html, "<p>The plan is for an iteration with other ops than this one.</p>\n");
    }
    html_table_begin(html, "links-table", "The two directions", columns);
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        if (views[i] != NULL) {
            put_link_row(html, views[i], VIEW_IN);
            put_link_row(html, views[i], VIEW_OUT);
        }
    }
    html_table_end(html);
    html_section_end(html);
}
