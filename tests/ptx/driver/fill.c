/* Fills: rows of elements of 1, 2 or 4 bytes. As CUDA does, calls without a stream wait for memory
   that the host can look at, and only for that. */
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

static bool is_for_host(const struct fill *fill)
{
    const void *address = (const void *)(uintptr_t)fill->address;
    struct memory_block block;

    return host_memory_is_pinned(address, 1) ||
           (memory_find(fill->address, &block) && block.is_managed) ||
           (module_find_variable(fill->address, &block) && block.is_managed);
}

static CUresult issue(struct fill fill, CUstream stream, bool waits)
{
    CUresult result;
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
    result = stream_issue(stream, fill_run, &fill, sizeof(fill), &number);
    return result == CUDA_SUCCESS && waits && is_for_host(&fill) ? queue_wait(number) : result;
}

/* The four calls for one width of elements. */
#define FILLS(bits, type)                                                                        \
    CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream)   \
    {                                                                                            \
        return issue((struct fill){to, 0, count, 1, (bits) / 8, value}, stream, false);          \
    }                                                                                            \
    CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count)                      \
    {                                                                                            \
        return issue((struct fill){to, 0, count, 1, (bits) / 8, value}, NULL, true);             \
    }                                                                                            \
    CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width,    \
                                      size_t height, CUstream stream)                            \
    {                                                                                            \
        return issue((struct fill){to, pitch, width, height, (bits) / 8, value}, stream, false); \
    }                                                                                            \
    CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width,      \
                                    size_t height)                                               \
    {                                                                                            \
        return issue((struct fill){to, pitch, width, height, (bits) / 8, value}, NULL, true);    \
    }

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned)
