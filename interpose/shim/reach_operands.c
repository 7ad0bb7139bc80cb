/*
 * From ranges to operands, by the actual addresses of a launch. The allocation of a range is the
 * one that it lies in, wherever the pointer is.
 *
 * A range beyond the end of its allocation: loads are cut there, since programs read whole vectors.
 * Stores are not: what they would overwrite may be another allocation's here, although it is
 * nothing on a device without a budget. So the launch fails. A range that is only possible is cut
 * to the allocation of its pointer, since C does not lead from one allocation to another.
 */
#include "interpose/shim/alloc.h"
#include "interpose/shim/cut.h"
#include "interpose/shim/log.h"
#include "interpose/shim/reach_parts.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdio.h>

enum { MERGED_MOST = 64 }; /* operands: looking through more is not worth it */

/* The results of a report for one launch. */
struct range {
    const struct code_kernel *kernel;
    const struct slice_report *report;
    const struct kernel_word *word; /* its first */
    uint64_t pointer;               /* the word's */
    uint64_t lowest;
    uint64_t end;
    capu_role role;
};

/* The operands of one launch, guarded by the core's lock. */
static struct {
    capu_operand *list;
    size_t count, capacity;
    bool has_failed; /* no host memory */
} found;

static bool includes(const capu_operand *one, uint64_t address, uint64_t bytes)
{
    uint64_t offset = address - (uintptr_t)one->address;

    return offset <= one->bytes && bytes <= one->bytes - offset;
}

/* Adds a range. What a pointer loads is often part of what it stores, or the other way round: then
   one operand does for both. */
static void add(uint64_t address, uint64_t bytes, capu_role role)
{
    const capu_operand operand = capu_operand_of((const void *)(uintptr_t)address, bytes, role);

    for (size_t i = 0; i < found.count && i < MERGED_MOST; i++) {
        capu_operand *other = &found.list[i];

        if ((other->role == CAPU_UPDATE || role == CAPU_READ) && includes(other, address, bytes)) {
            return;
        }
        if ((role == CAPU_UPDATE || other->role == CAPU_READ) &&
            includes(&operand, (uintptr_t)other->address, other->bytes)) {
            *other = operand;
            return;
        }
    }
    if (!array_reserve(&found.list, &found.capacity, found.count + 1, sizeof(found.list[0]))) {
        found.has_failed = true;
        return;
    }
    found.list[found.count++] = operand;
}

static const struct kernel_word *first_word(const struct code_kernel *kernel,
                                            const struct slice_report *report)
{
    return &kernel->roles->words[__builtin_ctzll(report->words)];
}

static void add_whole(const struct code_kernel *kernel, const struct launch *launch, size_t index)
{
    const struct kernel_word *word = &kernel->roles->words[index];
    uint32_t offset = 0;
    uint64_t pointer;

    while (parameters_next(&launch->parameters, kernel->roles, word, &offset, &pointer)) {
        const struct allocation *allocation = alloc_find_pointer(pointer);

        if (allocation != NULL) {
            add(allocation->address, allocation->bytes,
                word->is_written || word->is_atomic ? CAPU_UPDATE : CAPU_READ);
        }
    }
}

static void add_wholes(const struct code_kernel *kernel, const struct launch *launch,
                       uint64_t words)
{
    for (size_t i = 0; i < kernel->roles->word_count && i < SLICE_WORDS_MOST; i++) {
        if ((words >> i & 1) != 0) {
            add_whole(kernel, launch, i);
        }
    }
}

