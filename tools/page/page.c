/* The frame of a page, see page.h. */
#include "tools/page/page.h"

#include "policy/bound/bound_iteration.h"
#include "policy/model/validate.h"
#include "tools/output/output.h"
#include "tools/page/page_sections.h"
#include "tools/view/view.h"

#include <string.h>

/* What every page contains: our style and script, and the library that draws curves.
   cmake/embed.cmake makes the constants from the files; without the library its constants are
   empty. */
extern const char asset_style[];
extern const char asset_script[];
extern const char asset_dygraphs_style[];
extern const char asset_dygraphs_script[];
extern const char asset_dygraphs_licence[];

bool page_is_possible(void)
{
    return asset_dygraphs_script[0] != '\0';
}

/* The part before the first section. A policy without references keeps even a hostile name from
   loading anything. */
static void put_begin(struct html *html, const struct page *page)
{
    html_raw(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<meta name=\"color-scheme\" content=\"light dark\">\n"
                   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                   "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
                   "<title>");
    html_format(html, "capuchin %s ", page->command);
    html_name(html, page->source);
    html_raw(html, "</title>\n<style>\n");
    html_raw(html, asset_dygraphs_style);
    html_raw(html, "\n");
    html_raw(html, asset_style);
    html_raw(html, "</style>\n</head>\n<body>\n<main>\n");
}

static void put_end(struct html *html)
{
    html_raw(html,
             "<footer><p>Made by <code>capuchin</code>. Keys within a picture: left and right "
             "move the cursor, + and &#8722; zoom, 0 shows everything. The curves are drawn "
             "by dygraphs.</p>\n<details><summary>Licence of dygraphs</summary><pre>");
    for (const char *line = asset_dygraphs_licence; *line != '\0';) {
        char text[512];
        size_t length = strcspn(line, "\n");
        size_t kept = length < sizeof(text) ? length : sizeof(text) - 1;

        memcpy(text, line, kept);
        text[kept] = '\0';
        html_text(html, text);
        html_raw(html, "\n");
        line += length + (line[length] == '\n');
    }
    html_raw(html, "</pre></details></footer>\n</main>\n<script>\n");
    html_raw(html, asset_dygraphs_script);
    html_raw(html, "\n</script>\n<script>\n");
    html_raw(html, asset_script);
    html_raw(html, "</script>\n</body>\n</html>\n");
}

bool page_write(const char *path, const struct page *page)
{
    struct html html = {0};
    bool is_fine = false;

    put_begin(&html, page);
    page_head(&html, page);
    html_raw(&html, "<noscript><p>Pictures need JavaScript. The tables have the same "
                    "numbers.</p></noscript>\n");
    if (page->account != NULL || page_view(page) != NULL) {
        page_memory(&html, page);
    }
    page_tensors(&html, page);
    page_links(&html, page);
    page_budgets(&html, page);
    page_iterations(&html, page);
    put_end(&html);
    if (html.has_failed) {
        say("%s: out of memory for the page", path);
    } else {
        is_fine = output_write(path, &html.text);
    }
    html_finish(&html);
    return is_fine;
}

bool page_write_plan(const char *path, struct page *page, const struct plan *plan)
{
    const struct subject *subject = page->subject;
    struct error_text error = {""};
    struct view view;
    bool is_fine;

    if (view_of_plan(&view, &subject->trace_index, plan, &subject->machine, &error) != CAPU_OK) {
        say_error(&error);
        return false;
    }
    page->planned = &view;
    page->bound_ns = bound_iteration(&subject->trace_index, &subject->machine, plan->budget_bytes);
    is_fine = page_write(path, page);
    page->planned = NULL;
    view_finish(&view);
    return is_fine;
}

bool page_load_plan(struct view *view, const struct subject *subject, const char *path)
{
    struct trace_index trace_index = {0};
    struct error_text error = {""};
    struct plan plan = {0};
    capu_status status = plan_load(&plan, path, &error);

    *view = (struct view){0};
    if (status == CAPU_OK) {
        status = trace_index_init(&trace_index, &subject->trace, plan.page_bytes, &error);
    }
    if (status == CAPU_OK) {
        status = validate_plan(&trace_index, &plan, &error);
    }
    if (status == CAPU_OK) {
        status = view_of_plan(view, &trace_index, &plan, &subject->machine, &error);
    }
    if (status != CAPU_OK) {
        say_error(&error);
    }
    trace_index_finish(&trace_index);
    plan_finish(&plan);
    return status == CAPU_OK;
}
