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
static capu_status commit_page(const struct host_device *host, device_page page)
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
    status = commit_page(host, number);
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
        return CAPU_SYSTEM_LIMIT;
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
        return CAPU_SYSTEM_LIMIT;
    }
    if (!map_runs(host, address, pages, count)) {
        cover(address, count * device->capabilities.page_bytes);
        give_mappings(host, cost);
        return CAPU_SYSTEM_LIMIT;
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
        return CAPU_SYSTEM_LIMIT;
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

/*
 * The host device's guard: while work runs, it can touch only the memory that was opened for it.
 *
 * A guarded device maps all memory without access. `open` gives access to the pages of some ranges,
 * and `close` takes it away again. The device's own copies and fills, and its user's look at memory
 * through `view`, do not depend on that: they go through a second mapping of the whole memory file.
 *
 * If work touches other memory, the fault is noted, the memory is made accessible, and the work
 * goes on; so the functions of ops keep their locks and their own memory, and faults of threads
 * that they have started are noted as well. `close` returns what was noted. Addresses with no page
 * read as zeros then, and what is written there is lost.
 *
 * Between `close` and `open` no work runs that could be blamed. The program may then look at mapped
 * memory, as without a guard; that it has done so is noted only to close the memory again.
 *
 * Owned by the device's calling thread. The fault handler runs on the thread that faulted. While
 * memory is open, the calling thread waits for the work, and so `grants` and the books stand still;
 * what both write is atomic.
 */

capu_status host_guard(struct device *device)
{
    struct host_device *host = host_of(device);
    uint64_t bytes = device->capabilities.memory_bytes;
    void *view;

    if (host->guard.view != NULL || host->reservations.count > 0) {
        return CAPU_INVALID;
    }
    view =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, host->memory_file, 0);
    if (view == MAP_FAILED) {
        return CAPU_SYSTEM_LIMIT;
    }
    /* A child would share the memory and not copy it. */
    if (madvise(view, bytes, MADV_DONTFORK) != 0) {
        munmap(view, bytes);
        return CAPU_SYSTEM_LIMIT;
    }
    host->guard.view = view;
    return CAPU_OK;
}

void host_guard_finish(struct host_device *host)
{
    for (size_t i = 0; i < host->reservations.count; i++) {
        fault_trap_remove(host->reservations.sorted[i]->trap);
    }
    if (host->guard.view != NULL) {
        munmap(host->guard.view, host->head.capabilities.memory_bytes);
    }
}

void *host_view(struct device *device, const void *address, uint64_t *bytes)
{
    struct host_device *host = host_of(device);
    uint64_t page_bytes = device->capabilities.page_bytes;
    const struct reservation *range = reservations_find(&host->reservations, address, 1);
    uint64_t offset = (uintptr_t)address & (page_bytes - 1);
    const char *next = (const char *)address - offset + page_bytes;
    uint64_t length = page_bytes - offset;
    device_page first;

    if (range == NULL || host->guard.view == NULL) {
        return NULL;
    }
    first = reservation_page(&host->reservations, range, address);
    if (first == DEVICE_NO_PAGE) {
        return NULL;
    }
    while (length < *bytes && reservations_find(&host->reservations, next, 1) == range &&
           reservation_page(&host->reservations, range, next) ==
               first + (offset + length) / page_bytes) {
        length += page_bytes;
        next += page_bytes;
    }
    *bytes = length < *bytes ? length : *bytes;
    return host->guard.view + first * page_bytes + offset;
}

/* The first and the end of the pages that a grant meets. */
static char *first_of(const struct host_device *host, const struct device_grant *grant)
{
    return (char *)((uintptr_t)grant->address & ~(host->head.capabilities.page_bytes - 1));
}

static char *end_of(const struct host_device *host, const struct device_grant *grant)
{
    uint64_t page_bytes = host->head.capabilities.page_bytes;

    return (char *)(((uintptr_t)grant->address + grant->bytes + page_bytes - 1) &
                    ~(page_bytes - 1));
}

static bool protect(const struct host_device *host, const struct device_grant *grant, int access)
{
    char *first = first_of(host, grant);

    return mprotect(first, (size_t)(end_of(host, grant) - first), access) == 0;
}

