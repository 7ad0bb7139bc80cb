/*
 * The host device's memory: pages of a memfd, mapped into reserved addresses.
 *
 * The kernel allows a process vm.max_map_count mappings. Beyond that even unmapping fails, since a
 * hole cut into a mapping makes one more. So mappings are counted before they are made, at the most
 * that they can become: one per reserved range, and per map call one for every run of consecutive
 * pages and one for a hole beside it. The kernel merges neighbours and needs fewer, and no order of
 * unmapping can need more. The limit applies to the process, so all its host devices count
 * together.
 *
 * Owned by the device's calling thread, except for that sum.
 */
#define _GNU_SOURCE
#include "device/host.h"

#include "device/fault_trap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

/* The most mappings that all host devices of the process may use now. */
static atomic_size_t mappings_of_all;

/* Takes nothing and returns false if fewer than `count` mappings are left for devices. */
static bool take_mappings(struct host_device *host, size_t count)
{
    size_t used = atomic_load_explicit(&mappings_of_all, memory_order_relaxed);

    do {
        if (used > host->mapping_limit || count > host->mapping_limit - used) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&mappings_of_all, &used, used + count,
                                                    memory_order_relaxed, memory_order_relaxed));
    host->mapping_count += count;
    return true;
}

static void give_mappings(struct host_device *host, size_t count)
{
    host->mapping_count -= count;
    atomic_fetch_sub_explicit(&mappings_of_all, count, memory_order_relaxed);
}

static off_t page_offset(const struct host_device *host, device_page page)
{
    return (off_t)(page * host->head.capabilities.page_bytes);
}

/* Gives the page memory before it is mapped, so that lack of memory is a status here and not a
   SIGBUS where the page is touched. */
static capu_status commit(const struct host_device *host, device_page page)
{
    off_t bytes = (off_t)host->head.capabilities.page_bytes;

    while (fallocate(host->memory_file, 0, page_offset(host, page), bytes) != 0) {
        if (errno != EINTR) {
            return CAPU_NO_HOST_MEMORY;
        }
    }
    return CAPU_OK;
}

static void uncommit(const struct host_device *host, device_page page)
{
    int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    off_t bytes = (off_t)host->head.capabilities.page_bytes;

    while (fallocate(host->memory_file, punch, page_offset(host, page), bytes) != 0 &&
           errno == EINTR) {
    }
}

capu_status host_page_create(struct device *device, device_page *page)
{
    struct host_device *host = host_of(device);
    uint64_t number;
    capu_status status;

    status = page_numbers_take(&host->pages, &number);
    if (status != CAPU_OK) {
        return status;
    }
    status = commit(host, number);
    if (status != CAPU_OK) {
        uncommit(host, number); /* a failed fallocate may have provided a part */
        page_numbers_give(&host->pages, number);
        return status;
    }
    *page = number;
    return CAPU_OK;
}

void host_page_destroy(struct device *device, device_page page)
{
    struct host_device *host = host_of(device);

    if (page_numbers_has(&host->pages, page)) {
        uncommit(host, page);
        page_numbers_give(&host->pages, page);
    }
}

capu_status host_range_reserve(struct device *device, uint64_t bytes, void **address)
{
    struct host_device *host = host_of(device);
    struct fault_trap *trap = NULL;
    void *reserved;
    capu_status status;

    if (!take_mappings(host, 1)) {
        return CAPU_NO_ADDRESS_SPACE;
    }
    status = addresses_reserve(bytes, host->head.capabilities.page_bytes, &reserved);
    if (status != CAPU_OK) {
        goto give_mapping;
    }
    if (host->guard.view != NULL) {
        status = fault_trap_set(reserved, bytes, host_guard_fault, host, &trap);
        if (status != CAPU_OK) {
            goto release;
        }
    }
    status = reservations_add(&host->reservations, reserved, bytes);
    if (status != CAPU_OK) {
        goto remove_trap;
    }
    reservations_find(&host->reservations, reserved, 1)->trap = trap;
    *address = reserved;
    return CAPU_OK;

remove_trap:
    fault_trap_remove(trap);
release:
    addresses_release(reserved, bytes);
give_mapping:
    give_mappings(host, 1);
    return status;
}

