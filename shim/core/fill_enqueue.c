/* Memsets of the driver, see fill_enqueue.h. */
#include "shim/core/fill_enqueue.h"

#include "shim/driver/real.h"

CUresult fill_enqueue(const struct memset_node *fill, CUstream stream)
{
    const struct real_calls *real = real_calls();

    switch (fill->element_bytes) {
    case 1:
        return real->cuMemsetD2D8Async(fill->to, fill->pitch, (unsigned char)fill->value,
                                       fill->width, fill->height, stream);
    case 2:
        return real->cuMemsetD2D16Async(fill->to, fill->pitch, (unsigned short)fill->value,
                                        fill->width, fill->height, stream);
    default:
        return real->cuMemsetD2D32Async(fill->to, fill->pitch, fill->value, fill->width,
                                        fill->height, stream);
    }
}
