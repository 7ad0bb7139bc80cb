/* Views: their words, freeing them, and making them of events. */
#include "tools/view/view.h"

#include "policy/baselines/training_passes.h"
#include "tools/view/view_events.h"

#include <stdlib.h>
#include <string.h>

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
    free(view->samples);
    free(view->names);
    *view = (struct view){0};
}

/*
 * Events become a view: a walk makes stays, moves and copies of them (view_walk.c); below, stays
 * are sorted by tensor, memory is summed up over time, and tensors are described.
 */

/* Stays are in the order in which they ended; within a tensor that is by time. */
static capu_status sort_stays(struct view *view)
{
    struct view_stay *sorted = malloc(((size_t)view->stay_count + 1) * sizeof(*sorted));
    uint32_t next = 0;

    if (sorted == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < view->stay_count; i++) {
        view->tensors[view->stays[i].tensor].stay_count++;
    }
    for (uint32_t t = 0; t < view->tensor_count; t++) {
        view->tensors[t].first_stay = next;
        next += view->tensors[t].stay_count;
        view->tensors[t].stay_count = 0;
    }
    for (uint32_t i = 0; i < view->stay_count; i++) {
        struct view_tensor *tensor = &view->tensors[view->stays[i].tensor];

        sorted[tensor->first_stay + tensor->stay_count++] = view->stays[i];
    }
    free(view->stays);
    view->stays = sorted;
    return CAPU_OK;
}

/* Memory is taken or given back. */
struct step {
    int64_t ns;
    int64_t bytes;
    enum view_kind kind;
};

static int by_step_time(const void *left, const void *right)
{
    int64_t a = ((const struct step *)left)->ns;
    int64_t b = ((const struct step *)right)->ns;

    return a < b ? -1 : a > b;
}

static capu_status sample_memory(struct view *view)
{
    struct step *steps = malloc(((size_t)view->stay_count * 2 + 1) * sizeof(*steps));
    struct view_sample now = {.held_bytes = view->fixed_bytes};
    size_t count = 0;

    view->samples = malloc(((size_t)view->stay_count * 2 + 1) * sizeof(*view->samples));
    if (steps == NULL || view->samples == NULL) {
        free(steps);
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < view->stay_count; i++) {
        const struct view_stay *stay = &view->stays[i];
        const struct view_tensor *tensor = &view->tensors[stay->tensor];

        if (stay->state != VIEW_ON_HOST && stay->state != VIEW_DROPPED) {
            steps[count++] = (struct step){
                .ns = stay->begin_ns, .bytes = (int64_t)tensor->held_bytes, .kind = tensor->kind};
            steps[count++] = (struct step){
                .ns = stay->end_ns, .bytes = -(int64_t)tensor->held_bytes, .kind = tensor->kind};
        }
    }
    qsort(steps, count, sizeof(*steps), by_step_time);
    for (size_t i = 0; i < count || view->sample_count == 0;) {
        uint64_t held = now.held_bytes;

        now.begin_ns = i < count && view->sample_count > 0 ? steps[i].ns : 0;
        for (; i < count && steps[i].ns == now.begin_ns; i++) {
            now.held_bytes += (uint64_t)steps[i].bytes;
            now.by_kind[steps[i].kind] += (uint64_t)steps[i].bytes;
        }
        if (view->sample_count == 0 || now.held_bytes != held ||
            memcmp(now.by_kind, view->samples[view->sample_count - 1].by_kind,
                   sizeof(now.by_kind)) != 0) {
            view->samples[view->sample_count++] = now;
        }
    }
    free(steps);
    return CAPU_OK;
}

/* The bytes of an unlimited run: every tensor is there from its first access to its last. */
static capu_status measure_unlimited(struct view *view, const struct view_events *events)
{
    const struct trace_index *trace_index = events->trace_index;
    const struct trace *trace = trace_index->trace;
    uint64_t *change = calloc((size_t)trace->op_count + 2, sizeof(*change));
    uint64_t held = trace_index->fixed_bytes;

    if (change == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        uint32_t first = trace_index->first[t];
        uint32_t last = trace_index->first[t + 1];

        if (trace->tensors[t].persistent) {
            held += trace_index->rounded[t];
        } else if (first < last) {
            change[trace_index->op[first]] += trace_index->rounded[t];
            change[trace_index->op[last - 1] + 1] -= trace_index->rounded[t];
        }
    }
    view->unlimited_peak_bytes = held;
    for (uint32_t number = 0; number < trace->op_count; number++) {
        held += change[number];
        change[number] = held;
        view->unlimited_peak_bytes =
            held > view->unlimited_peak_bytes ? held : view->unlimited_peak_bytes;
    }
    for (uint32_t i = 0; i < view->op_count; i++) {
        const struct view_op *op = &view->ops[i];

        view->ops[i].unlimited_bytes = op->before < trace->op_count ? change[op->before] : held;
    }
    free(change);
    return CAPU_OK;
}

