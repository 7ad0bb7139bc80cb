/*
 * The whole context: its parts together. Each part has a header of its own in the folder that works
 * on it, and says there which others it works with. Only the folders issue and api see the whole.
 *
 * All of it is owned by the thread that calls the library; agent.h says what the agent's thread
 * sees.
 */
#ifndef CAPU_RUNTIME_WHOLE_H
#define CAPU_RUNTIME_WHOLE_H

#include "runtime/context/agent.h"
#include "runtime/context/failure.h"
#include "runtime/plan/plans.h"

struct capu_context {
    struct settings settings;
    struct fork_mark fork_mark;
    struct failure failure;
    struct agent *agent;
    struct lanes lanes;
    struct memory memory;
    struct op op; /* at hand; between calls only an access is under way */
    struct iteration_state iteration;
    struct guided guided;
    struct records records;
    struct strict strict;
    struct residency residency;
    struct graphs graphs;
    struct following following;
    struct plans plans;
};

#endif
