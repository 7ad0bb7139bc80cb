/*
 * Slabs: see slabs.h.
 *
 * A class is a slot size (slab_sizes.h).
 *
 * A slab is in its class's list while it has a free slot. Slabs that are partly taken come first,
 * so that those that are empty stay empty and can be trimmed.
 *
 * Each slab has two bit sets: `used` slots are taken or resting, `resting` ones are those that were
 * given back since the last slabs_settle. Settling then clears the resting bits in both, a word at
 * a time, and visits only slabs that have any.
 *
 * A slab that is spread has its page mapped once per slot, at consecutive addresses. Slot n lies in
 * the n-th of these mappings, where it would lie in the page. In the table of slabs each of the
 * mappings has an entry.
 */
#include "allocator/slabs.h"

#include "allocator/slab_sizes.h"
#include "base/assert.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#define WORD_BITS ((size_t)64)
#define SPREAD_SLOTS_MAX ((size_t)256) /* each takes a kernel mapping */

struct slab {
    void *address;
    device_page page;
    struct slab_class *class_of;
    size_t mapping_count; /* of its page: 1, or the number of slots */
    size_t visit_count;   /* of its mappings, while all slabs are destroyed */
    struct slab *before;  /* in the class's list, if listed */
    struct slab *after;
    struct slab *resting_after; /* in the list of slabs with resting slots */
    size_t taken_count;
    size_t resting_count;
    uint64_t turn;     /* in which it was in use last */
    size_t first_word; /* no word of `used` before this has a free slot */
    bool is_listed;
    uint64_t *used;    /* one bit per slot: taken or resting; bits after the last slot are set */
    uint64_t *resting; /* one bit per slot; a subset of `used` */
    uint64_t words[];  /* of both */
};

struct slab_class {
    size_t slot_bytes;
    size_t slot_count;
    size_t word_count;
    struct slab *first; /* slabs with a free slot */
    struct slab *last;
};

struct slabs {
    struct device *device; /* these three are the caller's and outlive this */
    struct pages *pages;
    struct ranges *ranges;
    size_t page_bytes;
    struct slab_sizes sizes;
    struct slab_class classes[SLAB_SIZES_MAX]; /* one per size */
    struct table by_address;                   /* from the address of each mapping to the slab */
    size_t slab_count;
    size_t used_count;      /* of them: a slot is taken or rests */
    size_t used_bytes;      /* of these slots */
    uint64_t turn;          /* counts calls of slabs_turn */
    size_t turn_count;      /* slabs that have been in use in this turn */
    size_t turn_count_once; /* and in the one before */
    bool is_spread;         /* new slabs are */
    struct slab *resting;   /* slabs with resting slots */
};

/* For assertions. */
static inline bool is_sound(const struct slabs *slabs)
{
    const char *what;

    return slabs_validate(slabs, &what);
}

static uint64_t key_of(const struct slabs *slabs, const void *address)
{
    return (uint64_t)(uintptr_t)address & ~(uint64_t)(slabs->page_bytes - 1);
}

static struct slab *slab_at(const struct slabs *slabs, const void *address)
{
    uint64_t value;

    if (!table_get(&slabs->by_address, key_of(slabs, address), &value)) {
        return NULL;
    }
    return (struct slab *)(uintptr_t)value;
}

static bool has_bit(const uint64_t *words, size_t slot)
{
    return (words[slot / WORD_BITS] >> (slot % WORD_BITS) & 1) != 0;
}

static bool is_full(const struct slab *slab)
{
    return slab->taken_count + slab->resting_count == slab->class_of->slot_count;
}

static bool is_taken(const struct slab *slab, size_t slot)
{
    return slot < slab->class_of->slot_count && has_bit(slab->used, slot) &&
           !has_bit(slab->resting, slot);
}

/* The slot that contains the address; SIZE_MAX: none does. */
static size_t slot_of(const struct slabs *slabs, const struct slab *slab, const void *address)
{
    size_t offset = (size_t)((uintptr_t)address - (uintptr_t)slab->address);
    size_t slot = offset % slabs->page_bytes / slab->class_of->slot_bytes;
    bool is_there = slab->mapping_count == 1 || slot == offset / slabs->page_bytes;

    return is_there && slot < slab->class_of->slot_count ? slot : SIZE_MAX;
}

static void *slot_address(const struct slabs *slabs, const struct slab *slab, size_t slot)
{
    size_t mapping = slab->mapping_count == 1 ? 0 : slot;

    return (void *)((uintptr_t)slab->address + mapping * slabs->page_bytes +
                    slot * slab->class_of->slot_bytes);
}

