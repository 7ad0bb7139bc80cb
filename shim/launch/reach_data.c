/*
 * Addresses that depend on data: the second slice of a kernel. It reads the indices, so it is an
 * access of the library, like a launch of the program's, on the stream of the program's work; and
 * what it finds holds for one launch. It runs only if all of this is true:
 *
 * - no work that is still to be issued comes before the launch, as in a graph;
 * - the indices lie in the program's allocations, where the first slice has found them;
 * - the launch does not store to them, nor to variables;
 * - not all allocations fit the budget together;
 * - the allocations that it would spare have PAGES_LEAST pages or more, and are not needed as a
 *   whole by other pointers;
 * - in the last USELESS_MOST runs it has not always found more than half of them;
 * - in guided mode, where operands that differ from iteration to iteration end a plan: they are a
 *   SPARED_SHARE-th of the budget or more, and it has not found other tensors than the time before
 *   in VARIED_MOST runs; or the launch does not fit the budget with them.
 *
 * Otherwise the pointers reach over their whole allocations.
 */
#include "shim/core/alloc.h"
#include "shim/core/core.h"
#include "shim/core/cut.h"
#include "shim/core/operands.h"
#include "shim/driver/settings.h"
#include "shim/launch/reach_parts.h"

#include <string.h>

enum { PAGES_LEAST = 8, USELESS_MOST = 8, VARIED_MOST = 3, SPARED_SHARE = 8 };

/* A launch whose data is to be read. */
struct reading {
    const struct code_kernel *kernel;
    const unsigned char *block;
    const struct reach_result *results;           /* of each report of the first slice */
    struct slice_result bounds[SLICE_WORDS_MOST]; /* of words that are read */
    uint64_t words;                               /* these, as bits */
};

/* What the first slice says of a report; `end` is 0 if nothing is accessed. */
static struct slice_result range_of(const struct reading *reading, size_t report)
{
    const struct code_kernel *kernel = reading->kernel;
    const struct reach_result *result = &reading->results[report];
    struct slice_result range = SLICE_RESULT_NONE;

    if (result->bytes != 0) {
        range.lowest =
            slice_base(kernel->roles, &kernel->reach->slice.reports[report], reading->block) +
            result->lowest;
        range.end = range.lowest + result->bytes;
    }
    return range;
}

static bool overlaps(const struct slice_result *range, uint64_t address, uint64_t end)
{
    return range->lowest < end && address < range->end;
}

/* Whether something that the data slice reads lies in a piece of memory. */
static bool reads_from(const struct reading *reading, uint64_t address, uint64_t end)
{
    for (size_t i = 0; i < SLICE_WORDS_MOST; i++) {
        if ((reading->words >> i & 1) != 0 && overlaps(&reading->bounds[i], address, end)) {
            return true;
        }
    }
    return false;
}

/* Cuts what is only possible to the allocation of a word's pointer, since C does not lead from one
   to another. False: the pointer leads to none of the program's, or the range is not in it. */
static bool cut_bounds(const struct reading *reading, uint32_t word, bool is_may,
                       struct slice_result *bounds)
{
    const struct allocation *allocation;
    uint32_t offset = 0;
    uint64_t pointer = 0;
    uint64_t end;

    (void)parameters_next(reading->block, reading->kernel->roles,
                          &reading->kernel->roles->words[word], &offset, &pointer);
    allocation = alloc_find_pointer(pointer);
    if (allocation == NULL) {
        return false;
    }
    end = allocation->address + allocation->bytes;
    if (is_may) {
        bounds->lowest =
            bounds->lowest > allocation->address ? bounds->lowest : allocation->address;
        bounds->end = bounds->end < end ? bounds->end : end;
    }
    return allocation->address <= bounds->lowest && bounds->lowest < bounds->end &&
           bounds->end <= end;
}

/* Finds where the data of a word lies. False: the first slice does not know, or it is not in one of
   the program's allocations. */
static bool find_bounds(struct reading *reading, uint32_t word)
{
    const struct slice *slice = &reading->kernel->reach->slice;
    struct slice_result bounds = SLICE_RESULT_NONE;
    bool is_may = false;

    for (size_t i = 0; i < slice->report_count; i++) {
        struct slice_result range = range_of(reading, i);

        if ((slice->reports[i].words >> word & 1) == 0 || range.end == 0) {
            continue;
        }
        if (slice->reports[i].words != (uint64_t)1 << word) {
            return false;
        }
        is_may |= slice->reports[i].is_may;
        bounds.lowest = range.lowest < bounds.lowest ? range.lowest : bounds.lowest;
        bounds.end = range.end > bounds.end ? range.end : bounds.end;
    }
    if (bounds.end == 0) {
        bounds.lowest = 0; /* nothing is read */
    } else if (!cut_bounds(reading, word, is_may, &bounds)) {
        return false;
    }
    reading->bounds[word] = bounds;
    reading->words |= (uint64_t)1 << word;
    return true;
}

