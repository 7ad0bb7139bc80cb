/*
 * The head of a page: four numbers, a sentence, and the one thing to do next. A report says what
 * was measured, a plan what is to be expected, and a comparison what budgets there are.
 */

#include "tools/output/output.h"
#include "tools/page/page_sections.h"
#include "tools/report/account.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void begin_figure(struct html *html, const char *id, const char *title)
{
    html_format(html, "<div class=\"figure\" id=\"%s\"><dt>%s</dt><dd>", id, title);
}

static void end_figure(struct html *html)
{
    html_raw(html, "</span></dd></div>\n");
}

/* What follows the number of a figure. */
static void begin_note(struct html *html)
{
    html_raw(html, " <span class=\"note\">");
}

static void put_floor(struct html *html, uint64_t floor_bytes, const char *op)
{
    begin_figure(html, "floor", "Smallest possible budget");
    html_bytes(html, floor_bytes);
    begin_note(html);
    if (op[0] != '\0') {
        html_raw(html, "set by <code>");
        html_name(html, op);
        html_raw(html, "</code>");
    }
    end_figure(html);
}

static void put_need(struct html *html, uint64_t peak_bytes)
{
    begin_figure(html, "need", "Needed without a limit");
    html_bytes(html, peak_bytes);
    begin_note(html);
    end_figure(html);
}

static void put_peak(struct html *html, uint64_t peak_bytes, uint64_t budget_bytes)
{
    if (peak_bytes <= budget_bytes) {
        begin_figure(html, "peak", "Peak: the budget was kept");
    } else {
        html_raw(html, "<div class=\"figure bad\" id=\"peak\"><dt>Peak: above the budget</dt><dd>");
    }
    html_bytes(html, peak_bytes);
    begin_note(html);
    html_raw(html, "of ");
    html_bytes(html, budget_bytes);
    end_figure(html);
}

/* What the budget cost, as a part of the time of the iteration. */
static void put_report_cost(struct html *html, const struct reported *counters)
{
    uint64_t lost_ns = counters->stall_ns + counters->recompute_ns;

    begin_figure(html, "cost", "Cost of the budget");
    if (counters->is_timed) {
        html_ns(html, lost_ns);
        begin_note(html);
        html_percent(html, percent_of(lost_ns, counters->time_ns));
        html_raw(html, " of ");
    } else {
        html_raw(html, "not timed");
        begin_note(html);
        html_raw(html, "within ");
    }
    html_ns(html, counters->time_ns);
    end_figure(html);
}

static void put_report_sentence(struct html *html, const struct account *account)
{
    const struct reported *counters = &account->counters;

    html_format(html, "<p class=\"sentence\">Iteration %" PRIu64, counters->iteration);
    if (account->kind->label[0] != '\0') {
        html_raw(html, " (");
        html_name(html, account->kind->label);
        html_raw(html, ")");
    }
    html_raw(html, " in ");
    html_name(html, account->kind->mode);
    html_raw(html, counters->peak_bytes <= counters->budget_bytes
                       ? " mode kept its budget, which is "
                       : " mode exceeded its budget, which is ");
    html_percent(html, percent_of(counters->budget_bytes, counters->live_peak_bytes));
    html_raw(html, " of what a run without a limit needs");
    if (counters->is_timed) {
        html_raw(html, ", and spent ");
        html_percent(html, percent_of(counters->stall_ns, counters->time_ns));
        html_raw(html, " of its time waiting for memory and ");
        html_percent(html, percent_of(counters->recompute_ns, counters->time_ns));
        html_raw(html, " on replays");
    }
    html_raw(html, ".</p>\n");
}

/* One remedy of the list that remedies_print prints: lines after "  - ", or all if there is none.
 */
static char *next_remedy(char **rest)
{
    char *begin = strncmp(*rest, "  - ", 4) == 0 ? *rest + 4 : *rest;
    char *end = strstr(begin, "\n  - ");

    if (end != NULL) {
        *end = '\0';
        *rest = end + 1;
    } else {
        *rest = begin + strlen(begin);
    }
    return begin;
}

