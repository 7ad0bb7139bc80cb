/*
 * Predicted against measured times, op by op and copy by copy, from a planned and a measured view
 * of the same iteration.
 *
 * Ops are matched by their numbers, copies by tensor, direction and order. That means something
 * only if both views are of the same ops and tensors, so this is checked first.
 */

#include "tools/page/page_sections.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

static uint64_t duration(int64_t begin_ns, int64_t end_ns)
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
                .planned_ns = duration(plan->begin_ns, plan->end_ns),
                .measured_ns = duration(run->begin_ns, run->end_ns),
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
                          .planned_ns = duration(plan->begin_ns, plan->end_ns),
                          .measured_ns = duration(run->begin_ns, run->end_ns) - run->waited_ns};
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

static const char *kind_name(enum pair_kind kind)
{
    static const char *const names[] = {
        [PAIR_OP] = "op", [PAIR_OUT] = "copy out", [PAIR_IN] = "copy in"};

    return names[kind];
}

static void put_row(struct html *html, const struct pair *pair)
{
    const char *sign = pair->measured_ns > pair->planned_ns   ? "+"
                       : pair->measured_ns < pair->planned_ns ? "-"
                                                              : "";

    html_format(html, "<tr><td>%s</td><td class=\"name\">", kind_name(pair->kind));
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

static void put_csv_line(struct html *html, const struct pair *pair)
{
    html_format(html, "%s,%" PRIu32 ",", kind_name(pair->kind), pair->number);
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
        put_row(html, worst[i]);
    }
    html_table_end(html);
    html_csv_begin(html, "predictions-csv", "Predictions",
                   "what,number,name,predicted_ns,measured_ns");
    for (size_t i = 0; i < count; i += i < PAIRS_SHOWN / 2 ? 1 : step) {
        put_csv_line(html, worst[i]);
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
