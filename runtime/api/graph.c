/*
 * Capturing and launching graphs: see capuchin/graph.h.
 *
 * A capture is an iteration like any other until its work is issued: lanes.h takes it from there.
 * A launch does what every iteration does at its two ends (iteration.c), and in between nothing but
 * the launch and the bookkeeping for tensors and the report. It never changes the plan, since the
 * graph is tied to it.
 */
#include "base/array.h"
#include "runtime/api/context.h"
#include "runtime/context/failure.h"
#include "runtime/follow/following.h"
#include "runtime/lanes/lanes.h"
#include "runtime/plan/planning.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"
#include "runtime/tensor/memory.h"

#include <stdlib.h>
#include <string.h>

/*
 * The books of a graph: the state in which it begins and ends, and the record of a launch.
 */

/* Notes the state in which the iteration under the active guide begins. NO_HOST_MEMORY. */
static capu_status graph_note_begin(struct following *following, capu_graph *graph)
{
    const struct guide *guide = following->guided->active->guide;

    if (!array_reserve(&graph->before, &graph->before_capacity, guide->tensor_count,
                       sizeof(*graph->before))) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        const struct tensor *tensor = following->guided->binding.tensors[i].tensor;

        graph->before[i] = tensor != NULL ? tensor->state : (struct tensor_state){0};
    }
    return CAPU_OK;
}

static void note_writes(capu_graph *graph, const struct record *record)
{
    for (size_t i = 0; i < record->access_count; i++) {
        record_access access = record->accesses[i];

        if (record_access_role(access) != CAPU_READ) {
            graph->tensors[record_access_tensor(access)].is_written = true;
        }
    }
}

/* The report of a launch. What is known of the capture only when it has finished is its time. */
static capu_status note_report(struct following *following, capu_graph *graph,
                               struct record *record)
{
    capu_status status = tracker_foresee(following->records, record);
    const struct report *report = &record->report;

    if (status == CAPU_OK && !array_reserve(&graph->evictions, &graph->eviction_capacity,
                                            report->eviction_count, sizeof(*graph->evictions))) {
        status = CAPU_NO_HOST_MEMORY;
    }
    if (status != CAPU_OK) {
        return status;
    }
    for (size_t i = 0; i < report->eviction_count; i++) {
        graph->evictions[i] = report->evictions[i];
    }
    graph->report = *report;
    graph->report.evictions = graph->evictions;
    return CAPU_OK;
}

/* Notes the state in which it ended, and its report. Pre: its record has been closed.
   NO_HOST_MEMORY. */
static capu_status graph_note_end(struct following *following, capu_graph *graph,
                                  struct record *record)
{
    if (!array_reserve(&graph->tensors, &graph->tensor_capacity, record->tensor_count,
                       sizeof(*graph->tensors))) {
        return CAPU_NO_HOST_MEMORY;
    }
    graph->tensor_count = record->tensor_count;
    for (size_t i = 0; i < record->tensor_count; i++) {
        struct tensor *tensor =
            tensors_find(&following->memory->tensors, record->tensors[i].address);

        graph->tensors[i] = (struct graph_tensor){
            .tensor = tensor,
            .before = tensor_is_placed(tensor) ? graph->before[tensor->guide_index] : tensor->state,
            .after = tensor->state,
            .is_persistent = tensor->is_persistent,
            .is_live_in = record->tensors[i].is_live_in,
        };
    }
    note_writes(graph, record);
    graph->label = record->label;
    graph->signature = record->signature;
    return note_report(following, graph, record);
}

static const char *find_state_change(const struct graph_tensor *noted)
{
    const struct tensor *tensor = noted->tensor;

    if (tensor->is_persistent != noted->is_persistent) {
        return "outlives iterations now, or no longer does";
    }
    if (noted->is_live_in && !tensor_is_defined(tensor)) {
        return "is read, and is undefined now";
    }
    if (!tensor_is_managed(tensor)) {
        return NULL;
    }
    if (tensor->state.pages != noted->before.pages) {
        return "was resident then and is not now, or the reverse";
    }
    return tensor->state.contents != noted->before.contents ? "was written, zeroed or evicted since"
                                                            : NULL;
}

