/* A trace as a training loop: allocations, ops, reports and plans, in the numbers of either side.
 */
#include "models/driver.h"

#include "capuchin/capuchin.h"
#include "capuchin/private.h"
#include "policy/format/json_lines.h"
#include "policy/model/validate.h"
#include "policy/search/planner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct driver {
    const struct trace_index *trace_index;
    struct driver_options options;
    capu_context *context;
    char *paths[3];         /* copies of those in the options */
    void **addresses;       /* per tensor; NULL: no op names it */
    uint32_t *order;        /* tensors by first access: the runtime's ids */
    uint32_t order_count;   /* tensors that ops name */
    capu_operand *operands; /* of one op */
    uint64_t aside_bytes;   /* part of the budget that the context does not get */
};

/* The sim device does not call it. */
static capu_status run_nothing(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}

/* Turns a failed call of the library into an error with the text of the context. */
static capu_status check_status(struct driver *driver, capu_status status, struct error_text *error)
{
    const char *text;

    if (status == CAPU_OK) {
        return CAPU_OK;
    }
    text = capu_last_error(driver->context);
    return error_text_set(error, status, "%s", text[0] != '\0' ? text : capu_status_text(status));
}

/* The runtime numbers tensors in the order in which an iteration names them: operand by operand. */
static void find_order(struct driver *driver, uint8_t *is_seen)
{
    const struct trace *trace = driver->trace_index->trace;

    for (uint32_t k = 0; k < trace->op_count; k++) {
        const struct trace_op *op = &trace->ops[k];

        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t tensor = trace->operands[op->first + i];

            if (!is_seen[tensor]) {
                is_seen[tensor] = 1;
                driver->order[driver->order_count++] = tensor;
            }
        }
    }
}

static uint64_t slab_threshold(const struct driver *driver)
{
    return driver->options.slab_bytes != 0 ? driver->options.slab_bytes
                                           : driver->trace_index->page_bytes / 2;
}

/* The bytes to allocate for a tensor: its size, or a single byte if the trace does not manage it
 * but the runtime would. */
static uint64_t bytes_of(const struct driver *driver, const struct trace_tensor *tensor)
{
    bool is_too_large = !tensor->managed && tensor->bytes >= slab_threshold(driver);

    return is_too_large || tensor->bytes == 0 ? 1 : tensor->bytes;
}

static capu_status allocate_tensors(struct driver *driver, struct error_text *error)
{
    const struct trace *trace = driver->trace_index->trace;
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < driver->order_count && status == CAPU_OK; i++) {
        uint32_t id = driver->order[i];
        const struct trace_tensor *tensor = &trace->tensors[id];
        capu_tensor_info info = {
            .size = sizeof(info),
            .name = trace_tensor_name(trace, id),
            .kind = tensor->kind,
            .lifetime = tensor->persistent ? CAPU_PERSISTENT : CAPU_TRANSIENT,
            .hint = tensor->hint,
        };

        status = check_status(
            driver, capu_malloc(driver->context, bytes_of(driver, tensor), &driver->addresses[id]),
            error);
        if (status == CAPU_OK) {
            status = check_status(
                driver, capu_tensor_describe(driver->context, driver->addresses[id], &info), error);
        }
    }
    return status;
}

/* Writes contents to the tensors that have some before the first iteration. */
static capu_status fill_tensors(struct driver *driver, struct error_text *error)
{
    const struct trace *trace = driver->trace_index->trace;
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < driver->order_count && status == CAPU_OK; i++) {
        uint32_t id = driver->order[i];
        capu_operand operand = capu_writes(driver->addresses[id]);
        capu_op op = {
            .size = sizeof(op),
            .name = "initialise",
            .run = run_nothing,
            .operands = &operand,
            .operand_count = 1,
        };

        if (trace->tensors[id].persistent) {
            status = check_status(driver, capu_run(driver->context, &op), error);
        }
    }
    return status;
}

static capu_status create_context(struct driver *driver, uint32_t mode, uint64_t budget_bytes,
                                  struct error_text *error)
{
    const struct driver_options *options = &driver->options;
    const struct machine *machine = options->machine;
    char text[sizeof(error->text)] = "";
    capu_config config = {
        .size = sizeof(config),
        .device = "sim",
        .mode = mode,
        .budget_bytes = budget_bytes,
        .host_budget_bytes = options->host_bytes,
        .page_bytes = driver->trace_index->page_bytes,
        .report_path = driver->paths[0],
        .trace_path = driver->paths[2],
        .error = text,
        .error_bytes = sizeof(text),
        .wait_for_plan = mode == CAPU_MODE_GUIDED && !options->trains_on,
    };
    capu_status status;

