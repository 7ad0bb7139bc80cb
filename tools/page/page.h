/*
 * A page about a report, a plan or a comparison of budgets: one HTML file without references to
 * others. Its head and tables are HTML, so it can be read without scripts; tools/page/page.js draws
 * the pictures from the tables of data within it.
 *
 * The page of equal input is equal to the byte: it contains no date, and no path but the names
 * given. Planned and measured values are never mixed; each picture says which it shows.
 */
#ifndef CAPU_TOOLS_PAGE_H
#define CAPU_TOOLS_PAGE_H

#include "policy/format/plan.h"
#include "tools/predict/predict.h"
#include "tools/report/account.h"
#include "tools/view/view.h"

#include <stdbool.h>

/* What a page is about. NULL: the page does not have it, and says how to get it. Nothing is kept.
 */
struct page {
    const char *command; /* the subcommand */
    const char *source;  /* the file that it is about */
    const struct report_file *report;
    const struct account *account; /* the explained iteration of the report */
    const char *trace;             /* file name, with `subject` */
    const struct subject *subject;
    const struct curves *curves; /* with `subject` */
    const struct view *planned;  /* of the plan of the same iteration, if both are there */
    const struct view *measured;
    uint64_t bound_ns; /* with `planned` and without `report`: no plan is faster */
};

/* Writes the page as a whole. Pre: page_is_possible. False: an error has been printed. */
bool page_write(const char *path, const struct page *page);

/* Whether the command was built with what pages need. */
bool page_is_possible(void);

/* A page about a plan: what its simulation shows. */

/* Adds the view of the plan to the page, and writes it. Pre: the index of the page's subject is for
   the plan's page size, and the plan is valid for it. False: an error has been printed. */
bool page_write_plan(const char *path, struct page *page, const struct plan *plan);

/* The simulation of the plan in a file, for a page about a run that followed it. False: an error
   has been printed, and the view is zeroed. The caller finishes it. */
bool page_load_plan(struct view *view, const struct subject *subject, const char *path);

#endif
