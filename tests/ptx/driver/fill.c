/* Fills: rows of elements of 1, 2 or 4 bytes. Never waited for, as with memory of the device in
   CUDA. */
#include "tests/ptx/driver/declared.h"
#include "tests/ptx/driver/graph.h"

#include <stdlib.h>
#include <string.h>

struct fill {
    uint64_t address;
    uint64_t pitch;
    uint64_t count; /* elements of a row */
    uint64_t rows;
    unsigned element_bytes;
    unsigned value;
};

CUresult fill_run(void *block)
{
    const struct fill *fill = block;

    for (uint64_t row = 0; row < fill->rows; row++) {
        unsigned char *to = (unsigned char *)(uintptr_t)(fill->address + row * fill->pitch);

        compare_moved(fill->address + row * fill->pitch, fill->count * fill->element_bytes, true);
        for (uint64_t i = 0; i < fill->count; i++) {
            memcpy(to + i * fill->element_bytes, &fill->value, fill->element_bytes);
        }
    }
    return CUDA_SUCCESS;
}

static bool is_valid(const struct fill *fill)
{
    uint64_t width = fill->count * fill->element_bytes;

    return fill->address % fill->element_bytes == 0 && (fill->rows == 1 || fill->pitch >= width) &&
           host_memory_is_reachable(fill->address, (fill->rows - 1) * fill->pitch + width);
}

CUresult fill_make(const CUDA_MEMSET_NODE_PARAMS *params, void **block, size_t *bytes)
{
    const struct fill fill = {params->dst,    params->pitch,       params->width,
                              params->height, params->elementSize, params->value};

    if ((fill.element_bytes != 1 && fill.element_bytes != 2 && fill.element_bytes != 4) ||
        fill.count == 0 || fill.rows == 0 || !is_valid(&fill)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *block = malloc(sizeof(fill));
    if (*block == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(*block, &fill, sizeof(fill));
    *bytes = sizeof(fill);
    return CUDA_SUCCESS;
}

void fill_describe(const void *block, CUDA_MEMSET_NODE_PARAMS *params)
{
    const struct fill *fill = block;

    *params = (CUDA_MEMSET_NODE_PARAMS){fill->address,       fill->pitch, fill->value,
                                        fill->element_bytes, fill->count, fill->rows};
}

static CUresult issue(struct fill fill, CUstream stream)
{
    uint64_t number;

    DRIVER_ENTER(driver_enter_context);
    if (stream_of(stream) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (fill.count == 0 || fill.rows == 0) {
        return CUDA_SUCCESS;
    }
    if (!is_valid(&fill)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return stream_issue(stream, fill_run, &fill, sizeof(fill), &number);
}

/* The four calls for one width of elements. */
#define FILLS(bits, type)                                                                      \
    CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) \
    {                                                                                          \
        return issue((struct fill){to, 0, count, 1, (bits) / 8, value}, stream);               \
    }                                                                                          \
    CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count)                    \
    {                                                                                          \
        return cuMemsetD##bits##Async(to, value, count, NULL);                                 \
    }                                                                                          \
    CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width,  \
                                      size_t height, CUstream stream)                          \
    {                                                                                          \
        return issue((struct fill){to, pitch, width, height, (bits) / 8, value}, stream);      \
    }                                                                                          \
    CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width,    \
                                    size_t height)                                             \
    {                                                                                          \
        return cuMemsetD2D##bits##Async(to, pitch, value, width, height, NULL);                \
    }

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned)
