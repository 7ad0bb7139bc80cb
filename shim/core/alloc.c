/*
 * Allocations of the program: each becomes an allocation of the library, small ones, too. What
 * CUDA's libraries allocate for themselves is theirs. Guarded by the core's lock. What the program
 * asks about addresses is answered as the driver would if the allocations were its own.
 */
#include "shim/core/alloc.h"

#include "shim/core/capture.h"
#include "shim/core/code.h"
#include "shim/core/core.h"
#include "shim/core/cut.h"
#include "shim/core/floor.h"
#include "shim/core/iteration.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/driver/settings.h"
#include "shim/driver/symbol.h"

#include "base/array.h"
#include "interpose/period/period.h"
#include "runtime/api/describe.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The alignment that programs see on GPUs. */
enum {
    ALIGNMENT = 512,
    MANY_PLACES = 16, /* of an allocation, to which pointers have led one after the other */
};

static struct {
    struct allocation *list; /* by address */
    size_t count, capacity;
    size_t data_count; /* of those that look like data */
    uint64_t bytes;    /* of all of them */
    uint64_t generation;
    uint64_t peak_bytes;
    struct ordinals ordinals;
    uint64_t next_id; /* the driver's own begin at 1 as well, but below 2^62 */
} allocations = {.next_id = (uint64_t)1 << 62};

