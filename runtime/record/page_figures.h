/*
 * Page figures: what a finished iteration needs, in pages of any size. The live peak, the floor and
 * its parts.
 *
 * Programs are run once without a budget to find out which one they need, and pages are larger then
 * than in that budget. So the figures are those of the page that a budget of the program's own live
 * peak would get, unless the page is larger than that or pinned by the config: then they are those
 * of the page in use. For a pinned page, the report also says whether the page that the device
 * would choose for the budget has a lower floor.
 */
#ifndef CAPU_RUNTIME_PAGE_FIGURES_H
#define CAPU_RUNTIME_PAGE_FIGURES_H

#include "capuchin/context.h"
#include "capuchin/status.h"
#include "runtime/record/live.h"

#include <stdint.h>

struct record;
struct record_tensor;
struct records;
struct tracker;

/* Fills in these counters of the record's report. NO_HOST_MEMORY. */
capu_status page_figures_report(struct records *records, struct record *record);

/* The bytes of a tensor that lie in pages of its own, if pages have this size: the device's own or
   a smaller one. 0: it would be always resident. */
uint64_t page_figures_span(const struct records *records, const struct record_tensor *tensor,
                           uint64_t page_bytes);

/* The bytes of each capu_kind where most bytes of the record's tensors are alive: persistent ones
   always, the others from their first access to their last. Pre: page_figures_report has succeeded
   for the record. */
void page_figures_kinds(struct tracker *tracker, const struct record *record,
                        uint64_t bytes[LIVE_KINDS]);

#endif