void host_range_release(struct device *device, void *address, uint64_t bytes)
{
    struct host_device *host = host_of(device);
    struct reservation *range = reservations_find_empty(&host->reservations, address, bytes);

    if (range != NULL) {
        fault_trap_remove(range->trap);
        addresses_release(address, bytes);
        reservations_remove(&host->reservations, range);
        give_mappings(host, 1);
    }
}

/* Puts a mapping without access over whatever is mapped there, which replaces all of it at once. If
   the program has used up the mappings that were left to it, the kernel refuses even that one, but
   it still removes the access from the existing ones. */
static bool cover(void *address, uint64_t bytes)
{
    return mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
                -1, 0) != MAP_FAILED ||
           mprotect(address, bytes, PROT_NONE) == 0;
}

/* Maps each run of consecutive pages with one call, and keeps all of it out of child processes,
   which would share the memory and not copy it. */
static bool map_runs(const struct host_device *host, char *address, const device_page *pages,
                     size_t count)
{
    uint64_t page_bytes = host->head.capabilities.page_bytes;
    int access = host->guard.view == NULL ? PROT_READ | PROT_WRITE : PROT_NONE;
    size_t first = 0;

    while (first < count) {
        size_t end = first + 1;

        while (end < count && pages[end] == pages[end - 1] + 1) {
            end++;
        }
        if (mmap(address + first * page_bytes, (end - first) * page_bytes, access,
                 MAP_SHARED | MAP_FIXED | MAP_POPULATE, host->memory_file,
                 page_offset(host, pages[first])) == MAP_FAILED) {
            return false;
        }
        first = end;
    }
    return madvise(address, count * page_bytes, MADV_DONTFORK) == 0;
}

static bool all_exist(const struct host_device *host, const device_page *pages, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        if (!page_numbers_has(&host->pages, pages[index])) {
            return false;
        }
    }
    return true;
}

capu_status host_map(struct device *device, void *address, const device_page *pages, size_t count)
{
    struct host_device *host = host_of(device);
    struct reservation *range = reservations_find(&host->reservations, address, count);
    size_t cost;

    if (range == NULL || !reservation_is_unmapped(&host->reservations, range, address, count) ||
        !all_exist(host, pages, count)) {
        return CAPU_INVALID;
    }
    cost = pages_cost(pages, count);
    if (!take_mappings(host, cost)) {
        return CAPU_NO_ADDRESS_SPACE;
    }
    if (!map_runs(host, address, pages, count)) {
        cover(address, count * device->capabilities.page_bytes);
        give_mappings(host, cost);
        return CAPU_NO_ADDRESS_SPACE;
    }
    reservation_map(&host->reservations, range, address, pages, count);
    return CAPU_OK;
}

capu_status host_unmap(struct device *device, void *address, size_t count)
{
    struct host_device *host = host_of(device);
    struct reservation *range = reservations_find(&host->reservations, address, count);

    if (range == NULL || !reservation_is_whole(&host->reservations, range, address, count)) {
        return CAPU_INVALID;
    }
    if (!cover(address, count * device->capabilities.page_bytes)) {
        return CAPU_NO_ADDRESS_SPACE;
    }
    give_mappings(host, reservation_cost(&host->reservations, range, address, count));
    reservation_unmap(&host->reservations, range, address, count);
    return CAPU_OK;
}

void host_memory_finish(struct host_device *host)
{
    for (size_t index = 0; index < host->reservations.count; index++) {
        const struct reservation *range = host->reservations.sorted[index];

        addresses_release(range->address, range->page_count * host->reservations.page_bytes);
    }
    give_mappings(host, host->mapping_count);
    reservations_finish(&host->reservations);
    page_numbers_finish(&host->pages);
}