/* How many allocations begin at or below an address. */
static size_t count_up_to(uint64_t address)
{
    size_t from = 0;
    size_t to = allocations.count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (allocations.list[middle].address <= address) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

const struct allocation *alloc_list(size_t *count)
{
    *count = allocations.count;
    return allocations.list;
}

static struct allocation *find_allocation(uint64_t address)
{
    size_t after = count_up_to(address);
    struct allocation *allocation = after > 0 ? &allocations.list[after - 1] : NULL;

    return allocation != NULL && address - allocation->address < allocation->bytes ? allocation
                                                                                   : NULL;
}

const struct allocation *alloc_find(uint64_t address)
{
    return find_allocation(address);
}

const struct allocation *alloc_find_pointer(uint64_t pointer)
{
    const struct allocation *allocation = alloc_find(pointer);

    return allocation != NULL || pointer == 0 ? allocation : alloc_find(pointer - 1);
}

const struct allocation *alloc_above(uint64_t address)
{
    size_t after = count_up_to(address);

    return after < allocations.count ? &allocations.list[after] : NULL;
}

static bool is_data(const struct allocation *allocation)
{
    return allocation->place_count >= MANY_PLACES && !allocation->is_stored;
}

void alloc_note_stored(uint64_t address)
{
    struct allocation *allocation = find_allocation(address);

    if (allocation != NULL) {
        allocations.data_count -= is_data(allocation);
        allocation->is_stored = true;
    }
}

const struct allocation *alloc_note_place(uint64_t address)
{
    struct allocation *allocation = find_allocation(address);

    if (allocation != NULL && allocation->place_count < MANY_PLACES &&
        allocation->place != address - allocation->address) {
        allocation->place = address - allocation->address;
        allocation->place_count++;
        allocations.data_count += is_data(allocation);
    }
    return allocation;
}

const struct allocation *alloc_find_data(uint64_t address)
{
    const struct allocation *allocation = alloc_has_data() ? find_allocation(address) : NULL;

    return allocation != NULL && is_data(allocation) ? allocation : NULL;
}

bool alloc_has_data(void)
{
    return allocations.data_count > 0;
}

uint64_t alloc_generation(void)
{
    return allocations.generation;
}

uint64_t alloc_bytes(void)
{
    return allocations.bytes;
}

uint64_t alloc_peak_bytes(void)
{
    return allocations.peak_bytes;
}

/* What was copied of each allocation. */

static struct {
    struct moved *list; /* by ordinal */
    size_t count, capacity;
} moves;

/* NULL: no host memory. */
static struct moved *find_moved(uint64_t ordinal)
{
    if (!array_reserve(&moves.list, &moves.capacity, ordinal + 1, sizeof(moves.list[0]))) {
        return NULL;
    }
    for (; moves.count <= ordinal; moves.count++) {
        moves.list[moves.count] = (struct moved){.ordinal = moves.count};
    }
    return &moves.list[ordinal];
}

void alloc_note_moved(capu_context *context, const struct allocation *allocation)
{
    struct describe_range range = {allocation->address, allocation->address + allocation->bytes};
    capu_tensor_state state;
    struct moved *moved =
        settings_get()->report_path != NULL ? find_moved(allocation->ordinal) : NULL;

    if (moved == NULL) {
        return;
    }
    moved->count++;
    moved->address = allocation->address;
    moved->bytes = moved->bytes > allocation->bytes ? moved->bytes : allocation->bytes;
    while (describe_next(context, &range, &state)) {
        moved->out_bytes += state.out_bytes;
        moved->back_bytes += state.back_bytes;
    }
}

static int by_bytes(const void *left, const void *right)
{
    const struct moved *a = left;
    const struct moved *b = right;
    uint64_t a_bytes = a->out_bytes + a->back_bytes;
    uint64_t b_bytes = b->out_bytes + b->back_bytes;

    if (a_bytes != b_bytes) {
        return a_bytes > b_bytes ? -1 : 1;
    }
    return a->ordinal < b->ordinal ? -1 : a->ordinal > b->ordinal;
}

size_t alloc_sort_moved(const struct moved **list)
{
    size_t count = 0;

    if (moves.count > 0) {
        qsort(moves.list, moves.count, sizeof(moves.list[0]), by_bytes);
    }
    while (count < moves.count && moves.list[count].out_bytes + moves.list[count].back_bytes > 0) {
        count++;
    }
    *list = moves.list;
    return count;
}

/* Memory that the library aligns to less than programs expect is taken again, a little larger. */
static capu_status take_block(size_t bytes, void **block)
{
    capu_status status = capu_malloc(core_context(), bytes, block);

    if (status != CAPU_OK || (uintptr_t)*block % ALIGNMENT == 0) {
        return status;
    }
    (void)capu_free(core_context(), *block);
    if (bytes > SIZE_MAX - ALIGNMENT) {
        return CAPU_TOO_LARGE;
    }
    return capu_malloc(core_context(), bytes + ALIGNMENT, block);
}

/* What does not fit device and host memory together would fail later, when it is first touched. */
static bool is_too_much(size_t bytes)
{
    const capu_config *config = capu_context_config(core_context());
    uint64_t most = config->budget_bytes;

    most = config->host_budget_bytes > UINT64_MAX - most ? UINT64_MAX
                                                         : most + config->host_budget_bytes;
    if (bytes <= most && allocations.bytes <= most - bytes) {
        return false;
    }
    log_line(
        "cuMemAlloc: %zu bytes more do not fit the budgets of device and host memory together: "
        "--budget is %" PRIu64 ", --host-budget (CAPUCHIN_HOST_BUDGET) %" PRIu64 ", and %" PRIu64
        " bytes are allocated",
        bytes, config->budget_bytes, config->host_budget_bytes, allocations.bytes);
    return true;
}

static CUresult take_allocation(size_t bytes, uint64_t *address)
{
    struct allocation allocation = {.bytes = bytes};
    capu_status status;
    CUresult result;
    size_t place;

    if (!array_reserve(&allocations.list, &allocations.capacity, allocations.count + 1,
                       sizeof(allocations.list[0])) ||
        (settings_get()->mode != CAPU_MODE_OFF && is_too_much(bytes))) {
        return DRIVER_OUT_OF_MEMORY;
    }
    allocation.born = iteration_allocate(core_context());
    status = take_block(bytes, &allocation.block);
    while (status == CAPU_OVER_BUDGET && core_make_room()) {
        status = take_block(bytes, &allocation.block);
    }
    result = core_result(status, "cuMemAlloc");
    if (result == DRIVER_SUCCESS && !ordinals_take(&allocations.ordinals, &allocation.ordinal)) {
        (void)capu_free(core_context(), allocation.block);
        result = DRIVER_OUT_OF_MEMORY;
    }
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    allocation.address =
        ((uintptr_t)allocation.block + ALIGNMENT - 1) / ALIGNMENT * (uint64_t)ALIGNMENT;
    allocation.id = allocations.next_id++;
    cut_name_whole(core_context(), allocation.block, allocation.ordinal);
    floor_note_allocation(core_context(), allocation.address, false);
    place = count_up_to(allocation.address);
    memmove(&allocations.list[place + 1], &allocations.list[place],
            (allocations.count - place) * sizeof(allocations.list[0]));
    allocations.list[place] = allocation;
    allocations.count++;
    allocations.generation++;
    allocations.bytes += bytes;
    allocations.peak_bytes =
        allocations.bytes > allocations.peak_bytes ? allocations.bytes : allocations.peak_bytes;
    *address = allocation.address;
    return DRIVER_SUCCESS;
}

static CUresult give_allocation(const struct allocation *allocation)
{
    size_t place = (size_t)(allocation - allocations.list);
    CUresult result;

    floor_note_allocation(core_context(), allocation->address, true);
    iteration_free(core_context(), allocation->ordinal, allocation->born);
    alloc_note_moved(core_context(), allocation);
    result = core_result(capu_free(core_context(), allocation->block), "cuMemFree");

    if (result == DRIVER_SUCCESS) {
        ordinals_give(&allocations.ordinals, allocation->ordinal);
        allocations.bytes -= allocation->bytes;
        allocations.data_count -= is_data(allocation);
        allocations.count--;
        allocations.generation++;
        memmove(&allocations.list[place], &allocations.list[place + 1],
                (allocations.count - place) * sizeof(allocations.list[0]));
    }
    return result;
}

static CUresult allocate_memory(CUdeviceptr *address, size_t bytes)
{
    uint64_t taken;
    CUresult result;

    if (address == NULL || bytes == 0) {
        return DRIVER_INVALID_VALUE;
    }
    result = core_enter();
    if (result == DRIVER_SUCCESS) {
        result = take_allocation(bytes, &taken);
        core_leave();
    }
    if (result == DRIVER_SUCCESS) {
        *address = taken;
    }
    return result;
}

CUresult on_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    CUresult result = capture_check();

    return result == DRIVER_SUCCESS ? allocate_memory(address, bytes) : result;
}