/* Whether tensors are as they were at the beginning. NULL: they are. Otherwise the tensor that is
   not, and *why. */
static struct tensor *graph_find_change(const capu_graph *graph, const char **why)
{
    for (size_t i = 0; i < graph->tensor_count; i++) {
        *why = find_state_change(&graph->tensors[i]);
        if (*why != NULL) {
            return graph->tensors[i].tensor;
        }
    }
    return NULL;
}

static bool is_defined(const struct tensor_state *state)
{
    return state->contents != CONTENTS_UNDEFINED;
}

/* Zeros that the iteration made known: as capu_zero does, but for what the graph itself fills. */
static void zero_noted(struct following *following, struct tensor *tensor, struct lane_position end)
{
    if (tensor->span_bytes != tensor->bytes) {
        tensor->used = end;
    }
    tensor->version++;
    tensor_state_zeroed(tensor);
    swap_give_block(following->residency, tensor);
    tensor->zeroed = following->iteration->number;
    contents_define(following->residency, tensor);
    victims_touch(following->residency, tensor);
}

/* After a launch whose work ends at the position: makes tensors what they were at the end. */
static void graph_settle(struct following *following, capu_graph *graph, struct lane_position end)
{
    for (size_t i = 0; i < graph->zeroed_count; i++) {
        zero_noted(following, graph->zeroed[i], end);
    }

    for (size_t i = 0; i < graph->tensor_count; i++) {
        const struct graph_tensor *noted = &graph->tensors[i];
        struct tensor *tensor = noted->tensor;

        tensor->used = end;
        tensor->ready = end;
        tensor->left = end;
        if (noted->is_written) {
            tensor->written = end;
            tensor->version++;
        }
        if (tensor_is_defined(tensor) && !is_defined(&noted->after)) {
            contents_forget(following->residency, tensor);
        }
        tensor_state_restored(tensor, &noted->after);
        if (tensor_is_defined(tensor)) {
            contents_define(following->residency, tensor);
        }
        if (tensor_is_zero(tensor)) {
            tensor->zeroed = following->iteration->number;
        }
    }
}

/* Fills in the record of a launch. NO_HOST_MEMORY. */
static capu_status graph_fill_record(const capu_graph *graph, struct record *record)
{
    const struct report *from = &graph->report;
    struct report *report = &record->report;
    capu_status status = tracker_grow(&record->report_evictions, &record->report_eviction_capacity,
                                      from->eviction_count, sizeof(*record->report_evictions));

    if (status != CAPU_OK) {
        return status;
    }
    for (size_t i = 0; i < from->eviction_count; i++) {
        record->report_evictions[i] = from->evictions[i];
    }
    record->is_launch = true;
    record->signature = graph->signature;
    *report = *from;
    report->label = record->label;
    report->iteration = record->stamp;
    report->install_ns = 0;
    report->host_wait_ns = 0;
    report->plan_error = "";
    report->evictions = record->report_evictions;
    report->stalls = NULL;
    report->stall_count = 0;
    return CAPU_OK;
}

/*
 * The calls.
 */

/* Why no iteration of the context can ever be captured; NULL: some may. */
static const char *find_obstacle(const capu_context *context)
{
    if (!context->lanes.device->capabilities.can_capture) {
        return "the device has none: they are CUDA graphs";
    }
    if (context->plans.keeper == NULL) {
        return "only iterations that follow a plan can be captured, and the mode is not guided";
    }
    if (context->settings.config.strict != 0) {
        return "strict mode waits for ops and maps pages";
    }
    return context->settings.config.timeline != 0 ? "timelines time every op" : NULL;
}

