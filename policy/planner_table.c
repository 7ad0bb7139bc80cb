/* The table of planners, above all of them: nothing that a planner calls may use it. Planner
   hybrid, which tries the others, gets it through struct planning. */
#include "policy/planner_shared.h"

#include <string.h>

const struct planner planners[] = {
    {"hybrid", "swap or recompute each tensor and gap by price, then search", hybrid_plan, true},
    {"capuchin", "the paper's: swap or recompute one tensor after another, by free time",
     capuchin_plan, false},
    {"lru", "demand paging: evict the least recently used tensor, no prefetches", lru_plan, false},
    {"swap", "copies only, chosen by price", swap_plan, false},
    {"recompute", "replays only, chosen by price", recompute_plan, false},
    {"dtr", "dynamic rematerialization: drop what is cheapest per byte and longest unused",
     dtr_plan, false},
    {"vdnn", "copy the inputs of layers, of all layers or of products only", vdnn_plan, false},
    {"checkpoint", "keep every sqrt(n)-th place where forward is one tensor, replay the rest",
     checkpoint_plan, false},
    {"speed", "keep what convolutions and matrix products make, replay the rest", speed_plan,
     false},
    {"manual", "follow the trace's hints and segments, and decide nothing else", manual_plan,
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
