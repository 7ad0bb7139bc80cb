/* The table of planners of papers, behind that of the library. */
#include "policy/baselines/baselines.h"

#include <string.h>

static const struct planner baselines[] = {
    {"capuchin", "the paper's: swaps or recomputes one tensor after another, by free time",
     capuchin_plan, false},
    {"dtr", "dynamic rematerialization: drops what is cheapest per byte and longest unused",
     dtr_plan, false},
    {"vdnn", "swaps the inputs of all layers, or of convolutions and products only", vdnn_plan,
     false},
    {"checkpoint",
     "keeps every sqrt(n)-th tensor that alone carries the forward pass, recomputes the rest",
     checkpoint_plan, false},
    {"speed", "keeps what convolutions and matrix products produce, recomputes the rest",
     speed_plan, false},
};

#define COUNT (sizeof(baselines) / sizeof(baselines[0]))

const struct planner *baselines_planner_at(size_t index)
{
    size_t own = 0;

    while (own < index && planners[own].name != NULL) {
        own++;
    }
    if (planners[own].name != NULL) {
        return &planners[own];
    }
    return index - own < COUNT ? &baselines[index - own] : NULL;
}

const struct planner *baselines_find(const char *name)
{
    const struct planner *planner = planner_find(name);

    for (size_t i = 0; i < COUNT && planner == NULL; i++) {
        planner = strcmp(baselines[i].name, name) == 0 ? &baselines[i] : NULL;
    }
    return planner;
}
