/*
 * Books: what a device has to know about its own memory. Which pages exist, which addresses are
 * reserved, what is mapped where, and which host memory was handed out. All devices use them.
 *
 * The kernel and the CUDA driver do not answer every misuse with an error; mmap with MAP_FIXED, for
 * one, silently replaces other mappings. So a device checks a call against its books first and
 * returns INVALID.
 *
 * Pages and ranges are owned by the device's calling thread. Chunks have a lock of their own, since
 * host_alloc and host_free may be called from a second thread.
 */
#ifndef CAPU_DEVICE_BOOKS_H
#define CAPU_DEVICE_BOOKS_H

#include "base/bits.h"
#include "device/device.h"

#include <pthread.h>

/* Page numbers 0 .. limit - 1. The lowest free number is taken first: low, consecutive numbers mean
   long runs and few kernel mappings. */
struct page_numbers {
    struct bits free; /* numbers that no page has; grows with the most that ever existed */
    uint64_t limit;
    uint64_t count; /* pages that exist */
};

void page_numbers_init(struct page_numbers *numbers, uint64_t limit);
void page_numbers_finish(struct page_numbers *numbers);
/* OVER_BUDGET: all `limit` exist. NO_HOST_MEMORY. */
capu_status page_numbers_take(struct page_numbers *numbers, uint64_t *number);
void page_numbers_give(struct page_numbers *numbers, uint64_t number);
bool page_numbers_has(const struct page_numbers *numbers, uint64_t number);

struct fault_trap;

/* A reserved range of addresses, and what is mapped in it. */
struct reservation {
    char *address;
    size_t page_count;
    size_t mapped_count;
    uint64_t *slots; /* a page's number and RESERVATION_MAPPED, RESERVATION_FIRST as well where a
                        map call began; RESERVATION_HOLE */
    struct fault_trap *trap; /* the owner's: host_memory.c; NULL: none */
    uint64_t lead_bytes;     /* the owner's: cuda_memory.c */
};
/* Zero, so that slots come from calloc and a large range takes memory only where it was mapped. */
#define RESERVATION_HOLE ((uint64_t)0)
#define RESERVATION_MAPPED ((uint64_t)1 << 62)
#define RESERVATION_FIRST ((uint64_t)1 << 63)

struct reservations {
    struct reservation **sorted; /* by falling address, since the kernel hands out falling ones */
    size_t count;
    size_t capacity;
    uint64_t page_bytes;
};

void reservations_init(struct reservations *reservations, uint64_t page_bytes);
/* Forgets all reservations. The caller has released their addresses before. */
void reservations_finish(struct reservations *reservations);
/* Pre: the range overlaps no other. NO_HOST_MEMORY. */
capu_status reservations_add(struct reservations *reservations, void *address, uint64_t bytes);
/* The range that contains `count` pages from `address`, or NULL. */
struct reservation *reservations_find(const struct reservations *reservations, const void *address,
                                      size_t count);
/* The range with exactly this address and size, if nothing is mapped in it; else NULL. */
struct reservation *reservations_find_empty(const struct reservations *reservations,
                                            const void *address, uint64_t bytes);
void reservations_remove(struct reservations *reservations, struct reservation *reservation);

/* Whether `count` pages from `address` are all unmapped. Pre, here and below: they lie in the
 * range. */
bool reservation_is_unmapped(const struct reservations *reservations,
                             const struct reservation *reservation, const void *address,
                             size_t count);
/* Whether they are all mapped. */
bool reservation_is_mapped(const struct reservations *reservations,
                           const struct reservation *reservation, const void *address,
                           size_t count);
/* Whether they are exactly the pages of one or more earlier map calls. */
bool reservation_is_whole(const struct reservations *reservations,
                          const struct reservation *reservation, const void *address, size_t count);
/* The page that is mapped at the address, or DEVICE_NO_PAGE. */
device_page reservation_page(const struct reservations *reservations,
                             const struct reservation *reservation, const void *address);
void reservation_map(const struct reservations *reservations, struct reservation *reservation,
                     const void *address, const device_page *pages, size_t count);
void reservation_unmap(const struct reservations *reservations, struct reservation *reservation,
                       const void *address, size_t count);
/* Kernel mappings that the map calls of these pages may need: see host_memory.c. Pre: whole calls.
 */
size_t reservation_cost(const struct reservations *reservations,
                        const struct reservation *reservation, const void *address, size_t count);
/* The same for pages that are about to be mapped in one call. */
size_t pages_cost(const device_page *pages, size_t count);

/* Reserves `bytes` of addresses aligned to `alignment`, without access and with nothing mapped.
   SYSTEM_LIMIT. */
capu_status addresses_reserve(uint64_t bytes, uint64_t alignment, void **address);
void addresses_release(void *address, uint64_t bytes);

/* Host memory handed out. Any thread. */
struct chunk {
    char *address;
    uint64_t bytes;
    bool is_borrowed; /* not unmapped here */
};

struct chunks {
    pthread_mutex_t lock; /* guards the rest */
    struct chunk *sorted; /* by address */
    size_t count;
    size_t capacity;
};

void chunks_init(struct chunks *chunks);
/* Unmaps what is left. */
void chunks_finish(struct chunks *chunks);
/* Zeroed memory; unless lazy, the kernel provides all of it before the call returns.
   NO_HOST_MEMORY. */
capu_status chunks_alloc(struct chunks *chunks, uint64_t bytes, bool is_lazy, void **address);
/* Enters memory that is mapped, and later unmapped, elsewhere. NO_HOST_MEMORY. */
capu_status chunks_borrow(struct chunks *chunks, void *address, uint64_t bytes);
bool chunks_is_borrowed(struct chunks *chunks, const void *address);
void chunks_free(struct chunks *chunks, void *address, uint64_t bytes);
/* Whether all of [address, address + bytes) is in one chunk. */
bool chunks_hold(struct chunks *chunks, const void *address, uint64_t bytes);

#endif
