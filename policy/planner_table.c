/* The table of planners, above all of them: nothing that a planner calls may use it. Planner
   hybrid, which tries the others, gets it through struct planning. */
#include "policy/planner_shared.h"

#include <string.h>

const struct planner planners[] = {
    {"hybrid", "swap or recompute each tensor and gap by price, then search", hybrid_plan, true},
    {"capuchin", "the paper's: by free time, swap or recompute one tensor after the other",
     capuchin_plan, false},
    {"lru", "demand paging: the least recently used tensor leaves, nothing returns early", lru_plan,
     false},
    {"swap", "copies only, chosen by price", swap_plan, false},
    {"recompute", "replays only, chosen by price", recompute_plan, false},
    {"dtr", "dynamic rematerialisation: the least price for bytes and disuse is dropped", dtr_plan,
     false},
    {"vdnn", "copies of what enters a layer, all layers or products only", vdnn_plan, false},
    {"checkpoint", "replays of all but every sqrt(n)-th place where forward is one tensor",
     checkpoint_plan, false},
    {"speed", "replays of all but what convolutions and matrix products make", speed_plan, false},
    {"manual", "the trace's own hints and segments, and nothing else", manual_plan, false},
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
