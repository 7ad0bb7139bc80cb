/* The table of planners, above all of them: nothing that a planner calls may use it. Planner
   hybrid, which tries the others, gets it through struct planning. */
#include "policy/search/planner_shared.h"

#include <string.h>

const struct planner planners[] = {
    {"hybrid", "swaps or recomputes each tensor, whichever costs less, then searches", hybrid_plan,
     true},
    {"capuchin", "the paper's: swaps or recomputes one tensor after another, by free time",
     capuchin_plan, false},
    {"lru", "demand paging: evicts the least recently used tensor, prefetches nothing", lru_plan,
     false},
    {"swap", "only swaps, what costs least first", swap_plan, false},
    {"recompute", "only recomputes, what costs least first", recompute_plan, false},
    {"dtr", "dynamic rematerialization: drops what is cheapest per byte and longest unused",
     dtr_plan, false},
    {"vdnn", "swaps the inputs of all layers, or of convolutions and products only", vdnn_plan,
     false},
    {"checkpoint",
     "keeps every sqrt(n)-th tensor that alone carries the forward pass, recomputes the rest",
     checkpoint_plan, false},
    {"speed", "keeps what convolutions and matrix products produce, recomputes the rest",
     speed_plan, false},
    {"manual", "follows the trace's hints and segments, and decides nothing else", manual_plan,
     false},
    {NULL, NULL, NULL, false},
};

const struct planner *planner_find(const char *name)
{
    for (const struct planner *planner = planners; planner->name != NULL; planner++) {
        if (strcmp(planner->name, name) == 0) {
            return planner;
        }
    }
    return NULL;
}