static void list_remove(struct slab *slab)
{
    struct slab_class *class_of = slab->class_of;

    ASSERT(slab->is_listed);
    if (slab->before != NULL) {
        slab->before->after = slab->after;
    } else {
        class_of->first = slab->after;
    }
    if (slab->after != NULL) {
        slab->after->before = slab->before;
    } else {
        class_of->last = slab->before;
    }
    slab->is_listed = false;
}

static void list_insert(struct slab *slab)
{
    struct slab_class *class_of = slab->class_of;
    bool is_empty = slab->taken_count == 0;

    ASSERT(!slab->is_listed);
    slab->before = is_empty ? class_of->last : NULL;
    slab->after = is_empty ? NULL : class_of->first;
    if (slab->before != NULL) {
        slab->before->after = slab;
    } else {
        class_of->first = slab;
    }
    if (slab->after != NULL) {
        slab->after->before = slab;
    } else {
        class_of->last = slab;
    }
    slab->is_listed = true;
}

/* Whether the slab can be given back. */
static bool is_unused(const struct slab *slab)
{
    return slab->taken_count == 0 && slab->resting_count == 0;
}

/* Moves a slab to where it now belongs in its class's list. */
static void list_again(struct slab *slab)
{
    if (slab->is_listed) {
        list_remove(slab);
    }
    if (!is_full(slab)) {
        list_insert(slab);
    }
}

static void set_up_classes(struct slabs *slabs)
{
    slab_sizes_init(&slabs->sizes, slabs->page_bytes);
    for (size_t i = 0; i < slabs->sizes.count; i++) {
        struct slab_class *class_of = &slabs->classes[i];

        class_of->slot_bytes = slabs->sizes.list[i].slot_bytes;
        class_of->slot_count = slabs->sizes.list[i].slot_count;
        class_of->word_count = (class_of->slot_count + WORD_BITS - 1) / WORD_BITS;
    }
}

/* The class with the smallest slots that hold `bytes`; NULL above half a page. */
static struct slab_class *class_for(const struct slabs *slabs, size_t bytes)
{
    size_t index = slab_sizes_find(&slabs->sizes, bytes);

    return index != SIZE_MAX ? (struct slab_class *)&slabs->classes[index] : NULL;
}

capu_status slabs_create(struct device *device, struct pages *pages, struct ranges *ranges,
                         struct slabs **out)
{
    struct slabs *slabs = calloc(1, sizeof(*slabs));

    if (slabs == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    slabs->device = device;
    slabs->pages = pages;
    slabs->ranges = ranges;
    slabs->page_bytes = (size_t)device->capabilities.page_bytes;
    slabs->turn = 1; /* a new slab was in use in turn 0 */
    set_up_classes(slabs);
    *out = slabs;
    return CAPU_OK;
}

void slabs_spread(struct slabs *slabs)
{
    slabs->is_spread = true;
}

/* Takes addresses for the slab and maps its page there, `count` times. */
static capu_status map_page(struct slabs *slabs, struct slab *slab, size_t count)
{
    device_page pages[SPREAD_SLOTS_MAX];
    capu_status status;

    ASSERT(count <= SPREAD_SLOTS_MAX);
    if (!table_reserve(&slabs->by_address, slabs->by_address.count + count)) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = ranges_take(slabs->ranges, count, &slab->address);
    if (status != CAPU_OK) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        pages[i] = slab->page;
    }
    status = device_map(slabs->device, slab->address, pages, count);
    if (status != CAPU_OK) {
        ranges_give(slabs->ranges, slab->address, count, false);
        return status;
    }
    slab->mapping_count = count;
    return CAPU_OK;
}

/* Once for each slot if slabs are spread, and if that is possible. */
static capu_status map_slab(struct slabs *slabs, struct slab *slab, size_t slot_count)
{
    if (slabs->is_spread && slot_count <= SPREAD_SLOTS_MAX &&
        map_page(slabs, slab, slot_count) == CAPU_OK) {
        return CAPU_OK;
    }
    return map_page(slabs, slab, 1);
}