capu_status capu_graph_create(capu_context *context, capu_graph **graph)
{
    capu_status status = context_ready(&context, "capu_graph_create");
    const char *obstacle;
    capu_graph *made;

    if (status != CAPU_OK) {
        return status;
    }
    if (graph == NULL) {
        return failure_set(&context->failure, CAPU_INVALID,
                           "capu_graph_create: no place for the graph");
    }
    obstacle = find_obstacle(context);
    if (obstacle != NULL) {
        return failure_set(&context->failure, CAPU_UNSUPPORTED, "no graphs on '%s': %s",
                           context->lanes.device->capabilities.name, obstacle);
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return failure_set(&context->failure, CAPU_NO_HOST_MEMORY, "no memory for a graph");
    }
    made->context = context;
    staging_init(&made->staging, context->lanes.device);
    made->next = context->graphs.first;
    if (made->next != NULL) {
        made->next->previous = made;
    }
    context->graphs.first = made;
    *graph = made;
    return CAPU_OK;
}

void capu_graph_destroy(capu_graph *graph)
{
    if (graph == NULL || context_present(&graph->context) != CAPU_OK) {
        return;
    }
    if (graph->context->lanes.capture.graph == graph) {
        capture_give_up(&graph->context->lanes, "the graph was destroyed");
    }
    if (graph->context->failure.lost == CAPU_OK) {
        lanes_quiesce(&graph->context->lanes,
                      &graph->context->lanes.compute); /* launches read its memory */
    }
    graph_free(&graph->context->lanes, &graph->context->graphs, graph);
}

/* Every call on a graph begins with this. */
static capu_status graph_ready(capu_graph *graph, const char *call)
{
    return graph != NULL ? context_ready(&graph->context, call) : CAPU_INVALID;
}

/* Whether the iteration that begins can be captured, now that its plan has been chosen. */
static capu_status check_plan(capu_context *context, const struct label_record *label)
{
    const char *error;

    if (context->guided.active == NULL) {
        error = planning_error(&context->plans, label->label);
        return failure_set(&context->failure, CAPU_NOT_READY,
                           "the iteration cannot be captured: no plan is active for it%s%s",
                           error[0] != '\0' ? ": " : "", error);
    }
    if (context->guided.active->guide->is_unplaced) {
        return failure_set(&context->failure, CAPU_NOT_READY,
                           "the iteration cannot be captured: its plan has no places for tensors, "
                           "so it maps memory");
    }
    if (planning_times_next(&context->plans)) {
        return failure_set(&context->failure, CAPU_NOT_READY,
                           "the iteration cannot be captured: its ops are timed, in the first "
                           "iterations under a plan, to be traced, and in one of %llu",
                           (unsigned long long)context->settings.config.sample_every);
    }
    return CAPU_OK;
}

capu_status capu_graph_begin(capu_graph *graph, const char *label)
{
    capu_status status = graph_ready(graph, "capu_graph_begin");
    struct label_record *labelled;
    capu_context *context;

    if (status != CAPU_OK) {
        return status;
    }
    context = graph->context;
    status = iteration_prepare(context, "capu_graph_begin", label, &labelled);
    if (status == CAPU_OK) {
        status = iteration_plan(context, labelled);
    }
    if (status == CAPU_OK) {
        status = check_plan(context, labelled);
    }
    if (status == CAPU_OK && graph_note_begin(&context->following, graph) != CAPU_OK) {
        status = failure_set(&context->failure, CAPU_NO_HOST_MEMORY,
                             "no memory to capture an iteration");
    }
    if (status == CAPU_OK) {
        status = iteration_open(context, labelled, planning_wants_times(&context->plans));
    }
    if (status == CAPU_OK) {
        graph->placement = context->guided.placement;
        graph->layout = context->graphs.layout;
        capture_start(&context->lanes, graph, context->iteration.number);
        context->records.tracker.open->report.graph = context->lanes.capture.is_open;
    }
    return status;
}

