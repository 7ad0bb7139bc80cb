/*
 * Pages: see pages.h.
 *
 * Pages are numbered in the order of their creation; if one is destroyed, the last one gets its
 * number. Pages with consecutive numbers are neighbours
 * in the host device's memory, too, where a run of them needs a single mapping; so a take prefers a
 * run. The free pages, with those that are aside, are a bit set. The search for a run starts where
 * the last take ended and compares only a few runs, so that a take costs the same however scattered
 * the pool is.
 */
#include "allocator/pages.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/bits.h"
#include "base/table.h"

#include <stdlib.h>

/* How many runs are compared before a take settles for the longest of them. */
#define LOOK_AT_RUNS 16

struct pages {
    struct device *device; /* the caller's; outlives the pool */
    uint64_t page_bytes;
    size_t limit;         /* pages that the budget and the device allow */
    device_page *handles; /* by number */
    size_t created;
    size_t created_peak;
    size_t capacity;      /* of handles */
    struct bits free;     /* numbers of pages in the pool */
    struct table numbers; /* from handle to number */
    size_t free_count;    /* in the pool, with those aside */
    size_t aside_count;
    size_t out_peak;
    size_t cursor; /* the number after that of the page taken last */
};

/* For assertions. */
static inline bool is_sound(const struct pages *pages)
{
    const char *what;

    return pages_validate(pages, &what);
}

/* The pages that a budget and the device allow. */
static size_t limit_of(const struct device *device, uint64_t budget_bytes)
{
    uint64_t limit;

    if (budget_bytes > device->capabilities.memory_bytes) {
        budget_bytes = device->capabilities.memory_bytes;
    }
    limit = budget_bytes / device->capabilities.page_bytes;
    return limit < SIZE_MAX / 2 ? (size_t)limit : SIZE_MAX / 2;
}

capu_status pages_create(struct device *device, uint64_t budget_bytes, struct pages **out)
{
    size_t limit = limit_of(device, budget_bytes);
    struct pages *pages;

    if (limit == 0) {
        return CAPU_OVER_BUDGET;
    }
    pages = calloc(1, sizeof(*pages));
    if (pages == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    pages->device = device;
    pages->page_bytes = device->capabilities.page_bytes;
    pages->limit = limit;
    *out = pages;
    return CAPU_OK;
}

void pages_destroy(struct pages *pages)
{
    if (pages == NULL) {
        return;
    }
    /* A page that is still out may be mapped. It is destroyed with the device. */
    for (size_t i = bits_next(&pages->free, 0); i != BITS_NONE;
         i = bits_next(&pages->free, i + 1)) {
        device_page_destroy(pages->device, pages->handles[i]);
    }
    bits_finish(&pages->free);
    table_finish(&pages->numbers);
    free(pages->handles);
    free(pages);
}

/* Destroys the free page with the highest number. Pre: a page is free. */
static void destroy_last(struct pages *pages)
{
    size_t number = bits_previous(&pages->free, pages->created);
    size_t last = pages->created - 1;

    device_page_destroy(pages->device, pages->handles[number]);
    table_remove(&pages->numbers, pages->handles[number]);
    bits_remove(&pages->free, number);
    if (number != last) { /* which is out, so its number is not a member */
        pages->handles[number] = pages->handles[last];
        table_remove(&pages->numbers, pages->handles[last]);
        table_put(&pages->numbers, pages->handles[last], number);
    }
    pages->created--;
    pages->free_count--;
}

capu_status pages_set_budget(struct pages *pages, uint64_t budget_bytes)
{
    size_t limit = limit_of(pages->device, budget_bytes);

    if (limit == 0 || pages_out(pages) > limit) {
        return CAPU_OVER_BUDGET;
    }
    while (pages->created > limit) {
        destroy_last(pages);
    }
    pages->limit = limit;
    ASSERT_EXPENSIVE(is_sound(pages));
    return CAPU_OK;
}

/* Makes the records for `count` created pages. */
static bool reserve_pages(struct pages *pages, size_t count)
{
    return array_reserve(&pages->handles, &pages->capacity, count, sizeof(*pages->handles)) &&
           table_reserve(&pages->numbers, count) && bits_grow(&pages->free, pages->capacity);
}

/* Creates pages until `count` are in the pool. If one fails, those before it stay in the pool. */
static capu_status create_until(struct pages *pages, size_t count)
{
    if (count > pages->free_count &&
        !reserve_pages(pages, pages->created + (count - pages->free_count))) {
        return CAPU_NO_HOST_MEMORY;
    }
    while (pages->free_count < count) {
        device_page handle;
        capu_status status = device_page_create(pages->device, &handle);

        if (status == CAPU_OVER_BUDGET) {
            /* Something else holds the rest of the memory, so what exists now becomes the limit. */
            pages->limit = pages->created;
        }
        if (status != CAPU_OK) {
            return status;
        }
        pages->handles[pages->created] = handle;
        table_put(&pages->numbers, handle, pages->created);
        bits_add(&pages->free, pages->created);
        pages->created++;
        pages->free_count++;
        pages->created_peak =
            pages->created > pages->created_peak ? pages->created : pages->created_peak;
    }
    return CAPU_OK;
}

/* The first free page at or after `from`, wrapping around. Pre: a page is free. */
static size_t next_free(const struct pages *pages, size_t from)
{
    size_t found = bits_next(&pages->free, from);

    ASSERT(pages->free_count > 0);
    return found != BITS_NONE ? found : bits_next(&pages->free, 0);
}

/* Where a take of `count` starts: at a run of that many pages, or the longest run found. */
static size_t choose_run(const struct pages *pages, size_t count)
{
    size_t best = next_free(pages, pages->cursor);
    size_t best_run = bits_run(&pages->free, best, count);
    size_t at = best + best_run;

    for (int looked = 1; best_run < count && looked < LOOK_AT_RUNS; looked++) {
        size_t run;

        at = next_free(pages, at);
        run = bits_run(&pages->free, at, count);
        if (run > best_run) {
            best = at;
            best_run = run;
        }
        at += run;
    }
    return best;
}

/* Pre: so many pages are in the pool. */
static void take_free(struct pages *pages, size_t count, device_page *out)
{
    size_t at = choose_run(pages, count);

    for (size_t i = 0; i < count; i++) {
        at = next_free(pages, at);
        bits_remove(&pages->free, at);
        out[i] = pages->handles[at];
        at++;
    }
    pages->cursor = at;
    pages->free_count -= count;
}

capu_status pages_take(struct pages *pages, size_t count, device_page *out)
{
    capu_status status;

    if (count == 0) {
        return CAPU_OK;
    }
    if (count > pages_available(pages)) {
        return CAPU_OVER_BUDGET;
    }
    status = create_until(pages, count + pages->aside_count);
    if (status != CAPU_OK) {
        return status;
    }
    take_free(pages, count, out);
    if (pages_out(pages) > pages->out_peak) {
        pages->out_peak = pages_out(pages);
    }
    ASSERT_EXPENSIVE(is_sound(pages));
    return CAPU_OK;
}

void pages_give(struct pages *pages, const device_page *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t number;

        /* A page of another pool, or one that is already back, would make the count wrong forever.
         */
        if (table_get(&pages->numbers, list[i], &number) &&
            !bits_has(&pages->free, (size_t)number)) {
            bits_add(&pages->free, (size_t)number);
            pages->free_count++;
        }
    }
    ASSERT_EXPENSIVE(is_sound(pages));
}

