/*
 * Is a plan valid for a trace? Walks the program and records, for every tensor, which version its
 * device copy and its host copy hold. Two iterations are walked: host copies of tensors that are
 * never written outlive the first, and count against host_bytes in the second.
 */
#ifndef CAPU_POLICY_VALIDATE_H
#define CAPU_POLICY_VALIDATE_H

#include <stdbool.h>

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/model/program.h"

/*
 * `trace_index` must have been made with the plan's page_bytes. The text of an error names the
 * rule's place: op and tensor; or the other trace that the plan is for, if its header has the
 * counts of a trace and they or the names differ. Errors: INVALID (not valid), NO_HOST_MEMORY.
 */
capu_status validate_plan(const struct trace_index *trace_index, const struct plan *plan,
                          struct error_text *error);

/* The same, and gives the program of a valid plan. On failure zeroed. */
capu_status validate_program(struct program *program, const struct trace_index *trace_index,
                             const struct plan *plan, struct error_text *error);

/* Valid, except that it may hold more than its budgets allow; true if memory is short. For
   assertions: searches time plans under budgets that are not theirs. */
bool validate_is_sound(const struct trace_index *trace_index, const struct plan *plan);

#endif
