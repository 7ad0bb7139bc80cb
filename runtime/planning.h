/*
 * Planning: from recorded iterations to guides, off the training thread, and which guide an
 * iteration begins with.
 *
 * Planning takes finished records from the tracker (planning_review): those of iterations that no
 * guide fits are planned for, and those of guided ones tell whether their plan is to be made anew.
 *
 * Guides are kept by label and signature, a bounded number (label_records.h). What an iteration
 * will be is predicted from what iterations of its label were before (predictor.h).
 *
 * Owned by the context's thread; a job under way is the agent's.
 */
#ifndef CAPU_RUNTIME_PLANNING_H
#define CAPU_RUNTIME_PLANNING_H

#include "runtime/guide.h"
#include "runtime/label_records.h"

struct plan_keeper;

/* Errors: NO_HOST_MEMORY, and what measuring the link gives. */
capu_status planning_create(capu_context *context, struct plan_keeper **out);

/* Ends jobs under way early. NULL is fine. */
void planning_destroy(struct plan_keeper *planning);

/* An iteration begins: takes up finished plans, and puts the guide that fits in force, or none.
   What keeps a guide from being installed costs the plan, not the iteration; only a lost context
   fails. */
capu_status planning_begin(capu_context *context, struct label_record *label);

/* Takes the records that have finished since the last call. For an iteration that no guide fits, a
   plan is made. Where feedback.h says so of one that was guided to its end, a new plan is made,
   which becomes active if it is predicted to be better than what the old one takes. */
void planning_review(capu_context *context);

/* An iteration begins, with a guide in force or none: whether its ops are to be timed. */
bool planning_wants_times(capu_context *context);

/* Plans with a tensor that begins there are wrong and are given up. Inside an iteration, the one in
   force serves recovery until it ends. */
capu_status planning_forget(capu_context *context, const void *address);

/* Why there is no plan for the label's newest iteration; "" if there is one or none was tried. */
const char *planning_error(capu_context *context, const char *label);

#endif