void pages_put_aside(struct pages *pages, const device_page *list, size_t count)
{
    size_t before = pages->free_count;

    pages_give(pages, list, count);
    pages->aside_count += pages->free_count - before;
}

void pages_take_aside(struct pages *pages, size_t count, device_page *out)
{
    ASSERT(count <= pages->aside_count);
    if (count > 0) {
        take_free(pages, count, out);
        pages->aside_count -= count;
    }
}

void pages_give_aside(struct pages *pages, size_t count)
{
    ASSERT(count <= pages->aside_count);
    pages->aside_count -= count;
}

size_t pages_available(const struct pages *pages)
{
    return pages->limit - pages_out(pages);
}

size_t pages_limit(const struct pages *pages)
{
    return pages->limit;
}

size_t pages_out(const struct pages *pages)
{
    return pages->created - pages->free_count + pages->aside_count;
}

size_t pages_out_peak(const struct pages *pages)
{
    return pages->out_peak;
}

void pages_reset_peak(struct pages *pages)
{
    pages->out_peak = pages_out(pages);
}

size_t pages_created(const struct pages *pages)
{
    return pages->created;
}

size_t pages_created_peak(const struct pages *pages)
{
    return pages->created_peak;
}

uint64_t pages_bytes_each(const struct pages *pages)
{
    return pages->page_bytes;
}

bool pages_validate(const struct pages *pages, const char **what)
{
    size_t free_count = 0;
    const char *breach = NULL;

    for (size_t i = 0; i < pages->created && breach == NULL; i++) {
        uint64_t number;

        free_count += bits_has(&pages->free, i);
        if (!table_get(&pages->numbers, pages->handles[i], &number) || number != i) {
            breach = "a page is not found by its handle, or there twice";
        }
    }
    if (breach == NULL && pages->aside_count > pages->free_count) {
        breach = "fewer pages in the pool than are aside";
    }
    if (breach == NULL && pages->created > pages->limit) {
        breach = "more pages than the budget allows";
    }
    if (breach == NULL && (free_count != pages->free_count || !bits_validate(&pages->free) ||
                           bits_next(&pages->free, pages->created) != BITS_NONE)) {
        breach = "free + out is not what was created";
    }
    if (breach == NULL && pages->out_peak < pages_out(pages)) {
        breach = "the peak is below what is out";
    }
    if (breach != NULL) {
        *what = breach;
    }
    return breach == NULL;
}