CUresult on_cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                               unsigned element)
{
    size_t row = (width + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    CUresult result;

    if (pitch == NULL || width == 0 || height == 0 || row < width || row > SIZE_MAX / height ||
        (element != 4 && element != 8 && element != 16)) {
        return DRIVER_INVALID_VALUE;
    }
    result = on_cuMemAlloc_v2(address, row * height);
    if (result == DRIVER_SUCCESS) {
        *pitch = row;
    }
    return result;
}

CUresult on_cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    /* During a capture: memory that the graph allocates, which is the driver's. */
    return capture_takes(stream) ? real_calls()->cuMemAllocAsync(address, bytes, stream)
                                 : allocate_memory(address, bytes);
}

CUresult on_cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                    CUstream stream)
{
    return capture_takes(stream)
               ? real_calls()->cuMemAllocFromPoolAsync(address, bytes, pool, stream)
               : allocate_memory(address, bytes);
}

/* *is_ours: false: nothing was done. */
static CUresult free_own(CUdeviceptr address, bool *is_ours)
{
    const struct allocation *allocation;
    CUresult result = core_enter();

    *is_ours = true;
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    allocation = alloc_find(address);
    if (allocation == NULL) {
        *is_ours = false;
    } else if (allocation->address != address) {
        result = DRIVER_INVALID_VALUE;
    } else {
        result = give_allocation(allocation);
    }
    core_leave();
    return result;
}

