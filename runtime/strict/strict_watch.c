/* Watching ops in strict mode, see strict.h. */
#include "runtime/strict/strict.h"

#include "base/array.h"
#include "runtime/context/failure.h"
#include "runtime/tensor/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void strict_finish(struct strict *strict)
{
    free(strict->grants);
    free(strict->checksums);
    free(strict->saved);
    strict_bystanders_destroy(strict->bystanders);
    *strict = (struct strict){0};
}

static bool can_watch(const struct strict *strict)
{
    return strict_is_on(strict->settings) && strict->lanes->device->capabilities.can_guard;
}

/* Whether the op only reads it, in all of its operands. */
static bool is_only_read(const struct access *access)
{
    return access->role == CAPU_READ;
}

/* Whether an op that may write another tensor can reach this one all the same, because they share
   pages. */
static bool shares_pages(const struct tensor *tensor)
{
    return !tensor_is_managed(tensor) || tensor->span != tensor->address ||
           (unsigned char *)tensor->span + tensor->span_bytes < tensor_end(tensor);
}

/* Whether there are pages at both ends, and so, since these are tensors, everywhere. */
static bool is_there(struct strict *strict, const void *address, uint64_t bytes)
{
    uint64_t first = 1;
    uint64_t last = 1;

    return device_view(strict->lanes->device, address, &first) != NULL &&
           device_view(strict->lanes->device, (const char *)address + bytes - 1, &last) != NULL;
}

static capu_status reserve_grants(struct strict *strict, size_t count)
{
    bool has_room =
        array_reserve(&strict->grants, &strict->grant_capacity, count, sizeof(*strict->grants)) &&
        array_reserve(&strict->checksums, &strict->checksum_capacity, count,
                      sizeof(*strict->checksums));

    return has_room ? CAPU_OK : CAPU_NO_HOST_MEMORY;
}

capu_status strict_watch_begin(struct strict *strict, const struct op *op)
{
    capu_status status;

    if (!can_watch(strict)) {
        return CAPU_OK;
    }
    status = lane_synchronize(&strict->lanes->compute);
    status = status == CAPU_OK ? reserve_grants(strict, op->access_count) : status;
    for (size_t i = 0; i < op->access_count && status == CAPU_OK; i++) {
        const struct access *access = &op->accesses[i];

        if (is_only_read(access) && shares_pages(access->tensor)) {
            strict->checksums[i] = strict_checksum(strict, access->tensor);
        }
        strict->grants[i] = (struct device_grant){
            .address = access->tensor->address,
            .bytes = access->tensor->bytes,
            .is_writable = !is_only_read(access),
        };
    }
    status = status == CAPU_OK ? strict_bystanders_hide(strict, op) : status;
    if (status == CAPU_OK) {
        status = device_open(strict->lanes->device, strict->grants, op->access_count);
        if (status != CAPU_OK) {
            strict_bystanders_show(strict);
        }
    }
    return failure_check(strict->failure, status, "opening the operands of an op in strict mode");
}

static const void *page_of(const struct strict *strict, const void *address)
{
    return (const void *)((uintptr_t)address &
                          ~(uintptr_t)(strict->settings->config.page_bytes - 1));
}

/* The tensor that an op has touched without naming it. After its end comes the rest of its last
   page. NULL: none is there. */
static struct tensor *find_strayed(const struct strict *strict, const void *address)
{
    struct tensor *tensor = tensors_find(&strict->memory->tensors, address);

    return tensor != NULL ? tensor
                          : tensors_find(&strict->memory->tensors, page_of(strict, address));
}

/* The tensor whose pages an op has written although it only reads it. NULL: none. */
static struct tensor *find_written(const struct strict *strict, const struct op *op,
                                   const void *address)
{
    for (size_t i = 0; i < op->access_count; i++) {
        struct tensor *tensor = op->accesses[i].tensor;
        const unsigned char *last = tensor_end(tensor) - 1;

        if (is_only_read(&op->accesses[i]) &&
            page_of(strict, address) >= page_of(strict, tensor->address) &&
            page_of(strict, address) <= page_of(strict, last)) {
            return tensor;
        }
    }
    return NULL;
}