static bool find_all_bounds(struct reading *reading)
{
    const struct slice *slice = &reading->kernel->reach->data->slice;

    for (size_t i = 0; i < slice->source_count; i++) {
        if (slice->sources[i].variable == NULL && !find_bounds(reading, slice->sources[i].word)) {
            return false;
        }
    }
    return true;
}

/* Whether the allocation of one of a word's pointers has something that is read. */
static bool may_reach(const struct reading *reading, size_t word)
{
    uint32_t offset = 0;
    uint64_t pointer;

    while (parameters_next(reading->block, reading->kernel->roles,
                           &reading->kernel->roles->words[word], &offset, &pointer)) {
        const struct allocation *allocation = alloc_find_pointer(pointer);

        if (allocation != NULL &&
            reads_from(reading, allocation->address, allocation->address + allocation->bytes)) {
            return true;
        }
    }
    return false;
}

/* Whether the launch may store to what is read. Where the first slice knows how far it stores from
   a pointer, that counts; where the second will find out, nothing yet; otherwise the whole
   allocation.
 */
static bool may_store(const struct reading *reading)
{
    const struct code_kernel *kernel = reading->kernel;
    const struct slice *slice = &kernel->reach->slice;

    for (size_t i = 0; i < kernel->roles->word_count; i++) {
        const struct kernel_word *word = &kernel->roles->words[i];
        bool is_known =
            (kernel->reach->whole >> i & 1) == 0 || (kernel->reach->data->known >> i & 1) != 0;

        if (!word->is_written && !word->is_atomic) {
            continue;
        }
        for (size_t j = 0; j < slice->report_count; j++) {
            struct slice_result range = range_of(reading, j);

            if ((slice->reports[j].words >> i & 1) != 0 && slice->reports[j].is_stored &&
                reads_from(reading, range.lowest, range.end)) {
                return true;
            }
        }
        if (!is_known && may_reach(reading, i)) {
            return true;
        }
    }
    return false;
}

/* The same by what the second slice has found. If it is false, no store of the launch can have
   changed an index before another one that does, so none changes one, and the ranges hold. */
static bool has_stored(const struct reading *reading, const struct slice_result *ranges)
{
    const struct slice *slice = &reading->kernel->reach->data->slice;

    for (size_t i = 0; i < slice->report_count; i++) {
        if (slice->reports[i].is_stored && ranges[i].end != 0 &&
            reads_from(reading, ranges[i].lowest, ranges[i].end)) {
            return true;
        }
    }
    return false;
}

/* Whether one of the operands includes an allocation. */
static bool has_whole(const struct operands *operands, const struct allocation *allocation)
{
    for (size_t i = 0; i < operands->count; i++) {
        uint64_t first = (uintptr_t)operands->list[i].address;

        if (first <= allocation->address &&
            first + operands->list[i].bytes >= allocation->address + allocation->bytes) {
            return true;
        }
    }
    return false;
}

/* The bytes that it would spare: of allocations that only words have which it is about. */
static uint64_t sparable(const struct reading *reading, const struct operands *operands)
{
    const struct kernel *roles = reading->kernel->roles;
    uint64_t least = PAGES_LEAST * capu_context_config(core_context())->page_bytes;
    uint64_t bytes = 0;

    for (size_t i = 0; i < roles->word_count && i < SLICE_WORDS_MOST; i++) {
        bool is_known = (reading->kernel->reach->data->known >> i & 1) != 0;
        uint32_t offset = 0;
        uint64_t pointer;

        while (is_known &&
               parameters_next(reading->block, roles, &roles->words[i], &offset, &pointer)) {
            const struct allocation *allocation = alloc_find_pointer(pointer);

            if (allocation != NULL && allocation->bytes >= least &&
                !has_whole(operands, allocation)) {
                bytes += allocation->bytes;
            }
        }
    }
    return bytes;
}

/* Reads the data: the results of the second slice. False: it could not be done. */
static bool run_data_slice(const struct reading *reading, const struct launch *launch,
                           struct slice_result *ranges)
{
    static unsigned char block[PARAMETERS_BYTES_MOST]; /* guarded by the core's lock */
    const char *name = reading->kernel->name;
    struct reach *data = reading->kernel->reach->data;
    struct operands operands = {0};
    CUresult result;

