/* The sections of a page, and what they consist of. */
#ifndef CAPU_TOOLS_PAGE_PARTS_H
#define CAPU_TOOLS_PAGE_PARTS_H

#include "tools/output/html.h"
#include "tools/page/page.h"

/* Opens a section with its title, and says what its picture shows: "Measured", "Planned" or, NULL,
   neither. `id` is that of the section, and its picture's is `id`-picture. */
void page_section_begin(struct html *html, const char *id, const char *title, const char *what);
void page_section_end(struct html *html);
/* The place of a picture that the script draws, with what it shows in words, for those who cannot
   see it, and the line that names what is under the cursor. */
void page_picture(struct html *html, const char *id, const char *label);

/* The view that pictures of one iteration show: the measured one if there is one. NULL: none. */
const struct view *page_view(const struct page *page);
/* How to get a view, in a page without one. */
void page_put_missing(struct html *html);

/* The sections. Each appends an HTML section; page.c says in which order. */
void page_head(struct html *html, const struct page *page);
void page_memory(struct html *html, const struct page *page);
void page_tensors(struct html *html, const struct page *page);
void page_links(struct html *html, const struct page *page);
void page_map(struct html *html, const struct page *page);
void page_budgets(struct html *html, const struct page *page);
void page_predictions(struct html *html, const struct page *page);
void page_iterations(struct html *html, const struct page *page);

#endif
