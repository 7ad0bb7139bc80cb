/*
 * Ranges: see ranges.h.
 *
 * A range that rests is still taken in the extents; settling gives it back to them.
 */
#include "allocator/ranges.h"

#include "allocator/extents.h"
#include "base/array.h"
#include "base/assert.h"

#include <stdlib.h>

/* In one large reservation all sizes share the space. 2,047 of these fit into what a process can
   address on x86-64; where a limit forbids one, a smaller one is reserved. Addresses cost nothing,
   but devices keep one word per page of them, hence the limit on pages. */
#define RESERVATION_BYTES (UINT64_C(64) << 30)
#define RESERVATION_PAGES (UINT64_C(1) << 16)

struct ranges {
    struct device *device; /* the caller's; outlives this */
    uint64_t page_bytes;
    struct extents extents; /* its regions are the reservations */
    uint64_t *resting;      /* starts; room for all that are taken */
    size_t resting_count;
    size_t resting_capacity;
};

/* For assertions. */
static inline bool is_sound(const struct ranges *ranges)
{
    const char *what;

    return ranges_validate(ranges, &what);
}

static void *pointer_of(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

capu_status ranges_create(struct device *device, struct ranges **out)
{
    struct ranges *ranges = calloc(1, sizeof(*ranges));
    capu_status status;

    if (ranges == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    ranges->device = device;
    ranges->page_bytes = device->capabilities.page_bytes;
    status = extents_init(&ranges->extents, ranges->page_bytes, true);
    if (status != CAPU_OK) {
        free(ranges);
        return status;
    }
    *out = ranges;
    return CAPU_OK;
}

void ranges_destroy(struct ranges *ranges)
{
    if (ranges == NULL) {
        return;
    }
    for (size_t i = 0; i < ranges->extents.region_count; i++) {
        struct extent region = extents_region(&ranges->extents, i);

        device_range_release(ranges->device, pointer_of(region.start), region.bytes);
    }
    extents_finish(&ranges->extents);
    free(ranges->resting);
    free(ranges);
}

/* Every taken range must find room to rest when it is given back. */
static bool reserve_resting(struct ranges *ranges)
{
    return array_reserve(&ranges->resting, &ranges->resting_capacity,
                         ranges->extents.taken_count + 1, sizeof(*ranges->resting));
}

static bool bytes_for(const struct ranges *ranges, size_t page_count, uint64_t *bytes)
{
    return page_count > 0 && !__builtin_mul_overflow(page_count, ranges->page_bytes, bytes);
}

/* Reserves addresses for a range of `bytes`, and more, up to the usual size, if possible. */
static capu_status add_reservation(struct ranges *ranges, uint64_t bytes)
{
    uint64_t usual = RESERVATION_PAGES * ranges->page_bytes;
    uint64_t reserved;
    void *address;
    capu_status status;

    usual = usual < RESERVATION_BYTES ? usual
                                      : RESERVATION_BYTES - RESERVATION_BYTES % ranges->page_bytes;
    reserved = usual > bytes ? usual : bytes;
    for (;;) {
        uint64_t half = reserved / 2 - reserved / 2 % ranges->page_bytes;

        status = device_range_reserve(ranges->device, reserved, &address);
        if (status != CAPU_SYSTEM_LIMIT || reserved == bytes) {
            break;
        }
        reserved = half > bytes ? half : bytes;
    }
    if (status != CAPU_OK) {
        return status;
    }
    status = extents_add(&ranges->extents, address_of(address), reserved);
    if (status != CAPU_OK) {
        device_range_release(ranges->device, address, reserved);
    }
    return status;
}

capu_status ranges_take(struct ranges *ranges, size_t page_count, void **address)
{
    uint64_t bytes;
    uint64_t start;
    capu_status status;

    if (!bytes_for(ranges, page_count, &bytes)) {
        return page_count == 0 ? CAPU_INVALID : CAPU_SYSTEM_LIMIT;
    }
    if (!reserve_resting(ranges)) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = extents_take(&ranges->extents, bytes, &start);
    if (status == CAPU_NOT_READY) {
        status = add_reservation(ranges, bytes);
        if (status == CAPU_OK) {
            status = extents_take(&ranges->extents, bytes, &start);
        }
    }
    if (status != CAPU_OK) {
        return status;
    }
    *address = pointer_of(start);
    ASSERT_EXPENSIVE(is_sound(ranges));
    return CAPU_OK;
}

capu_status ranges_take_at(struct ranges *ranges, void *address, size_t page_count)
{
    uint64_t bytes;

    if (!bytes_for(ranges, page_count, &bytes)) {
        return page_count == 0 ? CAPU_INVALID : CAPU_NOT_READY;
    }
    if (!reserve_resting(ranges)) {
        return CAPU_NO_HOST_MEMORY;
    }
    return extents_take_at(&ranges->extents, address_of(address), bytes);
}

void ranges_give(struct ranges *ranges, void *address, size_t page_count, bool rests)
{
    uint64_t bytes;

    /* Anything but a range as it was taken would rest forever, or be handed out twice. */
    if (!bytes_for(ranges, page_count, &bytes) ||
        extents_taken_at(&ranges->extents, address_of(address)) != bytes ||
        ranges->resting_count == ranges->resting_capacity) {
        return;
    }
    if (!rests) {
        extents_give(&ranges->extents, address_of(address));
        return;
    }
    ranges->resting[ranges->resting_count++] = address_of(address);
}

void ranges_settle(struct ranges *ranges)
{
    for (size_t i = 0; i < ranges->resting_count; i++) {
        extents_give(&ranges->extents, ranges->resting[i]);
    }
    ranges->resting_count = 0;
    ASSERT_EXPENSIVE(is_sound(ranges));
}

bool ranges_contains(const struct ranges *ranges, const void *address)
{
    return extents_contain(&ranges->extents, address_of(address));
}

bool ranges_validate(const struct ranges *ranges, const char **what)
{
    if (!extents_validate(&ranges->extents, what)) {
        return false;
    }
    if (ranges->resting_count > ranges->extents.taken_count ||
        ranges->extents.taken_count > ranges->resting_capacity) {
        *what = "a range would find no room to rest in";
        return false;
    }
    for (size_t i = 0; i < ranges->resting_count; i++) {
        if (extents_taken_at(&ranges->extents, ranges->resting[i]) == 0) {
            *what = "a resting range is not taken";
            return false;
        }
    }
    return true;
}
