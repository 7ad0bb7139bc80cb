/* The closed form, and at some of the ops where memory is short the bound of replay_bound.h. */
#include "policy/bound/bound_iteration.h"

#include "policy/bound/bound.h"
#include "policy/bound/replay_bound.h"

#include <stdlib.h>

/* At so many ops, at most. */
#define REPLAY_CUTS 16

/* Of equal parts of the ops where memory is short, the one each where it is shortest. */
static uint32_t choose_cuts(const double *excesses, uint32_t ops, uint32_t cuts[REPLAY_CUTS])
{
    uint32_t worst = TRACE_INDEX_NONE; /* of the current part */
    uint32_t crowded = 0;
    uint32_t seen = 0;
    uint32_t count = 0;

    for (uint32_t k = 0; k < ops; k++) {
        crowded += excesses[k] > 0.0;
    }
    for (uint32_t k = 0; seen < crowded; k++) {
        uint64_t part = (uint64_t)seen * REPLAY_CUTS / crowded;

        if (excesses[k] <= 0.0) {
            continue;
        }
        worst = worst == TRACE_INDEX_NONE || excesses[k] > excesses[worst] ? k : worst;
        seen++;
        if ((uint64_t)seen * REPLAY_CUTS / crowded > part) {
            cuts[count++] = worst;
            worst = TRACE_INDEX_NONE;
        }
    }
    return count;
}

uint64_t bound_iteration(const struct trace_index *trace_index, const struct machine *machine,
                         uint64_t budget_bytes)
{
    uint32_t ops = trace_index->trace->op_count;
    double *excesses = calloc((size_t)ops + 1, sizeof(*excesses));
    uint64_t bound_ns = bound_cut_excesses(trace_index, machine, budget_bytes, excesses);
    struct replay_bound_request request = {
        .trace_index = trace_index, .machine = machine, .budget_bytes = budget_bytes};
    uint32_t cuts[REPLAY_CUTS];
    uint32_t count = excesses != NULL ? choose_cuts(excesses, ops, cuts) : 0;

    /* From the last one, so that the time that is lost after a cut can count for those before it;
       not always, since replays there are then free. */
    while (count-- > 0) {
        struct replay_bound_request alone = request;
        uint64_t after_ns;

        alone.cut = cuts[count];
        alone.tail_ns = 0;
        request.cut = cuts[count];
        bound_ns = replay_bound(&alone, bound_ns);
        if (request.tail_ns > 0) {
            bound_ns = replay_bound(&request, bound_ns);
        }
        after_ns = replay_bound_after(&alone);
        if (after_ns > request.tail_ns) {
            request.tail = request.cut;
            request.tail_ns = after_ns;
        }
    }
    free(excesses);
    return bound_ns;
}
