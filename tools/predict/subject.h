/* What most subcommands work on: a trace, indexed, and the machine it runs on. */
#ifndef CAPU_TOOLS_SUBJECT_H
#define CAPU_TOOLS_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/format/plan.h"
#include "policy/format/trace.h"
#include "policy/model/trace_index.h"

/* A trace, its index, and the machine that it runs on. */
struct subject {
    struct trace trace;
    struct trace_index trace_index;
    struct machine machine;
};

/* Loads a trace, and warns if it may be cut. False: an error has been printed. */
bool subject_trace(struct trace *trace, const char *path);

/* Loads the trace and builds its index. `machine_name` NULL: the machine in the trace. False: an
 * error has been printed, and nothing is held. */
bool subject_load(struct subject *subject, const char *path, const char *machine_name,
                  uint64_t page_bytes);
void subject_finish(struct subject *subject);

/* Loads a plan, and indexes the trace for its page. `path` NULL: the empty plan, with a budget that
   holds everything. Persistent tensors that no op touches and that the plan does not have leave the
   trace, with a message. Whether the plan is valid for the trace is not checked. False: an error
   has been printed, and nothing is held but the subject. */
bool subject_plan(struct subject *subject, const char *path, struct plan *plan);

/* The file that --machine names; NULL if it names a known machine, or is NULL. */
const char *subject_machine_file(const char *name);

#endif
