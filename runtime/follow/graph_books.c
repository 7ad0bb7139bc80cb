/* The state in which a graph begins and ends, see graph_books.h. */
#include "runtime/follow/graph_books.h"
#include "base/array.h"
#include "runtime/follow/following.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"

#include <stdlib.h>

capu_status graph_note_begin(struct following *following, capu_graph *graph)
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
    const capu_report *report = &record->report;

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

capu_status graph_note_end(struct following *following, capu_graph *graph, struct record *record)
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

static const char *find_difference(const struct graph_tensor *noted)
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

struct tensor *graph_find_change(const capu_graph *graph, const char **why)
{
    for (size_t i = 0; i < graph->tensor_count; i++) {
        *why = find_difference(&graph->tensors[i]);
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
static void zero(struct following *following, struct tensor *tensor, struct lane_position end)
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

void graph_settle(struct following *following, capu_graph *graph, struct lane_position end)
{

    for (size_t i = 0; i < graph->zeroed_count; i++) {
        zero(following, graph->zeroed[i], end);
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

capu_status graph_fill_record(const capu_graph *graph, struct record *record)
{
    const capu_report *from = &graph->report;
    capu_report *report = &record->report;
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

void graph_free(struct following *following, capu_graph *graph)
{

    if (graph->previous != NULL) {
        graph->previous->next = graph->next;
    } else {
        following->graphs->first = graph->next;
    }
    if (graph->next != NULL) {
        graph->next->previous = graph->previous;
    }
    if (following->lanes->capture.graph == graph) {
        following->lanes->capture.graph = NULL;
    }
    device_graph_destroy(following->lanes->device, graph->device_graph);
    staging_finish(&graph->staging);
    free(graph->uploads);
    free(graph->copies);
    free(graph->zeroed);
    free(graph->before);
    free(graph->tensors);
    free(graph->evictions);
    free(graph);
}
