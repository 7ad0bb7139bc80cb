/* The slots of slabs, see slab_sizes.h. */
#include "allocator/slab_sizes.h"

#include <stdint.h>

#define SLOTS_MAX 8192 /* 256-byte slots in a page of 2 MiB */

void slab_sizes_init(struct slab_sizes *sizes, size_t page_bytes)
{
    static const size_t steps[] = {4, 5, 6, 8, 10, 12};
    size_t per_page = 2;
    size_t step = 0;

    sizes->count = 0;
    /* 2 and 3 per page, then 4, 5, 6, 8, 10, 12, and these times 4, 16, ... */
    while (per_page <= SLOTS_MAX && sizes->count < SLAB_SIZES_MAX) {
        size_t slot_bytes = page_bytes / per_page / SLAB_SLOT_ALIGNMENT * SLAB_SLOT_ALIGNMENT;

        if (slot_bytes == 0) {
            break;
        }
        /* Rounding down may make two sizes equal. */
        if (sizes->count == 0 || sizes->list[sizes->count - 1].slot_bytes != slot_bytes) {
            sizes->list[sizes->count++] =
                (struct slab_size){.slot_bytes = slot_bytes, .slot_count = page_bytes / slot_bytes};
        }
        if (per_page < 4) {
            per_page++;
        } else {
            step++;
            per_page = steps[step % 6] << step / 6 * 2;
        }
    }
}

size_t slab_sizes_find(const struct slab_sizes *sizes, size_t bytes)
{
    size_t low = 0;
    size_t high = sizes->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (sizes->list[middle].slot_bytes >= bytes) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? low - 1 : SIZE_MAX;
}
