/*
 * The two ends of an iteration, for iterations of every kind: those of the program, captured ones
 * and launches of graphs.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_ITERATION_H
#define CAPU_RUNTIME_ITERATION_H

#include "capuchin/context.h"

#include <stdbool.h>

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