    config_set_number(&config, "slab_threshold", options->slab_bytes);
    config_set_number(&config, "d2h", machine->d2h_bytes_per_s);
    config_set_number(&config, "h2d", machine->h2d_bytes_per_s);
    config_set_number(&config, "copy_latency", machine->copy_latency_ns);
    (void)capu_config_set(&config, "planner", options->planner);
    if (options->effort != EFFORT_UNSET) {
        (void)capu_config_set(&config, "effort", plan_effort_names[options->effort - EFFORT_QUICK]);
    }
    (void)capu_config_set(&config, "plan", driver->paths[1]);
    (void)capu_config_set(&config, "sample_every", options->has_timelines ? "1" : NULL);
    (void)capu_config_set(&config, "timeline", options->has_timelines ? "1" : NULL);
    status = capu_context_create(&config, &driver->context);
    return status == CAPU_OK ? CAPU_OK
                             : error_text_set(error, status, "%s",
                                              text[0] != '\0' ? text : capu_status_text(status));
}

/* Measures what the slabs take, in a context in which everything fits. */
static capu_status measure_slabs(struct driver *driver, uint64_t *bytes, struct error_text *error)
{
    const struct trace *trace = driver->trace_index->trace;
    uint64_t page_bytes = driver->trace_index->page_bytes;
    uint64_t plenty = trace->total_bytes + ((uint64_t)trace->tensor_count + 1) * page_bytes;
    capu_status status = create_context(driver, CAPU_MODE_PASSIVE, plenty, error);

    if (status != CAPU_OK) {
        return status;
    }
    status = allocate_tensors(driver, error);
    capu_memory_usage(driver->context, bytes, NULL, NULL);
    capu_context_destroy(driver->context);
    driver->context = NULL;
    return status;
}

/* The part of the budget that is set aside: see driver.h. */
static capu_status set_aside(struct driver *driver, struct error_text *error)
{
    const struct trace *trace = driver->trace_index->trace;
    uint64_t named = driver->trace_index->unmanaged_bytes;
    uint64_t idle = 0;
    uint64_t slabs;
    capu_status status = measure_slabs(driver, &slabs, error);

    if (status != CAPU_OK) {
        return status;
    }
    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        const struct trace_tensor *tensor = &trace->tensors[t];
        bool is_idle = driver->trace_index->first[t] == driver->trace_index->first[t + 1];

        if (tensor->managed && !is_idle && tensor->bytes < slab_threshold(driver)) {
            named += tensor->bytes;
        } else if (tensor->managed && is_idle && tensor->persistent) {
            idle += tensor->bytes;
        }
    }
    driver->aside_bytes = idle + (named > slabs ? named - slabs : 0);
    if (driver->options.budget_bytes < driver->aside_bytes ||
        driver->options.budget_bytes - driver->aside_bytes < driver->trace_index->page_bytes) {
        return error_text_set(error, CAPU_OVER_BUDGET,
                              "a budget of %" PRIu64 " bytes leaves no page beside %" PRIu64
                              " bytes that are not managed",
                              driver->options.budget_bytes, driver->aside_bytes);
    }
    return CAPU_OK;
}

static capu_status check_options(const struct driver *driver, struct error_text *error)
{
    const struct driver_options *options = &driver->options;

    if (options->machine->d2h_bytes_per_s == 0) {
        return error_text_set(error, CAPU_INVALID, "the trace names no machine");
    }
    if (options->machine->copy_latency_ns == 0) {
        return error_text_set(error, CAPU_INVALID, "the sim device has no copies without latency");
    }
    if (driver->trace_index->trace->op_count == 0) {
        return error_text_set(error, CAPU_INVALID, "the trace has no ops");
    }
    return CAPU_OK;
}

static capu_status copy_paths(struct driver *driver)
{
    const struct driver_options *options = &driver->options;
    bool is_guided = options->mode == CAPU_MODE_GUIDED;
    const char *from[] = {options->report_path, is_guided ? options->plan_path : NULL,
                          options->trace_path};

    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
        if (from[i] != NULL) {
            driver->paths[i] = strdup(from[i]);
            if (driver->paths[i] == NULL) {
                return CAPU_NO_HOST_MEMORY;
            }
        }
    }
    return CAPU_OK;
}

