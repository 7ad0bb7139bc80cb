/* Running ops twice in strict mode, see strict_again.h. */
#include "runtime/strict/strict_again.h"

#include "base/array.h"
#include "runtime/context/failure.h"
#include "runtime/guide/enqueue.h"
#include "runtime/strict/strict.h"
#include "runtime/strict/strict_strangers.h"
#include "runtime/tensor/access.h"
#include "runtime/tensor/lookup.h"

#include <string.h>

/* The work of the op at hand. */
struct work {
    const void *arguments;
    uint64_t duration_ns;
};

/* How what an access holds now differs from what was saved. */
struct difference {
    const unsigned char *unwritten; /* the first byte that holds the pattern of each run, or NULL */
    uint64_t unwritten_bytes;
    const unsigned char *other; /* the first byte that differs otherwise, or NULL */
};

/* Updated by the op, and left alone by its replays. */
static bool is_left_alone(const struct access *access)
{
    return access->recorded == CAPU_UPDATE;
}

/* Whether the op leaves anything there. */
static bool is_output(const struct access *access)
{
    return access->recorded != CAPU_READ && access->role != CAPU_SCRATCH;
}

/* Copies what the outputs hold to host memory. False: there is none. */
static bool save(capu_context *context)
{
    struct operands *operands = &context->operands;
    size_t bytes = 0;

    for (size_t i = 0; i < operands->access_count; i++) {
        bytes += is_output(&operands->accesses[i]) ? operands->accesses[i].tensor->bytes : 0;
    }
    if (!array_reserve(&operands->saved, &operands->saved_capacity, bytes, 1)) {
        return false;
    }
    bytes = 0;
    for (size_t i = 0; i < operands->access_count; i++) {
        const struct tensor *tensor = operands->accesses[i].tensor;

        if (is_output(&operands->accesses[i])) {
            strict_copy(context, tensor, operands->saved + bytes, true);
            bytes += tensor->bytes;
        }
    }
    return true;
}

static void restore(capu_context *context)
{
    struct operands *operands = &context->operands;
    size_t bytes = 0;

    for (size_t i = 0; i < operands->access_count; i++) {
        const struct tensor *tensor = operands->accesses[i].tensor;

        if (is_output(&operands->accesses[i])) {
            strict_copy(context, tensor, operands->saved + bytes, false);
            bytes += tensor->bytes;
        }
    }
}

static void compare_stretch(const struct poison *poison, const unsigned char *memory,
                            const unsigned char *saved, const unsigned char *address,
                            uint64_t bytes, struct difference *difference)
{
    const struct poison other = poison_other(poison);

    if (memcmp(memory, saved, bytes) == 0) {
        return;
    }
    for (uint64_t i = 0; i < bytes; i++) {
        if (memory[i] == saved[i]) {
            continue;
        }
        if (saved[i] != poison_byte(poison, address + i) ||
            memory[i] != poison_byte(&other, address + i)) {
            difference->other = difference->other != NULL ? difference->other : address + i;
        } else if (difference->unwritten_bytes++ == 0) {
            difference->unwritten = address + i;
        }
    }
}

static struct difference compare(capu_context *context, size_t access, const unsigned char *saved)
{
    const struct tensor *tensor = context->operands.accesses[access].tensor;
    const struct poison poison = strict_poison_of(context, access);
    struct difference difference = {0};
    uint64_t here;

    for (uint64_t done = 0; done < tensor->bytes; done += here) {
        const unsigned char *address = (const unsigned char *)tensor->address + done;
        const unsigned char *memory;

        here = tensor->bytes - done;
        memory = device_view(context->lanes.device, address, &here);
        if (memory != NULL) {
            compare_stretch(&poison, memory, saved + done, address, here, &difference);
        }
    }
    return difference;
}

/* An operand that discards what it does not write may leave bytes unwritten. */
static bool may_skip(const struct operands *operands, size_t access)
{
    bool may = false;

    for (size_t i = 0; i < operands->piece_count; i++) {
        const struct piece *piece = &operands->pieces[i];

        may = may || (piece->access == access && piece->role == CAPU_WRITE_DISCARD);
    }
    return may;
}

