/*
 * Books: see books.h.
 *
 * Reservations and chunks are sorted arrays, searched by halving: there are few of them, and they
 * change rarely. A reservation has one slot per page.
 */
#define _GNU_SOURCE
#include "device/books.h"

#include "base/array.h"
#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_NUMBERS ((size_t)64)

void page_numbers_init(struct page_numbers *numbers, uint64_t limit)
{
    *numbers = (struct page_numbers){.limit = limit};
}

void page_numbers_finish(struct page_numbers *numbers)
{
    bits_finish(&numbers->free);
    *numbers = (struct page_numbers){0};
}

static bool add_numbers(struct page_numbers *numbers)
{
    size_t first = numbers->free.count;

    if (!bits_grow(&numbers->free, first == 0 ? FIRST_NUMBERS : first * 2)) {
        return false;
    }
    for (size_t number = first; number < numbers->free.count; number++) {
        bits_add(&numbers->free, number);
    }
    return true;
}

capu_status page_numbers_take(struct page_numbers *numbers, uint64_t *number)
{
    size_t first = bits_next(&numbers->free, 0);

    if (numbers->count == numbers->limit) {
        return CAPU_OVER_BUDGET;
    }
    if (first == BITS_NONE) {
        first = numbers->free.count;
        if (!add_numbers(numbers)) {
            return CAPU_NO_HOST_MEMORY;
        }
    }
    bits_remove(&numbers->free, first);
    numbers->count++;
    *number = first;
    return CAPU_OK;
}

bool page_numbers_has(const struct page_numbers *numbers, uint64_t number)
{
    return number < numbers->free.count && !bits_has(&numbers->free, (size_t)number);
}

void page_numbers_give(struct page_numbers *numbers, uint64_t number)
{
    if (page_numbers_has(numbers, number)) {
        bits_add(&numbers->free, (size_t)number);
        numbers->count--;
    }
}

void reservations_init(struct reservations *reservations, uint64_t page_bytes)
{
    memset(reservations, 0, sizeof(*reservations));
    reservations->page_bytes = page_bytes;
}

static void free_reservation(struct reservation *reservation)
{
    free(reservation->slots);
    free(reservation);
}

void reservations_finish(struct reservations *reservations)
{
    for (size_t index = 0; index < reservations->count; index++) {
        free_reservation(reservations->sorted[index]);
    }
    free(reservations->sorted);
    memset(reservations, 0, sizeof(*reservations));
}

