/*
 * Which tensors a launch writes as a whole, whatever they held: all bytes are stored to for
 * certain, and nothing in the launch may read any, through whichever pointer. That depends on the
 * actual addresses, so it is found at each launch. Their part of the updates becomes a write of the
 * whole tensor; what is left stays an update.
 */
#include "shim/core/core.h"
#include "shim/core/outside.h"
#include "shim/driver/real.h"
#include "shim/launch/reach_parts.h"

#include "runtime/api/describe.h"

#include <string.h>

/*
 * Running coverage slices. Bitmaps have little memory of their own: what a launch stores to is
 * looked at in passes, from its start, in windows that fill that memory. What is left after the
 * last pass is taken to be not covered, and so is what lies in tensors that are always resident:
 * knowing more would save nothing.
 */

enum {
    WINDOWS_BYTES = REACH_REPORTS_MOST * sizeof(struct slice_window),
    WORD_BITS = 32,
    WORD_BYTES = 4,
    BITMAP_SHARE = 128,          /* of the budget: what bitmaps take of it */
    BITMAP_BYTES_LEAST = 4096,   /* unless this is more */
    BITMAP_BYTES_MOST = 4 << 20, /* or this is less */
    PASSES_MOST = 8,             /* of one launch: 1 GiB of floats */
    SHORT_SHARE = 8,             /* of a page: shorter intervals are not kept */
};

/* Guarded by the core's lock. The same on the device and in pinned memory: windows, then bits. */
static struct {
    CUresult result; /* of opening it */
    bool is_opened;
    size_t bytes; /* of the bitmaps */
    CUdeviceptr device;
    unsigned char *host;
    uint64_t next[REACH_REPORTS_MOST]; /* where each report's next window begins */
    uint64_t end[REACH_REPORTS_MOST];  /* of what is looked at; 0: nothing is */
    struct cover covers[REACH_REPORTS_MOST];
} memory;

static struct slice_window *windows(void)
{
    return (struct slice_window *)(void *)memory.host;
}

/* What is found without coverage slices is enough to run a launch. */
static void release_memory(void)
{
    const struct real_calls *real = real_calls();

    memory.result = DRIVER_OUT_OF_MEMORY;
    (void)outside_freed(CALLER_PROGRAM, real->cuMemFree_v2(memory.device), OUTSIDE_SPARE,
                        memory.device);
    (void)real->cuMemFreeHost(memory.host);
}

static CUresult open_memory(void)
{
    static const char name[] = "cuMemAlloc_v2 for slices";
    const struct real_calls *real = real_calls();
    uint64_t share = capu_context_config(core_context())->budget_bytes / BITMAP_SHARE;
    size_t bytes = share < BITMAP_BYTES_LEAST  ? BITMAP_BYTES_LEAST
                   : share > BITMAP_BYTES_MOST ? BITMAP_BYTES_MOST
                                               : (size_t)share;
    CUresult result;

    memory.bytes = bytes / WORD_BYTES * WORD_BYTES;
    bytes = WINDOWS_BYTES + memory.bytes;
    result = outside_count_call(real->cuMemAllocHost_v2((void **)&memory.host, bytes),
                                "cuMemAllocHost_v2 for slices", bytes);
    if (result == DRIVER_SUCCESS) {
        result = outside_take(CALLER_PROGRAM, name, bytes);
    }
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    result = outside_count_call(real->cuMemAlloc_v2(&memory.device, bytes), name, bytes);
    result = outside_note(CALLER_PROGRAM, result, OUTSIDE_SPARE, memory.device, bytes);
    if (result == DRIVER_SUCCESS) {
        outside_on_lack(release_memory);
    }
    return result;
}

/* Whether a launch loads as much from the same pointers as it stores. */
static bool is_loaded(const struct slice *slice, const struct slice_result *results, size_t report)
{
    for (size_t i = 0; i < slice->report_count; i++) {
        if (!slice->reports[i].is_stored &&
            slice->reports[i].words == slice->reports[report].words &&
            results[i].lowest <= results[report].lowest && results[i].end >= results[report].end) {
            return true;
        }
    }
    return false;
}

