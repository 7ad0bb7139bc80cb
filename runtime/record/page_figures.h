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
#include "runtime/op/op.h"
#include "runtime/record/live.h"
#include "runtime/tensor/page_census.h"

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

/*
 * What the ops outside iterations need at once: the set-up of a program, evaluation between
 * iterations, uploads. No record has them, but a budget for the program must hold their operands,
 * too. In pages of every size of the census, as the floors of iterations are.
 *
 * Most ops are far below the largest, and cost a comparison. Owned by the context's thread.
 */
struct outside {
    uint64_t least_bytes;          /* of the op with the most: its operands and all small tensors */
    uint64_t own_bytes;            /* needed in pages of the device */
    uint64_t bytes[CENSUS_LEVELS]; /* in those of each level */
    const char *op;                /* interned: the op that needed most; NULL: there was none */
    uint64_t iteration_bytes;      /* the largest floor of an iteration */
};

/* The op at hand runs outside an iteration. */
void outside_note(struct records *records, const struct op *op);

/* In pages of this size. */
uint64_t outside_bytes(const struct records *records, uint64_t page_bytes);

#endif