CUresult on_cuMemFree_v2(CUdeviceptr address)
{
    bool is_ours;
    CUresult result;

    if (address == 0) {
        return real_calls()->cuMemFree_v2(address);
    }
    result = capture_check();
    if (result == DRIVER_SUCCESS) {
        result = core_wait();
    }
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    result = free_own(address, &is_ours);
    return is_ours ? result : real_calls()->cuMemFree_v2(address);
}

CUresult on_cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    bool is_ours;
    CUresult result;

    if (capture_takes(stream)) {
        return real_calls()->cuMemFreeAsync(address, stream);
    }
    result = free_own(address, &is_ours);
    return is_ours ? result : real_calls()->cuMemFreeAsync(address, core_stream(stream));
}

/* What the driver would say if the program's memory were all there: the device's, or --pretend's,
   less what the program and others have taken. */
CUresult on_cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    uint64_t pretend = settings_get()->pretend_bytes;
    uint64_t held = 0;
    size_t free = 0;
    size_t total = 0;
    uint64_t used;
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    capu_memory_usage(core_context(), &held, NULL, NULL);
    used = allocations.bytes;
    core_leave();
    result = real_calls()->cuMemGetInfo_v2(&free, &total);
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    if (total - free > held) {
        used += total - free - held; /* by others */
    }
    total = pretend != 0 ? pretend : total;
    if (free_bytes != NULL) {
        *free_bytes = used < total ? total - used : 0;
    }
    if (total_bytes != NULL) {
        *total_bytes = total;
    }
    return DRIVER_SUCCESS;
}

/* cudaDeviceReset: the memory goes; the driver's context stays, since the library uses it. */
CUresult on_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUresult result = core_wait();

    (void)device;
    if (result == DRIVER_SUCCESS) {
        result = core_enter();
    }
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    iteration_close(core_context());
    while (allocations.count > 0 && result == DRIVER_SUCCESS) {
        result = give_allocation(&allocations.list[allocations.count - 1]);
    }
    code_reset();
    core_leave();
    return result;
}

CUresult on_cuDevicePrimaryCtxReset(CUdevice device)
{
    return on_cuDevicePrimaryCtxReset_v2(device);
}

/* What the driver would answer about the program's allocations if they were its own. */

/* False: the address is not ours. */
static bool find_own(CUdeviceptr address, struct allocation *found, CUresult *result)
{
    const struct allocation *allocation;

    *result = core_enter();
    if (*result != DRIVER_SUCCESS) {
        return true;
    }
    allocation = alloc_find(address);
    if (allocation != NULL) {
        *found = *allocation;
    }
    core_leave();
    return allocation != NULL;
}

CUresult on_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    struct allocation allocation;
    CUresult result;

    if (!find_own(address, &allocation, &result)) {
        return real_calls()->cuMemGetAddressRange_v2(base, bytes, address);
    }
    if (result == DRIVER_SUCCESS) {
        if (base != NULL) {
            *base = allocation.address;
        }
        if (bytes != NULL) {
            *bytes = allocation.bytes;
        }
    }
    return result;
}

/* An allocation of the driver itself: what it says about that, it would say about ours, but for the
   address and the size. It is never freed. */
static CUresult take_sample(CUdeviceptr *address)
{
    static CUdeviceptr sample;
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    if (sample == 0) {
        result = real_calls()->cuMemAlloc_v2(&sample, 1);
    }
    core_leave();
    *address = sample;
    return result;
}

