/* Contexts from creation to end: see capuchin/context.h. */
#include "runtime/api/context.h"

#include "base/assert.h"
#include "base/size_text.h"
#include "capuchin/private.h"
#include "runtime/context/config.h"
#include "runtime/context/device_choice.h"
#include "runtime/context/failure.h"
#include "runtime/issue/issue.h"
#include "runtime/plan/planning.h"
#include "runtime/record/live.h"
#include "runtime/residency/departure.h"
#include "runtime/residency/residency.h"
#include "runtime/strict/strict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The only state outside contexts: the one that this thread's calls without a context mean. */
static _Thread_local capu_context *current;

void capu_context_make_current(capu_context *context)
{
    current = context;
}

capu_context *capu_context_current(void)
{
    return current;
}

capu_status context_present(capu_context **context)
{
    if (*context == NULL) {
        *context = current;
    }
    if (*context == NULL) {
        return CAPU_INVALID;
    }
    if (fork_mark_is_in_child(&(*context)->fork_mark)) {
        return failure_set(&(*context)->failure, CAPU_WRONG_ORDER,
                           "the context belongs to process %ld, which was forked: its threads and "
                           "tensors do not exist here",
                           (long)(*context)->fork_mark.process);
    }
    return CAPU_OK;
}

capu_status context_usable(capu_context **context)
{
    capu_status status = context_present(context);

    if (status != CAPU_OK) {
        return status;
    }
    /* A run function that called the library would wait for itself, or interfere with the call
       that the context's thread is in. Even the error text belongs to that call. */
    if (device_is_in_run()) {
        return CAPU_WRONG_ORDER;
    }
    if ((*context)->failure.lost != CAPU_OK) {
        return (*context)->failure.lost;
    }
    /* Every call begins here, so this checks what the call before it has left behind. */
    ASSERT_EXPENSIVE(op_is_under_way(&(*context)->op) || context_is_valid(*context));
    return CAPU_OK;
}

/* The program captures the stream by itself. Without records nothing but its own functions uses the
   stream; otherwise the library would invalidate the capture sooner or later. */
static capu_status check_captured(capu_context *context, const char *call)
{
    enum device_capture state = DEVICE_RUNS;
    capu_status status;

    if (!context->lanes.device->capabilities.can_capture || context->lanes.capture.is_open ||
        !context->settings.is_tracking) {
        return CAPU_OK;
    }
    status = device_capture_state(context->lanes.device, context->lanes.compute.stream, &state);
    if (status != CAPU_OK || state == DEVICE_RUNS) {
        return failure_check(&context->failure, status, call);
    }
    return failure_set(&context->failure, CAPU_WRONG_ORDER,
                       "%s while the program captures the stream: %s; put your launches between "
                       "capu_graph_begin and capu_graph_end, which capture the stream",
                       call,
                       context->guided.active == NULL
                           ? "no plan is active, and the call may map memory or wait"
                           : "the library sees neither the end of that capture nor its launches");
}

capu_status context_ready(capu_context **context, const char *call)
{
    capu_status status = context_usable(context);

    if (status == CAPU_OK && op_is_under_way(&(*context)->op)) {
        return failure_set(&(*context)->failure, CAPU_WRONG_ORDER,
                           "%s between capu_access_begin and capu_access_end", call);
    }
    return status == CAPU_OK ? check_captured(*context, call) : status;
}

capu_status context_uncaptured(capu_context **context, const char *call)
{
    capu_status status = context_ready(context, call);

    if (status == CAPU_OK && (*context)->lanes.capture.is_open) {
        return failure_set(&(*context)->failure, CAPU_WRONG_ORDER,
                           "%s while an iteration is captured: it would wait, or change what the "
                           "graph names; call it before capu_graph_begin or after capu_graph_end",
                           call);
    }
    return status;
}

void context_note_layout(capu_context *context, const struct tensor *tensor)
{
    context->graphs.layout++;
    context->graphs.layout_name = tensor->name != NULL ? tensor->name : "a tensor without a name";
}

capu_status capu_synchronize(capu_context *context)
{
    capu_status status = context_uncaptured(&context, "capu_synchronize");

    return status != CAPU_OK ? status : settle_work(context);
}

capu_status capu_flush(capu_context *context)
{
    char text[ERROR_TEXT_BYTES / 2];
    capu_status status = context_usable(&context);

    if (status != CAPU_OK) {
        return status;
    }
    status = agent_flush(context->agent, text, sizeof(text));
    return status == CAPU_OK ? CAPU_OK : failure_set(&context->failure, status, "%s", text);
}

