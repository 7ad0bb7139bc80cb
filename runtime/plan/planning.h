/*
 * Planning: makes guides from recorded iterations, and chooses the one that an iteration begins
 * with.
 *
 * Planning takes finished records from the tracker (planning_review). If there is no plan for such
 * an iteration yet, a job makes one off the training thread (plan_job.h), and hands over the first
 * one that it finds and then better ones, which become active when that is worth it
 * (struct improvement). If the iteration followed a plan, its times are feedback for that plan, and
 * may lead to a better one (feedback.h).
 *
 * When an iteration begins, its signature is predicted from the earlier ones of its label
 * (struct predictor), and the guide for it, if there is one, is made active. A first plan in the
 * making is waited for, for a fraction of a second at most, where that costs no more than to go on
 * without one. Changing guides remaps memory and waits for the device, so the active guide stays
 * when it is also the next one. Guides are kept per label and signature, in a limited amount of
 * memory (label_records.h).
 *
 * Labels under which iterations nearly always leave their plans pause: meanwhile no plan is made or
 * made active for them (struct backoff).
 *
 * Owned by the context's thread; a running job is its worker's.
 */
#ifndef CAPU_RUNTIME_PLANNING_H
#define CAPU_RUNTIME_PLANNING_H

#include "runtime/guide/guide.h"
#include "runtime/plan/label_records.h"

struct plan_keeper;
struct plans;

/* Plans that are made at once, each by a task of the agent. */
enum { PLANNING_JOBS = 3 };

/* Errors: NO_HOST_MEMORY, and what measuring the link gives. */
capu_status planning_create(struct plans *plans, struct plan_keeper **out);

/* Ends jobs under way early. NULL is fine. */
void planning_destroy(struct plan_keeper *planning);

/* An iteration begins: takes finished plans, and makes the guide that fits active, or none. If a
   guide cannot be installed, that costs the plan, not the iteration: fails only if the context is
   lost. */
capu_status planning_begin(struct plans *plans, struct label_record *label);

/* Takes the records that have finished since the last call. For an iteration that no guide fits, a
   plan is made. Where feedback.h says so of one that was guided to its end, a new plan is made,
   which becomes active if it is predicted to be better than what the old one takes. */
void planning_review(struct plans *plans);

/* An iteration begins, with or without an active guide: whether its ops are to be timed. */
bool planning_wants_times(struct plans *plans);

/* The same, asked ahead for an iteration that may not begin. Pre: a guide is active. */
bool planning_times_next(const struct plans *plans);

/* Keeps a new plan. It replaces an old one for the same ops; if that is active, a stage waits until
   changing is worth it, unless only the stage has places: predictions do not know what an iteration
   without them spends on mapping. False: the entry is still the caller's, since the old one is
   better or host memory is short. Pre: no iteration is open. */
bool planning_keep(struct plans *plans, struct label_record *label, struct plan_entry *entry);

/* Plans that have a tensor at this address are wrong: discards them. Inside an iteration the active
   one is left, and discarded when recovery has ended. */
capu_status planning_forget(struct plans *plans, const void *address);

/* The budget has changed. Plans that need more pages than it allows are discarded, except the
   active one, which has its pages; for what was planned in less than it allows, new plans are made.
 */
void planning_note_budget(struct plans *plans);

/* An iteration ends, with its record still open: notes what it says about those to come. */
void planning_end(struct label_record *label, const struct record *record);

/* Contents that a plan discarded have been read. From now on plans for that label copy out what
   nothing could recompute, and others are discarded. */
void planning_note_loss(struct plans *plans);

/* Why there is no plan for the label's next iteration; "" if there is one or none was tried. */
const char *planning_error(struct plans *plans, const char *label);

/* Fills in what the report of the iteration that begins says about planning, apart from its own
   plan. */
void planning_report(const struct plans *plans, const struct label_record *label,
                     struct report *report);

#endif