    memcpy(block, reading->block, reading->kernel->roles->parameter_bytes);
    for (size_t i = 0; i < data->slice.source_count; i++) {
        const struct slice_source *source = &data->slice.sources[i];

        if (source->variable == NULL) {
            const struct slice_result *bounds = &reading->bounds[source->word];

            memcpy(block + source->offset, bounds, sizeof(*bounds));
            if (bounds->end != 0) {
                operands_put(&operands, bounds->lowest, bounds->end - bounds->lowest, CAPU_READ);
            }
        }
    }
    data->run_count++;
    result = core_begin(&operands, name);
    operands_finish(&operands);
    return result == DRIVER_SUCCESS &&
           core_end(reach_run(data, launch, block, ranges), name) == DRIVER_SUCCESS;
}

/* Stores what was found relative to the pointers. Returns its bytes; UINT64_MAX: a thread has given
   up, or an index leads nowhere. */
static uint64_t make_relative(const struct reading *reading, const struct slice_result *ranges,
                              struct reach_result *results)
{
    const struct slice *slice = &reading->kernel->reach->data->slice;
    uint64_t bytes = 0;

    for (size_t i = 0; i < slice->report_count; i++) {
        results[i] = (struct reach_result){0, 0};
        if (!slice_is_relative(&ranges[i])) {
            return UINT64_MAX;
        }
        if (ranges[i].end != 0) {
            results[i].lowest = ranges[i].lowest - slice_base(reading->kernel->roles,
                                                              &slice->reports[i], reading->block);
            results[i].bytes = ranges[i].end - ranges[i].lowest;
            bytes += results[i].bytes;
        }
    }
    return bytes;
}

/* Counts runs for launches with the same pointers that have found other tensors than before. */
static void note_tensors(const struct reading *reading, const struct slice_result *ranges)
{
    const struct kernel *roles = reading->kernel->roles;
    struct reach *data = reading->kernel->reach->data;
    struct reach_site site = {.cuts = cut_generation()};
    struct reach_site *before;

    for (size_t i = 0; i < roles->word_count; i++) {
        uint32_t offset = 0;
        uint64_t pointer;

        while (parameters_next(reading->block, roles, &roles->words[i], &offset, &pointer)) {
            site.pointers = operands_mix_pointer(site.pointers, pointer);
        }
    }
    for (size_t i = 0; i < data->slice.report_count; i++) {
        uint64_t address = ranges[i].lowest;
        uint64_t bytes = ranges[i].end - ranges[i].lowest;

        if (ranges[i].end != 0 && alloc_find(address) != NULL) {
            operands_widen(&address, &bytes);
            site.tensors = operands_mix_pointer(site.tensors, address);
            site.tensors = operands_mix_pointer(site.tensors, address + bytes - 1);
        }
    }
    before = &data->sites[site.pointers % REACH_SITES];
    data->varied_count += before->pointers == site.pointers && before->cuts == site.cuts &&
                          before->tensors != site.tensors;
    *before = site;
}

/* Whether a launch of an iteration fits the budget also if nothing is spared. */
static bool fits_in_iteration(const struct operands *operands, uint64_t spared)
{
    return settings_get()->mode == CAPU_MODE_GUIDED &&
           spared + operands_sum(operands) <= capu_context_config(core_context())->budget_bytes;
}

/* Whether what is spared then is worth operands that may differ from launch to launch. */
static bool is_worth(const struct reach *data, uint64_t spared)
{
    return data->varied_count < VARIED_MOST &&
           spared >= capu_context_config(core_context())->budget_bytes / SPARED_SHARE;
}

uint64_t reach_read_data(const struct code_kernel *kernel, const struct launch *launch,
                         const unsigned char *block, const struct operands *operands,
                         const struct reach_result *results,
                         struct reach_result read[REACH_REPORTS_MOST], bool *widens)
{
    static struct slice_result ranges[REACH_REPORTS_MOST]; /* guarded by the core's lock */
    struct reading reading = {.kernel = kernel, .block = block, .results = results};
    struct reach *data = kernel->reach->data;
    uint64_t spared;
    uint64_t needed;

    if (data == NULL || data->function == NULL || !launch->is_next ||
        data->useless_count >= USELESS_MOST ||
        alloc_bytes() <= capu_context_config(core_context())->budget_bytes ||
        reach_stores_elsewhere(kernel->roles, block)) {
        return 0;
    }
    spared = sparable(&reading, operands);
    *widens = fits_in_iteration(operands, spared);
    if (spared == 0 || (*widens && !is_worth(data, spared)) || !find_all_bounds(&reading) ||
        may_store(&reading) || !run_data_slice(&reading, launch, ranges) ||
        has_stored(&reading, ranges)) {
        return 0;
    }
    needed = make_relative(&reading, ranges, read);
    note_tensors(&reading, ranges);
    data->useless_count = needed > spared / 2 ? data->useless_count + 1 : 0;
    return needed != UINT64_MAX ? data->known : 0;
}
