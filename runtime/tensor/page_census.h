/*
 * The page census: what live tensors would take in pages of other sizes.
 *
 * Without a budget, or in a generous one, pages are larger than in one that the program just fits,
 * and more memory is lost at the edges of tensors. Reports compute their figures for the page of
 * the smaller budget (page_figures.h). For that, the census counts at every smaller page size what
 * depends on more than the tensors of one iteration: edge pages, slots of slabs, and pages of
 * persistent tensors with contents. Level 0 is the smallest page that the device would choose; each
 * level doubles it, and the last one is half the device's page. There are no levels if its page is
 * the smallest.
 *
 * It changes when tensors are created, split, destroyed, or become persistent, so it costs the ops
 * of an iteration nothing. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_PAGE_CENSUS_H
#define CAPU_RUNTIME_PAGE_CENSUS_H

#include "allocator/slab_sizes.h"
#include "capuchin/status.h"
#include "device/device.h"
#include "runtime/tensor/tensor.h"

enum { CENSUS_LEVELS = 16 }; /* below 4 KiB << 16, the smallest pages are left out */

/* Sums over all tensors at one level, in pages. */
struct page_sums {
    uint64_t persistent;
    uint64_t edges;
    uint64_t slabs;
};

struct census_level {
    uint64_t page_bytes;
    uint64_t persistent_pages;
    uint64_t edge_pages;
    struct slab_sizes sizes;
    uint32_t slots[SLAB_SIZES_MAX];   /* taken, by size; includes: */
    uint32_t resting[SLAB_SIZES_MAX]; /* freed in the iteration under way */
};

struct page_census {
    struct census_level *levels;
    size_t level_count;
    uint64_t threshold_bytes; /* below it, allocations get a slot; 0: half a page */
};

/* `threshold_bytes`: as the caller configured it, 0 if not. NO_HOST_MEMORY. */
capu_status page_census_init(struct page_census *census,
                             const struct device_capabilities *capabilities,
                             uint64_t threshold_bytes);
void page_census_finish(struct page_census *census);

/* Counts an allocation without its tensors. */
void page_census_add(struct page_census *census, const struct allocation *allocation);

/* Stops counting it. What is freed in an iteration holds its slot until page_census_settle. */
void page_census_remove(struct page_census *census, const struct allocation *allocation,
                        bool rests);
void page_census_settle(struct page_census *census);

/* A tensor of a counted allocation appears (1) or disappears (-1). */
void page_census_tensor(struct page_census *census, const struct tensor *tensor, int change);

/* A persistent tensor gets contents (1) or loses them (-1). */
void page_census_persistent(struct page_census *census, const struct tensor *tensor, int change);

/* Counts an allocation with its tensors (1), or stops counting it (-1): what an allocation takes
   depends on its size, so that changes in between. `persistent` lists the persistent tensors with
   contents. */
void page_census_whole(struct page_census *census, const struct allocation *allocation,
                       const struct tensor_list *persistent, int change);

/* The pages of its own that a tensor has at a level. */
uint64_t page_census_pages(const struct page_census *census, size_t level,
                           const struct tensor *tensor);

/* Writes the sums of all levels. */
void page_census_read(const struct page_census *census, struct page_sums sums[CENSUS_LEVELS]);

/* Whole pages inside [offset, offset + bytes) of an allocation. The last page belongs to what
   ends the allocation, even if that does not fill it. */
static inline uint64_t page_census_within(uint64_t offset, uint64_t bytes, bool is_last,
                                          uint64_t page_bytes)
{
    uint64_t first = (offset + page_bytes - 1) / page_bytes;
    uint64_t end = (offset + bytes + (is_last ? page_bytes - 1 : 0)) / page_bytes;

    return end > first ? end - first : 0;
}

#endif