/* Whatever is open, with pages or without. */
static capu_status close_all(struct host_device *host)
{
    for (size_t i = 0; i < host->reservations.count; i++) {
        const struct reservation *range = host->reservations.sorted[i];

        if (mprotect(range->address, range->page_count * host->reservations.page_bytes,
                     PROT_NONE) != 0) {
            return CAPU_SYSTEM_LIMIT;
        }
    }
    atomic_store(&host->guard.has_opened_more, false);
    return CAPU_OK;
}

static bool is_mapped(const struct host_device *host, const struct device_grant *grant)
{
    char *first = first_of(host, grant);
    size_t count = (size_t)(end_of(host, grant) - first) / host->reservations.page_bytes;
    const struct reservation *range = reservations_find(&host->reservations, first, count);

    return range != NULL && reservation_is_mapped(&host->reservations, range, first, count);
}

capu_status host_open(struct device *device, const struct device_grant *grants, size_t count)
{
    struct host_device *host = host_of(device);

    if (host->guard.view == NULL || host->guard.is_open) {
        return CAPU_INVALID;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_mapped(host, &grants[i])) {
            return CAPU_INVALID;
        }
    }
    if (atomic_load(&host->guard.has_opened_more) && close_all(host) != CAPU_OK) {
        return CAPU_SYSTEM_LIMIT;
    }
    /* What may be written comes last: it counts where ranges share a page. */
    for (size_t i = 0; i < 2 * count; i++) {
        const struct device_grant *grant = &grants[i % count];
        int access = grant->is_writable ? PROT_READ | PROT_WRITE : PROT_READ;

        if (grant->is_writable == (i >= count) && !protect(host, grant, access)) {
            close_all(host);
            return CAPU_SYSTEM_LIMIT;
        }
    }
    host->guard.grants = grants;
    host->guard.grant_count = count;
    atomic_store(&host->guard.written, 0);
    atomic_store(&host->guard.strayed, 0);
    atomic_store(&host->guard.is_open, true);
    return CAPU_OK;
}

capu_status host_close(struct device *device, struct device_faults *faults)
{
    struct host_device *host = host_of(device);
    bool is_closed = true;

    *faults = (struct device_faults){0};
    if (!atomic_load(&host->guard.is_open)) {
        return CAPU_INVALID;
    }
    atomic_store(&host->guard.is_open, false);
    faults->written = (const void *)atomic_load(&host->guard.written);
    faults->strayed = (const void *)atomic_load(&host->guard.strayed);
    for (size_t i = 0; i < host->guard.grant_count; i++) {
        is_closed = protect(host, &host->guard.grants[i], PROT_NONE) && is_closed;
    }
    host->guard.grant_count = 0;
    if (!is_closed) {
        atomic_store(&host->guard.has_opened_more, true); /* the next open tries again */
    }
    return CAPU_OK;
}

/* Notes the first address. */
static void note_address(_Atomic uintptr_t *noted, const void *address)
{
    uintptr_t none = 0;

    atomic_compare_exchange_strong(noted, &none, (uintptr_t)address);
}

/* The range that was opened for reading and has the address; NULL: none. (What may be written
   raises no fault.) */
static const struct device_grant *find_grant(const struct host_device *host, const char *address)
{
    for (size_t i = 0; i < host->guard.grant_count; i++) {
        const struct device_grant *grant = &host->guard.grants[i];

        if (address >= first_of(host, grant) && address < end_of(host, grant)) {
            return grant;
        }
    }
    return NULL;
}

bool host_guard_fault(void *owner, void *address)
{
    struct host_device *host = owner;
    bool is_open = atomic_load(&host->guard.is_open);
    struct device_grant page = {.address = address, .bytes = 1};
    const struct device_grant *grant = is_open ? find_grant(host, address) : NULL;

    if (grant != NULL) {
        note_address(&host->guard.written, address);
        return protect(host, grant, PROT_READ | PROT_WRITE);
    }
    if (!is_open && !is_mapped(host, &page)) {
        return false;
    }
    if (is_open) {
        note_address(&host->guard.strayed, address);
    }
    atomic_store(&host->guard.has_opened_more, true);
    return protect(host, &page, PROT_READ | PROT_WRITE);
}
