/* The sections of a page. */
#ifndef CAPU_TOOLS_PAGE_SECTIONS_H
#define CAPU_TOOLS_PAGE_SECTIONS_H

#include "tools/page/html.h"
#include "tools/page/page.h"

/* The view that pictures of one iteration show: the measured one if there is one. NULL: none. */
const struct view *page_view(const struct page *page);

/* Each appends an HTML section; page.c says in which order. */
void page_head(struct html *html, const struct page *page);
void page_memory(struct html *html, const struct page *page);
void page_tensors(struct html *html, const struct page *page);
void page_links(struct html *html, const struct page *page);
void page_budgets(struct html *html, const struct page *page);
void page_iterations(struct html *html, const struct page *page);

#endif
