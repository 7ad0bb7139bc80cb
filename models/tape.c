/* Builds the trace: tensors, ops with their times, and the walk that adds the backward pass. */
#include "models/tape.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tape_init(struct tape *tape, struct trace *trace, const struct hardware *hardware,
               const struct tape_options *options, struct error_text *error)
{
    *tape =
        (struct tape){.trace = trace, .hardware = hardware, .options = *options, .error = error};
    tape_layer(tape, "input");
}

void tape_finish(struct tape *tape)
{
    free(tape->values);
    free(tape->weights);
    free(tape->steps);
    free(tape->labels);
    free(tape->layers);
    free(tape->inputs);
    *tape = (struct tape){0};
}

void tape_fail(struct tape *tape, capu_status status, const char *format, ...)
{
    char text[256];
    va_list arguments;

    if (tape->status != CAPU_OK) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    tape->status = error_text_set(tape->error, status, "%s", text);
}

/* Records an error of the trace, which has set the text. */
static void fail_with(struct tape *tape, capu_status status)
{
    if (tape->status == CAPU_OK) {
        tape->status = status;
    }
}

/* Makes room for one more item in an array of the tape. False: there is an error. */
static bool grow_array(struct tape *tape, void *array, uint32_t count, uint32_t *capacity,
                       size_t size)
{
    void **items = array;
    uint32_t more = *capacity > 0 ? *capacity * 2 : 256;
    void *grown;

    if (tape->status != CAPU_OK) {
        return false;
    }
    if (count < *capacity) {
        return true;
    }
    grown = more <= TRACE_OPERANDS_MAX ? realloc(*items, more * size) : NULL;
    if (grown == NULL) {
        tape_fail(tape, CAPU_NO_HOST_MEMORY, "out of memory");
        return false;
    }
    *items = grown;
    *capacity = more;
    return true;
}

void tape_layer(struct tape *tape, const char *format, ...)
{
    va_list arguments;

    if (!grow_array(tape, &tape->layers, tape->layer_count, &tape->layer_capacity,
                    sizeof(*tape->layers))) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(tape->layers[tape->layer_count], TAPE_NAME_MAX, format, arguments);
    va_end(arguments);
    tape->layer = tape->layer_count++;
}

uint64_t tape_elements(struct tape *tape, uint64_t rows, uint64_t channels, uint64_t height,
                       uint64_t width)
{
    uint64_t elements;

    if (__builtin_mul_overflow(rows, channels, &elements) ||
        __builtin_mul_overflow(elements, height, &elements) ||
        __builtin_mul_overflow(elements, width, &elements) || elements > TRACE_BYTES_MAX) {
        tape_fail(tape, CAPU_TOO_LARGE, "a tensor of layer %s would exceed 2^50 bytes",
                  tape->layer_count > 0 ? tape->layers[tape->layer] : "");
        return 0;
    }
    return elements;
}

uint64_t tape_element_bytes(const struct tape *tape)
{
    return tape->options.dtype == DTYPE_FP16 || tape->options.dtype == DTYPE_BF16 ? 2 : 4;
}

static uint32_t add_tensor(struct tape *tape, capu_kind kind, uint64_t bytes, bool persists,
                           const char *name, const char *suffix)
{
    char full[2 * TAPE_NAME_MAX];
    struct tensor_description description = {.name = full,
                                             .bytes = bytes,
                                             .kind = kind,
                                             .persistent = persists,
                                             .scales = !persists && kind != CAPU_WORKSPACE};
    uint32_t id = 0;
    capu_status status;

    if (tape->status != CAPU_OK) {
        return 0;
    }
    snprintf(full, sizeof(full), "%s%s%s", name, suffix[0] != '\0' ? "." : "", suffix);
    status = trace_add_tensor(tape->trace, &description, &id, tape->error);
    if (status != CAPU_OK) {
        fail_with(tape, status);
        return 0;
    }
    return id + 1;
}

