/*
 * What the runtime remembers of the iterations under one label: what their ops were, which
 * addresses their allocations got, and what planning for them came to.
 *
 * Most programs use few labels ("train", "validate"), some one per shape. One that makes up a label
 * per iteration must not make the table grow, so there are two limits. Plans are the large part:
 * the memory that they take over all labels is limited, and the plans least recently used are
 * discarded, whatever their label. The rest of a record takes about a kilobyte, and there are at
 * most LABEL_RECORDS of them: a new label replaces the one least recently used, with everything in
 * its record.
 *
 * Zeroed is empty. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_LABEL_RECORDS_H
#define CAPU_RUNTIME_LABEL_RECORDS_H

#include "runtime/plan/address_memo.h"
#include "runtime/plan/backoff.h"
#include "runtime/plan/plan_cache.h"
#include "runtime/plan/predictor.h"

enum { LABEL_RECORDS = 1024 };

struct label_record {
    const char *label; /* interned */
    uint64_t used;     /* the last iteration that began under it */
    struct predictor predictor;
    struct address_memo addresses;
    struct plan_cache plans;
    struct backoff backoff;
    bool has_lost; /* an iteration has read what a plan had discarded: plans keep more from then on
                    */
    uint64_t guided_floor_bytes; /* of what was planned for last; 0: not known */
    bool was_short;              /* a plan was discarded that left too few pages to small tensors */
    bool was_displaced;          /* a plan was discarded for others since the last one was added */
};

/* The label is repeated here, so that a look-up among many labels reads one array. */
struct label_slot {
    const char *label;
    struct label_record *record; /* owned; stays where it is */
};

struct label_records {
    struct label_slot *slots;
    size_t count;
    size_t capacity;
};

void label_records_finish(struct label_records *records);

/* NULL: the label is not remembered. */
struct label_record *label_records_find(const struct label_records *records, const char *label);

/* The record of a label whose iteration begins. A new label replaces the one least recently used if
   there are LABEL_RECORDS already. NULL: no host memory. Pre: `active`, the active plan, is NULL or
   not a plan of the label that is replaced. */
struct label_record *label_records_use(struct label_records *records, const char *label,
                                       uint64_t iteration, const struct plan_entry *active);

/* Adds a plan to the record of its label. Discards those least recently used, of any label, until
   all of them take at most `limit_bytes`. The plan itself and `active` are kept in any case. False:
   no host memory, and the plan still belongs to the caller. */
bool label_records_add_plan(struct label_records *records, struct label_record *record,
                            struct plan_entry *entry, const struct plan_entry *active,
                            uint64_t limit_bytes);

/* Adds a plan that is better than the active one of the record, to wait until it takes its place
   (plan_cache_add_better). Discards others as above. */
void label_records_add_better(struct label_records *records, struct label_record *record,
                              struct plan_entry *active, struct plan_entry *better,
                              uint64_t limit_bytes);

/* Why the iteration expected next has no plan, or what became of it; "": there is nothing to say. A
   constant, or owned by the record. */
const char *label_records_refusal(const struct label_record *label);

/* Host memory that the plans of all labels take. */
uint64_t label_records_plan_bytes(const struct label_records *records);

/* Destroys plans that turned out wrong while an iteration could still need them. */
void label_records_discard_wrong(struct label_records *records);

#endif
