/*
 * From ranges to operands, by the actual addresses of a launch. The allocation of a range is the
 * one that it lies in, wherever the pointer is.
 *
 * A range beyond the end of its allocation: loads are cut there, since programs read whole vectors.
 * Stores are not: what they would overwrite may be another allocation's here, although it is
 * nothing on a device without a budget. So the launch fails. A range that is only possible is cut
 * to the allocation of its pointer, since C does not lead from one allocation to another.
 */
#include "shim/core/alloc.h"
#include "shim/core/core.h"
#include "shim/core/cut.h"
#include "shim/core/operands.h"
#include "shim/driver/log.h"
#include "shim/launch/reach_parts.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    MERGED_MOST = 64,   /* operands: looking through more is not worth it */
    POINTER_BYTES = 32, /* of its name in a message */
};

/* The results of a report for one launch. */
struct range {
    const struct call *call;
    const struct slice_report *report;
    const struct kernel_word *word; /* its first */
    uint64_t pointer;               /* the word's; 0: that of several */
    uint64_t lowest;
    uint64_t end;
    capu_role role;
    bool is_read;    /* it may be */
    bool is_lasting; /* it does not depend on data, so later launches will have it, too */
};

/* What is given to all of this. */
struct call {
    const struct code_kernel *kernel;
    const unsigned char *block;
    struct operands *operands;
    struct operands *reads;
    bool cuts;   /* tensors, at the borders of what is accessed */
    bool widens; /* what depends on data, to the tensors that it meets */
};

static bool includes(const capu_operand *one, uint64_t address, uint64_t bytes)
{
    uint64_t offset = address - (uintptr_t)one->address;

    return offset <= one->bytes && bytes <= one->bytes - offset;
}

/* Adds a range. What a pointer loads is often part of what it stores, or the other way round: then
   one operand does for both. */
static void add_operand(const struct call *call, uint64_t address, uint64_t bytes, capu_role role,
                        bool is_read)
{
    const capu_operand operand = capu_operand_of((const void *)(uintptr_t)address, bytes, role);
    struct operands *operands = call->operands;

    if (is_read) {
        operands_put(call->reads, address, bytes, CAPU_READ);
    }
    for (size_t i = 0; i < operands->count && i < MERGED_MOST; i++) {
        capu_operand *other = &operands->list[i];

        if ((other->role == CAPU_UPDATE || role == CAPU_READ) && includes(other, address, bytes)) {
            return;
        }
        if ((role == CAPU_UPDATE || other->role == CAPU_READ) &&
            includes(&operand, (uintptr_t)other->address, other->bytes)) {
            *other = operand;
            return;
        }
    }
    operands_put(operands, address, bytes, role);
}

static void add_whole(const struct call *call, size_t index)
{
    const struct kernel_word *word = &call->kernel->roles->words[index];
    uint32_t offset = 0;
    uint64_t pointer;

    while (parameters_next(call->block, call->kernel->roles, word, &offset, &pointer)) {
        const struct allocation *allocation = alloc_find_pointer(pointer);

        if (allocation != NULL) {
            add_operand(call, allocation->address, allocation->bytes,
                        word->is_written || word->is_atomic ? CAPU_UPDATE : CAPU_READ, true);
        }
        call->operands->has_others |= allocation == NULL && pointer != 0;
    }
}

static void add_wholes(const struct call *call, uint64_t words)
{
    for (size_t i = 0; i < call->kernel->roles->word_count && i < SLICE_WORDS_MOST; i++) {
        if ((words >> i & 1) != 0) {
            add_whole(call, i);
        }
    }
}

/* Adds a range in an allocation. */
static void add_part(const struct range *range, uint64_t address, uint64_t bytes)
{
    if (range->call->widens && !range->is_lasting) {
        operands_widen(&address, &bytes);
    }
    add_operand(range->call, address, bytes, range->role, range->is_read);
}

/* Adds what a range has in common with an allocation. */
static void add_common(const struct range *range, const struct allocation *allocation)
{
    uint64_t last = allocation->address + allocation->bytes;
    uint64_t from = range->lowest > allocation->address ? range->lowest : allocation->address;
    uint64_t to = range->end < last ? range->end : last;

    if (from < to) {
        add_part(range, from, to - from);
    }
}

/* The first allocation that ends after an address; NULL: none. *end: of the list. */
static const struct allocation *first_from(uint64_t address, const struct allocation **end)
{
    size_t count;
    const struct allocation *list = alloc_list(&count);
    const struct allocation *first = alloc_find(address);

    *end = list + count;
    return first != NULL ? first : alloc_above(address);
}

/* Adds what a range has in common with any allocation. */
static void add_all_common(const struct range *range)
{
    const struct allocation *end;
    const struct allocation *at = first_from(range->lowest, &end);

    for (; at != NULL && at < end && at->address < range->end; at++) {
        add_common(range, at);
    }
}

/* How a message names the pointer of a range. */
static void write_pointer(const struct range *range, char text[POINTER_BYTES])
{
    bool has_offset = range->word->offset != 0 && range->word->offset != PTX_NONE;

    (void)snprintf(text, POINTER_BYTES, has_offset ? "%" PRIu32 "+%" PRIu32 : "%" PRIu32,
                   range->word->parameter, range->word->offset);
}

