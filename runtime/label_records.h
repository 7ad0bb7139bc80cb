/*
 * What the runtime remembers of the iterations under one label: what their ops were, which
 * addresses their allocations got, and what planning for them came to.
 *
 * Programs use few labels ("train", "validate"), but one that makes up a label per iteration must
 * not make the table grow. So there are LABEL_RECORDS records, and one rule for all that they hold:
 * a new label replaces the one least recently used, with everything in its record. Guides are the
 * only large part; a bound of their own over all labels limits them (plan_cache.h).
 *
 * Zeroed is empty. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_LABEL_RECORDS_H
#define CAPU_RUNTIME_LABEL_RECORDS_H

#include "runtime/address_memo.h"
#include "runtime/plan_cache.h"
#include "runtime/predictor.h"

enum { LABEL_RECORDS = 16 };

struct label_record {
    const char *label; /* interned; NULL: unused */
    uint64_t used;     /* the last iteration that began under it */
    struct predictor predictor;
    struct address_memo addresses;
    struct plan_cache plans;
};

struct label_records {
    struct label_record list[LABEL_RECORDS];
};

void label_records_finish(struct label_records *records);

/* NULL: the label is not remembered. */
struct label_record *label_records_find(struct label_records *records, const char *label);

/* The record of a label whose iteration begins. A new label replaces the one least recently used.
   Pre: no guide of that one is active. */
struct label_record *label_records_use(struct label_records *records, const char *label,
                                       uint64_t iteration);

/* Adds a plan to the record of its label. If there are PLAN_CACHE_ENTRIES over all labels already,
   the least recently used one is destroyed, but never `active`. */
void label_records_add_plan(struct label_records *records, struct label_record *record,
                            struct plan_entry *entry, const struct plan_entry *active);

/* Destroys plans that turned out wrong while an iteration could still need them. */
void label_records_discard_wrong(struct label_records *records);

#endif