/* Finds what is worth looking at. False: nothing. */
static bool begin_cover(const struct slice *slice, const struct slice_result *results)
{
    uint64_t page_bytes = capu_context_config(core_context())->page_bytes;
    bool has_any = false;

    for (size_t i = 0; i < slice->report_count; i++) {
        bool is_worth = slice->reports[i].granule_bytes != 0 && results[i].end != UINT64_MAX &&
                        results[i].end > results[i].lowest &&
                        results[i].end - results[i].lowest >= page_bytes &&
                        !is_loaded(slice, results, i);

        memory.covers[i].count = 0;
        memory.next[i] = results[i].lowest / SLICE_WINDOW_ALIGNMENT * SLICE_WINDOW_ALIGNMENT;
        memory.end[i] = is_worth ? results[i].end : 0;
        has_any |= is_worth;
    }
    return has_any;
}

/* Gives each report a window where its last one has ended, as far as there is room. False: all have
   been looked at. */
static bool place_windows(const struct slice *slice)
{
    uint64_t words = memory.bytes / WORD_BYTES;
    uint64_t used = 0;

    for (size_t i = 0; i < slice->report_count; i++) {
        uint64_t granule = slice->reports[i].granule_bytes;
        struct slice_window *window = &windows()[i];

        *window = (struct slice_window){0};
        if (memory.next[i] < memory.end[i] && used < words) {
            uint64_t left = (memory.end[i] - memory.next[i] + granule - 1) / granule;

            window->base = memory.next[i];
            window->count = left < (words - used) * WORD_BITS ? left : (words - used) * WORD_BITS;
            window->bits = memory.device + WINDOWS_BYTES + used * WORD_BYTES;
            used += (window->count + WORD_BITS - 1) / WORD_BITS;
            memory.next[i] += window->count * granule;
        }
    }
    return used > 0;
}

static CUresult enqueue_cover(const struct reach *reach, const struct launch *launch,
                              unsigned char *block)
{
    const struct real_calls *real = real_calls();
    CUstream stream = reach_stream(reach);
    size_t windows_bytes = reach->slice.report_count * sizeof(struct slice_window);
    CUresult result = real->cuMemcpyHtoDAsync_v2(memory.device, memory.host, windows_bytes, stream);

    if (result == DRIVER_SUCCESS) {
        result = real->cuMemsetD8Async(memory.device + WINDOWS_BYTES, 0, memory.bytes, stream);
    }
    if (result == DRIVER_SUCCESS) {
        result = reach_launch(reach->cover, reach, launch, block, memory.device);
    }
    if (result == DRIVER_SUCCESS) {
        result = real->cuMemcpyDtoHAsync_v2(memory.host + WINDOWS_BYTES,
                                            memory.device + WINDOWS_BYTES, memory.bytes, stream);
    }
    return result;
}

/* Adds what the windows of a pass have found. */
static void add_bits(const struct slice *slice)
{
    for (size_t i = 0; i < slice->report_count; i++) {
        const struct slice_window *window = &windows()[i];

        if (window->count > 0) {
            cover_add_bits(
                &memory.covers[i],
                (const uint32_t *)(const void *)(memory.host + (window->bits - memory.device)),
                window->count, window->base, slice->reports[i].granule_bytes);
        }
    }
}

static CUresult run_cover(const struct reach *reach, const struct launch *launch,
                          unsigned char *block)
{
    for (unsigned i = 0; i < PASSES_MOST && place_windows(&reach->slice); i++) {
        CUresult result = enqueue_cover(reach, launch, block);
        CUresult waited = real_calls()->cuStreamSynchronize(reach_stream(reach));

        result = result != DRIVER_SUCCESS ? result : waited;
        if (result != DRIVER_SUCCESS) {
            return result;
        }
        add_bits(&reach->slice);
    }
    return DRIVER_SUCCESS;
}

/* Whether an interval may make up a good part of a tensor that is not always resident. */
static bool is_long(const struct cover_interval *interval)
{
    return interval->end - interval->first >=
           capu_context_config(core_context())->page_bytes / SHORT_SHARE;
}