uint32_t tape_tensor(struct tape *tape, capu_kind kind, uint64_t elements, uint64_t element_bytes,
                     const char *name, const char *suffix)
{
    uint64_t bytes = tape_elements(tape, elements, element_bytes, 1, 1);

    return add_tensor(tape, kind, bytes, false, name, suffix);
}

uint32_t tape_buffer(struct tape *tape, uint64_t elements, const char *name, const char *suffix)
{
    return add_tensor(tape, CAPU_PARAMETER, elements * 4, true, name, suffix);
}

uint32_t tape_workspace(struct tape *tape, uint64_t bytes, uint64_t most, const char *name)
{
    bytes = bytes < most ? bytes : most;
    return bytes > 0 ? add_tensor(tape, CAPU_WORKSPACE, bytes, false, name, "workspace") : 0;
}

uint64_t tape_bytes(const struct tape *tape, uint32_t ref)
{
    ASSERT(tape->status != CAPU_OK || ref <= tape->trace->tensor_count);
    return ref != 0 && tape->status == CAPU_OK ? tape->trace->tensors[ref - 1].bytes : 0;
}

/* Adds a value whose tensor exists. */
static uint32_t add_value(struct tape *tape, const struct value *value)
{
    if (!grow_array(tape, &tape->values, tape->value_count, &tape->value_capacity,
                    sizeof(*tape->values))) {
        return 0;
    }
    tape->values[tape->value_count] = *value;
    return tape->value_count++;
}

uint32_t tape_value(struct tape *tape, uint64_t rows, uint64_t channels, uint64_t height,
                    uint64_t width, const char *name)
{
    struct value value = {.rows = rows,
                          .channels = channels,
                          .height = height,
                          .width = width,
                          .wants_gradient = true};

    value.ref =
        tape_tensor(tape, CAPU_ACTIVATION, tape_elements(tape, rows, channels, height, width),
                    tape_element_bytes(tape), name, "y");
    return add_value(tape, &value);
}

uint32_t tape_input(struct tape *tape, uint64_t rows, uint64_t channels, uint64_t height,
                    uint64_t width, uint64_t element_bytes, const char *name)
{
    struct value value = {.rows = rows, .channels = channels, .height = height, .width = width};

    value.ref = tape_tensor(tape, CAPU_INPUT, tape_elements(tape, rows, channels, height, width),
                            element_bytes, name, "");
    tape_op(tape, &(struct tape_op){
                      .name = name, .suffix = "copyin", .writes = {value.ref}, .is_random = true});
    return add_value(tape, &value);
}

struct value tape_at(const struct tape *tape, uint32_t value)
{
    ASSERT(tape->status != CAPU_OK || value < tape->value_count);
    return tape->status == CAPU_OK ? tape->values[value] : (struct value){0};
}

/* Per element: the moments and, if the parameter has 2 bytes, its fp32 master. */
static uint64_t state_bytes(const struct tape *tape)
{
    uint64_t moments = tape->options.optimizer == OPTIMIZER_ADAM ? 8 : 4;

    return tape_element_bytes(tape) == 2 ? moments + 4 : moments;
}

uint32_t tape_weight(struct tape *tape, uint64_t elements, const char *name, const char *suffix)
{
    struct weight *weight;

    if (!grow_array(tape, &tape->weights, tape->weight_count, &tape->weight_capacity,
                    sizeof(*tape->weights))) {
        return 0;
    }
    weight = &tape->weights[tape->weight_count];
    *weight = (struct weight){.layer = tape->layer};
    snprintf(weight->name, sizeof(weight->name), "%.40s.%.16s", name, suffix);
    weight->ref = add_tensor(tape, CAPU_PARAMETER,
                             tape_elements(tape, elements, tape_element_bytes(tape), 1, 1), true,
                             weight->name, "");
    weight->state =
        add_tensor(tape, CAPU_OPTIMIZER, tape_elements(tape, elements, state_bytes(tape), 1, 1),
                   true, weight->name, "state");
    tape->parameter_count += elements;
    return tape->weight_count++;
}

