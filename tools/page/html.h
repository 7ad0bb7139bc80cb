/*
 * Writes HTML in which text from files stays text.
 *
 * Names in reports and traces can contain anything: markup, quotes, control characters, 200 KB of
 * them. All text is written through html_text or html_name, which make it fit for a terminal as
 * printable.h does, and then escape what HTML would read as markup, within attributes also. The
 * first failure is kept, so that callers check once, at the end.
 */
#ifndef CAPU_TOOLS_HTML_H
#define CAPU_TOOLS_HTML_H

#include "policy/format/string_buffer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Names are cut after so many columns. */
enum { HTML_NAME_COLUMNS = 120 };

/* A zeroed struct is an empty document. */
struct html {
    struct string_buffer text;
    bool has_failed; /* memory ran out; the text is not complete */
};

void html_finish(struct html *html);

/* Markup of our own. */
void html_raw(struct html *html, const char *markup);
/* The same, with numbers or constants of our own in it; never with text from a file. */
void html_format(struct html *html, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text, for an element or an attribute in double quotes. Texts longer than PRINTABLE_BYTES are
   cut. */
void html_text(struct html *html, const char *text);
/* A name, which is cut after HTML_NAME_COLUMNS, with an ellipsis in place of the rest. */
void html_name(struct html *html, const char *name);
/* A name as a field of a CSV table within an element: quoted if need be, and cut as names are.
   A name that a spreadsheet would take for a formula gets an apostrophe. */
void html_csv_name(struct html *html, const char *name);

/* A size or a time for people, with the exact number for scripts: <data value="2048">2.00 KiB. */
void html_bytes(struct html *html, uint64_t bytes);
void html_ns(struct html *html, uint64_t ns);
void html_count(struct html *html, uint64_t count);
/* With one decimal; `value` is a percentage. */
void html_percent(struct html *html, double value);

/* A value in a script element of the given id, where it is not executed; releases it. NULL: memory
   ran out while it was made. */
void html_json(struct html *html, const char *id, json_t *value);

/* A string with names cut as html_name does, for html_json. NULL: memory ran out. */
json_t *html_json_name(const char *name);

/* Opens a section with its title, and says what its picture shows: "Measured", "Planned" or, NULL,
   neither. `id` is that of the section, and its picture's is `id`-picture. */
void html_section_begin(struct html *html, const char *id, const char *title, const char *what);
void html_section_end(struct html *html);
/* The place of a picture that the script draws, with what it shows in words, for those who cannot
   see it, and the line that names what is under the cursor. */
void html_picture(struct html *html, const char *id, const char *label);

/* A table: begin, rows of cells, end. A column whose title begins with '#' holds numbers. */
void html_table_begin(struct html *html, const char *id, const char *caption,
                      const char *const *columns);
void html_table_end(struct html *html);

/* A table of data as CSV, closed at first: begin with what it has and the line of titles, lines in
   html_csv_name and html_format, end. */
void html_csv_begin(struct html *html, const char *id, const char *what, const char *titles);
void html_csv_end(struct html *html);

#endif