static capu_status driver_init(struct driver *driver, struct error_text *error)
{
    const struct trace *trace = driver->trace_index->trace;
    size_t tensors = (size_t)trace->tensor_count + 1;
    uint8_t *is_seen = calloc(tensors, sizeof(*is_seen));
    uint32_t operands = 1;
    capu_status status = copy_paths(driver);

    for (uint32_t k = 0; k < trace->op_count; k++) {
        uint32_t count = trace_operand_count(&trace->ops[k]);

        operands = count > operands ? count : operands;
    }
    driver->addresses = calloc(tensors, sizeof(*driver->addresses));
    driver->order = calloc(tensors, sizeof(*driver->order));
    driver->operands = calloc(operands, sizeof(*driver->operands));
    if (status != CAPU_OK || is_seen == NULL || driver->addresses == NULL ||
        driver->order == NULL || driver->operands == NULL) {
        free(is_seen);
        return error_text_set(error, CAPU_NO_HOST_MEMORY, "out of memory");
    }
    find_order(driver, is_seen);
    free(is_seen);
    status = check_options(driver, error);
    if (status == CAPU_OK) {
        status = set_aside(driver, error);
    }
    if (status == CAPU_OK) {
        status = create_context(driver, driver->options.mode,
                                driver->options.budget_bytes - driver->aside_bytes, error);
    }
    if (status == CAPU_OK) {
        status = allocate_tensors(driver, error);
    }
    return status == CAPU_OK ? fill_tensors(driver, error) : status;
}

capu_status driver_create(const struct trace_index *trace_index,
                          const struct driver_options *options, struct driver **out,
                          struct error_text *error)
{
    struct driver *driver = calloc(1, sizeof(*driver));
    capu_status status;

    if (driver == NULL) {
        return error_text_set(error, CAPU_NO_HOST_MEMORY, "out of memory");
    }
    driver->trace_index = trace_index;
    driver->options = *options;
    if (driver->options.machine == NULL) {
        driver->options.machine = &trace_index->trace->machine;
    }
    status = driver_init(driver, error);
    if (status != CAPU_OK) {
        driver_destroy(driver);
        return status;
    }
    *out = driver;
    return CAPU_OK;
}

void driver_destroy(struct driver *driver)
{
    if (driver == NULL) {
        return;
    }
    capu_context_destroy(driver->context);
    for (size_t i = 0; i < sizeof(driver->paths) / sizeof(driver->paths[0]); i++) {
        free(driver->paths[i]);
    }
    free(driver->operands);
    free(driver->order);
    free(driver->addresses);
    free(driver);
}

static capu_status run_op(struct driver *driver, uint32_t number, struct error_text *error)
{
    const struct trace *trace = driver->trace_index->trace;
    const struct trace_op *from = &trace->ops[number];
    const char *name = trace_op_name(trace, number);
    capu_op op = {
        .size = sizeof(op),
        .name = name[0] != '\0' ? name : "op",
        .run = run_nothing,
        .operands = driver->operands,
        .operand_count = trace_operand_count(from),
        .flags = from->replayable ? 0 : CAPU_OP_NOT_REPLAYABLE,
        .duration_ns = from->ns,
    };

    for (uint32_t i = 0; i < op.operand_count; i++) {
        capu_role role = i < from->read_count                       ? CAPU_READ
                         : i < from->read_count + from->write_count ? CAPU_WRITE
                                                                    : CAPU_UPDATE;

        driver->operands[i] =
            capu_operand_of(driver->addresses[trace->operands[from->first + i]], 0, role);
    }
    return check_status(driver, capu_run(driver->context, &op), error);
}

/* Ends and begins segments between two ops, before the first one or after the last one. */
static capu_status turn_segment(struct driver *driver, const char *last, const char *next,
                                struct error_text *error)
{
    capu_status status = CAPU_OK;

    if (strcmp(last, next) == 0) {
        return CAPU_OK;
    }
    if (last[0] != '\0') {
        status = check_status(driver, capu_segment_end(driver->context), error);
    }
    if (status == CAPU_OK && next[0] != '\0') {
        status = check_status(driver, capu_segment_begin(driver->context, next), error);
    }
    return status;
}

capu_status driver_iterate(struct driver *driver, struct error_text *error)
{
    const struct trace *trace = driver->trace_index->trace;
    const char *segment = "";
    capu_status status = check_status(driver, capu_iteration_begin(driver->context, NULL), error);

    for (uint32_t k = 0; k < trace->op_count && status == CAPU_OK; k++) {
        const char *next = trace_text(trace, trace->ops[k].segment);

        status = turn_segment(driver, segment, next, error);
        segment = next;
        if (status == CAPU_OK) {
            status = run_op(driver, k, error);
        }
    }
    if (status == CAPU_OK) {
        status = turn_segment(driver, segment, "", error);
    }
    return status != CAPU_OK ? status
                             : check_status(driver, capu_iteration_end(driver->context), error);
}

capu_status driver_settle(struct driver *driver, struct error_text *error)
{
    capu_status status = check_status(driver, capu_synchronize(driver->context), error);

    return status != CAPU_OK ? status : check_status(driver, capu_flush(driver->context), error);
}

/* A counter of a report; null if it was not timed. */
static capu_status read_counter(struct json_lines *lines, const char *name, uint64_t *value)
{
    if (json_is_null(json_object_get(lines->value, name))) {
        *value = CAPU_NOT_TIMED;
        return CAPU_OK;
    }
    return json_lines_number(lines, lines->value, name, true, UINT64_MAX >> 1, value);
}

