/* Running ops twice in strict mode, see strict.h. */
#include "runtime/strict/strict.h"

#include "base/array.h"
#include "runtime/context/failure.h"
#include "runtime/guide/enqueue.h"
#include "runtime/op/op.h"
#include "runtime/tensor/memory.h"

#include <string.h>

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
static bool save_outputs(struct strict *strict, const struct op *op)
{
    size_t bytes = 0;

    for (size_t i = 0; i < op->access_count; i++) {
        bytes += is_output(&op->accesses[i]) ? op->accesses[i].tensor->bytes : 0;
    }
    if (!array_reserve(&strict->saved, &strict->saved_capacity, bytes, 1)) {
        return false;
    }
    bytes = 0;
    for (size_t i = 0; i < op->access_count; i++) {
        const struct tensor *tensor = op->accesses[i].tensor;

        if (is_output(&op->accesses[i])) {
            strict_copy(strict, tensor, strict->saved + bytes, true);
            bytes += tensor->bytes;
        }
    }
    return true;
}

static void restore_outputs(struct strict *strict, const struct op *op)
{
    size_t bytes = 0;

    for (size_t i = 0; i < op->access_count; i++) {
        const struct tensor *tensor = op->accesses[i].tensor;

        if (is_output(&op->accesses[i])) {
            strict_copy(strict, tensor, strict->saved + bytes, false);
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

static struct difference compare_output(struct strict *strict, const struct op *op, size_t access,
                                        const unsigned char *saved)
{
    const struct tensor *tensor = op->accesses[access].tensor;
    const struct poison poison = strict_poison_of(strict, access);
    struct difference difference = {0};
    uint64_t here;

    for (uint64_t done = 0; done < tensor->bytes; done += here) {
        const unsigned char *address = (const unsigned char *)tensor->address + done;
        const unsigned char *memory;

        here = tensor->bytes - done;
        memory = device_view(strict->lanes->device, address, &here);
        if (memory != NULL) {
            compare_stretch(&poison, memory, saved + done, address, here, &difference);
        }
    }
    return difference;
}

/* An operand that discards what it does not write may leave bytes unwritten. */
static bool may_skip(const struct op *op, size_t access)
{
    bool may = false;

    for (size_t i = 0; i < op->piece_count; i++) {
        const struct piece *piece = &op->pieces[i];

        may =
            may || (piece->access == access && piece_role(op, piece) == CAPU_WRITE_REST_UNDEFINED);
    }
    return may;
}

/* Compares the outputs with what was saved. */
static void find_difference(struct strict *strict, const struct op *op,
                            struct strict_finding *finding)
{
    const unsigned char *saved = strict->saved;

    for (size_t i = 0; i < op->access_count && finding->breach == STRICT_NOTHING; i++) {
        const struct access *access = &op->accesses[i];
        struct difference difference;

        if (!is_output(access)) {
            continue;
        }
        difference = compare_output(strict, op, i, saved);
        saved += access->tensor->bytes;
        finding->tensor = access->tensor;
        if (difference.other != NULL) {
            finding->breach = is_left_alone(access) ? STRICT_TAMPERED : STRICT_VARIES;
            finding->at = difference.other;
        } else if (difference.unwritten != NULL && !may_skip(op, i)) {
            finding->breach = STRICT_SKIPPED;
            finding->at = difference.unwritten;
            finding->bytes = difference.unwritten_bytes;
        }
    }
}

/* Runs the op again, and says whether its outputs are what was saved, or else why not. */
static capu_status rerun_op(struct strict *strict, const struct op *op, bool is_other,
                            struct strict_finding *finding)
{
    struct device_faults faults = {0};
    capu_status status = strict_poison_again(strict, op, is_other);

    *finding = (struct strict_finding){0};
    for (size_t i = 0; i < op->access_count; i++) {
        strict->grants[i].is_writable = op->accesses[i].recorded == CAPU_WRITE;
    }
    status = status == CAPU_OK ? lane_synchronize(&strict->lanes->compute) : status;
    status = status == CAPU_OK
                 ? device_open(strict->lanes->device, strict->grants, op->access_count)
                 : status;
    status = failure_check(strict->failure, status, "running an op again in strict mode");
    if (status != CAPU_OK) {
        lanes_quiesce(strict->lanes,
                      &strict->lanes->compute); /* what is cleared is put back next */
        return status;
    }
    status = enqueue_again(strict->guided, op);
    lanes_quiesce(strict->lanes, &strict->lanes->compute);
    device_close(strict->lanes->device, &faults);
    if (status == CAPU_OK) {
        status = failure_check(strict->failure, device_failure(strict->lanes->device, NULL, 0),
                               "running an op again in strict mode");
    }
    if (status != CAPU_OK) {
        return status;
    }
    if (faults.strayed != NULL || faults.written != NULL) {
        strict_watch_strayed(strict, &faults, finding);
    } else {
        find_difference(strict, op, finding);
    }
    return CAPU_OK;
}

static uint64_t sum_outputs(const struct strict *strict, const struct op *op)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < op->access_count; i++) {
        if (is_output(&op->accesses[i])) {
            sum = 31 * sum + strict_checksum(strict, op->accesses[i].tensor);
        }
    }
    return sum;
}

/* The results differ. With the first pattern again, they are as at first if they depend on it. If
   they then repeat without being as at first, they depend on bystanders, which only the first run
   had hidden from it. */
static capu_status find_cause(struct strict *strict, const struct op *op,
                              struct strict_finding *finding)
{
    struct strict_finding repeated;
    capu_status status = rerun_op(strict, op, false, &repeated);

    if (status == CAPU_OK && repeated.breach == STRICT_NOTHING) {
        finding->breach = STRICT_DEPENDS;
    } else if (status == CAPU_OK && strict_bystanders_any(strict) && op->call.replay == NULL) {
        uint64_t sum = sum_outputs(strict, op);

        status = rerun_op(strict, op, false, &repeated);
        if (status == CAPU_OK && sum_outputs(strict, op) == sum) {
            *finding = (struct strict_finding){.breach = STRICT_STRAYED};
        }
    }
    return status;
}

/* Adds an operand that is read. The order does not matter. */
static void add_input(const struct strict *strict, const struct tensor *tensor, uint64_t *sum)
{
    *sum += strict_checksum(strict, tensor) ^ (uint64_t)(uintptr_t)tensor->address;
}

/* What a replay of a plan will be compared with. */
static void note_sums(struct strict *strict, const struct op *op)
{
    uint64_t input_sum = 0;

    for (size_t i = 0; i < op->access_count; i++) {
        if (op->accesses[i].recorded == CAPU_READ) {
            add_input(strict, op->accesses[i].tensor, &input_sum);
        }
    }

    for (size_t i = 0; i < op->access_count; i++) {
        const struct access *access = &op->accesses[i];
        struct tensor *tensor = access->tensor;

        if (is_output(access) && tensor_is_managed(tensor) && !access->is_partial &&
            !may_skip(op, i)) {
            tensor->sum = strict_checksum(strict, tensor);
            tensor->input_sum = input_sum;
            tensor->summed_version = tensor->version + 1; /* once the op has ended */
        }
    }
}

/* The context is lost: says that it was the second run. */
static capu_status explain_second_run(struct strict *strict, const struct op *op)
{
    char text[sizeof(strict->failure->text)];

    memcpy(text, strict->failure->text, sizeof(text));
    return failure_set(strict->failure, strict->failure->lost,
                       "%.*s (when strict mode ran '%s' again, as it does with replayable ops)",
                       (int)(sizeof(text) / 2), text, op->call.name);
}

capu_status strict_again_run(struct strict *strict, struct op *op)
{
    struct strict_finding *finding = &strict->finding;
    capu_status status;

    if (finding->breach != STRICT_NOTHING || !strict->lanes->device->capabilities.can_guard ||
        device_failure(strict->lanes->device, NULL, 0) != CAPU_OK || !access_can_replay(op) ||
        !save_outputs(strict, op)) {
        return CAPU_OK;
    }
    status = rerun_op(strict, op, true, finding);
    if (status == CAPU_OK && finding->breach == STRICT_VARIES) {
        status = find_cause(strict, op, finding);
    }
    if (strict->failure->lost != CAPU_OK) {
        return explain_second_run(strict, op);
    }
    restore_outputs(strict, op);
    note_sums(strict, op);
    return CAPU_OK;
}

/* What the replay has read. It may be other bytes than at first, where these are undefined. */
static uint64_t sum_inputs(const struct strict *strict, const struct guide *guide,
                           const struct guide_op *op)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < op->accesses.count; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        const struct tensor *tensor = strict->guided->binding.tensors[access->tensor].tensor;

        if (tensor == NULL) {
            tensor = tensors_find(&strict->memory->tensors, guide->tensors[access->tensor].address);
        }
        if (access->role == CAPU_READ && tensor != NULL) {
            add_input(strict, tensor, &sum);
        }
    }
    return sum;
}

