/* Which shapes max_pool accepts, the same on every device. */
#include "kernels/max_pool.h"

/* A place within a window is stored in a byte. */
#define WINDOW_LIMIT 16u

capu_status max_pool_check(const struct max_pool *pool)
{
    uint64_t height = (uint64_t)pool->height + 2 * (uint64_t)pool->padding;
    uint64_t width = (uint64_t)pool->width + 2 * (uint64_t)pool->padding;

    if (pool->planes == 0 || pool->height == 0 || pool->width == 0 || pool->window == 0 ||
        pool->window > WINDOW_LIMIT || pool->padding >= pool->window || height < pool->window ||
        width < pool->window) {
        return CAPU_INVALID;
    }
    /* Counted with the padding, which bounds the items of the output too. */
    if (height > UINT32_MAX || width > UINT32_MAX || pool->planes > UINT32_MAX / height / width) {
        return CAPU_TOO_LARGE;
    }
    return CAPU_OK;
}