static capu_status read_report(struct json_lines *lines, struct report *report)
{
    const char *mode = "";
    capu_status status = json_lines_string(lines, lines->value, "mode", true, &mode);

    *report = (struct report){
        .mode = strcmp(mode, "guided") == 0 ? CAPU_MODE_GUIDED : CAPU_MODE_PASSIVE,
        .label = "",
        .floor_op = "",
    };
#define READ_COUNTER(name, unit, text) \
    status = status == CAPU_OK ? read_counter(lines, #name, &report->name) : status;
    REPORT_COUNTERS(READ_COUNTER)
#undef READ_COUNTER
    return status;
}

capu_status driver_reports(struct driver *driver, struct report *reports, size_t count,
                           struct error_text *error)
{
    struct string_buffer text = {0};
    struct json_lines lines;
    size_t found = 0;
    bool more = true;
    capu_status status = json_lines_load(driver->paths[0], &text, error);

    if (status != CAPU_OK) {
        return status;
    }
    json_lines_init(&lines, driver->paths[0], text.data, text.length, error);
    while (status == CAPU_OK && more && found < count) {
        status = json_lines_next(&lines, &more);
        if (status == CAPU_OK && more && strcmp(lines.type, "report") == 0) {
            status = read_report(&lines, &reports[found++]);
        }
    }
    json_lines_finish(&lines);
    string_buffer_finish(&text);
    return status != CAPU_OK || found == count
               ? status
               : error_text_set(error, CAPU_FILE_FAILED, "%s: %zu reports of %zu", driver->paths[0],
                                found, count);
}

static bool translate_tensor(const struct driver *driver, uint32_t *tensor)
{
    bool is_known = *tensor < driver->order_count;

    *tensor = is_known ? driver->order[*tensor] : 0;
    return is_known;
}

capu_status driver_plan(struct driver *driver, struct plan *plan, struct error_text *error)
{
    const struct trace *trace = driver->trace_index->trace;
    struct string_buffer text = {0};
    char *name = strdup(trace_text(trace, trace->name));
    bool is_fine = true;
    bool has_file = driver->paths[1] != NULL && access(driver->paths[1], F_OK) == 0;
    capu_status status = name == NULL || !has_file
                             ? CAPU_NOT_READY
                             : json_lines_load(driver->paths[1], &text, error);

    if (status == CAPU_OK) {
        status = text.length == 0
                     ? CAPU_NOT_READY
                     : plan_read(plan, driver->paths[1], text.data, text.length, error);
    }
    string_buffer_finish(&text);
    if (status != CAPU_OK) {
        free(name);
        return status;
    }
    for (uint32_t i = 0; i < plan->action_count; i++) {
        struct plan_action *action = &plan->actions[i];

        is_fine = is_fine &&
                  (action->kind == ACTION_RECOMPUTE || translate_tensor(driver, &action->tensor));
    }
    for (uint32_t i = 0; i < plan->drop_count; i++) {
        is_fine = is_fine && translate_tensor(driver, &plan->drops[i]);
    }
    for (uint32_t i = 0; i < plan->place_count; i++) {
        is_fine = is_fine && translate_tensor(driver, &plan->places[i].tensor);
    }
    free(plan->trace);
    plan->trace = name;
    plan->trace_tensors = trace->tensor_count;
    plan->trace_ops = trace->op_count;
    plan->budget_bytes = driver->options.budget_bytes;
    plan->fixed_bytes += driver->aside_bytes;
    if (plan->place_count == 0) {
        /* Everything lies in slabs. A plan without place lines is one without pages, in which
           tensors count by themselves. */
        plan->page_bytes = 1;
        plan->fixed_bytes = driver->trace_index->unmanaged_bytes;
    }
    if (!is_fine) {
        plan_finish(plan);
        return error_text_set(error, CAPU_INVALID, "the runtime's plan is not of this trace");
    }
    return CAPU_OK;
}

capu_status driver_simulate(const struct driver *driver, const struct plan *plan,
                            struct timeline *timeline, struct error_text *error)
{
    const struct trace_index *trace_index = driver->trace_index;
    struct trace_index own = {0};
    struct program program = {0};
    capu_status status = CAPU_OK;

    if (plan->page_bytes != trace_index->page_bytes) {
        status = trace_index_init(&own, trace_index->trace, plan->page_bytes, error);
        trace_index = &own;
    }
    if (status == CAPU_OK) {
        status = validate_program(&program, trace_index, plan, error);
    }
    if (status == CAPU_OK) {
        status = timeline_of(timeline, &program, driver->options.machine, false, error);
    }
    program_finish(&program);
    trace_index_finish(&own);
    return status;
}
