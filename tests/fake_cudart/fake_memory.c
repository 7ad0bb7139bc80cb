/*
 * The driver's virtual memory calls. cuMemMap only records a mapping. The host device maps the
 * pages when cuMemSetAccess gives access, so that memory without access faults.
 */
#include "tests/fake_cudart/fake.h"

#include <stdlib.h>
#include <string.h>

static uint64_t granularity(void)
{
    return fake.machine.granularity_bytes;
}

static char *pointer(CUdeviceptr address)
{
    return (char *)(uintptr_t)address;
}

static bool is_whole(uint64_t bytes)
{
    return bytes > 0 && bytes % granularity() == 0;
}

static bool is_type(const CUmemAllocationProp *properties)
{
    return properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           (properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE ||
            properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

/* Whether handles of this type can be made on this machine. */
static bool is_supported(const CUmemAllocationProp *properties)
{
    return properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE ||
           !fake.machine.has_no_exporting;
}

static bool is_device(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id >= 0 &&
           location->id < fake.machine.device_count;
}

/* The first mapping that ends above the address. */
static size_t mapping_at(const void *address)
{
    size_t low = 0;
    size_t high = fake.mapping_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (fake.mappings[middle].address + fake.mappings[middle].bytes > (const char *)address) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* Counts the mappings, from *first on, that together cover exactly [address, address + bytes). 0 if
   the range has a hole or cuts a mapping. */
static size_t whole_mappings(const char *address, uint64_t bytes, size_t *first)
{
    size_t index = mapping_at(address);
    const char *end = address + bytes;
    size_t count = 0;

    *first = index;
    while (address < end) {
        if (index + count >= fake.mapping_count ||
            fake.mappings[index + count].address != address) {
            return 0;
        }
        address += fake.mappings[index + count].bytes;
        count++;
    }
    return address == end ? count : 0;
}

bool fake_has_access(const void *address, uint64_t bytes)
{
    const char *at = address;
    const char *end = at + bytes;

    for (size_t index = mapping_at(at); at < end; index++) {
        const struct fake_mapping *mapping = &fake.mappings[index];

        if (index >= fake.mapping_count || mapping->address > at || !mapping->has_access) {
            return false;
        }
        at = mapping->address + mapping->bytes;
    }
    return true;
}

bool fake_is_device_memory(const void *address, uint64_t bytes)
{
    const char *at = address;

    for (const struct fake_range *range = fake.ranges; range != NULL; range = range->next) {
        if (at < range->address + range->bytes && range->address < at + bytes) {
            return true;
        }
    }
    return false;
}

static const struct fake_range *range_around(const char *address, uint64_t bytes)
{
    const struct fake_range *range = fake.ranges;

    while (range != NULL &&
           (address < range->address || address + bytes > range->address + range->bytes)) {
        range = range->next;
    }
    return range;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    FAKE_DRIVER_ENTER(cuMemGetAllocationGranularity);
    if (!is_type(properties) || !is_device(&properties->location) ||
        option != CU_MEM_ALLOC_GRANULARITY_MINIMUM) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_supported(properties)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    *bytes = (size_t)granularity();
    return CUDA_SUCCESS;
}

static void free_handle(struct fake_handle *handle)
{
    struct fake_handle **link = &fake.handles;

    while (*link != handle) {
        link = &(*link)->next;
    }
    *link = handle->next;
    fake.used_bytes -= handle->page_count * granularity();
    while (handle->page_count > 0) {
        device_page_destroy(fake.host, handle->pages[--handle->page_count]);
    }
    free(handle->pages);
    free(handle);
}

/* Adds a handle without pages to the list. Pre: the lock is held. */
static struct fake_handle *new_handle(size_t page_count)
{
    struct fake_handle *made = calloc(1, sizeof(*made));

    if (made == NULL) {
        return NULL;
    }
    made->pages = calloc(page_count, sizeof(*made->pages));
    if (made->pages == NULL) {
        free(made);
        return NULL;
    }
    made->next = fake.handles;
    fake.handles = made;
    return made;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    struct fake_handle *made;
    size_t page_count;

    FAKE_DRIVER_ENTER_UNSAFE(cuMemCreate);
    if (!is_whole(bytes) || flags != 0 || !is_type(properties) ||
        !is_device(&properties->location)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_supported(properties)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    fake.is_exportable = properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
    page_count = bytes / granularity();
    fake_lock();
    made = new_handle(page_count);
    if (made != NULL) {
        made->device = properties->location.id;
    }
    while (made != NULL && made->page_count < page_count) {
        if (device_page_create(fake.host, &made->pages[made->page_count]) != CAPU_OK) {
            free_handle(made);
            made = NULL;
            break;
        }
        made->page_count++;
        fake.used_bytes += granularity();
    }
    fake_unlock();
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)made;
    return CUDA_SUCCESS;
}

static struct fake_handle *find_handle(CUmemGenericAllocationHandle handle)
{
    struct fake_handle *found = fake.handles;

    while (found != NULL && (uintptr_t)found != (uintptr_t)handle) {
        found = found->next;
    }
    return found;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct fake_handle *found;

    FAKE_DRIVER_ENTER_UNSAFE(cuMemRelease);
    fake_lock();
    found = find_handle(handle);
    if (found == NULL || found->is_released) {
        fake_unlock();
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* The memory is freed with the last mapping. */
    found->is_released = true;
    if (found->mapping_count == 0) {
        free_handle(found);
    }
    fake_unlock();
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags)
{
    struct fake_range *made;
    uint64_t slack;

    FAKE_DRIVER_ENTER_UNSAFE(cuMemAddressReserve);
    if (!is_whole(bytes) || (alignment & (alignment - 1)) != 0 || hint != 0 || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    slack = alignment > granularity() ? alignment : 0;
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->bytes = bytes;
    made->reserved_bytes = bytes + slack;
    fake_lock();
    if (device_range_reserve(fake.host, made->reserved_bytes, &made->reserved) != CAPU_OK) {
        fake_unlock();
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->address = made->reserved;
    if (slack > 0) {
        made->address += (slack - (uintptr_t)made->reserved % slack) % slack;
    }
    if (slack > 0 && fake.machine.has_own_alignment) {
        made->address =
            (char *)made->reserved + ((uintptr_t)made->reserved % slack == 0 ? granularity() : 0);
    }
    made->next = fake.ranges;
    fake.ranges = made;
    *address = (CUdeviceptr)(uintptr_t)made->address;
    fake_unlock();
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    struct fake_range **link = &fake.ranges;
    struct fake_range *found;
    size_t first;

    FAKE_DRIVER_ENTER_UNSAFE(cuMemAddressFree);
    fake_lock();
    while (*link != NULL && ((*link)->address != pointer(address) || (*link)->bytes != bytes)) {
        link = &(*link)->next;
    }
    found = *link;
    first = mapping_at(pointer(address));
    if (found == NULL ||
        (first < fake.mapping_count && fake.mappings[first].address < pointer(address) + bytes)) {
        fake_unlock();
        return CUDA_ERROR_INVALID_VALUE;
    }
    *link = found->next;
    device_range_release(fake.host, found->reserved, found->reserved_bytes);
    fake_unlock();
    free(found);
    return CUDA_SUCCESS;
}

/* Makes room for one more mapping. */
static bool reserve_mapping(void)
{
    size_t capacity = fake.mapping_capacity == 0 ? 64 : fake.mapping_capacity * 2;
    struct fake_mapping *mappings;

    if (fake.mapping_count < fake.mapping_capacity) {
        return true;
    }
    mappings = realloc(fake.mappings, capacity * sizeof(*mappings));
    if (mappings == NULL) {
        return false;
    }
    fake.mappings = mappings;
    fake.mapping_capacity = capacity;
    return true;
}

static CUresult map(char *address, uint64_t bytes, struct fake_handle *handle)
{
    size_t index = mapping_at(address);

    if (handle == NULL || handle->is_released || range_around(address, bytes) == NULL ||
        (uintptr_t)address % granularity() != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (bytes != handle->page_count * granularity()) {
        return CUDA_ERROR_INVALID_VALUE; /* a handle is mapped as a whole */
    }
    if (index < fake.mapping_count && fake.mappings[index].address < address + bytes) {
        return CUDA_ERROR_ALREADY_MAPPED;
    }
    if (!reserve_mapping()) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memmove(fake.mappings + index + 1, fake.mappings + index,
            (fake.mapping_count - index) * sizeof(*fake.mappings));
    fake.mappings[index] =
        (struct fake_mapping){.address = address, .bytes = bytes, .handle = handle};
    fake.mapping_count++;
    handle->mapping_count++;
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    CUresult result;

    FAKE_DRIVER_ENTER_UNSAFE(cuMemMap);
    if (offset != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!is_whole(bytes) || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    fake_lock();
    result = map(pointer(address), bytes, find_handle(handle));
    fake_unlock();
    return result;
}

static void unmap(size_t first, size_t count)
{
    for (size_t index = first; index < first + count; index++) {
        struct fake_mapping *mapping = &fake.mappings[index];
        struct fake_handle *handle = mapping->handle;

        if (mapping->has_access) {
            (void)device_unmap(fake.host, mapping->address, handle->page_count);
        }
        if (--handle->mapping_count == 0 && handle->is_released) {
            free_handle(handle);
        }
    }
    memmove(fake.mappings + first, fake.mappings + first + count,
            (fake.mapping_count - first - count) * sizeof(*fake.mappings));
    fake.mapping_count -= count;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    size_t first;
    size_t count;

    FAKE_DRIVER_ENTER_UNSAFE(cuMemUnmap);
    if (!is_whole(bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    fake_lock();
    count = whole_mappings(pointer(address), bytes, &first);
    if (fake.machine.unmaps_singly && count > 1) {
        count = 0;
    }
    if (count > 0) {
        unmap(first, count);
    }
    fake_unlock();
    return count > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Fails if a mapping belongs to another device, to which there is no peer access. */
static CUresult give_access(size_t first, size_t count, int device)
{
    for (size_t index = first; index < first + count; index++) {
        if (fake.mappings[index].handle->device != device && !fake.machine.has_peers) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
    }
    for (size_t index = first; index < first + count; index++) {
        struct fake_mapping *mapping = &fake.mappings[index];

        if (!mapping->has_access && device_map(fake.host, mapping->address, mapping->handle->pages,
                                               mapping->handle->page_count) != CAPU_OK) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        mapping->has_access = true;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                        size_t count)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    size_t mapped;
    size_t first;

    FAKE_DRIVER_ENTER_UNSAFE(cuMemSetAccess);
    if (!is_whole(bytes) || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_device(&access[i].location) ||
            access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    fake_lock();
    mapped = whole_mappings(pointer(address), bytes, &first);
    for (size_t i = 0; i < count && mapped > 0 && (i == 0 || result == CUDA_SUCCESS); i++) {
        result = give_access(first, mapped, access[i].location.id);
    }
    fake.access_count = count;
    fake_unlock();
    return result;
}

void fake_memory_finish(void)
{
    if (fake.mapping_count > 0) {
        unmap(0, fake.mapping_count);
    }
    free(fake.mappings);
    while (fake.handles != NULL) {
        free_handle(fake.handles);
    }
    while (fake.ranges != NULL) {
        struct fake_range *next = fake.ranges->next;

        device_range_release(fake.host, fake.ranges->reserved, fake.ranges->reserved_bytes);
        free(fake.ranges);
        fake.ranges = next;
    }
}