static enum view_kind kind_of(const struct trace_index *trace_index, uint32_t tensor,
                              bool are_named)
{
    static const enum view_kind kinds[TRACE_KINDS] = {
        [CAPU_PARAMETER] = VIEW_PARAMETERS, [CAPU_OPTIMIZER] = VIEW_OPTIMIZER,
        [CAPU_GRADIENT] = VIEW_GRADIENTS,   [CAPU_ACTIVATION] = VIEW_ACTIVATIONS,
        [CAPU_WORKSPACE] = VIEW_WORKSPACE,  [CAPU_INPUT] = VIEW_INPUTS,
    };
    const struct trace_tensor *entry = &trace_index->trace->tensors[tensor];

    if (entry->kind == CAPU_ACTIVATION && entry->persistent) {
        return VIEW_PERSISTENT;
    }
    if (are_named) {
        return kinds[entry->kind];
    }
    return training_passes_idle_gap(trace_index, tensor) != TRACE_INDEX_NONE ? VIEW_CARRIED
                                                                             : VIEW_SHORT;
}

static bool has_named_kinds(const struct trace *trace)
{
    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        if (trace->tensors[t].managed && trace->tensors[t].kind != CAPU_ACTIVATION) {
            return true;
        }
    }
    return false;
}

static void describe_tensors(struct view *view, const struct view_events *events)
{
    const struct trace *trace = events->trace_index->trace;
    bool are_named = has_named_kinds(trace);

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        const struct trace_tensor *from = &trace->tensors[t];

        view->tensors[t] = (struct view_tensor){
            .name = view->names + from->name,
            .bytes = from->bytes,
            .held_bytes = events->held_bytes[t],
            .kind = kind_of(events->trace_index, t, are_named),
        };
    }
}

static void *copy_of(const void *from, size_t count, size_t item_bytes)
{
    void *copy = malloc((count + 1) * item_bytes);

    if (copy != NULL && count > 0) {
        memcpy(copy, from, count * item_bytes);
    }
    return copy;
}

static capu_status reserve_view(struct view *view, const struct view_events *events)
{
    const struct trace *trace = events->trace_index->trace;
    size_t runs = 0;

    for (uint32_t i = 0; i < events->count; i++) {
        runs += events->events[i].kind <= EVENT_REPLAY;
    }
    view->names = copy_of(trace->names, trace->names_bytes, 1);
    view->ops = malloc((runs + 1) * sizeof(*view->ops));
    view->op_of_number = malloc(((size_t)trace->op_count + 1) * sizeof(*view->op_of_number));
    view->copies = malloc(((size_t)events->count - runs + 1) * sizeof(*view->copies));
    view->tensors = malloc(((size_t)trace->tensor_count + 1) * sizeof(*view->tensors));
    return view->names != NULL && view->ops != NULL && view->op_of_number != NULL &&
                   view->copies != NULL && view->tensors != NULL
               ? CAPU_OK
               : CAPU_NO_HOST_MEMORY;
}

capu_status view_build(struct view *view, struct view_events *events, struct error_text *error)
{
    const struct trace *trace = events->trace_index->trace;
    capu_status status;

    *view = (struct view){
        .time_ns = events->time_ns,
        .fixed_bytes = events->fixed_bytes,
        .floor_bytes = events->trace_index->floor_bytes,
        .floor_op = "",
        .number_count = trace->op_count,
        .tensor_count = trace->tensor_count,
    };
    status = reserve_view(view, events);
    if (status == CAPU_OK) {
        memset(view->op_of_number, 0xff, (size_t)trace->op_count * sizeof(*view->op_of_number));
        view->trace_name = view->names + trace->name;
        describe_tensors(view, events);
        status = view_walk(view, events);
    }
    status = status == CAPU_OK ? sort_stays(view) : status;
    status = status == CAPU_OK ? sample_memory(view) : status;
    status = status == CAPU_OK ? measure_unlimited(view, events) : status;
    if (status != CAPU_OK) {
        view_finish(view);
        return error_text_set(error, status, "no memory for a view");
    }
    if (trace->op_count > 0) {
        view->floor_op = view->names + trace->ops[events->trace_index->floor_op].name;
    }
    return CAPU_OK;
}
