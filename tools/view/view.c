/* What views have in common: their words, and freeing them. */
#include "tools/view/view.h"

#include <stdlib.h>

const char *view_source_name(enum view_source source)
{
    return source == VIEW_PLANNED ? "planned" : "measured";
}

const char *view_kind_name(enum view_kind kind)
{
    static const char *const names[VIEW_KIND_COUNT] = {
        [VIEW_PARAMETERS] = "parameters", [VIEW_OPTIMIZER] = "optimizer state",
        [VIEW_GRADIENTS] = "gradients",   [VIEW_ACTIVATIONS] = "activations",
        [VIEW_WORKSPACE] = "workspace",   [VIEW_INPUTS] = "inputs",
        [VIEW_PERSISTENT] = "persistent", [VIEW_CARRIED] = "carried to backward",
        [VIEW_SHORT] = "short-lived",
    };

    return names[kind];
}

const char *view_state_name(enum view_state state)
{
    static const char *const names[VIEW_STATE_COUNT] = {
        [VIEW_RESIDENT] = "resident", [VIEW_LEAVING] = "leaving", [VIEW_ON_HOST] = "on host",
        [VIEW_COMING] = "coming",     [VIEW_DROPPED] = "dropped", [VIEW_REPLAYED] = "replayed",
    };

    return names[state];
}

const char *view_wait_name(enum view_wait wait)
{
    static const char *const names[VIEW_WAIT_COUNT] = {
        [VIEW_WAIT_NOTHING] = "",
        [VIEW_WAIT_TENSOR] = "tensor",
        [VIEW_WAIT_MEMORY] = "memory",
        [VIEW_WAIT_SAVE] = "copy out",
        [VIEW_WAIT_COMPUTE] = "compute",
        [VIEW_WAIT_HOST] = "host copy",
        [VIEW_WAIT_UNKNOWN] = "tensor or memory",
    };

    return names[wait];
}

const char *view_method_name(uint32_t method)
{
    switch (method) {
    case CAPU_METHOD_SWAP:
        return "swap";
    case CAPU_METHOD_CLEAN:
        return "clean";
    case CAPU_METHOD_RECOMPUTE:
        return "recompute";
    default:
        return "empty";
    }
}

void view_finish(struct view *view)
{
    free(view->ops);
    free(view->op_of_number);
    free(view->copies);
    free(view->moves);
    free(view->tensors);
    free(view->stays);
    free(view->places);
    free(view->samples);
    free(view->operands);
    free(view->names);
    *view = (struct view){0};
}
