/*
 * The cuda device's memory: pages are handles of the driver, mapped whole into reserved addresses.
 *
 * The driver maps a handle only as a whole and at offset 0, so a page is a handle. Mapping takes
 * two steps: each page is mapped by a call of its own, then one call gives access to all of them. A
 * page without access faults like an unmapped one, so either both steps are done here or neither.
 * Unmapping takes whole mappings, several neighbours in one call. No document promises that, so if
 * a driver refuses it, they are unmapped one by one.
 *
 * The driver does not wait for work that still uses the pages being unmapped: by contract, the
 * caller of unmap waits. Misuse is found in the books before the driver sees it.
 *
 * Owned by the device's calling thread.
 */
#include "device/cuda.h"

#include "base/array.h"

#include <stdlib.h>

/* Setting access may return "not ready" while other threads have work in flight. */
enum { ACCESS_ATTEMPTS = 4 };

CUmemAllocationProp cuda_page_properties(const struct cuda_device *cuda)
{
    const CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = cuda->is_exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                                                    : CU_MEM_HANDLE_TYPE_NONE,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->ordinal},
    };

    return properties;
}

static CUdeviceptr device_address(const void *address)
{
    return (CUdeviceptr)(uintptr_t)address;
}

static uint64_t page_bytes_of(const struct cuda_device *cuda)
{
    return cuda->head.capabilities.page_bytes;
}

/* Makes room in `handles` for the page. */
static bool reserve_handle(struct cuda_device *cuda, uint64_t number)
{
    return array_reserve(&cuda->handles, &cuda->handle_capacity, (size_t)number + 1,
                         sizeof(*cuda->handles));
}

capu_status cuda_page_create(struct device *device, device_page *page)
{
    struct cuda_device *cuda = cuda_of(device);
    const CUmemAllocationProp properties = cuda_page_properties(cuda);
    capu_status status = cuda_activate(cuda);
    uint64_t number;

    if (status != CAPU_OK) {
        return status;
    }
    status = page_numbers_take(&cuda->pages, &number);
    if (status != CAPU_OK) {
        return status;
    }
    status = reserve_handle(cuda, number)
                 ? CUDA_CALL(cuda, CAPU_OVER_BUDGET,
                             cuda->driver.cuMemCreate(&cuda->handles[number], page_bytes_of(cuda),
                                                      &properties, 0))
                 : CAPU_NO_HOST_MEMORY;
    if (status != CAPU_OK) {
        page_numbers_give(&cuda->pages, number);
        return status;
    }
    *page = number;
    return CAPU_OK;
}

void cuda_page_destroy(struct device *device, device_page page)
{
    struct cuda_device *cuda = cuda_of(device);

    if (page_numbers_has(&cuda->pages, page)) {
        (void)CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cuda->driver.cuMemRelease(cuda->handles[page]));
        page_numbers_give(&cuda->pages, page);
    }
}

/* Reserves addresses. */
static capu_status reserve_addresses(struct cuda_device *cuda, uint64_t bytes,
                                     CUdeviceptr *reserved)
{
    capu_status status = CUDA_CALL(cuda, CAPU_SYSTEM_LIMIT,
                                   cuda->driver.cuMemAddressReserve(
                                       reserved, (size_t)bytes, (size_t)page_bytes_of(cuda), 0, 0));

    /* The driver returns various errors for sizes that it cannot reserve. */
    return status == CAPU_DEVICE_FAILED ? CAPU_SYSTEM_LIMIT : status;
}

static void give_back(struct cuda_device *cuda, CUdeviceptr reserved, uint64_t bytes)
{
    (void)CUDA_CALL(cuda, CAPU_DEVICE_FAILED,
                    cuda->driver.cuMemAddressFree(reserved, (size_t)bytes));
}

/* Reserves addresses aligned to pages. A driver that does not honour the alignment reserves a page
   more, and the range begins *lead_bytes after what it reserved, which is more than 0 then. */