uint32_t tape_weight_ref(const struct tape *tape, uint32_t weight)
{
    ASSERT(tape->status != CAPU_OK || weight < tape->weight_count);
    return tape->status == CAPU_OK ? tape->weights[weight].ref : 0;
}

uint32_t tape_use(struct tape *tape, uint32_t weight)
{
    if (tape->status == CAPU_OK) {
        tape->weights[weight].uses++;
    }
    return tape_weight_ref(tape, weight);
}

/* Appends the ids of the refs to `ids` and adds their sizes to *bytes. */
static uint32_t list_ids(const struct tape *tape, const uint32_t *refs, uint32_t count,
                         uint32_t *ids, uint32_t listed, double *bytes)
{
    for (uint32_t i = 0; i < count; i++) {
        ASSERT(refs[i] <= tape->trace->tensor_count);
        if (refs[i] != 0) {
            ids[listed++] = refs[i] - 1;
            *bytes += (double)tape->trace->tensors[refs[i] - 1].bytes;
        }
    }
    return listed;
}

static bool is_scaling(const struct tape *tape, const uint32_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (tape->trace->tensors[ids[i]].scales) {
            return true;
        }
    }
    return false;
}

/* Adds the op with these reads. */
static void add_op(struct tape *tape, const struct tape_op *op, const uint32_t *reads,
                   uint32_t read_count, double bytes)
{
    char name[2 * TAPE_NAME_MAX];
    uint32_t writes[TAPE_OPERANDS_MAX];
    uint32_t updates[TAPE_OPERANDS_MAX];
    double updated = 0.0;
    struct op_description description = {.name = name, .reads = reads, .read_count = read_count};
    capu_status status;

    description.write_count = list_ids(tape, op->writes, TAPE_OPERANDS_MAX, writes, 0, &bytes);
    description.update_count = list_ids(tape, op->updates, TAPE_OPERANDS_MAX, updates, 0, &updated);
    description.writes = writes;
    description.updates = updates;
    description.replayable = !op->is_random && description.update_count == 0;
    description.scales = is_scaling(tape, reads, read_count) ||
                         is_scaling(tape, writes, (uint32_t)description.write_count);
    bytes += 2.0 * updated + op->extra_bytes;
    description.ns =
        hardware_op_ns(tape->hardware, tape->options.dtype, op->flops - op->saved_flops,
                       bytes > 0.0 ? bytes : 0.0, 1 + op->extra_launches);
    snprintf(name, sizeof(name), "%s.%s", op->name, op->suffix);
    if (grow_array(tape, &tape->labels, tape->label_count, &tape->label_capacity,
                   sizeof(*tape->labels))) {
        status = trace_add_op(tape->trace, &description, tape->error);
        fail_with(tape, status);
        tape->labels[tape->label_count++] =
            (struct label){.layer = tape->layer, .phase = tape->phase};
        tape->flops += op->flops;
    }
}

void tape_op(struct tape *tape, const struct tape_op *op)
{
    uint32_t *reads;
    uint32_t count;
    double bytes = 0.0;

    if (tape->status != CAPU_OK) {
        return;
    }
    reads = calloc((size_t)TAPE_OPERANDS_MAX + op->more_count, sizeof(*reads));
    if (reads == NULL) {
        tape_fail(tape, CAPU_NO_HOST_MEMORY, "out of memory");
        return;
    }
    count = list_ids(tape, op->reads, TAPE_OPERANDS_MAX, reads, 0, &bytes);
    for (uint32_t i = 0; i < op->more_count; i++) {
        count = list_ids(tape, &tape->values[op->more_reads[i]].ref, 1, reads, count, &bytes);
    }
    add_op(tape, op, reads, count, bytes);
    free(reads);
}

void tape_step(struct tape *tape, const struct step *step, const char *name)
{
    struct step *own;

    if (!grow_array(tape, &tape->steps, tape->step_count, &tape->step_capacity,
                    sizeof(*tape->steps))) {
        return;
    }
    own = &tape->steps[tape->step_count++];
    *own = *step;
    own->layer = tape->layer;
    snprintf(own->name, sizeof(own->name), "%s", name);
}

