/* Writes HTML in which text from files stays text, and what the sections of a page consist of. */
#include "tools/page/html.h"

#include "base/printable.h"
#include "tools/output/output.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void html_finish(struct html *html)
{
    string_buffer_finish(&html->text);
}

static void append_bytes(struct html *html, const char *bytes, size_t count)
{
    html->has_failed =
        html->has_failed || string_buffer_append(&html->text, bytes, count) != CAPU_OK;
}

void html_raw(struct html *html, const char *markup)
{
    append_bytes(html, markup, strlen(markup));
}

void html_format(struct html *html, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof(line)) {
        html->has_failed = true;
        return;
    }
    append_bytes(html, line, (size_t)length);
}

/* Harmless characters up to those that HTML reads as markup, and those as references. */
static void append_escaped(struct html *html, const char *text)
{
    while (*text != '\0') {
        size_t plain = strcspn(text, "&<>\"'");

        append_bytes(html, text, plain);
        text += plain;
        if (*text != '\0') {
            html_format(html, "&#%d;", *text);
            text++;
        }
    }
}

void html_text(struct html *html, const char *text)
{
    char buffer[PRINTABLE_BYTES];

    append_escaped(html, printable(text, buffer));
}

void html_name(struct html *html, const char *name)
{
    char buffer[PRINTABLE_BYTES];

    append_escaped(html, printable_cut(name, HTML_NAME_COLUMNS, buffer));
}

void html_csv_name(struct html *html, const char *name)
{
    char buffer[PRINTABLE_BYTES];
    const char *text = printable_cut(name, HTML_NAME_COLUMNS, buffer);
    bool is_formula = strchr("=+-@", text[0]) != NULL && text[0] != '\0';

    if (!is_formula && strpbrk(text, ",\"") == NULL) {
        append_escaped(html, text);
        return;
    }
    html_raw(html, is_formula ? "\"'" : "\"");
    while (*text != '\0') {
        char one[2] = {*text++, '\0'};

        append_escaped(html, one);
        if (one[0] == '"') {
            append_escaped(html, one);
        }
    }
    html_raw(html, "\"");
}

void html_bytes(struct html *html, uint64_t bytes)
{
    char text[32];

    html_format(html, "<data value=\"%" PRIu64 "\">%s</data>", bytes, human_bytes(bytes, text));
}

void html_ns(struct html *html, uint64_t ns)
{
    char text[32];

    html_format(html, "<data value=\"%" PRIu64 "\">%s</data>", ns, human_ns(ns, text));
}

void html_count(struct html *html, uint64_t count)
{
    html_format(html, "<data value=\"%" PRIu64 "\">%" PRIu64 "</data>", count, count);
}

void html_percent(struct html *html, double value)
{
    html_format(html, "<data value=\"%.9g\">%.1f&#160;%%</data>", value, value);
}

/* In JSON these characters occur only within strings, where they may be escaped. */
static void append_json(struct html *html, const char *text)
{
    while (*text != '\0') {
        size_t plain = strcspn(text, "<>&");

        append_bytes(html, text, plain);
        text += plain;
        if (*text != '\0') {
            html_format(html, "\\u%04x", (unsigned)*text);
            text++;
        }
    }
}

void html_json(struct html *html, const char *id, json_t *value)
{
    /* ASCII also escapes U+2028, which older scripts take for the end of a line. */
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));

    json_decref(value);
    if (text == NULL) {
        html->has_failed = true;
        return;
    }
    html_format(html, "<script type=\"application/json\" id=\"%s\">", id);
    append_json(html, text);
    html_raw(html, "</script>\n");
    free(text);
}

json_t *html_json_name(const char *name)
{
    char buffer[PRINTABLE_BYTES];

    return json_string(printable_cut(name, HTML_NAME_COLUMNS, buffer));
}

void html_table_begin(struct html *html, const char *id, const char *caption,
                      const char *const *columns)
{
    html_format(
        html,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-labelledby=\"%s-caption\">"
        "<table id=\"%s\"><caption id=\"%s-caption\">",
        id, id, id);
    html_raw(html, caption);
    html_raw(html, "</caption>\n<thead><tr>");
    for (size_t i = 0; columns[i] != NULL; i++) {
        bool is_number = columns[i][0] == '#';

        html_format(html, "<th scope=\"col\"%s>%s</th>", is_number ? " class=\"number\"" : "",
                    columns[i] + is_number);
    }
    html_raw(html, "</tr></thead>\n<tbody>\n");
}

void html_table_end(struct html *html)
{
    html_raw(html, "</tbody></table></div>\n");
}

void html_csv_begin(struct html *html, const char *id, const char *what, const char *titles)
{
    html_format(html,
                "<details class=\"csv\"><summary>%s as CSV</summary>"
                "<pre id=\"%s\" tabindex=\"0\">\n%s\n",
                what, id, titles);
}

void html_csv_end(struct html *html)
{
    html_raw(html, "</pre></details>\n");
}

void html_section_begin(struct html *html, const char *id, const char *title, const char *what)
{
    html_format(html, "<section id=\"%s\" aria-labelledby=\"%s-title\">\n<h2 id=\"%s-title\">%s",
                id, id, id, title);
    if (what != NULL) {
        html_format(html, " <small>%s</small>", what);
    }
    html_raw(html, "</h2>\n");
}

void html_section_end(struct html *html)
{
    html_raw(html, "</section>\n");
}

void html_picture(struct html *html, const char *id, const char *label)
{
    html_format(html,
                "<figure><div class=\"keys\" id=\"%s-keys\"></div>\n"
                "<div class=\"picture\" id=\"%s-picture\" tabindex=\"0\" role=\"application\" "
                "aria-label=\"%s\" aria-describedby=\"%s-readout\"></div>\n"
                "<p class=\"readout\" id=\"%s-readout\" role=\"status\">&#160;</p></figure>\n",
                id, id, label, id, id);
}