/* Notes what a launch needs to know. The iteration has run, so lack of memory costs the graph only.
 */
static void note_end(capu_graph *graph, struct record *record)
{
    capu_context *context = graph->context;

    if (graph->is_ready && graph_note_end(&context->following, graph, record) != CAPU_OK) {
        graph->is_ready = false;
        strcpy(context->lanes.capture.why, "no host memory to note what it did");
    }
}

capu_status capu_graph_end(capu_graph *graph)
{
    capu_status status = graph_ready(graph, "capu_graph_end");
    struct record *record;
    capu_context *context;

    if (status != CAPU_OK) {
        return status;
    }
    context = graph->context;
    if (context->lanes.capture.graph != graph) {
        return failure_set(&context->failure, CAPU_WRONG_ORDER,
                           "capu_graph_end without capu_graph_begin");
    }
    status = iteration_finish(context, "capu_graph_end");
    if (status == CAPU_OK && context->lanes.capture.is_open) {
        status = capture_finish(&context->lanes);
    }
    if (status != CAPU_OK) {
        return status;
    }
    record = context->records.tracker.open;
    record->report.graph = graph->is_ready;
    status = iteration_close(context);
    if (status != CAPU_OK) {
        graph->is_ready = false;
        return status;
    }
    note_end(graph, record);
    context->lanes.capture.graph = NULL;
    return graph->is_ready ? CAPU_OK
                           : failure_set(&context->failure, CAPU_NOT_READY,
                                         "the iteration ran, but not as a graph: %s",
                                         context->lanes.capture.why);
}

/* Whether the graph still fits to the plan and to memory. */
static capu_status check_plan_and_layout(const capu_graph *graph)
{
    capu_context *context = graph->context;

    if (context->guided.active == NULL || context->guided.placement != graph->placement) {
        return failure_set(&context->failure, CAPU_WRONG_ORDER,
                           "the graph cannot be launched: %s since it was captured; capture it "
                           "again",
                           context->guided.active == NULL ? "its plan was left"
                                                          : "another plan has become active");
    }
    if (context->graphs.layout != graph->layout) {
        return failure_set(&context->failure, CAPU_WRONG_ORDER,
                           "the graph cannot be launched: memory was freed, split or described "
                           "since it was captured, '%s' last; capture it again",
                           context->graphs.layout_name);
    }
    return CAPU_OK;
}

/* And to what tensors contain. */
static capu_status check_tensors(const capu_graph *graph)
{
    capu_context *context = graph->context;
    const char *why;
    struct tensor *changed = graph_find_change(graph, &why);

    if (changed != NULL) {
        return failure_set(&context->failure, CAPU_WRONG_ORDER,
                           "the graph cannot be launched: '%s' %s; capture it again",
                           lookup_name(&context->memory, changed), why);
    }
    return CAPU_OK;
}

/* The launch itself, as an iteration. */
static capu_status launch_graph(capu_graph *graph, struct label_record *label)
{
    capu_context *context = graph->context;
    capu_status status = iteration_open(context, label, false);

    if (status != CAPU_OK) {
        return status;
    }
    context->guided.binding.next = context->guided.active->guide->op_count;
    context->guided.binding.free_count = 0;
    status = graph_fill_record(graph, context->records.tracker.open);
    if (status == CAPU_OK) {
        status = lane_follow(&context->lanes.compute, lane_newest(&context->lanes.d2h));
    }
    if (status == CAPU_OK) {
        status = lane_follow(&context->lanes.compute, lane_newest(&context->lanes.h2d));
    }
    if (status == CAPU_OK) {
        status = device_graph_launch(context->lanes.device, graph->device_graph,
                                     context->lanes.compute.stream);
    }
    if (status != CAPU_OK) {
        iteration_cancel(context);
        /* Staging memory has been turned without an iteration: no earlier work may read it now. */
        lanes_quiesce(&context->lanes, &context->lanes.compute);
        return failure_check(&context->failure, status, "launching a graph");
    }
    graph->launches++;
    status = iteration_close(context);
    if (status == CAPU_OK) {
        graph_settle(&context->following, graph, lane_newest(&context->lanes.compute));
    }
    return status;
}

