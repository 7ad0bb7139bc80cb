/* The view of a plan: the simulation's record of its fourth iteration becomes events. */
#include "tools/view/view_events.h"

#include "policy/model/timeline.h"

#include <stdlib.h>

#define NO_VERSION UINT32_MAX

struct translation {
    const struct trace_index *trace_index;
    const struct trace *trace;
    const struct timeline *timeline;
    struct view_events *events;
    bool *is_on_device; /* per tensor */
    bool *is_saved;     /* per tensor: copied out since it arrived */
    uint32_t *newest;   /* per tensor: the version that the device has or had last */
    uint32_t *host;     /* per tensor: the version of its host copy. Of one that the iteration began
                           with, besides the tensor on the device, nothing is known here: view_build
                           sees it when the tensor comes back */
};

/* Pre: count_events has counted it. */
static void add(struct translation *translation, struct view_event event)
{
    translation->events->events[translation->events->count++] = event;
}

static struct view_event timed(const struct translation *translation,
                               const struct timeline_record *record, enum view_event_kind kind,
                               uint32_t point)
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

static void take(struct translation *translation, uint32_t tensor, uint32_t point)
{
    const struct view_start *place = &translation->events->starts[tensor];

    translation->is_on_device[tensor] = true;
    translation->is_saved[tensor] = false;
    add(translation, (struct view_event){.kind = EVENT_TAKE,
                                         .subject = tensor,
                                         .point = point,
                                         .first_place = place->first_place,
                                         .place_count = place->place_count});
}

static void run(struct translation *translation, const struct timeline_record *record)
{
    const struct trace_op *op = &translation->trace->ops[record->item.subject];
    bool is_replay = record->item.kind == ACTION_REPLAY;

    for (uint32_t i = op->read_count; i < trace_operand_count(op); i++) {
        uint32_t tensor = translation->trace->operands[op->first + i];
        uint32_t version = translation->trace_index->version[op->first + i] +
                           (i >= op->read_count + op->write_count);

        if (translation->trace->tensors[tensor].managed && !translation->is_on_device[tensor]) {
            take(translation, tensor, record->item.point);
        }
        translation->newest[tensor] = version;
        if (translation->host[tensor] != NO_VERSION && translation->host[tensor] < version) {
            translation->host[tensor] = NO_VERSION;
        }
    }
    add(translation,
        timed(translation, record, is_replay ? EVENT_REPLAY : EVENT_OP, record->item.point));
}

static void give(struct translation *translation, uint32_t tensor, uint32_t point)
{
    bool has_copy = translation->host[tensor] != NO_VERSION &&
                    translation->host[tensor] >= translation->newest[tensor];

    translation->is_on_device[tensor] = false;
    add(translation,
        (struct view_event){.kind = EVENT_GIVE,
                            .subject = tensor,
                            .point = point,
                            .method = !has_copy                       ? CAPU_METHOD_EMPTY
                                      : translation->is_saved[tensor] ? CAPU_METHOD_SWAP
                                                                      : CAPU_METHOD_CLEAN});
}

static void copy_out(struct translation *translation, const struct timeline_record *record)
{
    uint32_t tensor = record->item.subject;

    translation->host[tensor] = translation->newest[tensor];
    translation->is_saved[tensor] = true;
    add(translation, timed(translation, record, EVENT_OUT, record->item.point + 1));
}

static void translate(struct translation *translation, const struct timeline_record *record)
{
    uint32_t tensor = record->item.subject;
    uint32_t point = record->item.point;

    switch ((enum action_kind)record->item.kind) {
    case ACTION_OP:
    case ACTION_REPLAY:
        run(translation, record);
        break;
    case ACTION_PREFETCH:
        take(translation, tensor, point);
        translation->newest[tensor] = translation->host[tensor];
        add(translation, timed(translation, record, EVENT_IN, point));
        break;
    case ACTION_SAVE:
        copy_out(translation, record);
        break;
    case ACTION_EVICT:
        if (record->engine == ENGINE_D2H) {
            copy_out(translation, record);
        }
        give(translation, tensor, point + 1);
        break;
    case ACTION_RELEASE:
        translation->is_on_device[tensor] = false;
        translation->host[tensor] = NO_VERSION;
        add(translation,
            (struct view_event){.kind = EVENT_END, .subject = tensor, .point = point + 1});
        break;
    case ACTION_DROP:
    default:
        give(translation, tensor, point + 1);
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

static capu_status translate_all(struct translation *translation)
{
    struct view_events *events = translation->events;
    size_t tensors = (size_t)translation->trace->tensor_count + 1;
    size_t count = count_events(translation);
    capu_status status = CAPU_NO_HOST_MEMORY;

    translation->is_on_device = calloc(tensors, sizeof(*translation->is_on_device));
    translation->is_saved = calloc(tensors, sizeof(*translation->is_saved));
    translation->host = malloc(tensors * sizeof(*translation->host));
    translation->newest = calloc(tensors, sizeof(*translation->newest));
    events->events = count < UINT32_MAX ? malloc((count + 1) * sizeof(*events->events)) : NULL;
    if (translation->is_on_device != NULL && translation->is_saved != NULL &&
        translation->host != NULL && translation->newest != NULL && events->events != NULL) {
        for (uint32_t t = 0; t < translation->trace->tensor_count; t++) {
            translation->is_on_device[t] = events->starts[t].is_on_device;
            translation->host[t] = events->starts[t].is_on_host ? 0 : NO_VERSION;
        }
        for (uint32_t i = 0; i < translation->timeline->record_count; i++) {
            translate(translation, &translation->timeline->records[i]);
        }
        status = CAPU_OK;
    }
    free(translation->is_on_device);
    free(translation->is_saved);
    free(translation->host);
    free(translation->newest);
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

/* Where the tensors are at the beginning, and which pages they use. */
static capu_status describe_start(struct view_events *events, const struct timeline *timeline,
                                  const struct program *program)
{
    const struct plan *plan = program->plan;
    const struct trace *trace = events->trace_index->trace;

    events->starts = calloc((size_t)trace->tensor_count + 1, sizeof(*events->starts));
    events->held_bytes = calloc((size_t)trace->tensor_count + 1, sizeof(*events->held_bytes));
    events->places = malloc(((size_t)plan->run_count + 1) * sizeof(*events->places));
    if (events->starts == NULL || events->held_bytes == NULL || events->places == NULL) {
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
    for (uint32_t i = 0; i < plan->place_count; i++) {
        const struct plan_place *place = &plan->places[i];

        events->starts[place->tensor].first_place = place->first;
        events->starts[place->tensor].place_count = place->count;
    }
    for (uint32_t i = 0; i < plan->run_count; i++) {
        events->places[i] =
            (struct view_place){.first = plan->runs[i].first, .count = plan->runs[i].count};
    }
    events->place_count = plan->run_count;
    return CAPU_OK;
}

static capu_status collect(struct view_events *events, const struct program *program,
                           const struct timeline *timeline)
{
    struct translation translation = {.trace_index = events->trace_index,
                                      .trace = events->trace_index->trace,
                                      .timeline = timeline,
                                      .events = events};
    capu_status status = describe_start(events, timeline, program);

    return status == CAPU_OK ? translate_all(&translation) : status;
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
        status = collect(&events, &program, &timeline);
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
        view->copy_latency_ns = link->copy_latency_ns;
    }
    free(events.starts);
    free(events.held_bytes);
    free(events.events);
    free(events.places);
    timeline_finish(&timeline);
    program_finish(&program);
    return status;
}
