/* Tensors over time, from a view: where each one is, those that compute waited for first. */

#include "tools/page/page_sections.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ROWS = 60 };

static int by_wait(const void *left, const void *right)
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

static void put_row(struct html *html, const struct view_tensor *tensor)
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

static void put_table(struct html *html, const struct view *view)
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
    qsort(tensors, view->tensor_count, sizeof(*tensors), by_wait);
    html_table_begin(html, "tensors-table",
                     view->tensor_count > ROWS
                         ? "The sixty tensors that compute waited for longest"
                         : "Tensors, those that compute waited for longest first",
                     columns);
    for (uint32_t i = 0; i < view->tensor_count && i < ROWS; i++) {
        put_row(html, tensors[i]);
    }
    html_table_end(html);
    free(tensors);
}

static void put_number(struct html *html, uint64_t number)
{
    html_raw(html, ",");
    if (number > 0) {
        html_format(html, "%" PRIu64, number);
    }
}

/* Tensors, which have their numbers from 0 in this order. Numbers left out are 0. */
static void put_tensors(struct html *html, const struct view *view)
{
    html_csv_begin(html, "tensors-csv", "Tensors", "name,kind,held_bytes,waited_ns");
    for (uint32_t i = 0; i < view->tensor_count; i++) {
        const struct view_tensor *tensor = &view->tensors[i];

        html_csv_name(html, tensor->name);
        html_format(html, ",%d", (int)tensor->kind);
        put_number(html, tensor->held_bytes);
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
            html_format(html, "%" PRIu32 ",%" PRIu32 ",%" PRIu32, move->tensor, move->in_trigger,
                        move->back_op);
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
    put_table(html, view);
    put_tensors(html, view);
    put_stays(html, view);
    put_moves(html, view);
    html_section_end(html);
}
