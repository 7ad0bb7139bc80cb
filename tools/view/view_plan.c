/* The view of a plan: the simulation's record of its fourth iteration becomes events. */
#include "tools/view/view_events.h"

#include "policy/model/program.h"
#include "policy/model/timeline.h"

#include <stdlib.h>

struct translation {
    struct program_walk walk; /* in a steady iteration */
    const struct trace *trace;
    const struct timeline *timeline;
    const struct timeline_record *record; /* of the item that is walked over */
    struct view_events *events;
    bool *is_saved; /* per tensor: copied out since it arrived */
};

/* Pre: count_events has counted it. */
static void add_event(struct translation *translation, struct view_event event)
{
    translation->events->events[translation->events->count++] = event;
}

static struct view_event timed_event(const struct translation *translation,
                                     const struct timeline_record *record,
                                     enum view_event_kind kind, uint32_t point)
{
    static const enum view_wait waits[] = {
        [WAIT_NOTHING] = VIEW_WAIT_NOTHING, [WAIT_TENSOR] = VIEW_WAIT_TENSOR,
        [WAIT_MEMORY] = VIEW_WAIT_MEMORY,   [WAIT_SAVE] = VIEW_WAIT_SAVE,
        [WAIT_COMPUTE] = VIEW_WAIT_COMPUTE, [WAIT_HOST_COPY] = VIEW_WAIT_HOST,
    };
    int64_t begin = (int64_t)translation->timeline->begin_ns;

    return (struct view_event){
        .kind = kind,
        .subject = record->item.subject,
        .point = point,
        .wait = waits[record->span.wait],
        .begin_ns = (int64_t)record->span.start - begin,
        .end_ns = (int64_t)record->span.end - begin,
        .wait_ns = record->span.start - record->span.idle_from,
    };
}

static capu_status take_memory(void *user, const struct item *item, uint32_t tensor)
{
    struct translation *translation = user;

    if (translation->trace->tensors[tensor].managed) {
        translation->is_saved[tensor] = false;
        add_event(translation,
                  (struct view_event){.kind = EVENT_TAKE, .subject = tensor, .point = item->point});
    }
    return CAPU_OK;
}

static capu_status copy_to_host(void *user, const struct item *item, uint32_t tensor)
{
    struct translation *translation = user;

    translation->is_saved[tensor] = true;
    add_event(translation,
              timed_event(translation, translation->record, EVENT_OUT, item->point + 1));
    return CAPU_OK;
}

static capu_status give_memory(void *user, const struct item *item, uint32_t tensor)
{
    struct translation *translation = user;
    const struct program_walk *walk = &translation->walk;
    bool has_copy =
        program_walk_has_copy(walk, tensor) && walk->host[tensor] >= walk->device[tensor];

    if (item->kind != ACTION_RELEASE) {
        add_event(translation, (struct view_event){.kind = EVENT_GIVE,
                                                   .subject = tensor,
                                                   .point = item->point + 1,
                                                   .method = !has_copy ? CAPU_METHOD_EMPTY
                                                             : translation->is_saved[tensor]
                                                                 ? CAPU_METHOD_SWAP
                                                                 : CAPU_METHOD_CLEAN});
    }
    return CAPU_OK;
}

static void translate_record(struct translation *translation, const struct timeline_record *record)
{
    static const struct program_visitor visitor = {
        .take = take_memory, .copy_out = copy_to_host, .give = give_memory};
    uint32_t point = record->item.point;

    translation->record = record;
    program_walk_item(&translation->walk, &visitor, translation, &record->item);
    switch ((enum action_kind)record->item.kind) {
    case ACTION_OP:
        add_event(translation, timed_event(translation, record, EVENT_OP, point));
        break;
    case ACTION_REPLAY:
        add_event(translation, timed_event(translation, record, EVENT_REPLAY, point));
        break;
    case ACTION_PREFETCH:
        add_event(translation, timed_event(translation, record, EVENT_IN, point));
        break;
    case ACTION_RELEASE:
        add_event(translation, (struct view_event){.kind = EVENT_END,
                                                   .subject = record->item.subject,
                                                   .point = point + 1});
        break;
    default:
        break;
    }
}

/* Each record becomes two events at most, and each operand of an op that runs one more. */
static size_t count_events(const struct translation *translation)
{
    size_t count = 0;

    for (uint32_t i = 0; i < translation->timeline->record_count; i++) {
        const struct item *item = &translation->timeline->records[i].item;

        count += 2;
        if (item_is_run(item)) {
            count += trace_operand_count(&translation->trace->ops[item->subject]);
        }
    }
    return count;
}