/* Corrects what the driver has said about the sample. */
static void correct_attribute(const struct allocation *allocation, unsigned attribute,
                              CUdeviceptr address, void *value)
{
    if (attribute == POINTER_DEVICE) {
        *(CUdeviceptr *)value = address;
    } else if (attribute == POINTER_BUFFER_ID) {
        *(unsigned long long *)value = allocation->id;
    } else if (attribute == POINTER_RANGE_START) {
        *(CUdeviceptr *)value = allocation->address;
    } else if (attribute == POINTER_RANGE_SIZE) {
        *(size_t *)value = allocation->bytes;
    }
}

CUresult on_cuPointerGetAttribute(void *value, unsigned attribute, CUdeviceptr address)
{
    struct allocation allocation;
    CUdeviceptr sample = 0;
    CUresult result;

    if (!find_own(address, &allocation, &result)) {
        return real_calls()->cuPointerGetAttribute(value, attribute, address);
    }
    if (result == DRIVER_SUCCESS) {
        result = take_sample(&sample);
    }
    if (result == DRIVER_SUCCESS) {
        result = real_calls()->cuPointerGetAttribute(value, attribute, sample);
    }
    if (result == DRIVER_SUCCESS) {
        correct_attribute(&allocation, attribute, address, value);
    }
    return result;
}

CUresult on_cuPointerGetAttributes(unsigned count, unsigned *attributes, void **values,
                                   CUdeviceptr address)
{
    struct allocation allocation;
    CUdeviceptr sample = 0;
    CUresult result;

    if (!find_own(address, &allocation, &result)) {
        return real_calls()->cuPointerGetAttributes(count, attributes, values, address);
    }
    if (result == DRIVER_SUCCESS) {
        result = take_sample(&sample);
    }
    if (result == DRIVER_SUCCESS) {
        result = real_calls()->cuPointerGetAttributes(count, attributes, values, sample);
    }
    for (unsigned i = 0; result == DRIVER_SUCCESS && i < count; i++) {
        correct_attribute(&allocation, attributes[i], address, values[i]);
    }
    return result;
}

CUresult on_cuPointerSetAttribute(const void *value, unsigned attribute, CUdeviceptr address)
{
    struct allocation allocation;
    CUresult result;

    if (!find_own(address, &allocation, &result)) {
        return real_calls()->cuPointerSetAttribute(value, attribute, address);
    }
    /* Copies of the program's memory wait already where that could be noticed. */
    return result != DRIVER_SUCCESS           ? result
           : attribute == POINTER_SYNC_MEMOPS ? DRIVER_SUCCESS
                                              : DRIVER_INVALID_VALUE;
}

/*
 * Memory pools. What a program allocates from one becomes an allocation of the library, in the
 * device's memory. So pools of other memory are refused: the host could not access what it gets.
 */

static bool is_refused(const char *name, int type, int location)
{
    if (location < LOCATION_HOST && type != POOL_MANAGED) {
        return false;
    }
    symbol_note_refusal("a memory pool of the host or of managed memory");
    log_line("refused: %s for memory of the host or managed memory, which programs cannot use "
             "under a budget (docs/unmodified.md)",
             name);
    return true;
}

CUresult on_cuMemPoolCreate(CUmemoryPool *pool, const struct page_properties *properties)
{
    return properties != NULL &&
                   is_refused("cuMemPoolCreate", properties->type, properties->location.type)
               ? DRIVER_NOT_SUPPORTED
               : real_calls()->cuMemPoolCreate(pool, properties);
}

CUresult on_cuMemGetDefaultMemPool(CUmemoryPool *pool, struct location *location, int type)
{
    return location != NULL && is_refused("cuMemGetDefaultMemPool", type, location->type)
               ? DRIVER_NOT_SUPPORTED
               : real_calls()->cuMemGetDefaultMemPool(pool, location, type);
}

CUresult on_cuMemGetMemPool(CUmemoryPool *pool, struct location *location, int type)
{
    return location != NULL && is_refused("cuMemGetMemPool", type, location->type)
               ? DRIVER_NOT_SUPPORTED
               : real_calls()->cuMemGetMemPool(pool, location, type);
}
