/* What live tensors would take in pages of other sizes, see page_census.h. */
#include "runtime/tensor/page_census.h"

#include <stdlib.h>

capu_status page_census_init(struct page_census *census,
                             const struct device_capabilities *capabilities,
                             uint64_t threshold_bytes)
{
    uint64_t page_bytes = capabilities->page_rule.least_bytes;
    size_t count = 0;

    *census = (struct page_census){.threshold_bytes = threshold_bytes};
    while (page_bytes << count < capabilities->page_bytes) {
        count++;
    }
    for (; count > CENSUS_LEVELS; count--) {
        page_bytes *= 2;
    }
    if (count == 0) {
        return CAPU_OK;
    }
    census->levels = calloc(count, sizeof(*census->levels));
    if (census->levels == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    census->level_count = count;
    for (size_t i = 0; i < count; i++) {
        census->levels[i].page_bytes = page_bytes << i;
        slab_sizes_init(&census->levels[i].sizes, (size_t)census->levels[i].page_bytes);
    }
    return CAPU_OK;
}

void page_census_finish(struct page_census *census)
{
    free(census->levels);
    *census = (struct page_census){0};
}

/* The number of its slots at this level; SIZE_MAX: it gets pages. */
static size_t slot_size(const struct page_census *census, const struct census_level *level,
                        const struct allocation *allocation)
{
    uint64_t threshold =
        census->threshold_bytes != 0 ? census->threshold_bytes : level->page_bytes / 2;

    return allocation->bytes < threshold ? slab_sizes_find(&level->sizes, (size_t)allocation->bytes)
                                         : SIZE_MAX;
}

static uint64_t pages_of(const struct page_census *census, const struct census_level *level,
                         const struct tensor *tensor)
{
    const struct allocation *allocation = tensor->allocation;
    uint64_t offset =
        (uint64_t)((unsigned char *)tensor->address - (unsigned char *)allocation->address);

    return slot_size(census, level, allocation) != SIZE_MAX
               ? 0
               : page_census_within(offset, tensor->bytes,
                                    offset + tensor->bytes == allocation->bytes, level->page_bytes);
}

uint64_t page_census_pages(const struct page_census *census, size_t level,
                           const struct tensor *tensor)
{
    return pages_of(census, &census->levels[level], tensor);
}

void page_census_add(struct page_census *census, const struct allocation *allocation)
{
    for (size_t i = 0; i < census->level_count; i++) {
        struct census_level *level = &census->levels[i];
        size_t size = slot_size(census, level, allocation);

        if (size != SIZE_MAX) {
            level->slots[size]++;
        } else {
            level->edge_pages += page_census_within(0, allocation->bytes, true, level->page_bytes);
        }
    }
}

void page_census_remove(struct page_census *census, const struct allocation *allocation, bool rests)
{
    for (size_t i = 0; i < census->level_count; i++) {
        struct census_level *level = &census->levels[i];
        size_t size = slot_size(census, level, allocation);

        if (size == SIZE_MAX) {
            level->edge_pages -= page_census_within(0, allocation->bytes, true, level->page_bytes);
        } else if (rests) {
            level->resting[size]++;
        } else {
            level->slots[size]--;
        }
    }
}

void page_census_settle(struct page_census *census)
{
    for (size_t i = 0; i < census->level_count; i++) {
        struct census_level *level = &census->levels[i];

        for (size_t size = 0; size < level->sizes.count; size++) {
            level->slots[size] -= level->resting[size];
            level->resting[size] = 0;
        }
    }
}

void page_census_tensor(struct page_census *census, const struct tensor *tensor, int change)
{
    for (size_t i = 0; i < census->level_count; i++) {
        struct census_level *level = &census->levels[i];
        uint64_t pages = pages_of(census, level, tensor);

        level->edge_pages += change > 0 ? -pages : pages;
    }
}

void page_census_persistent(struct page_census *census, const struct tensor *tensor, int change)
{
    for (size_t i = 0; i < census->level_count; i++) {
        struct census_level *level = &census->levels[i];
        uint64_t pages = pages_of(census, level, tensor);

        level->persistent_pages += change > 0 ? pages : -pages;
    }
}

void page_census_whole(struct page_census *census, const struct allocation *allocation,
                       const struct tensor_list *persistent, int change)
{
    if (change > 0) {
        page_census_add(census, allocation);
    } else {
        page_census_remove(census, allocation, false);
    }
    for (const struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        page_census_tensor(census, tensor, change);
        if (tensor->contents.list == persistent) {
            page_census_persistent(census, tensor, change);
        }
    }
}

void page_census_read(const struct page_census *census, struct page_sums sums[CENSUS_LEVELS])
{
    for (size_t i = 0; i < census->level_count; i++) {
        const struct census_level *level = &census->levels[i];

        sums[i] =
            (struct page_sums){.persistent = level->persistent_pages, .edges = level->edge_pages};
        for (size_t size = 0; size < level->sizes.count; size++) {
            size_t per_page = level->sizes.list[size].slot_count;

            sums[i].slabs += (level->slots[size] + per_page - 1) / per_page;
        }
    }
}