static struct tensor *find_changed(struct strict *strict, const struct op *op)
{
    for (size_t i = 0; i < op->access_count; i++) {
        const struct access *access = &op->accesses[i];

        if (is_only_read(access) && shares_pages(access->tensor) &&
            strict_checksum(strict, access->tensor) != strict->checksums[i]) {
            return access->tensor;
        }
    }
    return NULL;
}

/* Whether the op has read what this piece only writes, or the part of its tensor that has no
   contents. */
static bool find_read(struct strict *strict, const struct op *op, const struct piece *piece,
                      struct strict_finding *finding)
{
    const struct poison poison = strict_poison_of(strict, piece->access);

    for (size_t i = 0; i < op->access_count; i++) {
        struct poison_found found = {0};

        if (is_only_read(&op->accesses[i])) {
            continue;
        }
        strict_find_results(strict, &poison, i == piece->access, op->accesses[i].tensor, &found);
        if (poison_is_result(&found)) {
            *finding = (struct strict_finding){
                .breach = STRICT_READ,
                .tensor = op->accesses[piece->access].tensor,
                .role = piece_role(op, piece),
                .result = found.at,
                .shows_in = op->accesses[i].tensor,
            };
            return true;
        }
    }
    return false;
}

static bool find_skipped(struct strict *strict, const struct op *op, const struct piece *piece,
                         struct strict_finding *finding)
{
    const struct poison poison = strict_poison_of(strict, piece->access);
    const struct poison_range range = {piece->address, piece->bytes};
    struct poison_found found = {0};
    uint64_t here;

    if (piece_role(op, piece) != CAPU_WRITE) {
        return false;
    }
    for (uint64_t done = 0; done < piece->bytes; done += here) {
        const char *address = (const char *)piece->address + done;
        const void *memory;

        here = piece->bytes - done;
        memory = device_view(strict->lanes->device, address, &here);
        if (memory != NULL) {
            poison_find_unchanged(&poison, &range, memory, address, here, &found);
        }
    }
    if (!poison_is_unchanged(&found)) {
        return false;
    }
    *finding = (struct strict_finding){
        .breach = STRICT_SKIPPED,
        .at = found.at,
        .tensor = op->accesses[piece->access].tensor,
        .bytes = found.words * sizeof(uint32_t),
    };
    return true;
}

/* Searches the outputs for poison: results of all pieces first, since what was read and written
   back looks unwritten in part. */
static void find_poison(struct strict *strict, const struct op *op, struct strict_finding *finding)
{
    for (size_t i = 0; i < op->piece_count; i++) {
        if (strict_is_poisoned(strict, op, &op->pieces[i]) &&
            find_read(strict, op, &op->pieces[i], finding)) {
            return;
        }
    }
    for (size_t i = 0; i < op->piece_count; i++) {
        if (strict_is_poisoned(strict, op, &op->pieces[i]) &&
            find_skipped(strict, op, &op->pieces[i], finding)) {
            return;
        }
    }
}

