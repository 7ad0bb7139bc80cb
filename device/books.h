/*
 * The books of a device that keeps its own: which pages exist, which addresses are reserved, what
 * is mapped where, and which host memory was handed out. The host and sim devices share them.
 *
 * Pages and ranges are owned by the device's calling thread; chunks have a lock of their own, since
 * host_alloc and host_free may come from a second thread.
 */
#ifndef CAPU_DEVICE_BOOKS_H
#define CAPU_DEVICE_BOOKS_H

#include "device/device.h"

#include <pthread.h>

/* Page numbers 0 .. limit - 1. The lowest free one is given out first: low, contiguous numbers mean
   long runs and few kernel mappings. */
struct page_numbers {
    uint64_t *words; /* a set bit is a page that exists */
    size_t word_count;
    size_t first_word; /* no free number in the words before this */
    uint64_t limit;
    uint64_t count; /* pages that exist */
};

void page_numbers_init(struct page_numbers *numbers, uint64_t limit);
void page_numbers_finish(struct page_numbers *numbers);
/* OVER_BUDGET: all `limit` exist. NO_HOST_MEMORY. */
capu_status page_numbers_take(struct page_numbers *numbers, uint64_t *number);
void page_numbers_give(struct page_numbers *numbers, uint64_t number);
bool page_numbers_has(const struct page_numbers *numbers, uint64_t number);

/* A reserved range of addresses and what is mapped in it. */
struct range {
    char *address;
    size_t page_count;
    size_t mapped_count;
    uint64_t *slots; /* a page's number, RANGE_FIRST set where a map call began; RANGE_HOLE */
};
#define RANGE_HOLE UINT64_MAX
#define RANGE_FIRST ((uint64_t)1 << 63)

struct ranges {
    struct range **sorted; /* by falling address: the kernel gives out addresses downwards */
    size_t count;
    size_t capacity;
    uint64_t page_bytes;
};

void ranges_init(struct ranges *ranges, uint64_t page_bytes);
/* Forgets all ranges; their addresses are the caller's to unreserve before. */
void ranges_finish(struct ranges *ranges);
/* NO_HOST_MEMORY. `address` must not overlap a range that is there. */
capu_status ranges_add(struct ranges *ranges, void *address, uint64_t bytes);
/* The range that holds `count` pages from `address`, or NULL. */
struct range *ranges_find(const struct ranges *ranges, const void *address, size_t count);
/* NULL unless exactly a range with nothing mapped. */
struct range *ranges_find_empty(const struct ranges *ranges, const void *address, uint64_t bytes);
void ranges_remove(struct ranges *ranges, struct range *range);

/* Whether `count` pages from `address` of the range are all unmapped. */
bool range_is_unmapped(const struct ranges *ranges, const struct range *range, const void *address,
                       size_t count);
/* Whether they are all mapped. */
bool range_is_mapped(const struct ranges *ranges, const struct range *range, const void *address,
                     size_t count);
/* Whether they are whole mappings of earlier calls. */
bool range_is_whole(const struct ranges *ranges, const struct range *range, const void *address,
                    size_t count);
void range_map(const struct ranges *ranges, struct range *range, const void *address,
               const device_page *pages, size_t count);
void range_unmap(const struct ranges *ranges, struct range *range, const void *address,
                 size_t count);
/* Kernel mappings that the map calls in these pages may need: see host_memory.c. */
size_t range_cost(const struct ranges *ranges, const struct range *range, const void *address,
                  size_t count);
/* The same for pages about to be mapped in one call. */
size_t pages_cost(const device_page *pages, size_t count);

/* Reserves `bytes` of addresses aligned to `alignment`, with no access and nothing behind them.
   NO_ADDRESS_SPACE. */
capu_status addresses_reserve(uint64_t bytes, uint64_t alignment, void **address);
void addresses_release(void *address, uint64_t bytes);

/* Host memory handed out. Any thread. */
struct chunk {
    char *address;
    uint64_t bytes;
};

struct chunks {
    pthread_mutex_t lock; /* guards the rest */
    struct chunk *sorted; /* by address */
    size_t count;
    size_t capacity;
};

void chunks_init(struct chunks *chunks);
/* Unmaps all that is left. */
void chunks_finish(struct chunks *chunks);
/* Lazy, zeroed memory, or memory that is there before the call returns. NO_HOST_MEMORY. */
capu_status chunks_alloc(struct chunks *chunks, uint64_t bytes, bool is_lazy, void **address);
void chunks_free(struct chunks *chunks, void *address, uint64_t bytes);
/* Whether all of [address, address + bytes) is in one chunk. */
bool chunks_hold(struct chunks *chunks, const void *address, uint64_t bytes);

#endif