/* Compares the outputs with what was saved. */
static void find_difference(capu_context *context, struct strict_finding *finding)
{
    const struct operands *operands = &context->operands;
    const unsigned char *saved = operands->saved;

    for (size_t i = 0; i < operands->access_count && finding->breach == STRICT_NOTHING; i++) {
        const struct access *access = &operands->accesses[i];
        struct difference difference;

        if (!is_output(access)) {
            continue;
        }
        difference = compare(context, i, saved);
        saved += access->tensor->bytes;
        finding->tensor = access->tensor;
        if (difference.other != NULL) {
            finding->breach = is_left_alone(access) ? STRICT_TAMPERED : STRICT_VARIES;
            finding->at = difference.other;
        } else if (difference.unwritten != NULL && !may_skip(operands, i)) {
            finding->breach = STRICT_SKIPPED;
            finding->at = difference.unwritten;
            finding->bytes = difference.unwritten_bytes;
        }
    }
}

/* Runs the op again, and says whether its outputs are what was saved, or else why not. */
static capu_status run(capu_context *context, const struct work *work, bool is_other,
                       struct strict_finding *finding)
{
    struct operands *operands = &context->operands;
    struct device_faults faults = {0};
    capu_status status = strict_poison_again(context, is_other);

    *finding = (struct strict_finding){0};
    for (size_t i = 0; i < operands->access_count; i++) {
        operands->grants[i].is_writable = operands->accesses[i].recorded == CAPU_WRITE;
    }
    status = status == CAPU_OK ? lane_synchronize(&context->lanes.compute) : status;
    status = status == CAPU_OK
                 ? device_open(context->lanes.device, operands->grants, operands->access_count)
                 : status;
    status = failure_check(&context->failure, status, "running an op again in strict mode");
    if (status != CAPU_OK) {
        lanes_quiesce(&context->lanes,
                      &context->lanes.compute); /* what is cleared is put back next */
        return status;
    }
    status = enqueue_again(&context->guided, &operands->call, work->arguments, work->duration_ns);
    lanes_quiesce(&context->lanes, &context->lanes.compute);
    device_close(context->lanes.device, &faults);
    if (status == CAPU_OK) {
        status = failure_check(&context->failure, device_failure(context->lanes.device, NULL, 0),
                               "running an op again in strict mode");
    }
    if (status != CAPU_OK) {
        return status;
    }
    if (faults.strayed != NULL || faults.written != NULL) {
        strict_watch_strayed(context, &faults, finding);
    } else {
        find_difference(context, finding);
    }
    return CAPU_OK;
}

static uint64_t sum_outputs(const capu_context *context)
{
    const struct operands *operands = &context->operands;
    uint64_t sum = 0;

    for (size_t i = 0; i < operands->access_count; i++) {
        if (is_output(&operands->accesses[i])) {
            sum = 31 * sum + strict_checksum(context, operands->accesses[i].tensor);
        }
    }
    return sum;
}

/* The results differ. With the first pattern again, they are as at first if they depend on it. If
   they then repeat without being as at first, they depend on strangers, which only the first run
   had hidden from it. */
static capu_status find_cause(capu_context *context, const struct work *work,
                              struct strict_finding *finding)
{
    struct strict_finding repeated;
    capu_status status = run(context, work, false, &repeated);

    if (status == CAPU_OK && repeated.breach == STRICT_NOTHING) {
        finding->breach = STRICT_DEPENDS;
    } else if (status == CAPU_OK && strict_strangers_any(context) &&
               context->operands.call.replay == NULL) {
        uint64_t sum = sum_outputs(context);

        status = run(context, work, false, &repeated);
        if (status == CAPU_OK && sum_outputs(context) == sum) {
            *finding = (struct strict_finding){.breach = STRICT_STRAYED};
        }
    }
    return status;
}

