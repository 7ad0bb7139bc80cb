/* The two directions of the link, from views: when it was busy, and at which rate. Planned and
   measured copies are shown together, but never added up. */

#include "tools/page/page_sections.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

static void put_row(struct html *html, const struct view *view, enum view_direction direction)
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
static void put_csv(struct html *html, const struct view *view, const struct view *shown)
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
            put_row(html, views[i], VIEW_IN);
            put_row(html, views[i], VIEW_OUT);
        }
    }
    html_table_end(html);
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        if (views[i] != NULL) {
            put_csv(html, views[i], page_view(page));
        }
    }
    html_section_end(html);
}