/* Makes a new slab of the class. */
static capu_status slab_create(struct slabs *slabs, struct slab_class *class_of)
{
    size_t words = class_of->word_count;
    struct slab *slab = calloc(1, sizeof(*slab) + 2 * words * sizeof(slab->words[0]));
    capu_status status;

    if (slab == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = pages_take(slabs->pages, 1, &slab->page);
    if (status != CAPU_OK) {
        goto free_slab;
    }
    status = map_slab(slabs, slab, class_of->slot_count);
    if (status != CAPU_OK) {
        goto give_page;
    }
    slab->class_of = class_of;
    slab->used = slab->words;
    slab->resting = slab->words + words;
    if (class_of->slot_count % WORD_BITS != 0) {
        slab->used[words - 1] = UINT64_MAX << (class_of->slot_count % WORD_BITS);
    }
    list_insert(slab);
    for (size_t i = 0; i < slab->mapping_count; i++) {
        table_put(&slabs->by_address, key_of(slabs, slab->address) + i * slabs->page_bytes,
                  (uint64_t)(uintptr_t)slab);
    }
    slabs->slab_count++;
    return CAPU_OK;

give_page:
    pages_give(slabs->pages, &slab->page, 1);
free_slab:
    free(slab);
    return status;
}

/* Unmaps a slab and gives back its page and addresses. False: the device refuses. */
static bool unmap_slab(struct slabs *slabs, const struct slab *slab)
{
    if (device_unmap(slabs->device, slab->address, slab->mapping_count) != CAPU_OK) {
        return false;
    }
    ranges_give(slabs->ranges, slab->address, slab->mapping_count, false);
    pages_give(slabs->pages, &slab->page, 1);
    return true;
}

/* Gives back all that a slab has. If the device refuses, the slab stays and the result is false. */
static bool slab_destroy(struct slabs *slabs, struct slab *slab)
{
    if (!unmap_slab(slabs, slab)) {
        return false;
    }
    if (slab->is_listed) {
        list_remove(slab);
    }
    for (size_t i = 0; i < slab->mapping_count; i++) {
        table_remove(&slabs->by_address, key_of(slabs, slab->address) + i * slabs->page_bytes);
    }
    slabs->turn_count -= slab->turn == slabs->turn;
    slabs->slab_count--;
    free(slab);
    return true;
}

void slabs_destroy(struct slabs *slabs)
{
    if (slabs == NULL) {
        return;
    }
    for (size_t i = 0; i < slabs->by_address.capacity; i++) {
        const struct table_entry *entry = &slabs->by_address.entries[i];
        struct slab *slab = (struct slab *)(uintptr_t)entry->value;

        /* A slab has several entries; the last of them frees it. */
        if (entry->key == TABLE_NO_KEY || ++slab->visit_count < slab->mapping_count) {
            continue;
        }
        /* A page that cannot be unmapped stays out and is destroyed with the device. */
        (void)unmap_slab(slabs, slab);
        free(slab);
    }
    table_finish(&slabs->by_address);
    free(slabs);
}

bool slabs_needs_page(const struct slabs *slabs, size_t bytes)
{
    const struct slab_class *class_of = class_for(slabs, bytes);

    return class_of != NULL && class_of->first == NULL;
}

static void note_turn(struct slabs *slabs, struct slab *slab)
{
    slabs->turn_count += slab->turn != slabs->turn;
    slab->turn = slabs->turn;
}

static void take_slot(struct slabs *slabs, struct slab *slab, size_t slot)
{
    bool was_empty = slab->taken_count == 0;

    ASSERT(slab->is_listed && slot < slab->class_of->slot_count && !has_bit(slab->used, slot));
    if (is_unused(slab)) {
        slabs->used_count++;
        note_turn(slabs, slab);
    }
    slabs->used_bytes += slab->class_of->slot_bytes;
    slab->used[slot / WORD_BITS] |= UINT64_C(1) << (slot % WORD_BITS);
    slab->taken_count++;
    if (was_empty || is_full(slab)) {
        list_again(slab);
    }
}

capu_status slabs_take(struct slabs *slabs, size_t bytes, void **address)
{
    struct slab_class *class_of = class_for(slabs, bytes);
    struct slab *slab;
    size_t word;
    size_t slot;

    if (class_of == NULL || bytes == 0) {
        return CAPU_INVALID;
    }
    if (class_of->first == NULL) {
        capu_status status = slab_create(slabs, class_of);

        if (status != CAPU_OK) {
            return status;
        }
    }
    slab = class_of->first;
    word = slab->first_word;
    while (slab->used[word] == UINT64_MAX) {
        word++;
    }
    slab->first_word = word;
    slot = word * WORD_BITS + (size_t)__builtin_ctzll(~slab->used[word]);
    take_slot(slabs, slab, slot);
    *address = slot_address(slabs, slab, slot);
    ASSERT_EXPENSIVE(is_sound(slabs));
    return CAPU_OK;
}

capu_status slabs_take_at(struct slabs *slabs, void *address, size_t bytes)
{
    struct slab *slab = slab_at(slabs, address);
    size_t slot;

    if (slab == NULL || bytes == 0 || slab->class_of != class_for(slabs, bytes)) {
        return CAPU_NOT_READY;
    }
    slot = slot_of(slabs, slab, address);
    if (slot == SIZE_MAX || slot_address(slabs, slab, slot) != address ||
        has_bit(slab->used, slot)) {
        return CAPU_NOT_READY;
    }
    take_slot(slabs, slab, slot);
    return CAPU_OK;
}

bool slabs_give(struct slabs *slabs, void *address)
{
    struct slab *slab = slab_at(slabs, address);
    size_t slot;

    if (slab == NULL) {
        return false;
    }
    slot = slot_of(slabs, slab, address);
    if (!is_taken(slab, slot) || slot_address(slabs, slab, slot) != address) {
        return false;
    }
    if (slab->resting_count == 0) {
        slab->resting_after = slabs->resting;
        slabs->resting = slab;
    }
    slab->resting[slot / WORD_BITS] |= UINT64_C(1) << (slot % WORD_BITS);
    slab->resting_count++;
    slab->taken_count--;
    return true;
}

void slabs_settle(struct slabs *slabs)
{
    while (slabs->resting != NULL) {
        struct slab *slab = slabs->resting;

        slabs->resting = slab->resting_after;
        slab->resting_after = NULL;
        for (size_t word = 0; word < slab->class_of->word_count; word++) {
            slab->used[word] &= ~slab->resting[word];
            slab->resting[word] = 0;
        }
        slabs->used_bytes -= slab->resting_count * slab->class_of->slot_bytes;
        slab->resting_count = 0;
        slab->first_word = 0;
        slabs->used_count -= is_unused(slab);
        list_again(slab);
    }
    ASSERT_EXPENSIVE(is_sound(slabs));
}

size_t slabs_trim(struct slabs *slabs, bool is_all)
{
    size_t trimmed = 0;

    for (size_t i = 0; i < slabs->sizes.count; i++) {
        struct slab *slab = slabs->classes[i].last;

        while (slab != NULL) {
            struct slab *before = slab->before;

            if (is_unused(slab) && (is_all || slab->turn + 1 < slabs->turn) &&
                slab_destroy(slabs, slab)) {
                trimmed++;
            }
            slab = before;
        }
    }
    return trimmed;
}

void *slabs_find(const struct slabs *slabs, const void *address)
{
    const struct slab *slab = slab_at(slabs, address);
    size_t slot;

    if (slab == NULL) {
        return NULL;
    }
    slot = slot_of(slabs, slab, address);
    return is_taken(slab, slot) ? slot_address(slabs, slab, slot) : NULL;
}

size_t slabs_slot_bytes(const struct slabs *slabs, const void *address)
{
    return slabs_find(slabs, address) == address ? slab_at(slabs, address)->class_of->slot_bytes
                                                 : 0;
}

void *slabs_beside(const struct slabs *slabs, const void *address, bool is_after)
{
    const struct slab *slab = slab_at(slabs, address);
    size_t slot = slab != NULL ? slot_of(slabs, slab, address) : SIZE_MAX;
    size_t beside = is_after ? slot + 1 : slot - 1; /* before the first: SIZE_MAX, never taken */

    return slot != SIZE_MAX && is_taken(slab, beside) ? slot_address(slabs, slab, beside) : NULL;
}

size_t slabs_page_count(const struct slabs *slabs)
{
    return slabs->slab_count;
}

size_t slabs_used_count(const struct slabs *slabs)
{
    return slabs->used_count;
}

size_t slabs_used_bytes(const struct slabs *slabs)
{
    return slabs->used_bytes;
}

size_t slabs_kept_count(const struct slabs *slabs)
{
    return slabs->turn_count > slabs->turn_count_once ? slabs->turn_count : slabs->turn_count_once;
}

/* A slab has several mappings, but counts once. */
void slabs_turn(struct slabs *slabs)
{
    slabs->turn++;
    slabs->turn_count_once = slabs->turn_count;
    slabs->turn_count = 0;
    for (size_t i = 0; i < slabs->by_address.capacity; i++) {
        const struct table_entry *entry = &slabs->by_address.entries[i];

        if (entry->key != TABLE_NO_KEY) {
            struct slab *slab = (struct slab *)(uintptr_t)entry->value;

            if (!is_unused(slab)) {
                note_turn(slabs, slab);
            }
        }
    }
}

void slabs_restart(struct slabs *slabs)
{
    slabs_turn(slabs);
    slabs_turn(slabs);
    slabs->turn_count_once = 0;
}

static const char *check_slab(const struct slabs *slabs, const struct slab *slab)
{
    const struct slab_class *class_of = slab->class_of;
    size_t taken = 0;
    size_t resting = 0;

    for (size_t slot = 0; slot < class_of->word_count * WORD_BITS; slot++) {
        bool used = has_bit(slab->used, slot);
        bool rests = has_bit(slab->resting, slot);

        if (slot >= class_of->slot_count) {
            if (!used || rests) {
                return "a slot after the last one is free or resting";
            }
            continue;
        }
        if (rests && !used) {
            return "a slot rests that is not used";
        }
        if (!used && slot / WORD_BITS < slab->first_word) {
            return "a free slot would not be found";
        }
        taken += used && !rests;
        resting += rests;
    }
    if (taken != slab->taken_count || resting != slab->resting_count) {
        return "a slab's counts are wrong";
    }
    if (slab->is_listed == is_full(slab)) {
        return "a slab is listed and full, or neither";
    }
    return ranges_contains(slabs->ranges, slab->address) ? NULL : "a slab at no reserved address";
}

static const char *check_lists(const struct slabs *slabs, size_t listed, size_t resting)
{
    for (size_t i = 0; i < slabs->sizes.count; i++) {
        const struct slab_class *class_of = &slabs->classes[i];
        const struct slab *before = NULL;

        if (class_of->slot_bytes % SLAB_SLOT_ALIGNMENT != 0 ||
            class_of->slot_bytes * class_of->slot_count > slabs->page_bytes) {
            return "a class does not fit a page";
        }
        for (const struct slab *slab = class_of->first; slab != NULL; slab = slab->after) {
            if (slab->before != before || slab->class_of != class_of || !slab->is_listed ||
                listed == 0) {
                return "a list of slabs is broken";
            }
            listed--;
            before = slab;
        }
        if (class_of->last != before) {
            return "a list of slabs ends wrongly";
        }
    }
    for (const struct slab *slab = slabs->resting; slab != NULL; slab = slab->resting_after) {
        if (slab->resting_count == 0 || resting == 0) {
            return "a slab without resting slots is among those with";
        }
        resting--;
    }
    return listed == 0 && resting == 0 ? NULL : "a slab is lost from its list";
}

/* The slab of a table entry: a slab has one entry per mapping, and the first is checked. */
static const char *check_entry(const struct slabs *slabs, const struct table_entry *entry)
{
    const struct slab *slab = (const struct slab *)(uintptr_t)entry->value;
    uint64_t first = key_of(slabs, slab->address);

    if (entry->key < first || entry->key >= first + slab->mapping_count * slabs->page_bytes) {
        return "a slab is filed under another address";
    }
    return entry->key == first ? check_slab(slabs, slab) : NULL;
}

bool slabs_validate(const struct slabs *slabs, const char **what)
{
    const char *breach = NULL;
    size_t count = 0;
    size_t mappings = 0;
    size_t listed = 0;
    size_t resting = 0;
    size_t used = 0;
    size_t used_bytes = 0;

    for (size_t i = 0; i < slabs->by_address.capacity && breach == NULL; i++) {
        const struct table_entry *entry = &slabs->by_address.entries[i];
        const struct slab *slab = (const struct slab *)(uintptr_t)entry->value;

        if (entry->key == TABLE_NO_KEY) {
            continue;
        }
        breach = check_entry(slabs, entry);
        if (breach == NULL && key_of(slabs, slab->address) == entry->key) {
            count++;
            mappings += slab->mapping_count;
            listed += slab->is_listed;
            resting += slab->resting_count > 0;
            used += !is_unused(slab);
            used_bytes += (slab->taken_count + slab->resting_count) * slab->class_of->slot_bytes;
        }
    }
    if (breach == NULL && (used != slabs->used_count || used_bytes != slabs->used_bytes ||
                           used > slabs->turn_count)) {
        breach = "used slabs are counted wrongly";
    }
    if (breach == NULL && (count != slabs->slab_count || mappings != slabs->by_address.count)) {
        breach = "slabs and their addresses do not match";
    }
    if (breach == NULL && count > pages_out(slabs->pages)) {
        breach = "more slabs than pages";
    }
    if (breach == NULL) {
        breach = check_lists(slabs, listed, resting);
    }
    if (breach != NULL) {
        *what = breach;
    }
    return breach == NULL;
}