/* The config of a context names the device that was opened. */
static capu_status name_device(const struct device *device, struct config *config)
{
    char *name;

    if (strcmp(config->device, "auto") != 0) {
        return CAPU_OK;
    }
    name = strdup(device->capabilities.name);
    if (name == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    free((char *)(uintptr_t)config->device);
    config->device = name;
    return CAPU_OK;
}

capu_status capu_context_create(const capu_config *config, capu_context **context)
{
    char text[ERROR_TEXT_BYTES] = "";
    struct device *device = NULL;
    struct config complete;
    capu_status status;

    if (context == NULL) {
        return CAPU_INVALID;
    }
    status = config_resolve(config, &complete, text, sizeof(text));
    if (status != CAPU_OK) {
        goto report_error;
    }
    status = device_choice_open(&complete, &device, text, sizeof(text));
    if (status != CAPU_OK) {
        goto finish_config;
    }
    /* Other devices would call through the handle as if it were a stream of their own. */
    if (complete.stream != NULL && strcmp(device->capabilities.name, "cuda") != 0) {
        snprintf(text, sizeof(text), "config: a stream of the caller's is for cuda, this is %s",
                 device->capabilities.name);
        status = CAPU_INVALID;
        goto destroy_device;
    }
    status = name_device(device, &complete);
    if (status == CAPU_OK) {
        status = context_create_on(device, &complete, context, text, sizeof(text));
    }
    if (status != CAPU_OK) {
        goto destroy_device;
    }
    return CAPU_OK;

destroy_device:
    device_destroy(device);
finish_config:
    config_finish(&complete);
report_error:
    config_report_error(config, status, text, sizeof(text));
    return status;
}

/* Fills in the defaults that depend on the device. */
static capu_status complete_config(const struct device *device, struct config *config, char *text,
                                   size_t text_bytes)
{
    const struct device_capabilities *capabilities = &device->capabilities;

    config->page_bytes = capabilities->page_bytes;
    if (config->budget_bytes == 0) {
        config->budget_bytes = capabilities->memory_bytes;
    }
    if (config->budget_bytes < config->page_bytes) {
        snprintf(text, text_bytes, "a budget of %s is below one page of %s",
                 size_text(config->budget_bytes).text, size_text(config->page_bytes).text);
        return CAPU_OVER_BUDGET;
    }
    if (config->slab_threshold_bytes == 0) {
        config->slab_threshold_bytes = config->page_bytes / 2;
    }
    if (config->slab_threshold_bytes > config->page_bytes / 2) {
        snprintf(text, text_bytes, "slab_threshold %llu is above half a page (%llu)",
                 (unsigned long long)config->slab_threshold_bytes,
                 (unsigned long long)config->page_bytes / 2);
        return CAPU_INVALID;
    }
    /* What is simulated must not depend on the machine that simulates it. */
    if (config->host_budget_bytes == 0) {
        config->host_budget_bytes = capabilities->is_simulated
                                        ? UINT64_MAX
                                        : capuchin_host_budget_default(config->local_rank_count);
    }
    return CAPU_OK;
}

static void explain_lanes(struct device *device, capu_status status, char *text, size_t text_bytes)
{
    char cause[256] = "";

    if (status == CAPU_SYSTEM_LIMIT) {
        snprintf(cause, sizeof(cause), "each needs a thread, and the system starts no more");
    } else {
        (void)device_failure(device, cause, sizeof(cause));
    }
    snprintf(text, text_bytes, "creating the three streams of the %s device: %s",
             device->capabilities.name, cause[0] != '\0' ? cause : capu_status_text(status));
}

static capu_status create_lanes(capu_context *context, char *text, size_t text_bytes)
{
    struct device *device = context->lanes.device;
    capu_status status = lane_init(&context->lanes.compute, device, DEVICE_COMPUTE,
                                   context->settings.config.stream, true);

    if (status == CAPU_OK) {
        status = lane_init(&context->lanes.d2h, device, DEVICE_D2H, NULL, false);
    }
    if (status == CAPU_OK) {
        status = lane_init(&context->lanes.h2d, device, DEVICE_H2D, NULL, false);
    }
    if (status != CAPU_OK) {
        explain_lanes(device, status, text, text_bytes);
    }
    return status;
}

static capu_status create_memory(capu_context *context)
{
    struct device *device = context->lanes.device;
    capu_status status = strict_guard_device(&context->strict);

    if (status == CAPU_OK) {
        status =
            pages_create(device, context->settings.config.budget_bytes, &context->memory.pages);
    }
    if (status == CAPU_OK) {
        status = ranges_create(device, &context->memory.ranges);
    }
    if (status == CAPU_OK) {
        status = slabs_create(device, context->memory.pages, context->memory.ranges,
                              &context->memory.slabs);
    }
    if (status == CAPU_OK) {
        strict_guard_slabs(&context->strict);
        status = host_arena_create(device, context->settings.config.host_budget_bytes,
                                   &context->memory.arena);
    }
    return status;
}

/* For `capuchin top`. Last, so that a context that cannot be created is never seen. */
static capu_status start_showing(capu_context *context, char *text, size_t text_bytes)
{
    const struct device_link *link = context->lanes.link.d2h_bytes_per_s != 0
                                         ? &context->lanes.link
                                         : &context->lanes.device->capabilities.link;
    struct live_subject subject = {.mode = context->settings.config.mode,
                                   .budget_bytes = context->settings.config.budget_bytes,
                                   .d2h_bytes_per_s = link->d2h_bytes_per_s,
                                   .h2d_bytes_per_s = link->h2d_bytes_per_s};
    capu_status status;

    live_copy_text(subject.device, sizeof(subject.device), context->settings.config.device);
    live_copy_text(subject.planner, sizeof(subject.planner), context->settings.config.planner);
    context->records.live = live_create(&subject);
    if (context->records.live == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = live_server_add(context->records.live, text, text_bytes);
    if (status != CAPU_OK) {
        live_destroy(context->records.live);
        context->records.live = NULL;
    }
    return status;
}

static void stop_showing(capu_context *context)
{
    if (context->records.live != NULL) {
        live_server_remove(context->records.live);
        live_destroy(context->records.live);
    }
}

/* Destroys every part that was created; parts that are zeroed are skipped. The device and the
   config stay. */
static void destroy_parts(capu_context *context)
{
    stop_showing(context);
    planning_destroy(context->plans.keeper);
    label_records_finish(&context->plans.labels);
    binding_finish(&context->guided.binding);
    owed_finish(&context->guided.owed);
    agent_destroy(context->agent);
    lane_finish(&context->lanes.h2d);
    lane_finish(&context->lanes.d2h);
    lane_finish(&context->lanes.compute);
    timeline_logs_finish(&context->records);
    copy_times_finish(&context->records);
    uploads_finish(&context->residency.uploads);
    staging_finish(&context->lanes.staging);
    tracker_finish(&context->records.tracker);
    traffic_finish(&context->records.traffic);
    op_finish(&context->op);
    strict_finish(&context->strict);
    tensors_finish(&context->memory.tensors);
    names_finish(&context->memory.names);
    slabs_destroy(context->memory.slabs);
    ranges_destroy(context->memory.ranges);
    pages_destroy(context->memory.pages);
    host_arena_destroy(context->memory.arena);
    page_census_finish(&context->memory.census);
    fork_mark_finish(&context->fork_mark);
}

/* Tells each part of the context which others it works with. */
static void connect_parts(capu_context *context)
{
    context->failure.device = context->lanes.device;
    context->lanes.failure = &context->failure;
    context->memory.failure = &context->failure;
    context->guided.failure = &context->failure;
    context->guided.lanes = &context->lanes;
    context->guided.memory = &context->memory;
    context->guided.settings = &context->settings;
    context->guided.iteration = &context->iteration;
    context->records.failure = &context->failure;
    context->records.lanes = &context->lanes;
    context->records.memory = &context->memory;
    context->records.settings = &context->settings;
    context->records.iteration = &context->iteration;
    context->records.guided = &context->guided;
    context->strict = (struct strict){.settings = &context->settings,
                                      .failure = &context->failure,
                                      .lanes = &context->lanes,
                                      .memory = &context->memory,
                                      .records = &context->records,
                                      .guided = &context->guided};
    context->residency.failure = &context->failure;
    context->residency.lanes = &context->lanes;
    context->residency.memory = &context->memory;
    context->residency.settings = &context->settings;
    context->residency.iteration = &context->iteration;
    context->residency.guided = &context->guided;
    context->residency.records = &context->records;
    context->residency.strict = &context->strict;
    context->following = (struct following){.settings = &context->settings,
                                            .failure = &context->failure,
                                            .lanes = &context->lanes,
                                            .memory = &context->memory,
                                            .iteration = &context->iteration,
                                            .guided = &context->guided,
                                            .records = &context->records,
                                            .strict = &context->strict,
                                            .residency = &context->residency,
                                            .graphs = &context->graphs};
    context->plans.settings = &context->settings;
    context->plans.failure = &context->failure;
    context->plans.lanes = &context->lanes;
    context->plans.memory = &context->memory;
    context->plans.iteration = &context->iteration;
    context->plans.guided = &context->guided;
    context->plans.records = &context->records;
    context->plans.residency = &context->residency;
    context->plans.following = &context->following;
}

capu_status context_create_on(struct device *device, const struct config *config,
                              capu_context **out, char *text, size_t text_bytes)
{
    capu_context *context = calloc(1, sizeof(*context));
    capu_status status;

    if (context == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    context->lanes.device = device;
    connect_parts(context);
    context->settings.config = *config;
    staging_init(&context->lanes.staging, device);
    context->settings.is_page_pinned = config->page_bytes != 0;
    status = complete_config(device, &context->settings.config, text, text_bytes);
    config_show(&context->settings.config, &context->settings.shown);
    context->settings.full_budget_bytes = context->settings.config.budget_bytes;
    if (status == CAPU_OK) {
        status = page_census_init(&context->memory.census, &device->capabilities,
                                  config->slab_threshold_bytes);
    }
    if (status == CAPU_OK) {
        status = fork_mark_init(&context->fork_mark);
    }
    if (status == CAPU_OK) {
        status = create_lanes(context, text, text_bytes);
    }
    if (status == CAPU_OK) {
        status = create_memory(context);
    }
    if (status == CAPU_OK) {
        struct agent_paths paths = {
            .report = config->report_path, .trace = config->trace_path, .plan = config->plan_path};

        status = agent_create(&paths, context->memory.arena,
                              config->mode == CAPU_MODE_GUIDED ? PLANNING_JOBS : 0, text,
                              text_bytes, &context->agent);
        context->records.agent = context->agent;
        context->residency.agent = context->agent;
        context->plans.agent = context->agent;
    }
    if (status != CAPU_OK) {
        destroy_parts(context);
        free(context);
        return status;
    }
    if (context->settings.config.mode == CAPU_MODE_GUIDED) {
        status = planning_create(&context->plans, &context->plans.keeper);
        if (status != CAPU_OK) {
            snprintf(text, text_bytes, "%s", context->failure.text);
        }
    }
    if (status == CAPU_OK && config->top != 0) {
        status = start_showing(context, text, text_bytes);
    }
    if (status != CAPU_OK) {
        destroy_parts(context);
        free(context);
        return status;
    }
    context->settings.is_paging = context->settings.config.mode != CAPU_MODE_OFF;
    context->settings.is_tracking =
        context->settings.is_paging || context->settings.config.strict != 0 ||
        config->report_path != NULL || config->trace_path != NULL || config->top != 0;
    *out = context;
    return CAPU_OK;
}

/* Frees every allocation: unmaps its spans and edges, and discards their contents. */
static void release_allocations(capu_context *context)
{
    struct tensor *tensor;

    /* All lanes, whatever they return: no work may run when memory is unmapped. */
    lanes_quiesce_all(&context->lanes);
    context->iteration.is_open = false;
    context->guided.owed.guide = NULL;
    if (context->guided.active != NULL) {
        leave_uninstall(&context->residency);
    }
    while (context->graphs.first != NULL) {
        graph_free(&context->lanes, &context->graphs, context->graphs.first);
    }
    parked_clear(&context->residency);
    while ((tensor = tensors_any(&context->memory.tensors)) != NULL) {
        departure_abandon(&context->residency, tensor->allocation);
    }
    departures_finish(&context->residency);
}

void capu_context_destroy(capu_context *context)
{
    struct device *device;
    struct config config;

    /* In a child there is nothing to release: threads, tensors and the device are the parent's, and
       its locks may be held forever. */
    if (context == NULL || context_present(&context) != CAPU_OK) {
        return;
    }
    if (context == current) {
        current = NULL;
    }
    device = context->lanes.device;
    config = context->settings.config;
    if (context->failure.lost == CAPU_OK) {
        context->op.stage = OP_OVER;
        settle_work(context);
    }
    release_allocations(context);
    destroy_parts(context);
    free(context);
    device_destroy(device);
    config_finish(&config);
}

const char *capu_context_device(const capu_context *context)
{
    context = context_meant(context);
    return context != NULL ? context->lanes.device->capabilities.name : "";
}

capu_stream capu_context_stream(const capu_context *context)
{
    context = context_meant(context);
    return context != NULL ? context->lanes.compute.stream : NULL;
}

const capu_config *capu_context_config(const capu_context *context)
{
    context = context_meant(context);
    return context != NULL ? &context->settings.shown : NULL;
}

const char *capu_last_error(const capu_context *context)
{
    context = context_meant(context);
    return context != NULL ? context->failure.text
                           : "no context is current: capu_context_make_current";
}

capu_status capu_explain(capu_context *context, capu_status status, const char *text)
{
    if (text == NULL || context_present(&context) != CAPU_OK || device_is_in_run()) {
        return status;
    }
    return failure_set(&context->failure, status, "%s", text);
}
