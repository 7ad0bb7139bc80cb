/* A page about a plan: what its simulation shows. */
#ifndef CAPU_TOOLS_PAGE_PLAN_H
#define CAPU_TOOLS_PAGE_PLAN_H

#include "tools/page/page.h"

#include "policy/format/plan.h"

/* Adds the view of the plan to the page, and writes it. Pre: the index of the page's subject is for
   the plan's page size, and the plan is valid for it. False: an error has been printed. */
bool page_write_plan(const char *path, struct page *page, const struct plan *plan);

/* The simulation of the plan in a file, for a page about a run that followed it. False: an error
   has been printed, and the view is zeroed. The caller finishes it. */
bool page_load_plan(struct view *view, const struct subject *subject, const char *path);

#endif
