/*
 * The device's memory: an address range of this process that is reserved at first use.
 *
 * Every block has pages of its own and an inaccessible one after them, so an access beyond its last
 * page faults. Addresses are handed out upwards; freed ones become inaccessible, and are used again
 * only when the range is exhausted. Fresh memory is zero.
 *
 * The device's size is checked against the bytes asked for, rounded up to 512, the alignment that
 * CUDA gives. The lock guards everything.
 */
#include "base/array.h"
#include "tests/ptx/driver/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define RANGE_BYTES (UINT64_C(1) << 40)
#define PAGE_BYTES UINT64_C(4096)
#define ALIGNMENT_BYTES UINT64_C(512)

static struct {
    pthread_mutex_t lock;
    uint64_t base;               /* of the range; 0: not reserved yet */
    uint64_t next;               /* where the range has never been used */
    struct memory_block *blocks; /* by address */
    size_t count;
    size_t capacity;
    uint64_t used_bytes;
    uint64_t ids;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t round_up(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

/* What a block takes of the range. */
static uint64_t span_of(uint64_t bytes)
{
    return round_up(bytes, PAGE_BYTES) + PAGE_BYTES;
}

/* The first block that ends after the address; `count` if none does. Pre: the lock is held. */
static size_t position_of(uint64_t address)
{
    size_t low = 0;
    size_t high = memory.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (memory.blocks[middle].address + memory.blocks[middle].bytes <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool reserve(void)
{
    void *range;

    if (memory.base != 0) {
        return true;
    }
    range = mmap(NULL, RANGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
        return false;
    }
    memory.base = memory.next = (uintptr_t)range;
    return true;
}

/* Where a block of that span can go; 0: nowhere. *position: where it belongs among the blocks. */
static uint64_t place(uint64_t span, size_t *position)
{
    uint64_t at = memory.base;

    if (memory.base + RANGE_BYTES - memory.next >= span) {
        *position = memory.count;
        at = memory.next;
        memory.next += span;
        return at;
    }
    for (size_t i = 0; i <= memory.count; i++) {
        uint64_t end = i < memory.count ? memory.blocks[i].address : memory.base + RANGE_BYTES;

        if (end - at >= span) {
            *position = i;
            return at;
        }
        at = end + (i < memory.count ? span_of(memory.blocks[i].bytes) : 0);
    }
    return 0;
}

static CUresult take(uint64_t bytes, bool is_managed, uint64_t *address)
{
    uint64_t counted = round_up(bytes, ALIGNMENT_BYTES);
    uint64_t total = driver_settings()->memory_bytes;
    size_t position = 0;
    uint64_t at;

    if (bytes > total || counted > total - memory.used_bytes || !reserve() ||
        !array_reserve(&memory.blocks, &memory.capacity, memory.count + 1,
                       sizeof(*memory.blocks))) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    at = place(span_of(bytes), &position);
    if (at == 0 ||
        mprotect((void *)(uintptr_t)at, round_up(bytes, PAGE_BYTES), PROT_READ | PROT_WRITE) != 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memmove(&memory.blocks[position + 1], &memory.blocks[position],
            (memory.count - position) * sizeof(*memory.blocks));
    memory.blocks[position] =
        (struct memory_block){at, bytes, ++memory.ids, is_managed, .is_leaving = false};
    memory.count++;
    memory.used_bytes += counted;
    *address = at;
    return CUDA_SUCCESS;
}

CUresult memory_take(uint64_t bytes, bool is_managed, uint64_t *address)
{
    CUresult result;

    if (bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_lock(&memory.lock);
    result = take(bytes, is_managed, address);
    pthread_mutex_unlock(&memory.lock);
    return result;
}

bool memory_leave(uint64_t address)
{
    bool is_one;
    size_t position;

    pthread_mutex_lock(&memory.lock);
    position = position_of(address);
    is_one = position < memory.count && memory.blocks[position].address == address &&
             !memory.blocks[position].is_leaving;
    if (is_one) {
        memory.blocks[position].is_leaving = true;
    }
    pthread_mutex_unlock(&memory.lock);
    return is_one;
}

/* Pre: the lock is held. */
static void give_back(size_t position)
{
    struct memory_block *block = &memory.blocks[position];

    /* A new mapping, so that the pages are given back. */
    (void)mmap((void *)(uintptr_t)block->address, round_up(block->bytes, PAGE_BYTES), PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    memory.used_bytes -= round_up(block->bytes, ALIGNMENT_BYTES);
    memory.count--;
    memmove(block, block + 1, (memory.count - position) * sizeof(*block));
}

void memory_free(uint64_t address)
{
    pthread_mutex_lock(&memory.lock);
    give_back(position_of(address));
    pthread_mutex_unlock(&memory.lock);
}

void memory_reset(void)
{
    pthread_mutex_lock(&memory.lock);
    while (memory.count > 0) {
        give_back(memory.count - 1);
    }
    pthread_mutex_unlock(&memory.lock);
}

bool memory_find(uint64_t address, struct memory_block *block)
{
    bool is_found;
    size_t position;

    pthread_mutex_lock(&memory.lock);
    position = position_of(address);
    is_found = position < memory.count && memory.blocks[position].address <= address &&
               !memory.blocks[position].is_leaving;
    if (is_found) {
        *block = memory.blocks[position];
    }
    pthread_mutex_unlock(&memory.lock);
    return is_found;
}

void memory_figures(uint64_t *used_bytes, uint64_t *total_bytes)
{
    pthread_mutex_lock(&memory.lock);
    *used_bytes = memory.used_bytes;
    pthread_mutex_unlock(&memory.lock);
    *total_bytes = driver_settings()->memory_bytes;
}

/* Takes a block for the program; work issued earlier may still give some memory back. */
static CUresult take_patiently(uint64_t bytes, bool is_managed, CUdeviceptr *address)
{
    uint64_t taken = 0;
    CUresult result = memory_take(bytes, is_managed, &taken);

    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        result = queue_wait(queue_last_issued());
        result = result == CUDA_SUCCESS ? memory_take(bytes, is_managed, &taken) : result;
    }
    if (result == CUDA_SUCCESS) {
        *address = taken;
    }
    return result;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    DRIVER_ENTER(driver_enter_waiting);
    return address == NULL ? CUDA_ERROR_INVALID_VALUE : take_patiently(bytes, false, address);
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags)
{
    DRIVER_ENTER(driver_enter_waiting);
    if (address == NULL || flags == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return take_patiently(bytes, true, address);
}

/* The host shares this memory with the device, so advice, prefetching and attaching change nothing.
 */
static CUresult check_managed(CUdeviceptr address, size_t bytes)
{
    struct memory_block block;

    DRIVER_ENTER(driver_enter_context);
    return memory_find(address, &block) && block.is_managed &&
                   bytes <= block.address + block.bytes - address
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                        CUmemLocation location)
{
    (void)advice;
    (void)location;
    return check_managed(address, bytes);
}

/* The calls below change nothing. */
static CUresult pass(const char *name, CUdeviceptr address, size_t bytes, CUstream stream)
{
    CUresult result = check_managed(address, bytes);

    if (result == CUDA_SUCCESS && stream_of(stream) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (driver_settings()->names_streams) {
        fprintf(stderr, "test driver: %s on stream %p\n", name, (void *)stream_of(stream));
    }
    return result;
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location,
                               unsigned flags, CUstream stream)
{
    (void)location;
    (void)flags;
    return pass("cuMemPrefetchAsync", address, bytes, stream);
}

static CUresult pass_batch(const char *name, const CUdeviceptr *addresses, const size_t *bytes,
                           size_t count, CUstream stream)
{
    CUresult result = count > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = pass(name, addresses[i], bytes[i], stream);
    }
    return result;
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr *addresses, size_t *bytes, size_t count,
                                 CUmemLocation *locations, size_t *first, size_t location_count,
                                 unsigned long long flags, CUstream stream)
{
    (void)locations;
    (void)first;
    (void)location_count;
    (void)flags;
    return pass_batch("cuMemPrefetchBatchAsync", addresses, bytes, count, stream);
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr *addresses, size_t *bytes, size_t count,
                                unsigned long long flags, CUstream stream)
{
    (void)flags;
    return pass_batch("cuMemDiscardBatchAsync", addresses, bytes, count, stream);
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *addresses, size_t *bytes, size_t count,
                                           CUmemLocation *locations, size_t *first,
                                           size_t location_count, unsigned long long flags,
                                           CUstream stream)
{
    (void)locations;
    (void)first;
    (void)location_count;
    (void)flags;
    return pass_batch("cuMemDiscardAndPrefetchBatchAsync", addresses, bytes, count, stream);
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags)
{
    (void)flags;
    return pass("cuStreamAttachMemAsync", address, bytes, stream);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                            unsigned element)
{
    uint64_t row = round_up(width, ALIGNMENT_BYTES);
    CUresult result;

    DRIVER_ENTER(driver_enter_waiting);
    if (address == NULL || pitch == NULL || width == 0 || height == 0 ||
        (element != 4 && element != 8 && element != 16)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = take_patiently(row * height, false, address);
    if (result == CUDA_SUCCESS) {
        *pitch = row;
    }
    return result;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    CUresult result;

    DRIVER_ENTER(driver_enter_waiting);
    if (address == 0) {
        return CUDA_SUCCESS;
    }
    if (!memory_leave(address)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = queue_wait(queue_last_issued());
    memory_free(address);
    return result;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    DRIVER_ENTER(driver_enter_context);
    if (address == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream_of(stream) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (stream_is_capturing(stream)) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return take_patiently(bytes, false, address);
}

static CUresult free_later(void *block)
{
    memory_free(*(uint64_t *)block);
    return CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    uint64_t freed = address;
    uint64_t number;

    DRIVER_ENTER(driver_enter_context);
    if (stream_of(stream) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (stream_is_capturing(stream)) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (!memory_leave(address)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return stream_issue(stream, free_later, &freed, sizeof(freed), &number);
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    uint64_t used;
    uint64_t total;

    DRIVER_ENTER(driver_enter_context);
    if (free_bytes == NULL || total_bytes == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memory_figures(&used, &total);
    *free_bytes = total - used;
    *total_bytes = total;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    struct memory_block block;

    DRIVER_ENTER(driver_enter_context);
    if (!memory_find(address, &block)) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (base != NULL) {
        *base = block.address;
    }
    if (bytes != NULL) {
        *bytes = block.bytes;
    }
    return CUDA_SUCCESS;
}