/* Walks to the beginning of the second iteration, from which on all are alike. */
static capu_status start_walk(struct program_walk *walk, const struct program *program)
{
    static const struct program_visitor none = {.take = NULL};
    capu_status status = program_walk_init(walk, program);

    for (uint32_t i = 0; i < program->count && status == CAPU_OK; i++) {
        status = program_walk_item(walk, &none, NULL, &program->items[i]);
    }
    if (status == CAPU_OK) {
        program_walk_turn(walk, &none, NULL);
    }
    return status;
}

static capu_status translate_all(struct translation *translation, const struct program *program)
{
    struct view_events *events = translation->events;
    size_t tensors = (size_t)translation->trace->tensor_count + 1;
    size_t count = count_events(translation);
    capu_status status = start_walk(&translation->walk, program);

    translation->is_saved = calloc(tensors, sizeof(*translation->is_saved));
    events->events = count < UINT32_MAX ? malloc((count + 1) * sizeof(*events->events)) : NULL;
    if (translation->is_saved == NULL || events->events == NULL) {
        status = CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < translation->timeline->record_count && status == CAPU_OK; i++) {
        translate_record(translation, &translation->timeline->records[i]);
    }
    free(translation->is_saved);
    program_walk_finish(&translation->walk);
    return status;
}

static bool is_pooled(const struct program *program, uint32_t tensor)
{
    return program->trace_index->rounded[tensor] > 0 &&
           (program->plan->place_count == 0 || placement_count(&program->placement, tensor) > 0);
}

static int64_t after(uint64_t ns, uint64_t begin_ns)
{
    return ns > begin_ns ? (int64_t)(ns - begin_ns) : 0;
}

/* The copies that are still under way at the beginning. */
static void describe_copies(struct view_start *start, const struct clock_tensor *times,
                            uint64_t begin_ns)
{
    int64_t ready = after(times->ready, begin_ns);
    int64_t saved = after(times->saved, begin_ns);
    int64_t host = after(times->host, begin_ns);

    if (start->is_on_device) {
        start->ready_ns = ready;
        start->saved_ns = saved;
    } else {
        start->free_ns = ready > saved ? ready : saved;
        start->free_ns = host > start->free_ns ? host : start->free_ns;
    }
}

/* Where the tensors are at the beginning. */
static capu_status describe_start(struct view_events *events, const struct timeline *timeline,
                                  const struct program *program)
{
    const struct trace *trace = events->trace_index->trace;

    events->starts = calloc((size_t)trace->tensor_count + 1, sizeof(*events->starts));
    events->held_bytes = calloc((size_t)trace->tensor_count + 1, sizeof(*events->held_bytes));
    if (events->starts == NULL || events->held_bytes == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        bool is_here = trace->tensors[t].persistent && trace->tensors[t].managed;

        events->starts[t].is_on_host = program->starts_on_host[t];
        events->starts[t].is_on_device = is_here && !program->starts_on_host[t];
        if (is_pooled(program, t)) {
            events->held_bytes[t] = events->trace_index->rounded[t];
            describe_copies(&events->starts[t], &timeline->at_begin[t], timeline->begin_ns);
        }
    }
    return CAPU_OK;
}

static capu_status collect_events(struct view_events *events, const struct program *program,
                                  const struct timeline *timeline)
{
    struct translation translation = {
        .trace = events->trace_index->trace, .timeline = timeline, .events = events};
    capu_status status = describe_start(events, timeline, program);

    return status == CAPU_OK ? translate_all(&translation, program) : status;
}

capu_status view_of_plan(struct view *view, const struct trace_index *trace_index,
                         const struct plan *plan, const struct machine *machine,
                         struct error_text *error)
{
    struct view_events events = {.trace_index = trace_index, .fixed_bytes = plan->fixed_bytes};
    const struct machine *link = machine != NULL ? machine : &trace_index->trace->machine;
    struct timeline timeline = {0};
    struct program program;
    capu_status status = program_init(&program, trace_index, plan, error);

    *view = (struct view){0};
    if (status == CAPU_OK) {
        status = timeline_of(&timeline, &program, machine, true, error);
    }
    if (status == CAPU_OK) {
        events.time_ns = timeline.iteration_ns;
        status = collect_events(&events, &program, &timeline);
    }
    if (status == CAPU_OK) {
        status = view_build(view, &events, error);
    }
    if (status == CAPU_OK) {
        view->source = VIEW_PLANNED;
        view->mode = "guided";
        view->budget_bytes = plan->budget_bytes;
        view->peak_bytes = timeline.peak_bytes;
        view->d2h_bytes_per_s = link->d2h_bytes_per_s;
        view->h2d_bytes_per_s = link->h2d_bytes_per_s;
    }
    free(events.starts);
    free(events.held_bytes);
    free(events.events);
    timeline_finish(&timeline);
    program_finish(&program);
    return status;
}