/* Adds what a range has in common with an allocation. */
static void add_common(const struct range *range, const struct allocation *allocation)
{
    uint64_t last = allocation->address + allocation->bytes;
    uint64_t from = range->lowest > allocation->address ? range->lowest : allocation->address;
    uint64_t to = range->end < last ? range->end : last;

    if (from < to) {
        add(from, to - from, range->role);
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

static CUresult refuse_store(const struct range *range, const struct allocation *allocation)
{
    uint64_t last = allocation->address + allocation->bytes;
    bool is_before = range->lowest < allocation->address;
    uint64_t beyond = is_before ? allocation->address - range->lowest : range->end - last;
    char offset[16] = "";

    if (range->word->offset != 0 && range->word->offset != PTX_NONE) {
        (void)snprintf(offset, sizeof(offset), "+%" PRIu32, range->word->offset);
    }
    log_line("refused: the kernel %s would store up to %" PRIu64
             " bytes %s an allocation of %" PRIu64 " bytes, by its parameter %" PRIu32 "%s",
             range->kernel->name, beyond, is_before ? "before the start of" : "beyond the end of",
             allocation->bytes, range->word->parameter, offset);
    return DRIVER_ILLEGAL_ADDRESS;
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
        return DRIVER_SUCCESS; /* memory of others */
    }
    if (is_in(range, met)) {
        cut_part(range->lowest, range->end - range->lowest);
        add(range->lowest, range->end - range->lowest, range->role);
        return DRIVER_SUCCESS;
    }
    if (range->report->is_stored) {
        return refuse_store(range, met);
    }
    add_all_common(range);
    return DRIVER_SUCCESS;
}

/* A range that may be accessed. */
static void add_may(const struct range *range)
{
    const struct allocation *own = alloc_find_pointer(range->pointer);

    if (own == NULL || range->lowest >= own->address + own->bytes || range->end <= own->address) {
        add_all_common(range);
    } else {
        add_common(range, own);
    }
}

static CUresult add_result(const struct code_kernel *kernel, const struct launch *launch,
                           size_t index, const struct reach_result *result)
{
    const struct slice_report *report = &kernel->reach->slice.reports[index];
    struct range range = {.kernel = kernel,
                          .report = report,
                          .word = first_word(kernel, report),
                          .role = report->is_stored ? CAPU_UPDATE : CAPU_READ};
    uint32_t offset = 0;
    bool is_one = (report->words & (report->words - 1)) == 0 && range.word->offset != PTX_NONE;

    if (!parameters_next(&launch->parameters, kernel->roles, range.word, &offset, &range.pointer)) {
        return DRIVER_INVALID_VALUE;
    }
    range.lowest = range.pointer + result->lowest;
    range.end = range.lowest + result->bytes;
    if (result->bytes == 0) {
        return DRIVER_SUCCESS;
    }
    if (!is_one && !is_in(&range, alloc_find(range.lowest))) {
        add_wholes(kernel, launch, report->words);
        return DRIVER_SUCCESS;
    }
    if (report->is_may) {
        add_may(&range);
        return DRIVER_SUCCESS;
    }
    return add_exact(&range);
}

/* Finds all operands. */
static CUresult find_operands(const struct code_kernel *kernel, const struct launch *launch,
                              const struct reach_result *results)
{
    CUresult result = DRIVER_SUCCESS;

    for (size_t i = 0; results != NULL && i < kernel->reach->slice.report_count; i++) {
        results = results[i].bytes == UINT64_MAX ? NULL : results;
    }
    if (results == NULL) {
        /* Words beyond those that a slice can have, too. */
        for (size_t i = 0; i < kernel->roles->word_count; i++) {
            add_whole(kernel, launch, i);
        }
        return DRIVER_SUCCESS;
    }
    add_wholes(kernel, launch, kernel->reach->whole);
    for (size_t i = 0; i < kernel->reach->slice.report_count && result == DRIVER_SUCCESS; i++) {
        result = add_result(kernel, launch, i, &results[i]);
    }
    return result;
}

CUresult reach_add_results(const struct code_kernel *kernel, const struct launch *launch,
                           const struct reach_result *results, struct operands *operands)
{
    CUresult result;

    found.count = 0;
    found.has_failed = false;
    result = find_operands(kernel, launch, results);
    for (size_t i = 0; i < found.count; i++) {
        operands_add(operands, (uintptr_t)found.list[i].address, found.list[i].bytes,
                     (capu_role)found.list[i].role);
    }
    operands->has_failed |= found.has_failed;
    return result;
}
