/* What the sections of a page consist of, see page_parts.h. */
#include "tools/page/page_parts.h"

#include <stddef.h>

void page_section_begin(struct html *html, const char *id, const char *title, const char *what)
{
    html_format(html, "<section id=\"%s\" aria-labelledby=\"%s-title\">\n<h2 id=\"%s-title\">%s",
                id, id, id, title);
    if (what != NULL) {
        html_format(html, " <small>%s</small>", what);
    }
    html_raw(html, "</h2>\n");
}

void page_section_end(struct html *html)
{
    html_raw(html, "</section>\n");
}

void page_picture(struct html *html, const char *id, const char *label)
{
    html_format(html,
                "<figure><div class=\"keys\" id=\"%s-keys\"></div>\n"
                "<div class=\"picture\" id=\"%s-picture\" tabindex=\"0\" role=\"application\" "
                "aria-label=\"%s\" aria-describedby=\"%s-readout\"></div>\n"
                "<p class=\"readout\" id=\"%s-readout\" role=\"status\">&#160;</p></figure>\n",
                id, id, label, id, id);
}

const struct view *page_view(const struct page *page)
{
    return page->measured != NULL ? page->measured : page->planned;
}

void page_put_missing(struct html *html)
{
    html_raw(html,
             "<p>Not in this page. For what is measured, record the report with "
             "<code>CAPUCHIN_TIMELINE=1</code>. For what is planned, record "
             "<code>CAPUCHIN_TRACE=TRACE</code> and <code>CAPUCHIN_PLAN=PLAN</code> in guided mode "
             "and add <code>--trace TRACE --plan PLAN</code>.</p>\n");
}