capu_status strict_again_check(struct strict *strict, const struct guide *guide,
                               const struct guide_op *op)
{
    /* Only ops of the program were summed. The others have not ended here. */
    if (!strict_is_on(strict->settings) || op->call.kind != CALL_RUN) {
        return CAPU_OK;
    }
    for (uint32_t i = 0; i < op->accesses.count; i++) {
        uint32_t number = op->accesses.first + i;
        const struct guide_access *access = &guide->accesses[number];
        struct tensor *tensor = strict->guided->binding.tensors[access->tensor].tensor;

        if (access->role == CAPU_WRITE && tensor != NULL && tensor_is_mapped(tensor) &&
            tensor->version == strict->guided->binding.versions[number] &&
            tensor->version == tensor->summed_version &&
            tensor->input_sum == sum_inputs(strict, guide, op) &&
            strict_checksum(strict, tensor) != tensor->sum) {
            strict->failure->lost = CAPU_OP_FAILED;
            return failure_set(strict->failure, CAPU_OP_FAILED,
                               "op '%s', run again by the plan, gives other bytes in '%s' than at "
                               "first: what it reads besides its operands has changed since, such "
                               "as host memory that its arguments point to",
                               op->call.name, lookup_name(strict->memory, tensor));
        }
    }
    return CAPU_OK;
}