void strict_watch_end(struct strict *strict, const struct op *op)
{
    struct strict_finding *finding = &strict->finding;
    struct device_faults faults;
    const void *written;
    bool has_run;

    *finding = (struct strict_finding){0};
    if (!can_watch(strict)) {
        return;
    }
    /* Nothing may be closed while the op still runs. Its failure is reported by the next call that
       meets it. */
    lanes_quiesce(strict->lanes, &strict->lanes->compute);
    has_run = device_failure(strict->lanes->device, NULL, 0) == CAPU_OK;
    if (device_close(strict->lanes->device, &faults) != CAPU_OK) {
        return;
    }
    written = strict_bystanders_written(strict);
    strict_bystanders_show(strict);
    faults.strayed = faults.strayed != NULL ? faults.strayed : written;
    if (faults.strayed != NULL) {
        finding->breach = STRICT_STRAYED;
        finding->at = faults.strayed;
        finding->tensor = find_strayed(strict, faults.strayed);
        return;
    }
    finding->at = faults.written;
    finding->tensor = faults.written != NULL ? find_written(strict, op, faults.written) : NULL;
    if (has_run && finding->tensor == NULL) {
        finding->tensor = find_changed(strict, op);
    }
    finding->breach = finding->tensor != NULL ? STRICT_CHANGED : STRICT_NOTHING;
    if (has_run && finding->breach == STRICT_NOTHING) {
        find_poison(strict, op, finding);
    }
    if (has_run && finding->breach == STRICT_NOTHING) {
        finding->tensor = strict_bystanders_read(strict, op);
        finding->breach = finding->tensor != NULL ? STRICT_STRAYED : STRICT_NOTHING;
        finding->at = NULL;
    }
}

void strict_watch_strayed(const struct strict *strict, const struct device_faults *faults,
                          struct strict_finding *finding)
{
    finding->at = faults->strayed != NULL ? faults->strayed : faults->written;
    finding->tensor = find_strayed(strict, finding->at);
    finding->breach = faults->strayed != NULL ? STRICT_STRAYED : STRICT_TAMPERED;
    finding->is_again = true;
}

static unsigned long long offset_in(const struct tensor *tensor, const void *address)
{
    return (unsigned long long)((uintptr_t)address - (uintptr_t)tensor->address);
}

static capu_status report_strayed(struct strict *strict, const char *name, const char *again,
                                  const struct strict_finding *finding)
{
    strict->failure->lost = CAPU_OP_FAILED;
    if (finding->tensor == NULL && finding->at == NULL) {
        return failure_set(
            strict->failure, CAPU_OP_FAILED,
            "op '%s' reads memory that it does not name, in a page of one of its "
            "operands: an operand is missing, or the op went past the end of another",
            name);
    }
    if (finding->tensor == NULL) {
        return failure_set(strict->failure, CAPU_OP_FAILED,
                           "op '%s'%s touched %p, which is in no tensor: it was freed, or the op "
                           "went past an end",
                           name, again, finding->at);
    }
    if (finding->at == NULL) {
        return failure_set(strict->failure, CAPU_OP_FAILED,
                           "op '%s'%s touched tensor '%s', which it does not name: what was there "
                           "shows in its results",
                           name, again, lookup_name(strict->memory, finding->tensor));
    }
    return failure_set(strict->failure, CAPU_OP_FAILED,
                       "op '%s'%s touched tensor '%s', offset %llu, which it does not name: an "
                       "operand is missing, or the op went past the end of another",
                       name, again, lookup_name(strict->memory, finding->tensor),
                       offset_in(finding->tensor, finding->at));
}

static capu_status report_changed(struct strict *strict, const char *name,
                                  const struct strict_finding *finding)
{
    char where[48] = "";

    if (finding->at >= finding->tensor->address &&
        finding->at < (const void *)tensor_end(finding->tensor)) {
        snprintf(where, sizeof(where), ", at offset %llu", offset_in(finding->tensor, finding->at));
    }
    return failure_set(strict->failure, CAPU_INVALID,
                       "op '%s' has changed '%s', which it says it only reads%s: it updates it, or "
                       "writes past the end of another operand",
                       name, lookup_name(strict->memory, finding->tensor), where);
}

static capu_status report_tampered(struct strict *strict, const char *name,
                                   const struct strict_finding *finding)
{
    return failure_set(strict->failure, CAPU_INVALID,
                       "op '%s', run again, has changed '%s', which replays must leave as it is",
                       name,
                       finding->tensor != NULL ? lookup_name(strict->memory, finding->tensor) : "");
}