uint32_t tape_add_inputs(struct tape *tape, const uint32_t *values, uint32_t count)
{
    uint32_t first = tape->input_count;

    for (uint32_t i = 0; i < count; i++) {
        if (!grow_array(tape, &tape->inputs, tape->input_count, &tape->input_capacity,
                        sizeof(*tape->inputs))) {
            return 0;
        }
        tape->inputs[tape->input_count++] = values[i];
    }
    return first;
}

uint32_t tape_gradient(const struct tape *tape, uint32_t value)
{
    return tape->status == CAPU_OK ? tape->values[value].gradient : 0;
}

uint32_t tape_new_gradient(struct tape *tape, uint32_t value, const char *name)
{
    uint32_t ref;

    if (tape->status != CAPU_OK || !tape->values[value].wants_gradient) {
        return 0;
    }
    ref = tape->values[value].ref;
    return add_tensor(tape, CAPU_GRADIENT, tape_bytes(tape, ref), false, name, "dx");
}

void tape_give_gradient(struct tape *tape, uint32_t value, uint32_t gradient, const char *name)
{
    struct value *to;
    uint32_t sum;

    if (tape->status != CAPU_OK || gradient == 0 || !tape->values[value].wants_gradient) {
        return;
    }
    to = &tape->values[value];
    if (to->gradient == 0) {
        to->gradient = gradient;
        return;
    }
    sum = add_tensor(tape, CAPU_GRADIENT, tape_bytes(tape, gradient), false, name, "dx_sum");
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "add_gradients",
                                    .reads = {to->gradient, gradient},
                                    .writes = {sum}});
    to->gradient = sum;
}

static void add_ref(uint32_t *refs, uint32_t ref)
{
    uint32_t i = 0;

    while (refs[i] != 0) {
        i++;
    }
    refs[i] = ref;
}

void tape_weight_op(struct tape *tape, struct tape_op *op, uint32_t index)
{
    struct weight *weight;

    if (tape->status != CAPU_OK) {
        return;
    }
    weight = &tape->weights[index];
    if (weight->gradient == 0) {
        weight->gradient = add_tensor(tape, CAPU_GRADIENT, tape_bytes(tape, weight->ref), false,
                                      weight->name, "gradient");
        if (weight->gradient != 0) {
            /* As large as the weight, independent of the batch. */
            tape->trace->tensors[weight->gradient - 1].scales = false;
            add_ref(op->writes, weight->gradient);
        }
    } else {
        add_ref(op->updates, weight->gradient);
    }
    weight->uses--;
    weight->is_due = weight->uses == 0;
    tape_op(tape, op);
}

static void update_weight(struct tape *tape, struct weight *weight)
{
    tape->phase = PHASE_UPDATE;
    tape_op(tape, &(struct tape_op){.name = weight->name,
                                    .suffix = "update",
                                    .reads = {weight->gradient},
                                    .updates = {weight->ref, weight->state}});
    weight->is_due = false;
    tape->phase = PHASE_BACKWARD;
}

/* Only between steps: the ops of a step may read a weight after its gradient is complete. */
static void update_due(struct tape *tape)
{
    for (uint32_t i = 0; tape->status == CAPU_OK && i < tape->weight_count; i++) {
        if (tape->weights[i].is_due) {
            update_weight(tape, &tape->weights[i]);
        }
    }
}

void tape_finish_iteration(struct tape *tape)
{
    tape->phase = PHASE_BACKWARD;
    for (uint32_t i = tape->step_count; tape->status == CAPU_OK && i-- > 0;) {
        /* A copy, so that a step may add to the tape. */
        struct step step = tape->steps[i];

        tape->layer = step.layer;
        step.backward(tape, &step);
        if (tape->options.updates_asap) {
            update_due(tape);
        }
    }
    for (uint32_t i = 0; tape->status == CAPU_OK && i < tape->weight_count; i++) {
        if (tape->weights[i].is_due) {
            tape->layer = tape->weights[i].layer;
            update_weight(tape, &tape->weights[i]);
        }
    }
}