static CUresult refuse_store(const struct range *range, const struct allocation *allocation)
{
    uint64_t last = allocation->address + allocation->bytes;
    bool is_before = range->lowest < allocation->address;
    uint64_t beyond = is_before ? allocation->address - range->lowest : range->end - last;
    char pointer[POINTER_BYTES];

    write_pointer(range, pointer);
    log_line("refused: the kernel %s would store up to %" PRIu64
             " bytes %s an allocation of %" PRIu64 " bytes, by its parameter %s",
             range->call->kernel->name, beyond,
             is_before ? "before the start of" : "beyond the end of", allocation->bytes, pointer);
    core_note_undone();
    return DRIVER_ILLEGAL_ADDRESS;
}

/* Loads beyond the last page of an allocation may fault, with an error that says nothing. */
static void note_far_load(const struct range *range, const struct allocation *allocation)
{
    uint64_t page_bytes = capu_context_config(core_context())->page_bytes;
    uint64_t last = allocation->address + allocation->bytes;
    char pointer[POINTER_BYTES];

    if (range->end > (last + page_bytes - 1) / page_bytes * page_bytes &&
        alloc_find(range->end - 1) == NULL) {
        write_pointer(range, pointer);
        log_line("the kernel %s loads up to %" PRIu64 " bytes beyond the end of an allocation of "
                 "%" PRIu64 " bytes, by its parameter %s",
                 range->call->kernel->name, range->end - last, allocation->bytes, pointer);
    }
}

static bool is_in(const struct range *range, const struct allocation *allocation)
{
    return allocation != NULL && range->lowest >= allocation->address &&
           range->end - allocation->address <= allocation->bytes;
}

/* A range that is accessed from end to end, or at both ends at least. */
static CUresult add_exact(const struct range *range)
{
    const struct allocation *end;
    const struct allocation *met = first_from(range->lowest, &end);

    if (met == NULL || met->address >= range->end) {
        range->call->operands->has_others = true;
        return DRIVER_SUCCESS;
    }
    if (is_in(range, met)) {
        if (range->is_lasting && range->call->cuts && !operands_is_data(range->lowest)) {
            cut_part(core_context(), range->lowest, range->end - range->lowest);
        }
        add_part(range, range->lowest, range->end - range->lowest);
        return DRIVER_SUCCESS;
    }
    if (range->report->is_stored) {
        return refuse_store(range, met);
    }
    range->call->operands->has_others = true;
    note_far_load(range, met);
    add_all_common(range);
    return DRIVER_SUCCESS;
}

/* A range that may be accessed. */
static void add_may(const struct range *range)
{
    const struct allocation *own = alloc_find_pointer(range->pointer);

    if (own == NULL || range->lowest >= own->address + own->bytes || range->end <= own->address) {
        range->call->operands->has_others = true;
        add_all_common(range);
    } else {
        add_common(range, own);
    }
}

static CUresult add_result(const struct call *call, const struct slice_report *report,
                           const struct reach_result *result, bool is_lasting)
{
    const struct kernel *roles = call->kernel->roles;
    struct range range = {.call = call,
                          .report = report,
                          .word = &roles->words[__builtin_ctzll(report->words)],
                          .role = report->is_stored ? CAPU_UPDATE : CAPU_READ,
                          .is_read = !report->is_stored || report->is_atomic,
                          .is_lasting = is_lasting};
    bool is_one = (report->words & (report->words - 1)) == 0 && range.word->offset != PTX_NONE;

    if (result->bytes == 0) {
        return DRIVER_SUCCESS;
    }
    range.pointer = slice_base(roles, report, call->block);
    range.lowest = range.pointer + result->lowest;
    range.end = range.lowest + result->bytes;
    if (!is_one && !is_in(&range, alloc_find(range.lowest))) {
        add_wholes(call, report->words);
        return DRIVER_SUCCESS;
    }
    if (report->is_may) {
        add_may(&range);
        return DRIVER_SUCCESS;
    }
    return add_exact(&range);
}

static CUresult add_results(const struct call *call, const struct slice *slice,
                            const struct reach_result *results)
{
    CUresult result = DRIVER_SUCCESS;

    for (size_t i = 0; i < slice->report_count && result == DRIVER_SUCCESS; i++) {
        result =
            add_result(call, &slice->reports[i], &results[i], slice == &call->kernel->reach->slice);
    }
    return result;
}

CUresult reach_list_operands(const struct code_kernel *kernel, const struct launch *launch,
                             const unsigned char *block, const struct reach_result *results,
                             struct operands *operands, struct operands *reads, bool cuts)
{
    static struct reach_result read[REACH_REPORTS_MOST]; /* guarded by the core's lock */
    struct call call = {kernel, block, operands, reads, cuts, false};
    uint64_t known = 0;
    CUresult result;

    for (size_t i = 0; results != NULL && i < kernel->reach->slice.report_count; i++) {
        results = results[i].bytes == UINT64_MAX ? NULL : results;
    }
    if (results == NULL) {
        /* Words beyond those that a slice can have, too. */
        for (size_t i = 0; i < kernel->roles->word_count; i++) {
            add_whole(&call, i);
        }
        return DRIVER_SUCCESS;
    }
    result = add_results(&call, &kernel->reach->slice, results);
    if (result == DRIVER_SUCCESS) {
        known = reach_read_data(kernel, launch, block, operands, results, read, &call.widens);
    }
    if (known != 0) {
        result = add_results(&call, &kernel->reach->data->slice, read);
    }
    add_wholes(&call, kernel->reach->whole & ~known);
    return result;
}