/* The text without the indents of the lines that it was broken into. */
static void join_lines(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0';) {
        if (*from == '\n' || (*from == ' ' && to == text)) {
            from += strspn(from, " \n");
            if (*from != '\0' && to != text) {
                *to++ = ' ';
            }
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

static void put_remedies(struct html *html, const struct page *page)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    char *rest;

    if (stream == NULL) {
        html->has_failed = true;
        return;
    }
    remedies_print(stream, page->account, page->report, page->trace);
    if (fclose(stream) != 0) {
        html->has_failed = true;
        free(text);
        return;
    }
    rest = text;
    for (unsigned i = 0; *rest != '\0'; i++) {
        char *remedy = next_remedy(&rest);

        join_lines(remedy);
        if (i == 0) {
            html_raw(html, "<p class=\"next\"><strong>Next:</strong> ");
            html_text(html, remedy);
            html_raw(html, "</p>\n");
        } else {
            html_raw(html, i == 1 ? "<details><summary>More to do</summary><ul>\n<li>" : "<li>");
            html_text(html, remedy);
            html_raw(html, *rest == '\0' ? "</li>\n</ul></details>\n" : "</li>\n");
        }
    }
    free(text);
}

/* The counters of the iteration, for scripts; null where they were not timed, as in the report. */
static void put_report_json(struct html *html, const struct page *page)
{
    const struct account *account = page->account;
    const struct reported *counters = &account->counters;
    json_t *whole =
        json_pack("{s:i,s:s,s:s}", "version", 1, "command", page->command, "what", "measured");
    json_t *iteration = json_object();

#define PUT_COUNTER(name, unit, text) \
    json_object_set_new(iteration, #name, json_integer((json_int_t)counters->name));
    REPORT_COUNTERS(PUT_COUNTER)
#undef PUT_COUNTER
    if (!counters->is_timed) {
        json_object_set_new(iteration, "compute_ns", json_null());
        json_object_set_new(iteration, "stall_ns", json_null());
        json_object_set_new(iteration, "recompute_ns", json_null());
    }
    json_object_set_new(iteration, "label", html_json_name(account->kind->label));
    json_object_set_new(iteration, "mode", html_json_name(account->kind->mode));
    json_object_set_new(iteration, "floor_op", html_json_name(account_text(account, "floor_op")));
    json_object_set_new(whole, "iteration", iteration);
    html_json(html, "data", whole);
}

static void put_report(struct html *html, const struct page *page)
{
    const struct account *account = page->account;
    const struct reported *counters = &account->counters;

    put_report_sentence(html, account);
    html_raw(html, "<dl class=\"figures\">\n");
    put_peak(html, counters->peak_bytes, counters->budget_bytes);
    put_report_cost(html, counters);
    put_floor(html, counters->floor_bytes, account_text(account, "floor_op"));
    put_need(html, counters->live_peak_bytes);
    html_raw(html, "</dl>\n");
    put_remedies(html, page);
    put_report_json(html, page);
}

static void put_plan_next(struct html *html, const struct page *page)
{
    const struct view *view = page->planned;
    uint64_t ideal_ns = view->ideal_ns;

    html_raw(html, "<p class=\"next\"><strong>Next:</strong> ");
    if (view->time_ns <= ideal_ns + ideal_ns / 50) {
        html_format(html,
                    "<code>CAPUCHIN_BUDGET=%" PRIu64
                    " CAPUCHIN_MODE=guided</code> runs the program "
                    "in this budget, for less than 2&#160;%% of its time.</p>\n",
                    view->budget_bytes);
    } else if (view->time_ns > page->bound_ns + ideal_ns / 50) {
        html_raw(html, "<code>capuchin plan --effort best</code> searches longer, for a gain of at "
                       "most ");
        html_ns(html, view->time_ns - page->bound_ns);
        html_raw(html, ", the distance to the lower bound.</p>\n");
    } else {
        html_raw(html, "no plan is much faster in this budget. <code>capuchin advise ");
        html_name(html, page->source);
        html_format(html, " --budget %" PRIu64 "</code> lists what would help.</p>\n",
                    view->budget_bytes);
    }
}

static void put_plan(struct html *html, const struct page *page)
{
    const struct view *view = page->planned;
    uint64_t lost_ns = view->time_ns > view->ideal_ns ? view->time_ns - view->ideal_ns : 0;

    html_raw(html, "<p class=\"sentence\">Planned, not measured: an iteration of <code>");
    html_name(html, view->trace_name);
    html_raw(html, "</code> takes ");
    html_ns(html, view->time_ns);
    html_raw(html, " in ");
    html_percent(html, percent_of(view->budget_bytes, view->unlimited_peak_bytes));
    html_raw(html, " of the memory that it needs without a limit; ");
    html_percent(html, percent_of(view->stall_ns, view->time_ns));
    html_raw(html, " of that is waiting and ");
    html_percent(html, percent_of(view->replay_ns, view->time_ns));
    html_raw(html, " replays.</p>\n<dl class=\"figures\">\n");
    put_peak(html, view->peak_bytes, view->budget_bytes);
    begin_figure(html, "cost", "Cost of the budget");
    html_ns(html, lost_ns);
    begin_note(html);
    html_percent(html, percent_of(lost_ns, view->ideal_ns));
    html_raw(html, " over the ideal of ");
    html_ns(html, view->ideal_ns);
    end_figure(html);
    put_floor(html, view->floor_bytes, view->floor_op);
    put_need(html, view->unlimited_peak_bytes);
    html_raw(html, "</dl>\n");
    put_plan_next(html, page);
    html_json(html, "data",
              json_pack("{s:i,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "version", 1,
                        "command", page->command, "what", "planned", "iteration_ns",
                        (json_int_t)view->time_ns, "ideal_ns", (json_int_t)view->ideal_ns,
                        "bound_ns", (json_int_t)page->bound_ns, "stall_ns",
                        (json_int_t)view->stall_ns, "replay_ns", (json_int_t)view->replay_ns,
                        "budget_bytes", (json_int_t)view->budget_bytes, "peak_bytes",
                        (json_int_t)view->peak_bytes, "floor_bytes", (json_int_t)view->floor_bytes,
                        "evicted_bytes", (json_int_t)view->out_bytes, "prefetched_bytes",
                        (json_int_t)view->in_bytes));
}

/* The smallest budget of the comparison whose overhead stays within a limit; 0: none does. */
static unsigned cheapest(const struct curves *curves, double most)
{
    for (unsigned at = 0; at < curves->count; at++) {
        for (unsigned i = 0; i + 1 < curves->item_count; i++) {
            double overhead = curves->items[i].overhead[at];

            if (overhead >= 0.0 && overhead <= most) {
                return curves->percent[at];
            }
        }
    }
    return 0;
}

static void put_cheapest(struct html *html, const struct page *page, const char *id,
                         const char *title, double most)
{
    unsigned percent = cheapest(page->curves, most);

    begin_figure(html, id, title);
    if (percent > 0) {
        html_bytes(html, curves_budget(page->subject, percent));
        begin_note(html);
        html_percent(html, percent);
        html_raw(html, " of the peak");
    } else {
        html_raw(html, "none");
        begin_note(html);
        html_raw(html, "of those compared");
    }
    end_figure(html);
}

static void put_sweep(struct html *html, const struct page *page)
{
    const struct subject *subject = page->subject;
    unsigned percent = cheapest(page->curves, 5.0);

    html_raw(html, "<p class=\"sentence\">Planned, not measured: the overhead of plans for <code>");
    html_name(html, trace_text(&subject->trace, subject->trace.name));
    html_raw(html, "</code> on ");
    html_name(html, subject->machine.name[0] != '\0' ? subject->machine.name : "its machine");
    html_raw(html, ".</p>\n<dl class=\"figures\">\n");
    put_cheapest(html, page, "least", "Smallest budget with a plan", 1e9);
    put_cheapest(html, page, "cheap", "Smallest one below 5&#160;% overhead", 5.0);
    put_floor(html, subject->trace_index.floor_bytes,
              trace_op_name(&subject->trace, subject->trace_index.floor_op));
    put_need(html, subject->trace_index.peak_bytes);
    html_raw(html, "</dl>\n<p class=\"next\"><strong>Next:</strong> <code>");
    if (percent > 0) {
        html_format(html, "CAPUCHIN_BUDGET=%" PRIu64 " CAPUCHIN_MODE=guided",
                    curves_budget(subject, percent));
        html_raw(html, "</code> runs the program in the smallest of these budgets that costs less "
                       "than 5&#160;%.</p>\n");
    } else {
        html_raw(html, "capuchin advise ");
        html_name(html, page->source);
        html_raw(html, " --budget 100%</code> lists what would make the iteration "
                       "faster.</p>\n");
    }
    html_json(html, "data",
              json_pack("{s:i,s:s,s:s,s:I,s:I}", "version", 1, "command", page->command, "what",
                        "planned", "peak_bytes", (json_int_t)subject->trace_index.peak_bytes,
                        "floor_bytes", (json_int_t)subject->trace_index.floor_bytes));
}

void page_head(struct html *html, const struct page *page)
{
    html_raw(html, "<header>\n<h1>");
    html_format(html, "<span class=\"command\">capuchin %s</span> ", page->command);
    html_name(html, page->source);
    html_raw(html, "</h1>\n");
    if (page_view(page) != NULL) { /* the first stop of the Tab key */
        html_raw(html, "<p class=\"bar\"><a class=\"button\" id=\"to-peak\" "
                       "href=\"#memory\">To the peak</a></p>\n");
    }
    if (page->account != NULL) {
        put_report(html, page);
    } else if (page->planned != NULL) {
        put_plan(html, page);
    } else {
        put_sweep(html, page);
    }
    html_raw(html, "</header>\n");
}
