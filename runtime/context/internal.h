/*
 * The inside of a context, for the files of this room only.
 *
 * struct capu_context puts the parts together; each part has a header of its own, and README.md
 * lists them. All of it is owned by the thread that calls the library; agent.h says what the
 * agent's thread sees.
 */
#ifndef CAPU_RUNTIME_INTERNAL_H
#define CAPU_RUNTIME_INTERNAL_H

#include "capuchin/capuchin.h"
#include "runtime/context/agent.h"
#include "runtime/context/failure.h"
#include "runtime/context/fork_mark.h"
#include "runtime/context/settings.h"
#include "runtime/context/structs.h"
#include "runtime/follow/following.h"
#include "runtime/guide/guided.h"
#include "runtime/iteration/iteration_state.h"
#include "runtime/lanes/graph.h"
#include "runtime/lanes/lanes.h"
#include "runtime/plan/plans.h"
#include "runtime/record/records.h"
#include "runtime/residency/residency.h"
#include "runtime/strict/strict.h"
#include "runtime/tensor/access.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/tensor_state.h"

struct capu_context {
    struct settings settings;
    struct fork_mark fork_mark;
    struct failure failure;
    struct lanes lanes;
    struct memory memory;
    struct residency residency;
    struct following following;
    struct records records;
    struct strict strict;
    struct agent *agent;
    struct operands operands;

    struct iteration_state iteration;
    bool in_access;         /* between capu_access_begin and capu_access_end */
    bool access_is_planned; /* the active guide has that access */
    struct plans plans;
    struct guided guided;
    struct graphs graphs;
};

/* Every public call begins with this: OK, or the status of a lost context; INVALID without one,
   WRONG_PROCESS in a child of its process, WRONG_ORDER in a run function. */
capu_status context_usable(capu_context *context);

/* INVALID without a context, WRONG_PROCESS in a child of its process: for calls that work even if
   the context is lost. */
capu_status context_present(capu_context *context);

/* As context_usable, and WRONG_ORDER between capu_access_begin and capu_access_end, and while the
   program captures the stream. */
capu_status context_ready(capu_context *context, const char *call);

/* As context_ready, and WRONG_ORDER while an iteration is captured: the call would wait, or change
   what the graph names. */
capu_status context_uncaptured(capu_context *context, const char *call);

/* The layout of tensors changes: graphs that were captured before are stale. */
void context_note_layout(capu_context *context, const struct tensor *tensor);

/* Creates a context on a given device, which it owns if the call succeeds. Tests pass a device
   inside adaptors. `config` is complete, as config_resolve leaves it. */
capu_status context_create_on(struct device *device, const capu_config *config,
                              capu_context **context, char *text, size_t text_bytes);

/* validate.c: checks the books of the whole context. If something is wrong, returns false and says
   in *what. */
bool context_validate(capu_context *context, const char **what);

/* The same for assertions: prints what is wrong to stderr. */
bool context_is_valid(capu_context *context);

#endif