capu_status capu_graph_launch(capu_graph *graph)
{
    capu_status status = graph_ready(graph, "capu_graph_launch");
    struct label_record *label;
    capu_context *context;

    if (status != CAPU_OK) {
        return status;
    }
    context = graph->context;
    if (!graph->is_ready) {
        return failure_set(&context->failure, CAPU_WRONG_ORDER,
                           "capu_graph_launch of a graph in which nothing is captured");
    }
    status = iteration_prepare(context, "capu_graph_launch", graph->label, &label);
    if (status != CAPU_OK) {
        return status;
    }
    if (context->settings.config.trace_path != NULL &&
        context->iteration.number + 1 == context->settings.config.trace_iteration) {
        return failure_set(&context->failure, CAPU_NOT_READY,
                           "the graph cannot be launched: the iteration is to be traced");
    }
    status = check_plan_and_layout(graph);
    if (status == CAPU_OK) {
        iteration_forget(context);
        status = check_tensors(graph);
    }
    return status == CAPU_OK ? launch_graph(graph, label) : status;
}

/* The first upload of so many bytes to there; NULL: there is none. */
static struct graph_upload *find_graph_upload(const capu_graph *graph, const void *to, size_t bytes)
{
    for (size_t i = 0; i < graph->upload_count; i++) {
        if (graph->uploads[i].to == to && graph->uploads[i].bytes == bytes) {
            return &graph->uploads[i];
        }
    }
    return NULL;
}

/* Makes the copies of an upload, and of its replays, read from its present place. */
static capu_status redirect_upload(capu_graph *graph, const struct graph_upload *upload)
{
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < graph->copy_count && status == CAPU_OK; i++) {
        const struct graph_copy *copy = &graph->copies[i];

        if (&graph->uploads[copy->upload] == upload) {
            const struct device_copy from = {
                .to = copy->to,
                .from = upload->places[upload->place] + copy->offset,
                .bytes = copy->bytes,
            };

            status = device_graph_set_copy_in(graph->context->lanes.device, graph->device_graph,
                                              copy->node, &from);
        }
    }
    return status;
}

capu_status capu_graph_upload(capu_graph *graph, void *to, const void *from, size_t bytes)
{
    capu_status status = graph_ready(graph, "capu_graph_upload");
    struct graph_upload *upload;
    capu_context *context;

    if (status != CAPU_OK) {
        return status;
    }
    context = graph->context;
    if (to == NULL || from == NULL) {
        return failure_set(&context->failure, CAPU_INVALID,
                           "capu_graph_upload: no address was given");
    }
    if (!graph->is_ready) {
        return failure_set(&context->failure, CAPU_WRONG_ORDER,
                           "capu_graph_upload to a graph in which nothing is captured");
    }
    upload = find_graph_upload(graph, to, bytes);
    if (upload == NULL) {
        return failure_set(&context->failure, CAPU_WRONG_ADDRESS,
                           "capu_graph_upload: the captured iteration does not upload %zu bytes to "
                           "%p",
                           bytes, to);
    }
    if (upload->launches == graph->launches) {
        memcpy(upload->places[upload->place], from, bytes); /* no launch reads it yet */
        return CAPU_OK;
    }
    upload->place = (upload->place + 1) % STAGING_SETS;
    upload->launches = graph->launches;
    memcpy(upload->places[upload->place], from, bytes);
    status = redirect_upload(graph, upload);
    if (status != CAPU_OK) {
        graph->is_ready = false; /* some copies may read the new bytes, and others the old ones */
    }
    return failure_check(&context->failure, status, "replacing what a graph uploads");
}
