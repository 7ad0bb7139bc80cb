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
#define _GNU_SOURCE
#include "device/host.h"

#include "device/fault_trap.h"

#include <sys/mman.h>

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
        return CAPU_NO_ADDRESS_SPACE;
    }
    /* A child would share the memory and not copy it. */
    if (madvise(view, bytes, MADV_DONTFORK) != 0) {
        munmap(view, bytes);
        return CAPU_NO_ADDRESS_SPACE;
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
            return CAPU_NO_ADDRESS_SPACE;
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
        return CAPU_NO_ADDRESS_SPACE;
    }
    /* What may be written comes last: it counts where ranges share a page. */
    for (size_t i = 0; i < 2 * count; i++) {
        const struct device_grant *grant = &grants[i % count];
        int access = grant->is_writable ? PROT_READ | PROT_WRITE : PROT_READ;

        if (grant->is_writable == (i >= count) && !protect(host, grant, access)) {
            close_all(host);
            return CAPU_NO_ADDRESS_SPACE;
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
static void note(_Atomic uintptr_t *noted, const void *address)
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
        note(&host->guard.written, address);
        return protect(host, grant, PROT_READ | PROT_WRITE);
    }
    if (!is_open && !is_mapped(host, &page)) {
        return false;
    }
    if (is_open) {
        note(&host->guard.strayed, address);
    }
    atomic_store(&host->guard.has_opened_more, true);
    return protect(host, &page, PROT_READ | PROT_WRITE);
}
