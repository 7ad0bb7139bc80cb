/*
 * What the runtime remembers of the iterations under one label: which signatures they had, which
 * addresses their allocations got, what planning for them came to, and whether they pause.
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

#include "capuchin/status.h"
#include "runtime/plan/plan_cache.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Address memo: which address the n-th allocation of an iteration under a label got last time.
 *
 * A plan names tensors by address, so it only fits an iteration whose allocations get the addresses
 * that the recorded one had. Programs that allocate and free inside each step are given the same
 * addresses each step from this memo. A few sizes are remembered per allocation, so that an
 * occasional smaller batch does not displace the usual one.
 *
 * Zeroed is empty.
 */
enum { ADDRESS_MEMO_SIZES = 4 };

struct address_memo_entry {
    void *address;
    uint64_t bytes; /* 0: unused */
};

/* What the n-th allocations got, the newest first, each size once. */
struct address_memo_place {
    struct address_memo_entry entries[ADDRESS_MEMO_SIZES];
};

struct address_memo {
    struct address_memo_place *places;
    size_t count;
    size_t capacity;
    size_t next; /* n, of the allocation to come in this iteration */
};

void address_memo_finish(struct address_memo *memo);

/* An iteration begins: counts its allocations from 0. */
void address_memo_begin(struct address_memo *memo);

/* The address the next allocation had when it last had this size; NULL: it had not lately. */
void *address_memo_propose(const struct address_memo *memo, uint64_t bytes);

/* Notes what the next allocation got, and counts it. NO_HOST_MEMORY: not noted, harmless. */
capu_status address_memo_note(struct address_memo *memo, void *address, uint64_t bytes);

/*
 * Backoff: when iterations under a label stop following plans, and when they try again.
 *
 * Where shapes are drawn at random, nearly every iteration leaves its plan. It has then paid for
 * installing and leaving it, and gained nothing. So after BACKOFF_DIVERGED iterations in a row that
 * left their plans, a label pauses for BACKOFF_PAUSE iterations, which are passive. Then one
 * iteration tries again, and each time it fails the next pause is twice as long. One iteration that
 * follows its plan to the end ends all this. Iterations that had no plan count neither way.
 *
 * Pure functions of the struct. Zeroed: nothing has diverged.
 */
enum { BACKOFF_DIVERGED = 8, BACKOFF_PAUSE = 64 };

struct backoff {
    uint32_t diverged; /* iterations in a row that left their plan, at most BACKOFF_DIVERGED */
    uint64_t pause;    /* iterations of the newest pause; 0: there was none */
    uint64_t left;     /* iterations of it that have not ended */
};

/* Whether the next iteration is not to follow a plan. */
bool backoff_is_paused(const struct backoff *backoff);

/* An iteration has ended. `is_guided`: it began with a plan. `has_diverged`: it left that plan. */
void backoff_note(struct backoff *backoff, bool is_guided, bool has_diverged);

/*
 * The predictor: which iteration comes next under a label.
 *
 * Iterations are known by their signatures, of which the newest PREDICTOR_LENGTH are remembered.
 * The next one is predicted to be what followed the longest stretch of the past that equals the
 * present: shapes that take turns are predicted from their second turn on, whatever the period.
 *
 * Zeroed is empty.
 */
enum { PREDICTOR_LENGTH = 64 };

struct predictor {
    uint64_t signatures[PREDICTOR_LENGTH]; /* the oldest first */
    size_t count;
};

/* An iteration has ended. */
void predictor_add(struct predictor *predictor, uint64_t signature);

/* The signature of the newest iteration. Pre: there was one. */
uint64_t predictor_newest(const struct predictor *predictor);

/*
 * The signature of the iteration to come. Returns how many of the newest iterations also stand,
 * in this order, before an earlier one: the longest such stretch counts, and what followed it is
 * predicted. If several stretches are equally long, the most frequent signature that followed one
 * of them wins; of equally frequent ones, the latest. 0: the newest iteration is new, and
 * *signature is the most frequent one. Pre: there was an iteration.
 */
size_t predictor_predict(const struct predictor *predictor, uint64_t *signature);

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