/* Adds an operand that is read. The order does not matter. */
static void add_input(const capu_context *context, const struct tensor *tensor, uint64_t *sum)
{
    *sum += strict_checksum(context, tensor) ^ (uint64_t)(uintptr_t)tensor->address;
}

/* What a replay of a plan will be compared with. */
static void note_sums(capu_context *context)
{
    const struct operands *operands = &context->operands;
    uint64_t input_sum = 0;

    for (size_t i = 0; i < operands->access_count; i++) {
        if (operands->accesses[i].recorded == CAPU_READ) {
            add_input(context, operands->accesses[i].tensor, &input_sum);
        }
    }

    for (size_t i = 0; i < operands->access_count; i++) {
        const struct access *access = &operands->accesses[i];
        struct tensor *tensor = access->tensor;

        if (is_output(access) && tensor_is_managed(tensor) && !access->is_partial &&
            !may_skip(operands, i)) {
            tensor->sum = strict_checksum(context, tensor);
            tensor->input_sum = input_sum;
            tensor->summed_version = tensor->version + 1; /* once the op has ended */
        }
    }
}

/* The context is lost: says that it was the second run. */
static capu_status explain(capu_context *context)
{
    char text[sizeof(context->failure.text)];

    memcpy(text, context->failure.text, sizeof(text));
    return failure_set(&context->failure, context->failure.lost,
                       "%.*s (when strict mode ran '%s' again, as it does with replayable ops)",
                       (int)(sizeof(text) / 2), text, context->operands.name);
}

capu_status strict_again_run(capu_context *context, const void *arguments, uint64_t duration_ns,
                             struct strict_finding *finding)
{
    const struct work work = {.arguments = arguments, .duration_ns = duration_ns};
    capu_status status;

    if (!context->lanes.device->capabilities.can_guard ||
        device_failure(context->lanes.device, NULL, 0) != CAPU_OK ||
        !access_can_replay(&context->operands) || !save(context)) {
        return CAPU_OK;
    }
    status = run(context, &work, true, finding);
    if (status == CAPU_OK && finding->breach == STRICT_VARIES) {
        status = find_cause(context, &work, finding);
    }
    if (context->failure.lost != CAPU_OK) {
        return explain(context);
    }
    restore(context);
    note_sums(context);
    return CAPU_OK;
}

/* What the replay has read. It may be other bytes than at first, where these are undefined. */
static uint64_t sum_inputs(const capu_context *context, const struct guide *guide,
                           const struct guide_op *op)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < op->accesses.count; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        const struct tensor *tensor = context->guided.binding.tensors[access->tensor].tensor;

        if (tensor == NULL) {
            tensor = tensors_find(&context->memory.tensors, guide->tensors[access->tensor].address);
        }
        if (access->role == CAPU_READ && tensor != NULL) {
            add_input(context, tensor, &sum);
        }
    }
    return sum;
}

capu_status strict_again_check(capu_context *context, const struct guide *guide,
                               const struct guide_op *op)
{
    for (uint32_t i = 0; strict_is_on(context) && i < op->accesses.count; i++) {
        uint32_t number = op->accesses.first + i;
        const struct guide_access *access = &guide->accesses[number];
        struct tensor *tensor = context->guided.binding.tensors[access->tensor].tensor;

        if (access->role == CAPU_WRITE && tensor != NULL && tensor_is_mapped(tensor) &&
            tensor->version == context->guided.binding.versions[number] &&
            tensor->version == tensor->summed_version &&
            tensor->input_sum == sum_inputs(context, guide, op) &&
            strict_checksum(context, tensor) != tensor->sum) {
            context->failure.lost = CAPU_OP_FAILED;
            return failure_set(&context->failure, CAPU_OP_FAILED,
                               "op '%s', run again by the plan, gives other bytes in '%s' than at "
                               "first: what it reads besides its operands has changed since, such "
                               "as host memory that its arguments point to",
                               op->call.name, lookup_name(&context->memory, tensor));
        }
    }
    return CAPU_OK;
}
