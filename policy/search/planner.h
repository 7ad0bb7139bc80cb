/*
 * Planners behind one interface: from a trace and a budget to a valid plan, or the reason why there
 * is none. A planner is one file, or one family of files, with one entry in the table of planner.c.
 */
#ifndef CAPU_POLICY_PLANNER_H
#define CAPU_POLICY_PLANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/context.h"
#include "capuchin/status.h"
#include "policy/format/plan.h"
#include "policy/lower/preserve.h"
#include "policy/model/trace_index.h"

/* How long a planner may search, see docs/policy.md. */
enum plan_effort {
    EFFORT_UNSET = 0, /* EFFORT_DEFAULT */
    EFFORT_QUICK = 1,
    EFFORT_DEFAULT = 2,
    EFFORT_BEST = 3
};

/* Their names from EFFORT_QUICK on, ended by NULL. */
extern const char *const plan_effort_names[EFFORT_BEST + 1];

/* Mechanisms of the paper that planner `capuchin` (policy/baselines) can do without, to see what
   each gives. */
enum planner_without {
    WITHOUT_SWAP = 1,       /* recompute only, by memory saved for time (Algorithm 2) */
    WITHOUT_RECOMPUTE = 2,  /* swap only */
    WITHOUT_FEEDBACK = 4,   /* in-triggers stay where the measured iteration puts them */
    WITHOUT_COLLECTIVE = 8, /* what a replay makes besides its target is released at once */
};

struct planner_request {
    const struct trace_index *trace_index; /* its page_bytes become the plan's */
    const struct machine *machine;         /* NULL: the trace's own */
    uint64_t budget_bytes;
    uint64_t host_bytes; /* UINT64_MAX: no limit */
    /* Slabs, edge pages, reserve: so much of the budget, at least, is always held. Unmanaged
       tensors count in it; 0: only they do. */
    uint64_t fixed_bytes;
    bool place; /* the plan is to have place lines, and its time counts with them */
    /* With `place`: if everything fits into so many bytes of the budget when no tensor shares its
       pages before it is freed, none does (place_apart). 0: pages are shared. */
    uint64_t apart_bytes;
    /* What is copied out although the iteration does not need it (preserve.h). If the host limit
       leaves no room for all unread tensors, none is. */
    enum preserve preserve;
    /* For these two: per tensor, the op before which the program frees it, or TRACE_INDEX_NONE.
       NULL: it frees none. */
    const uint32_t *freed;
    /* Place lines whose pages are kept where possible (see placer_create). NULL: none. */
    const struct plan *kept;
    enum plan_effort effort; /* EFFORT_UNSET: default */
    uint64_t seed;    /* of random choices, from which plans differ slightly; 0 is as good as any */
    unsigned without; /* of enum planner_without; other planners do not look */
    /* Asked from time to time; true ends a search with the best plan so far. The only thing that
       can make two equal requests give different plans. NULL: never. */
    bool (*should_stop)(void *user);
    /* Called with every plan that is faster than all before it, as soon as it is found: valid for
       the request and complete, with place lines if they were asked for. The program, and its plan,
       are borrowed for the call. Without the copies that `preserve` adds, the iteration takes at
       most `predicted_ns`; the last call is about the time of the plan that is returned. Changes
       nothing of the result. NULL: not called. */
    void (*improved)(void *user, const struct program *program, uint64_t predicted_ns);
    /* Called from time to time during the longest phase of a search at one budget: at most so much
       of the work, in ops walked over, is left of that phase, which ends earlier if it gains
       nothing for long. Changes nothing of the result. NULL: not called. */
    void (*working)(void *user, uint64_t work_left);
    void *user; /* of all three */
};

struct planning; /* planner_shared.h */

struct planner {
    const char *name;
    const char *summary;
    /* Errors: OVER_BUDGET (none found), HOST_OVER_BUDGET, TOO_LARGE, NO_HOST_MEMORY. */
    capu_status (*plan)(struct planning *planning);
    bool is_placing; /* makes place lines itself */
};

/* Those of the library, ended by a NULL name. The first, hybrid (hybrid_state.h), is the default.
   baselines.h has more. */
extern const struct planner planners[];

/* NULL: no such planner. */
const struct planner *planner_find(const char *name);

/*
 * Plans and validates. If everything fits, the plan has no actions. On failure *plan is zeroed.
 * Errors: OVER_BUDGET: no plan exists, since one op alone needs more (the text names it and the
 * floor). UNSUPPORTED: this planner found none, or no placement of one, though one may exist (the
 * text says how many pages would suffice). TOO_LARGE: the tensors need too many pages to place, or
 * every iteration takes too long. INVALID (no machine), NO_HOST_MEMORY.
 */
capu_status planner_run(const struct planner *planner, const struct planner_request *request,
                        struct plan *plan, struct error_text *error);

/* The same, and gives the plan's program, which borrows plan and trace index. */
capu_status planner_run_program(const struct planner *planner,
                                const struct planner_request *request, struct plan *plan,
                                struct program *program, struct error_text *error);

/*
 * The smallest budget for which a plan is known: the floor and what no op names; with `place`, what
 * a placement of the frugal plan takes; at most the peak. planner_run finds a plan at this budget
 * and at any larger one, unless the host limit is too small. The request's own budget and effort do
 * not count. Takes as long as a few simulations. Errors: TOO_LARGE, INVALID (no machine),
 * NO_HOST_MEMORY.
 */
capu_status planner_least_budget(const struct planner_request *request, uint64_t *bytes,
                                 struct error_text *error);

#endif