static capu_status reserve_aligned(struct cuda_device *cuda, uint64_t bytes, CUdeviceptr *address,
                                   uint64_t *lead_bytes)
{
    uint64_t page_bytes = page_bytes_of(cuda);
    CUdeviceptr reserved = 0;
    capu_status status;

    *lead_bytes = 0;
    if (!cuda->misaligns) {
        status = reserve_addresses(cuda, bytes, address);
        if (status != CAPU_OK || (*address & (page_bytes - 1)) == 0) {
            return status;
        }
        give_back(cuda, *address, bytes);
        cuda->misaligns = true;
    }
    if (bytes > UINT64_MAX - page_bytes) {
        return CAPU_SYSTEM_LIMIT;
    }
    status = reserve_addresses(cuda, bytes + page_bytes, &reserved);
    if (status == CAPU_OK) {
        *lead_bytes = page_bytes - (reserved & (page_bytes - 1));
        *address = reserved + *lead_bytes;
    }
    return status;
}

/* Gives back what reserve_aligned has reserved. */
static void release_aligned(struct cuda_device *cuda, CUdeviceptr address, uint64_t bytes,
                            uint64_t lead_bytes)
{
    give_back(cuda, address - lead_bytes, bytes + (lead_bytes > 0 ? page_bytes_of(cuda) : 0));
}

capu_status cuda_range_reserve(struct device *device, uint64_t bytes, void **address)
{
    struct cuda_device *cuda = cuda_of(device);
    CUdeviceptr reserved = 0;
    uint64_t lead_bytes;
    capu_status status = cuda_activate(cuda);

    if (status == CAPU_OK) {
        status = reserve_aligned(cuda, bytes, &reserved, &lead_bytes);
    }
    if (status != CAPU_OK) {
        return status;
    }
    status = reservations_add(&cuda->reservations, (void *)(uintptr_t)reserved, bytes);
    if (status != CAPU_OK) {
        release_aligned(cuda, reserved, bytes, lead_bytes);
        return status;
    }
    *address = (void *)(uintptr_t)reserved;
    reservations_find(&cuda->reservations, *address, 1)->lead_bytes = lead_bytes;
    return CAPU_OK;
}

void cuda_range_release(struct device *device, void *address, uint64_t bytes)
{
    struct cuda_device *cuda = cuda_of(device);
    struct reservation *range = reservations_find_empty(&cuda->reservations, address, bytes);

    if (range != NULL) {
        release_aligned(cuda, device_address(address), bytes, range->lead_bytes);
        reservations_remove(&cuda->reservations, range);
    }
}

static capu_status give_access(struct cuda_device *cuda, const void *address, uint64_t bytes)
{
    capu_status status = CAPU_NOT_READY;

    for (int attempt = 0; attempt < ACCESS_ATTEMPTS && status == CAPU_NOT_READY; attempt++) {
        if (attempt > 0) {
            status = CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaDeviceSynchronize());
            if (status != CAPU_OK) {
                return status;
            }
        }
        status = CUDA_CALL(cuda, CAPU_SYSTEM_LIMIT,
                           cuda->driver.cuMemSetAccess(device_address(address), (size_t)bytes,
                                                       cuda->access, cuda->access_count));
    }
    return status == CAPU_NOT_READY ? CAPU_DEVICE_FAILED : status;
}

/* Undoes the first pages of a mapping that could not be completed, one by one: what one call over
   pages without access would do is not documented. */
static void roll_back(struct cuda_device *cuda, const char *address, size_t count)
{
    uint64_t page_bytes = page_bytes_of(cuda);

    for (size_t index = 0; index < count; index++) {
        capu_status status =
            CUDA_CALL(cuda, CAPU_DEVICE_FAILED,
                      cuda->driver.cuMemUnmap(device_address(address + index * page_bytes),
                                              (size_t)page_bytes));

        if (status != CAPU_OK) {
            cuda_fail(cuda, "a mapping failed half way and could not be undone");
        }
    }
}

static bool all_exist(const struct cuda_device *cuda, const device_page *pages, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        if (!page_numbers_has(&cuda->pages, pages[index])) {
            return false;
        }
    }
    return true;
}

