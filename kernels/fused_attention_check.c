/* Which shapes fused_attention accepts, the same on every device. */
#include "kernels/fused_attention.h"

/* Tiles along a side of a grid. */
#define TILES_LIMIT 65535u

capu_status fused_attention_check(const struct fused_attention *attention)
{
    return attention->head_channels <= FUSED_ATTENTION_CHANNELS &&
                   attention->length <= FUSED_ATTENTION_TILE * TILES_LIMIT
               ? CAPU_OK
               : CAPU_TOO_LARGE;
}