size_t reach_cover(const struct reach *reach, const struct launch *launch,
                   unsigned char block[PARAMETERS_BYTES_MOST], const struct slice_result *results,
                   struct reach_interval intervals[REACH_INTERVALS_MOST])
{
    size_t count = 0;

    if (reach->cover == NULL || !begin_cover(&reach->slice, results)) {
        return 0;
    }
    if (!memory.is_opened) {
        memory.is_opened = true;
        memory.result = open_memory();
    }
    if (memory.result != DRIVER_SUCCESS || run_cover(reach, launch, block) != DRIVER_SUCCESS) {
        return 0;
    }
    for (size_t i = 0; i < reach->slice.report_count; i++) {
        for (size_t j = 0; memory.end[i] != 0 && j < memory.covers[i].count; j++) {
            const struct cover_interval *interval = &memory.covers[i].intervals[j];

            if (count < REACH_INTERVALS_MOST && is_long(interval)) {
                intervals[count++] = (struct reach_interval){(uint32_t)i, interval->first,
                                                             interval->end - interval->first};
            }
        }
    }
    return count;
}

static uint64_t first_of(const capu_operand *operand)
{
    return (uintptr_t)operand->address;
}

static uint64_t end_of(const capu_operand *operand)
{
    return (uintptr_t)operand->address + operand->bytes;
}

static bool meets(const struct operands *operands, uint64_t first, uint64_t end)
{
    for (size_t i = 0; i < operands->count; i++) {
        if (first_of(&operands->list[i]) < end && end_of(&operands->list[i]) > first) {
            return true;
        }
    }
    return false;
}

/* Lists the tensors that lie in a range and that no read meets. */
static void add_tensors(const capu_operand *range, const struct operands *reads,
                        struct operands *writes)
{
    struct describe_range left = {first_of(range), end_of(range)};
    capu_tensor_state state;

    while (describe_next(core_context(), &left, &state)) {
        uint64_t first = (uintptr_t)state.address;

        if (first >= first_of(range) && left.address <= left.end &&
            !meets(reads, first, left.address)) {
            operands_put(writes, first, state.bytes, CAPU_WRITE);
        }
    }
}

/* Takes the tensors that are written, which are in order, out of an update. What is left of it are
   more of them. */
static void split_update(struct operands *operands, size_t index, const struct operands *writes)
{
    capu_operand update = operands->list[index];
    uint64_t at = first_of(&update);
    bool is_first = true;

    for (size_t i = 0; i <= writes->count; i++) {
        uint64_t end = i < writes->count && first_of(&writes->list[i]) < end_of(&update)
                           ? first_of(&writes->list[i])
                           : end_of(&update);

        if (end > at && is_first) {
            operands->list[index] =
                capu_operand_of((const void *)(uintptr_t)at, end - at, CAPU_UPDATE);
            is_first = false;
        } else if (end > at) {
            operands_put(operands, at, end - at, CAPU_UPDATE);
        }
        at = i < writes->count && end_of(&writes->list[i]) > at ? end_of(&writes->list[i]) : at;
    }
    if (is_first) {
        operands->list[index].bytes = 0; /* nothing is left */
    }
}

static void drop_empty(struct operands *operands)
{
    size_t count = 0;

    for (size_t i = 0; i < operands->count; i++) {
        if (operands->list[i].bytes > 0) {
            operands->list[count++] = operands->list[i];
        }
    }
    operands->count = count;
}

uint64_t reach_find_writes(struct operands *operands, const struct operands *reads,
                           struct operands *covered)
{
    static struct operands writes; /* guarded by the core's lock */
    size_t count = operands->count;
    uint64_t bytes = 0;

    writes.count = 0;
    operands_merge(covered, true);
    for (size_t i = 0; i < covered->count && !reads->has_failed; i++) {
        add_tensors(&covered->list[i], reads, &writes);
    }
    if (writes.count == 0) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (operands->list[i].role == CAPU_UPDATE) {
            split_update(operands, i, &writes);
        }
    }
    drop_empty(operands);
    for (size_t i = 0; i < writes.count; i++) {
        operands_put(operands, first_of(&writes.list[i]), writes.list[i].bytes, CAPU_WRITE);
        bytes += writes.list[i].bytes;
    }
    return bytes;
}