capu_status strict_watch_report(struct strict *strict, const struct op *op, capu_status status)
{
    const struct strict_finding *finding = &strict->finding;
    const char *name = op->call.name;

    if (status != CAPU_OK && finding->breach != STRICT_STRAYED) {
        return status;
    }
    switch (finding->breach) {
    case STRICT_NOTHING:
        break;
    case STRICT_STRAYED:
        return report_strayed(strict, name, finding->is_again ? ", run again," : "", finding);
    case STRICT_CHANGED:
        return report_changed(strict, name, finding);
    case STRICT_READ:
        return failure_set(strict->failure, CAPU_INVALID,
                           "op '%s' reads '%s' before it has written it, which it declares as %s: "
                           "the NaN that was there is in its result '%s' at offset %llu",
                           name, lookup_name(strict->memory, finding->tensor),
                           finding->role == CAPU_SCRATCH ? "scratch" : "only written",
                           lookup_name(strict->memory, finding->shows_in),
                           offset_in(finding->shows_in, finding->result));
    case STRICT_DEPENDS:
        return failure_set(strict->failure, CAPU_INVALID,
                           "op '%s' reads an operand before it has written it, which it declares "
                           "as only written or scratch: with other contents there, its result '%s' "
                           "differs at offset %llu",
                           name, lookup_name(strict->memory, finding->tensor),
                           offset_in(finding->tensor, finding->at));
    case STRICT_VARIES:
        return failure_set(
            strict->failure, CAPU_INVALID,
            "op '%s' is not replayable: run again with the same operands and "
            "arguments, it gives other bytes in '%s', at offset %llu. A plan may run "
            "it again: put seeds into its arguments, or set CAPU_OP_NOT_REPLAYABLE",
            name, lookup_name(strict->memory, finding->tensor),
            offset_in(finding->tensor, finding->at));
    case STRICT_TAMPERED:
        return report_tampered(strict, name, finding);
    case STRICT_SKIPPED:
        return failure_set(strict->failure, CAPU_INVALID,
                           "op '%s' leaves %llu bytes of '%s' unwritten, the first at offset %llu, "
                           "which it says it writes all of",
                           name, (unsigned long long)finding->bytes,
                           lookup_name(strict->memory, finding->tensor),
                           offset_in(finding->tensor, finding->at));
    }
    return CAPU_OK;
}

capu_status strict_watch_replay_begin(struct strict *strict, const struct guide *guide,
                                      const struct guide_op *op)
{
    size_t count = 0;
    capu_status status;

    if (!can_watch(strict) || op->call.kind != CALL_RUN) {
        return CAPU_OK;
    }
    status = lane_synchronize(&strict->lanes->compute);
    status = status == CAPU_OK ? reserve_grants(strict, op->accesses.count) : status;
    for (uint32_t i = 0; i < op->accesses.count && status == CAPU_OK; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        const struct guide_tensor *tensor = &guide->tensors[access->tensor];

        if (is_there(strict, tensor->address, tensor->bytes)) {
            strict->grants[count++] = (struct device_grant){
                .address = (void *)(uintptr_t)tensor->address,
                .bytes = tensor->bytes,
                .is_writable = access->role != CAPU_READ,
            };
        }
    }
    if (status == CAPU_OK) {
        status = device_open(strict->lanes->device, strict->grants, count);
    }
    return failure_check(strict->failure, status,
                         "opening the operands of a replay in strict mode");
}

capu_status strict_watch_replay_end(struct strict *strict, const struct guide_op *op)
{
    struct strict_finding finding = {0};
    struct device_faults faults;

    if (!can_watch(strict) || op->call.kind != CALL_RUN) {
        return CAPU_OK;
    }
    (void)lane_synchronize(&strict->lanes->compute);
    if (device_close(strict->lanes->device, &faults) != CAPU_OK ||
        (faults.strayed == NULL && faults.written == NULL)) {
        return CAPU_OK;
    }
    finding.at = faults.strayed != NULL ? faults.strayed : faults.written;
    finding.tensor = find_strayed(strict, finding.at);
    return report_strayed(strict, op->call.name, ", run again,", &finding);
}
