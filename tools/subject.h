/* What most subcommands work on: a trace, indexed, and the machine it runs on. */
#ifndef CAPU_TOOLS_SUBJECT_H
#define CAPU_TOOLS_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/trace.h"
#include "policy/trace_index.h"

/* A trace, turned round, and the machine it is to run on. */
struct subject {
    struct trace trace;
    struct trace_index trace_index;
    struct machine machine;
};

/* Loads and indexes; `machine_name` NULL: the trace's own. False: said why on standard error. */
bool subject_load(struct subject *subject, const char *path, const char *machine_name,
                  uint64_t page_bytes);
void subject_finish(struct subject *subject);

/* A name of the built-in list, or a file with a machine line. False: said why on standard error. */
bool subject_machine(const char *name, struct machine *machine);

#endif