capu_status cuda_map(struct device *device, void *address, const device_page *pages, size_t count)
{
    struct cuda_device *cuda = cuda_of(device);
    struct reservation *range = reservations_find(&cuda->reservations, address, count);
    uint64_t page_bytes = page_bytes_of(cuda);
    capu_status status;
    size_t mapped;

    if (range == NULL || !reservation_is_unmapped(&cuda->reservations, range, address, count) ||
        !all_exist(cuda, pages, count)) {
        return CAPU_INVALID;
    }
    status = cuda_activate(cuda);
    for (mapped = 0; mapped < count && status == CAPU_OK; mapped++) {
        status = CUDA_CALL(
            cuda, CAPU_SYSTEM_LIMIT,
            cuda->driver.cuMemMap(device_address((char *)address + mapped * page_bytes),
                                  (size_t)page_bytes, 0, cuda->handles[pages[mapped]], 0));
    }
    if (status != CAPU_OK) {
        roll_back(cuda, address, mapped > 0 ? mapped - 1 : 0);
        return status;
    }
    status = give_access(cuda, address, count * page_bytes);
    if (status != CAPU_OK) {
        roll_back(cuda, address, count);
        return status;
    }
    reservation_map(&cuda->reservations, range, address, pages, count);
    return CAPU_OK;
}

static capu_status unmap_one_by_one(struct cuda_device *cuda, const char *address, size_t count)
{
    uint64_t page_bytes = page_bytes_of(cuda);

    for (size_t index = 0; index < count; index++) {
        capu_status status =
            CUDA_CALL(cuda, CAPU_DEVICE_FAILED,
                      cuda->driver.cuMemUnmap(device_address(address + index * page_bytes),
                                              (size_t)page_bytes));

        if (status != CAPU_OK && index > 0) {
            cuda_fail(cuda, "unmapping pages failed half way");
            return CAPU_DEVICE_LOST;
        }
        if (status != CAPU_OK) {
            return status;
        }
    }
    return CAPU_OK;
}

/* Pre: the pages are whole mappings, without a hole. */
static capu_status unmap_pages(struct cuda_device *cuda, const char *address, size_t count)
{
    capu_status status = CAPU_DEVICE_FAILED;

    if (!cuda->unmaps_singly) {
        status = CUDA_CALL(cuda, CAPU_DEVICE_FAILED,
                           cuda->driver.cuMemUnmap(device_address(address),
                                                   (size_t)(count * page_bytes_of(cuda))));
    }
    if (status != CAPU_DEVICE_FAILED || (count == 1 && !cuda->unmaps_singly)) {
        return status;
    }
    status = unmap_one_by_one(cuda, address, count);
    cuda->unmaps_singly = cuda->unmaps_singly || status == CAPU_OK;
    return status;
}

capu_status cuda_unmap(struct device *device, void *address, size_t count)
{
    struct cuda_device *cuda = cuda_of(device);
    struct reservation *range = reservations_find(&cuda->reservations, address, count);
    capu_status status;

    if (range == NULL || !reservation_is_whole(&cuda->reservations, range, address, count)) {
        return CAPU_INVALID;
    }
    status = cuda_activate(cuda);
    if (status == CAPU_OK) {
        status = unmap_pages(cuda, address, count);
    }
    /* The mappings of a lost device are gone with it. */
    if (status != CAPU_OK && status != CAPU_DEVICE_LOST) {
        return status;
    }
    reservation_unmap(&cuda->reservations, range, address, count);
    return CAPU_OK;
}

/* Unmaps all runs of mapped pages in a range. */
static void unmap_left(struct cuda_device *cuda, const struct reservation *range)
{
    uint64_t page_bytes = page_bytes_of(cuda);
    size_t first = 0;

    while (first < range->page_count) {
        size_t end = first;

        while (end < range->page_count && range->slots[end] != RESERVATION_HOLE) {
            end++;
        }
        if (end > first) {
            (void)unmap_pages(cuda, range->address + first * page_bytes, end - first);
        }
        first = end + 1;
    }
}

void cuda_memory_finish(struct cuda_device *cuda)
{
    for (size_t index = 0; index < cuda->reservations.count; index++) {
        const struct reservation *range = cuda->reservations.sorted[index];

        unmap_left(cuda, range);
        release_aligned(cuda, device_address(range->address),
                        range->page_count * page_bytes_of(cuda), range->lead_bytes);
    }
    reservations_finish(&cuda->reservations);
    for (uint64_t number = 0; number < cuda->handle_capacity; number++) {
        cuda_page_destroy(&cuda->head, number);
    }
    page_numbers_finish(&cuda->pages);
    free(cuda->handles);
}
