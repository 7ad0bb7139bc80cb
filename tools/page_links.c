/* The two directions of the link, from views: when it was busy, and at which rate. Planned and
   measured copies are shown together, but never added up. */
#include "tools/page_sections.h"

#include "tools/page_parts.h"

#include <inttypes.h>

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

static void put_csv(struct html *html, const struct view *view)
{
    html_csv_begin(html,
                   view->source == VIEW_PLANNED ? "copies-planned-csv" : "copies-measured-csv",
                   view->source == VIEW_PLANNED ? "Planned copies" : "Measured copies",
                   "direction,tensor,bytes,begin_ns,duration_ns");
    for (uint32_t i = 0; i < view->copy_count; i++) {
        const struct view_copy *copy = &view->copies[i];

        html_format(html, "%s,%" PRIu32 ",%" PRIu64 ",%" PRId64 ",%" PRId64 "\n",
                    copy->direction == VIEW_OUT ? "out" : "in", copy->tensor, copy->bytes,
                    copy->begin_ns, copy->end_ns - copy->begin_ns);
    }
    html_csv_end(html);
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
    page_section_begin(html, "links", "Links",
                       has_both ? "planned pale, measured dark"
                                : view_source_name(page_view(page)->source));
    html_raw(html,
             "<p>Copies back to the device above the line, copies out below it. The height of "
             "a copy is its rate, latency included, so its area is its size. The dashed lines "
             "are the rates that plans assume.</p>\n");
    page_picture(html, "links", "Copies over the time of the iteration");
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
            put_csv(html, views[i]);
        }
    }
    page_section_end(html);
}
