/* The books of a device that keeps its own: see books.h. */
#define _GNU_SOURCE
#include "device/books.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORD_BITS 64

void page_numbers_init(struct page_numbers *numbers, uint64_t limit)
{
    memset(numbers, 0, sizeof(*numbers));
    numbers->limit = limit;
}

void page_numbers_finish(struct page_numbers *numbers)
{
    free(numbers->words);
    memset(numbers, 0, sizeof(*numbers));
}

static capu_status grow_words(struct page_numbers *numbers)
{
    size_t word_count = numbers->word_count == 0 ? 16 : numbers->word_count * 2;
    uint64_t *words = realloc(numbers->words, word_count * sizeof(*words));

    if (words == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    memset(words + numbers->word_count, 0, (word_count - numbers->word_count) * sizeof(*words));
    numbers->words = words;
    numbers->word_count = word_count;
    return CAPU_OK;
}

capu_status page_numbers_take(struct page_numbers *numbers, uint64_t *number)
{
    size_t word = numbers->first_word;
    int bit;

    if (numbers->count == numbers->limit) {
        return CAPU_OVER_BUDGET;
    }
    while (word < numbers->word_count && numbers->words[word] == UINT64_MAX) {
        word++;
    }
    if (word == numbers->word_count) {
        capu_status status = grow_words(numbers);

        if (status != CAPU_OK) {
            return status;
        }
    }
    bit = __builtin_ctzll(~numbers->words[word]);
    numbers->words[word] |= (uint64_t)1 << bit;
    numbers->first_word = word;
    numbers->count++;
    *number = (uint64_t)word * WORD_BITS + (uint64_t)bit;
    return CAPU_OK;
}

bool page_numbers_has(const struct page_numbers *numbers, uint64_t number)
{
    uint64_t word = number / WORD_BITS;

    return word < numbers->word_count && (numbers->words[word] >> (number % WORD_BITS) & 1) != 0;
}

void page_numbers_give(struct page_numbers *numbers, uint64_t number)
{
    size_t word = (size_t)(number / WORD_BITS);

    if (!page_numbers_has(numbers, number)) {
        return;
    }
    numbers->words[word] &= ~((uint64_t)1 << (number % WORD_BITS));
    numbers->count--;
    if (word < numbers->first_word) {
        numbers->first_word = word;
    }
}

void ranges_init(struct ranges *ranges, uint64_t page_bytes)
{
    memset(ranges, 0, sizeof(*ranges));
    ranges->page_bytes = page_bytes;
}

static void free_range(struct range *range)
{
    free(range->slots);
    free(range);
}

void ranges_finish(struct ranges *ranges)
{
    for (size_t index = 0; index < ranges->count; index++) {
        free_range(ranges->sorted[index]);
    }
    free(ranges->sorted);
    memset(ranges, 0, sizeof(*ranges));
}

/* The first range that begins at or below `address`; ranges->count if there is none. */
static size_t index_at(const struct ranges *ranges, const void *address)
{
    size_t low = 0;
    size_t high = ranges->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((uintptr_t)ranges->sorted[middle]->address <= (uintptr_t)address) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

capu_status ranges_add(struct ranges *ranges, void *address, uint64_t bytes)
{
    struct range *range;
    size_t index;

    if (ranges->count == ranges->capacity) {
        size_t capacity = ranges->capacity == 0 ? 64 : ranges->capacity * 2;
        struct range **sorted = realloc(ranges->sorted, capacity * sizeof(*sorted));

        if (sorted == NULL) {
            return CAPU_NO_HOST_MEMORY;
        }
        ranges->sorted = sorted;
        ranges->capacity = capacity;
    }
    range = calloc(1, sizeof(*range));
    if (range == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    range->address = address;
    range->page_count = (size_t)(bytes / ranges->page_bytes);
    range->slots = malloc(range->page_count * sizeof(*range->slots));
    if (range->slots == NULL) {
        free(range);
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t slot = 0; slot < range->page_count; slot++) {
        range->slots[slot] = RANGE_HOLE;
    }
    index = index_at(ranges, address);
    memmove(ranges->sorted + index + 1, ranges->sorted + index,
            (ranges->count - index) * sizeof(struct range *));
    ranges->sorted[index] = range;
    ranges->count++;
    return CAPU_OK;
}

static size_t slot_at(const struct ranges *ranges, const struct range *range, const void *address)
{
    return (size_t)(((uintptr_t)address - (uintptr_t)range->address) / ranges->page_bytes);
}

struct range *ranges_find(const struct ranges *ranges, const void *address, size_t count)
{
    size_t index = index_at(ranges, address);
    struct range *range;
    size_t slot;

    if (index == ranges->count) {
        return NULL;
    }
    range = ranges->sorted[index];
    slot = slot_at(ranges, range, address);
    if (slot >= range->page_count || count > range->page_count - slot) {
        return NULL;
    }
    return range;
}

struct range *ranges_find_empty(const struct ranges *ranges, const void *address, uint64_t bytes)
{
    size_t index = index_at(ranges, address);
    struct range *range;

    if (index == ranges->count) {
        return NULL;
    }
    range = ranges->sorted[index];
    if (range->address != address || range->page_count * ranges->page_bytes != bytes ||
        range->mapped_count > 0) {
        return NULL;
    }
    return range;
}

void ranges_remove(struct ranges *ranges, struct range *range)
{
    size_t index = index_at(ranges, range->address);

    memmove(ranges->sorted + index, ranges->sorted + index + 1,
            (ranges->count - index - 1) * sizeof(struct range *));
    ranges->count--;
    free_range(range);
}

bool range_is_unmapped(const struct ranges *ranges, const struct range *range, const void *address,
                       size_t count)
{
    const uint64_t *slots = range->slots + slot_at(ranges, range, address);

    for (size_t index = 0; index < count; index++) {
        if (slots[index] != RANGE_HOLE) {
            return false;
        }
    }
    return true;
}

bool range_is_mapped(const struct ranges *ranges, const struct range *range, const void *address,
                     size_t count)
{
    const uint64_t *slots = range->slots + slot_at(ranges, range, address);

    if (range->mapped_count == range->page_count) {
        return true;
    }
    for (size_t index = 0; index < count; index++) {
        if (slots[index] == RANGE_HOLE) {
            return false;
        }
    }
    return true;
}

static bool begins_mapping(uint64_t slot)
{
    return slot != RANGE_HOLE && (slot & RANGE_FIRST) != 0;
}

bool range_is_whole(const struct ranges *ranges, const struct range *range, const void *address,
                    size_t count)
{
    size_t first = slot_at(ranges, range, address);
    size_t end = first + count;

    return range_is_mapped(ranges, range, address, count) && begins_mapping(range->slots[first]) &&
           (end == range->page_count || range->slots[end] == RANGE_HOLE ||
            begins_mapping(range->slots[end]));
}

void range_map(const struct ranges *ranges, struct range *range, const void *address,
               const device_page *pages, size_t count)
{
    uint64_t *slots = range->slots + slot_at(ranges, range, address);

    memcpy(slots, pages, count * sizeof(*slots));
    slots[0] |= RANGE_FIRST;
    range->mapped_count += count;
}

void range_unmap(const struct ranges *ranges, struct range *range, const void *address,
                 size_t count)
{
    uint64_t *slots = range->slots + slot_at(ranges, range, address);

    for (size_t index = 0; index < count; index++) {
        slots[index] = RANGE_HOLE;
    }
    range->mapped_count -= count;
}

/* One for each run of consecutive pages, and one for the hole that may come to stand beside. */
size_t range_cost(const struct ranges *ranges, const struct range *range, const void *address,
                  size_t count)
{
    const uint64_t *slots = range->slots + slot_at(ranges, range, address);
    size_t cost = 0;

    for (size_t index = 0; index < count; index++) {
        if (begins_mapping(slots[index])) {
            cost += 2;
        } else if (slots[index] != (slots[index - 1] & ~RANGE_FIRST) + 1) {
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

    if (bytes > SIZE_MAX - slack) {
        return CAPU_NO_ADDRESS_SPACE;
    }
    all = mmap(NULL, bytes + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) {
        return CAPU_NO_ADDRESS_SPACE;
    }
    /* Cutting off both ends of one mapping needs no further one. */
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

void chunks_finish(struct chunks *chunks)
{
    for (size_t index = 0; index < chunks->count; index++) {
        munmap(chunks->sorted[index].address, chunks->sorted[index].bytes);
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

static capu_status add_chunk(struct chunks *chunks, char *address, uint64_t bytes)
{
    size_t index;

    if (chunks->count == chunks->capacity) {
        size_t capacity = chunks->capacity == 0 ? 16 : chunks->capacity * 2;
        struct chunk *sorted = realloc(chunks->sorted, capacity * sizeof(*sorted));

        if (sorted == NULL) {
            return CAPU_NO_HOST_MEMORY;
        }
        chunks->sorted = sorted;
        chunks->capacity = capacity;
    }
    index = chunk_above(chunks, address);
    memmove(chunks->sorted + index + 1, chunks->sorted + index,
            (chunks->count - index) * sizeof(*chunks->sorted));
    chunks->sorted[index].address = address;
    chunks->sorted[index].bytes = bytes;
    chunks->count++;
    return CAPU_OK;
}

/* Brings the memory in, so that no copy faults later and a full machine is a status now. */
static capu_status populate(void *address, uint64_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    while (madvise(address, bytes, MADV_POPULATE_WRITE) != 0) {
        if (errno == EINVAL) {
            break; /* before Linux 5.14: it comes in when touched */
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
    if (!is_lazy) {
        status = populate(memory, bytes);
    }
    if (status == CAPU_OK) {
        pthread_mutex_lock(&chunks->lock);
        status = add_chunk(chunks, memory, bytes);
        pthread_mutex_unlock(&chunks->lock);
    }
    if (status != CAPU_OK) {
        munmap(memory, bytes);
        return status;
    }
    *address = memory;
    return CAPU_OK;
}

void chunks_free(struct chunks *chunks, void *address, uint64_t bytes)
{
    size_t index;

    pthread_mutex_lock(&chunks->lock);
    index = chunk_above(chunks, address);
    if (index > 0 && chunks->sorted[index - 1].address == address &&
        chunks->sorted[index - 1].bytes == bytes) {
        munmap(address, bytes);
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
