/* Which shapes average_pool accepts, the same on every device. */
#include "kernels/average_pool.h"

/* Items are counted in 32 bits, including the step of a warp past the end. */
#define COUNT_LIMIT (UINT32_MAX - 32u)

capu_status average_pool_check(const struct average_pool *pool)
{
    if (pool->planes == 0 || pool->plane == 0) {
        return CAPU_INVALID;
    }
    return pool->planes <= COUNT_LIMIT / pool->plane ? CAPU_OK : CAPU_TOO_LARGE;
}
