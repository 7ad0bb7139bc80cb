/*
 * What the public calls share: what every one of them begins with, and the two ends of an
 * iteration. Creating a context, and checking it.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_CONTEXT_H
#define CAPU_RUNTIME_CONTEXT_H

#include "capuchin/capuchin.h"
#include "runtime/issue/whole.h"

#include <stdbool.h>

/* The context that a call means which was given this one: NULL stands for the thread's current one.
 */
static inline const capu_context *context_meant(const capu_context *context)
{
    return context != NULL ? context : capu_context_current();
}

/* Every public call begins with this: OK, or the status of a lost context; INVALID without one,
   WRONG_ORDER in a child of its process and in a run function. *context NULL becomes the
   thread's current context, here and in the three that follow. */
capu_status context_usable(capu_context **context);

/* INVALID without a context, WRONG_ORDER in a child of its process: for calls that work even if
   the context is lost. */
capu_status context_present(capu_context **context);

/* As context_usable, and WRONG_ORDER between capu_access_begin and capu_access_end, and while the
   program captures the stream. */
capu_status context_ready(capu_context **context, const char *call);

/* As context_ready, and WRONG_ORDER while an iteration is captured: the call would wait, or change
   what the graph names. */
capu_status context_uncaptured(capu_context **context, const char *call);

/* The layout of tensors changes: graphs that were captured before are stale. */
void context_note_layout(capu_context *context, const struct tensor *tensor);

/* split.c: lengthens the last tensor of an allocation to `end`, an offset into the allocation,
   which it may go beyond what the tensor has now. Errors are those of capu_split, after which
   nothing has changed. */
capu_status split_lengthen(capu_context *context, struct tensor *last, uint64_t end);

/* Creates a context on a given device, which it owns if the call succeeds. Tests pass a device
   inside adaptors. `config` is complete, as config_resolve leaves it. */
capu_status context_create_on(struct device *device, const struct config *config,
                              capu_context **context, char *text, size_t text_bytes);

/* validate.c: checks the books of the whole context. If something is wrong, returns false and says
   in *what. */
bool context_validate(capu_context *context, const char **what);

/* The same for assertions: prints what is wrong to stderr. */
bool context_is_valid(capu_context *context);

/*
 * The two ends of an iteration (iteration.c), for iterations of every kind: those of the program,
 * captured ones and launches of graphs.
 */

struct label_record;

/* Waits until at most one iteration is running, takes note of finished ones, and finds the label.
   `call`: for errors. WRONG_ORDER, and those of capu_iteration_begin. */
capu_status iteration_prepare(capu_context *context, const char *call, const char *label,
                              struct label_record **labelled);

/* Makes transient tensors undefined. */
void iteration_forget(capu_context *context);

/* The same, and chooses the plan. */
capu_status iteration_plan(capu_context *context, struct label_record *label);

/* Opens its record and marks the beginning. After a failure no iteration is open. */
capu_status iteration_open(capu_context *context, struct label_record *label, bool is_timed);

/* Leaves a plan that has not been carried out, and recomputes what outlives the iteration. */
capu_status iteration_finish(capu_context *context, const char *call);

/* Marks the end and closes the record. After a failure the iteration is still open. */
capu_status iteration_close(capu_context *context);

/* Nothing has run: the iteration leaves no record. */
void iteration_cancel(capu_context *context);

#endif
