/* Where a walk over a program begins, and where it turns. */
#include "policy/model/program_walk.h"

#include <stdlib.h>

capu_status program_walk_init(struct program_walk *walk, const struct program *program)
{
    const struct trace *trace = program->trace_index->trace;
    size_t tensors = (size_t)trace->tensor_count + 1;

    *walk = (struct program_walk){.program = program};
    walk->device = malloc(tensors * sizeof(*walk->device));
    walk->host = malloc(tensors * sizeof(*walk->host));
    if (walk->device == NULL || walk->host == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        bool on_host = program->starts_on_host[t];

        walk->device[t] = trace->tensors[t].persistent && !on_host ? 0 : PROGRAM_NO_VERSION;
        walk->host[t] = on_host ? 0 : PROGRAM_NO_VERSION;
    }
    return CAPU_OK;
}

void program_walk_finish(struct program_walk *walk)
{
    free(walk->device);
    free(walk->host);
    *walk = (struct program_walk){0};
}

void program_walk_turn(struct program_walk *walk, const struct program_visitor *visitor, void *user)
{
    const struct trace_index *trace_index = walk->program->trace_index;

    for (uint32_t t = 0; t < trace_index->trace->tensor_count; t++) {
        uint32_t newest = trace_index->final_version[t];

        if (trace_index->trace->tensors[t].persistent) {
            walk->device[t] = walk->device[t] == newest ? 0 : PROGRAM_NO_VERSION;
            if (walk->host[t] == newest) {
                walk->host[t] = 0;
            } else {
                program_walk_forget(walk, visitor, user, t);
            }
        }
    }
}
