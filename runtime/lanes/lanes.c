/* The capture of iterations, their graphs, and waiting for lanes: see lanes.h. */
#include "runtime/lanes/lanes.h"

#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 3 };

static struct lane *lane_at(struct lanes *lanes, size_t index)
{
    struct lane *all[] = {&lanes->compute, &lanes->d2h, &lanes->h2d};

    return all[index];
}

static void note_why(struct lanes *lanes, const char *why)
{
    char text[CAPTURE_WHY_BYTES / 2] = "";

    (void)device_failure(lanes->device, text, sizeof(text));
    snprintf(lanes->capture.why, sizeof(lanes->capture.why), "%s%s%s", why,
             text[0] != '\0' ? ": " : "", text);
}

/* What was recorded is lost, and with it what the iteration did. */
static void lose_capture(struct lanes *lanes, capu_status status)
{
    bool is_discarded = status == CAPU_DEVICE_FAILED;
    char text[ERROR_TEXT_BYTES / 2] = "";

    if (device_failure(lanes->device, text, sizeof(text)) != CAPU_OK) {
        lanes->failure->lost = device_failure(lanes->device, NULL, 0);
    } else {
        lanes->failure->lost = is_discarded ? CAPU_OP_FAILED : status;
    }
    snprintf(lanes->failure->text, sizeof(lanes->failure->text),
             "the work of iteration %llu is lost, since its graph cannot be launched%s: %s",
             (unsigned long long)lanes->capture.iteration,
             is_discarded
                 ? ", probably because a run function made a call that CUDA does not allow "
                   "during a capture"
                 : "",
             text[0] != '\0' ? text : capu_status_text(status));
}

/* Makes the other lanes part of the capture. */
static capu_status fork_lanes(struct lanes *lanes)
{
    struct lane_position start;
    capu_status status = lane_mark(&lanes->compute, &start);

    for (size_t i = 1; i < LANES && status == CAPU_OK; i++) {
        status = lane_follow(lane_at(lanes, i), start);
    }
    return status;
}

/* Makes what the other lanes have recorded come before the end. */
static capu_status join_lanes(struct lanes *lanes)
{
    capu_status status = CAPU_OK;

    for (size_t i = 1; i < LANES && status == CAPU_OK; i++) {
        struct lane_position last;

        status = lane_mark(lane_at(lanes, i), &last);
        if (status == CAPU_OK) {
            status = lane_follow(&lanes->compute, last);
        }
    }
    return status;
}

/* Launches, and marks all lanes after the launch: those marks stand for the captured ones. */
static capu_status launch_recorded(struct lanes *lanes, struct device_graph *graph)
{
    struct lane_position done;
    capu_status status = device_graph_launch(lanes->device, graph, lanes->compute.stream);

    if (status == CAPU_OK) {
        status = lane_mark_untimed(&lanes->compute, &done);
    }
    for (size_t i = 1; i < LANES && status == CAPU_OK; i++) {
        struct lane_position mark;

        status = lane_follow(lane_at(lanes, i), done);
        if (status == CAPU_OK) {
            status = lane_mark_untimed(lane_at(lanes, i), &mark);
        }
    }
    return status;
}

/* Ends the recording and launches the result. */
static capu_status run_recorded(struct lanes *lanes, struct device_graph **graph, bool *is_updated)
{
    capu_status joined = join_lanes(lanes);
    capu_status status =
        device_capture_end(lanes->device, lanes->compute.stream, graph, is_updated);

    lanes->capture.is_open = false;
    for (size_t i = 0; i < LANES; i++) {
        lane_capture_end(lane_at(lanes, i));
    }
    status = joined != CAPU_OK ? joined : status;
    return status == CAPU_OK ? launch_recorded(lanes, *graph) : status;
}

void capture_start(struct lanes *lanes, capu_graph *graph, uint64_t iteration)
{
    capu_status status = CAPU_OK;

    lanes->capture = (struct capture){.graph = graph, .iteration = iteration};
    graph->is_ready = false;
    graph->upload_count = 0;
    graph->copy_count = 0;
    graph->zeroed_count = 0;
    staging_turn(&graph->staging);
    for (size_t i = 1; i < LANES && status == CAPU_OK; i++) {
        status = lane_follow(&lanes->compute, lane_newest(lane_at(lanes, i)));
    }
    if (status == CAPU_OK) {
        status = device_capture_begin(lanes->device, lanes->compute.stream);
    }
    if (status != CAPU_OK) {
        note_why(lanes, "the device does not begin a capture");
        return;
    }
    lanes->capture.is_open = true;
    for (size_t i = 0; i < LANES; i++) {
        lane_capture_begin(lane_at(lanes, i));
    }
    if (fork_lanes(lanes) != CAPU_OK) {
        capture_give_up(lanes, "the lanes for copies cannot be captured");
    }
}