/* The first range that begins at or below `address`; reservations->count if there is none. */
static size_t index_at(const struct reservations *reservations, const void *address)
{
    size_t low = 0;
    size_t high = reservations->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((uintptr_t)reservations->sorted[middle]->address <= (uintptr_t)address) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

capu_status reservations_add(struct reservations *reservations, void *address, uint64_t bytes)
{
    struct reservation *reservation;
    size_t index;

    if (!array_reserve(&reservations->sorted, &reservations->capacity, reservations->count + 1,
                       sizeof(struct reservation *))) {
        return CAPU_NO_HOST_MEMORY;
    }
    reservation = calloc(1, sizeof(*reservation));
    if (reservation == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    reservation->address = address;
    reservation->page_count = (size_t)(bytes / reservations->page_bytes);
    reservation->slots = calloc(reservation->page_count, sizeof(*reservation->slots));
    if (reservation->slots == NULL) {
        free(reservation);
        return CAPU_NO_HOST_MEMORY;
    }
    index = index_at(reservations, address);
    ASSERT(index == 0 ||
           (uint64_t)(reservations->sorted[index - 1]->address - (char *)address) >= bytes);
    ASSERT(index == reservations->count ||
           (uint64_t)((char *)address - reservations->sorted[index]->address) >=
               reservations->sorted[index]->page_count * reservations->page_bytes);
    memmove(reservations->sorted + index + 1, reservations->sorted + index,
            (reservations->count - index) * sizeof(struct reservation *));
    reservations->sorted[index] = reservation;
    reservations->count++;
    return CAPU_OK;
}

static size_t slot_at(const struct reservations *reservations,
                      const struct reservation *reservation, const void *address)
{
    return (size_t)(((uintptr_t)address - (uintptr_t)reservation->address) /
                    reservations->page_bytes);
}

/* The slots of `count` pages from `address`, which lie in the range. */
static uint64_t *slots_of(const struct reservations *reservations,
                          const struct reservation *reservation, const void *address, size_t count)
{
    size_t first = slot_at(reservations, reservation, address);

    ASSERT(first < reservation->page_count && count <= reservation->page_count - first);
    (void)count;
    return reservation->slots + first;
}

struct reservation *reservations_find(const struct reservations *reservations, const void *address,
                                      size_t count)
{
    size_t index = index_at(reservations, address);
    struct reservation *reservation;
    size_t slot;

    if (index == reservations->count) {
        return NULL;
    }
    reservation = reservations->sorted[index];
    slot = slot_at(reservations, reservation, address);
    if (slot >= reservation->page_count || count > reservation->page_count - slot) {
        return NULL;
    }
    return reservation;
}

struct reservation *reservations_find_empty(const struct reservations *reservations,
                                            const void *address, uint64_t bytes)
{
    size_t index = index_at(reservations, address);
    struct reservation *reservation;

    if (index == reservations->count) {
        return NULL;
    }
    reservation = reservations->sorted[index];
    if (reservation->address != address ||
        reservation->page_count * reservations->page_bytes != bytes ||
        reservation->mapped_count > 0) {
        return NULL;
    }
    return reservation;
}

void reservations_remove(struct reservations *reservations, struct reservation *reservation)
{
    size_t index = index_at(reservations, reservation->address);

    ASSERT(index < reservations->count && reservations->sorted[index] == reservation);
    memmove(reservations->sorted + index, reservations->sorted + index + 1,
            (reservations->count - index - 1) * sizeof(struct reservation *));
    reservations->count--;
    free_reservation(reservation);
}

bool reservation_is_unmapped(const struct reservations *reservations,
                             const struct reservation *reservation, const void *address,
                             size_t count)
{
    const uint64_t *slots = slots_of(reservations, reservation, address, count);

    for (size_t index = 0; index < count; index++) {
        if (slots[index] != RESERVATION_HOLE) {
            return false;
        }
    }
    return true;
}

bool reservation_is_mapped(const struct reservations *reservations,
                           const struct reservation *reservation, const void *address, size_t count)
{
    const uint64_t *slots = slots_of(reservations, reservation, address, count);

    if (reservation->mapped_count == reservation->page_count) {
        return true;
    }
    for (size_t index = 0; index < count; index++) {
        if (slots[index] == RESERVATION_HOLE) {
            return false;
        }
    }
    return true;
}

static bool begins_mapping(uint64_t slot)
{
    return (slot & RESERVATION_FIRST) != 0;
}

bool reservation_is_whole(const struct reservations *reservations,
                          const struct reservation *reservation, const void *address, size_t count)
{
    size_t first = slot_at(reservations, reservation, address);
    size_t end = first + count;

    return reservation_is_mapped(reservations, reservation, address, count) &&
           begins_mapping(reservation->slots[first]) &&
           (end == reservation->page_count || reservation->slots[end] == RESERVATION_HOLE ||
            begins_mapping(reservation->slots[end]));
}

device_page reservation_page(const struct reservations *reservations,
                             const struct reservation *reservation, const void *address)
{
    uint64_t slot = *slots_of(reservations, reservation, address, 1);

    return slot == RESERVATION_HOLE ? DEVICE_NO_PAGE
                                    : slot & ~(RESERVATION_MAPPED | RESERVATION_FIRST);
}

void reservation_map(const struct reservations *reservations, struct reservation *reservation,
                     const void *address, const device_page *pages, size_t count)
{
    uint64_t *slots = slots_of(reservations, reservation, address, count);

    ASSERT(count > 0);
    ASSERT_INTERNAL(reservation_is_unmapped(reservations, reservation, address, count));
    for (size_t index = 0; index < count; index++) {
        slots[index] = pages[index] | RESERVATION_MAPPED;
    }
    slots[0] |= RESERVATION_FIRST;
    reservation->mapped_count += count;
}

void reservation_unmap(const struct reservations *reservations, struct reservation *reservation,
                       const void *address, size_t count)
{
    uint64_t *slots = slots_of(reservations, reservation, address, count);

    ASSERT_INTERNAL(reservation_is_whole(reservations, reservation, address, count));
    for (size_t index = 0; index < count; index++) {
        slots[index] = RESERVATION_HOLE;
    }
    reservation->mapped_count -= count;
}

/* One per run of consecutive pages, and one for the hole that may appear beside them. */
size_t reservation_cost(const struct reservations *reservations,
                        const struct reservation *reservation, const void *address, size_t count)
{
    const uint64_t *slots = slots_of(reservations, reservation, address, count);
    size_t cost = 0;

    ASSERT_INTERNAL(reservation_is_whole(reservations, reservation, address, count));
    for (size_t index = 0; index < count; index++) {
        if (begins_mapping(slots[index])) {
            cost += 2;
        } else if (slots[index] != (slots[index - 1] & ~RESERVATION_FIRST) + 1) {
            cost++;
        }
    }
    return cost;
}

size_t pages_cost(const device_page *pages, size_t count)
{
    size_t cost = 2;

    for (size_t index = 1; index < count; index++) {
        if (pages[index] != pages[index - 1] + 1) {
            cost++;
        }
    }
    return cost;
}

capu_status addresses_reserve(uint64_t bytes, uint64_t alignment, void **address)
{
    const uint64_t machine_page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t slack = alignment > machine_page ? alignment - machine_page : 0;
    char *all;
    char *start;
    uint64_t before;

    ASSERT(bytes > 0 && alignment > 0 && (alignment & (alignment - 1)) == 0);
    if (bytes > SIZE_MAX - slack) {
        return CAPU_SYSTEM_LIMIT;
    }
    all = mmap(NULL, bytes + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) {
        return CAPU_SYSTEM_LIMIT;
    }
    /* Cutting off the ends of a mapping does not add one. */
    before = (alignment - ((uintptr_t)all & (alignment - 1))) & (alignment - 1);
    start = all + before;
    if (before > 0) {
        munmap(all, before);
    }
    if (slack > before) {
        munmap(start + bytes, slack - before);
    }
    *address = start;
    return CAPU_OK;
}

void addresses_release(void *address, uint64_t bytes)
{
    munmap(address, bytes);
}

void chunks_init(struct chunks *chunks)
{
    memset(chunks, 0, sizeof(*chunks));
    pthread_mutex_init(&chunks->lock, NULL);
}

static void drop_chunk(const struct chunk *chunk)
{
    if (!chunk->is_borrowed) {
        munmap(chunk->address, chunk->bytes);
    }
}

void chunks_finish(struct chunks *chunks)
{
    for (size_t index = 0; index < chunks->count; index++) {
        drop_chunk(&chunks->sorted[index]);
    }
    free(chunks->sorted);
    pthread_mutex_destroy(&chunks->lock);
}

/* The first chunk that begins above `address`. */
static size_t chunk_above(const struct chunks *chunks, const void *address)
{
    size_t low = 0;
    size_t high = chunks->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((uintptr_t)chunks->sorted[middle].address > (uintptr_t)address) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static capu_status add_chunk(struct chunks *chunks, char *address, uint64_t bytes, bool is_borrowed)
{
    size_t index;

    if (!array_reserve(&chunks->sorted, &chunks->capacity, chunks->count + 1,
                       sizeof(*chunks->sorted))) {
        return CAPU_NO_HOST_MEMORY;
    }
    index = chunk_above(chunks, address);
    memmove(chunks->sorted + index + 1, chunks->sorted + index,
            (chunks->count - index) * sizeof(*chunks->sorted));
    chunks->sorted[index] = (struct chunk){address, bytes, is_borrowed};
    chunks->count++;
    return CAPU_OK;
}

/* Keeps memory out of child processes: a copy would be made page by page as either side writes, and
   memory that a device reads or writes must stay where it is. */
static bool keep_from_children(void *address, uint64_t bytes)
{
    return madvise(address, bytes, MADV_DONTFORK) == 0;
}

/* Makes the kernel provide the memory, so that lack of it is a status here and no copy faults
   later. */
static capu_status populate(void *address, uint64_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    while (madvise(address, bytes, MADV_POPULATE_WRITE) != 0) {
        if (errno == EINVAL) {
            break; /* before Linux 5.14: provided when touched */
        }
        if (errno != EINTR && errno != EAGAIN) {
            return CAPU_NO_HOST_MEMORY;
        }
    }
#else
    (void)address;
    (void)bytes;
#endif
    return CAPU_OK;
}

capu_status chunks_alloc(struct chunks *chunks, uint64_t bytes, bool is_lazy, void **address)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (is_lazy ? MAP_NORESERVE : 0);
    char *memory;
    capu_status status = CAPU_OK;

    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) {
        return CAPU_NO_HOST_MEMORY;
    }
    if (!keep_from_children(memory, bytes)) {
        status = CAPU_NO_HOST_MEMORY;
    } else if (!is_lazy) {
        status = populate(memory, bytes);
    }
    if (status == CAPU_OK) {
        pthread_mutex_lock(&chunks->lock);
        status = add_chunk(chunks, memory, bytes, false);
        pthread_mutex_unlock(&chunks->lock);
    }
    if (status != CAPU_OK) {
        munmap(memory, bytes);
        return status;
    }
    *address = memory;
    return CAPU_OK;
}

capu_status chunks_borrow(struct chunks *chunks, void *address, uint64_t bytes)
{
    capu_status status;

    (void)keep_from_children(address, bytes); /* a driver may not lay it out in whole pages */
    pthread_mutex_lock(&chunks->lock);
    status = add_chunk(chunks, address, bytes, true);
    pthread_mutex_unlock(&chunks->lock);
    return status;
}

bool chunks_is_borrowed(struct chunks *chunks, const void *address)
{
    bool is_borrowed;
    size_t index;

    pthread_mutex_lock(&chunks->lock);
    index = chunk_above(chunks, address);
    is_borrowed = index > 0 && chunks->sorted[index - 1].is_borrowed;
    pthread_mutex_unlock(&chunks->lock);
    return is_borrowed;
}

void chunks_free(struct chunks *chunks, void *address, uint64_t bytes)
{
    size_t index;

    pthread_mutex_lock(&chunks->lock);
    index = chunk_above(chunks, address);
    if (index > 0 && chunks->sorted[index - 1].address == address &&
        chunks->sorted[index - 1].bytes == bytes) {
        drop_chunk(&chunks->sorted[index - 1]);
        memmove(chunks->sorted + index - 1, chunks->sorted + index,
                (chunks->count - index) * sizeof(*chunks->sorted));
        chunks->count--;
    }
    pthread_mutex_unlock(&chunks->lock);
}

bool chunks_hold(struct chunks *chunks, const void *address, uint64_t bytes)
{
    bool holds = false;
    size_t index;

    pthread_mutex_lock(&chunks->lock);
    index = chunk_above(chunks, address);
    if (index > 0) {
        const struct chunk *chunk = &chunks->sorted[index - 1];
        uint64_t offset = (uintptr_t)address - (uintptr_t)chunk->address;

        holds = offset < chunk->bytes && bytes <= chunk->bytes - offset;
    }
    pthread_mutex_unlock(&chunks->lock);
    return holds;
}
