/*
 * Pages over time, from a view with places: which tensor has which pages when. Of many runs of
 * pages the page takes those that cover most, pages times time, since the others would be too small
 * to see.
 */
#include "tools/page/page_sections.h"

#include "tools/page/page_parts.h"

#include <inttypes.h>
#include <stdlib.h>

enum { RUNS_SHOWN = 1500, ROWS = 40 };

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

static void put_table(struct html *html, const struct view *view, const struct run *runs,
                      size_t count)
{
    static const char *const columns[] = {"Tensor",  "#First page", "#Pages",
                                          "#Begins", "#Lasts",      NULL};

    html_table_begin(html, "pages-table", "The runs of pages that were taken most", columns);
    for (size_t i = 0; i < count && i < ROWS; i++) {
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
    page_section_begin(html, "pages", "Pages over time", view_source_name(view->source));
    if (!view->has_places) {
        html_raw(html,
                 "<p>Not in this page: tensors have no places. Plans have them in guided mode "
                 "and with <code>capuchin plan --place</code>.</p>\n");
        page_section_end(html);
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
    page_picture(html, "pages", "Which tensor has which pages over the time of the iteration");
    put_table(html, view, runs, count);
    put_csv(html, runs, count);
    html_format(html, "<script type=\"application/json\" id=\"pages-marks\">%" PRIu32 "</script>\n",
                view->page_count);
    free(runs);
    page_section_end(html);
}