capu_status capture_finish(struct lanes *lanes)
{
    capu_graph *graph = lanes->capture.graph;
    bool is_updated = false;
    capu_status status = run_recorded(lanes, &graph->device_graph, &is_updated);

    if (status != CAPU_OK) {
        lose_capture(lanes, status);
        return lanes->failure->lost;
    }
    for (size_t i = 0; i < graph->copy_count && !is_updated; i++) {
        graph->copies[i].node = graph->copies[i].fresh_node;
    }
    graph->launches++;
    graph->is_ready = true;
    return CAPU_OK;
}

void capture_give_up(struct lanes *lanes, const char *why)
{
    struct device_graph *part = NULL;
    bool is_updated;
    capu_status status;

    if (!lanes->capture.is_open) {
        return;
    }
    note_why(lanes, why);
    status = run_recorded(lanes, &part, &is_updated);
    device_graph_destroy(lanes->device, part);
    if (status != CAPU_OK) {
        lose_capture(lanes, status);
    }
}

capu_status capture_stage(struct lanes *lanes, uint64_t bytes, void **memory)
{
    return staging_take(&lanes->capture.graph->staging, bytes, memory);
}

capu_status capture_upload(struct lanes *lanes, const void *to, uint64_t bytes,
                           unsigned char **memory)
{
    capu_graph *graph = lanes->capture.graph;
    struct graph_upload upload = {.to = to, .bytes = bytes, .launches = graph->launches};

    if (!array_reserve(&graph->uploads, &graph->upload_capacity, graph->upload_count + 1,
                       sizeof(*graph->uploads))) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < STAGING_SETS; i++) {
        void *place;
        capu_status status = staging_take(&graph->staging, bytes, &place);

        if (status != CAPU_OK) {
            return status;
        }
        upload.places[i] = place;
    }
    graph->uploads[graph->upload_count++] = upload;
    *memory = upload.places[0];
    return CAPU_OK;
}

void capture_zeroed(struct lanes *lanes, struct tensor *tensor)
{
    capu_graph *graph = lanes->capture.graph;

    if (!lanes->capture.is_open) {
        return;
    }
    if (!array_reserve(&graph->zeroed, &graph->zeroed_capacity, graph->zeroed_count + 1,
                       sizeof(struct tensor *))) {
        capture_give_up(lanes, "no host memory to note zeros");
        return;
    }
    graph->zeroed[graph->zeroed_count++] = tensor;
}

/* The upload whose source a copy reads; SIZE_MAX: none. */
static size_t find_source(const capu_graph *graph, const struct device_copy *copy, uint64_t *offset)
{
    const unsigned char *from = copy->from;

    for (size_t i = graph->upload_count; i-- > 0;) {
        const struct graph_upload *upload = &graph->uploads[i];

        if (from >= upload->places[0] && from < upload->places[0] + upload->bytes) {
            *offset = (uint64_t)(from - upload->places[0]);
            return i;
        }
    }
    return SIZE_MAX;
}

capu_status capture_copied(struct lanes *lanes, const struct device_copy *copy)
{
    capu_graph *graph = lanes->capture.graph;
    struct graph_copy *entry;
    uint64_t offset = 0;
    size_t upload = find_source(graph, copy, &offset);
    size_t before = graph->copy_capacity;

    if (upload == SIZE_MAX) {
        return CAPU_OK;
    }
    if (!array_reserve(&graph->copies, &graph->copy_capacity, graph->copy_count + 1,
                       sizeof(*graph->copies))) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = before; i < graph->copy_capacity; i++) {
        graph->copies[i] = (struct graph_copy){0};
    }
    entry = &graph->copies[graph->copy_count++];
    entry->upload = upload;
    entry->offset = offset;
    entry->to = copy->to;
    entry->bytes = copy->bytes;
    return device_capture_node(lanes->device, lanes->compute.stream, &entry->fresh_node);
}

/*
 * Graphs.
 */

void graph_free(struct lanes *lanes, struct graphs *graphs, capu_graph *graph)
{
    if (graph->previous != NULL) {
        graph->previous->next = graph->next;
    } else {
        graphs->first = graph->next;
    }
    if (graph->next != NULL) {
        graph->next->previous = graph->previous;
    }
    if (lanes->capture.graph == graph) {
        lanes->capture.graph = NULL;
    }
    device_graph_destroy(lanes->device, graph->device_graph);
    staging_finish(&graph->staging);
    free(graph->uploads);
    free(graph->copies);
    free(graph->zeroed);
    free(graph->before);
    free(graph->tensors);
    free(graph->evictions);
    free(graph);
}

/*
 * The lanes together.
 */

void lanes_quiesce(struct lanes *lanes, struct lane *lane)
{
    struct lane_position now;

    capture_give_up(lanes, "a call had to wait for the device");
    if (lane_synchronize(lane) != CAPU_OK && device_failure(lanes->device, NULL, 0) == CAPU_OK &&
        lane_mark(lane, &now) == CAPU_OK) {
        lane_wait(now);
    }
}

void lanes_quiesce_all(struct lanes *lanes)
{
    lanes_quiesce(lanes, &lanes->compute);
    lanes_quiesce(lanes, &lanes->d2h);
    lanes_quiesce(lanes, &lanes->h2d);
}
