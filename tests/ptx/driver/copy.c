/*
 * Copies and fills. Each is one piece of work over rows: a row is contiguous, rows are `pitch`
 * apart, and slices of `height` rows follow one another.
 *
 * As CUDA does: a copy from pageable memory has read it when the call returns, a copy to pageable
 * memory has completed, so has one within host memory, and one between the device and pinned memory
 * does neither unless the call is synchronous.
 */
#include "tests/ptx/driver/declared.h"
#include "tests/ptx/driver/graph.h"

#include <stdlib.h>
#include <string.h>

enum side_kind { SIDE_HOST, SIDE_DEVICE, SIDE_ANY };

struct side {
    uint64_t address;
    uint64_t pitch;  /* from row to row */
    uint64_t height; /* rows from slice to slice */
    enum side_kind kind;
};

struct copy {
    struct side to;
    struct side from;
    uint64_t width; /* bytes */
    uint64_t height;
    uint64_t depth;
    void *staging; /* what `from` is, if it is freed afterwards */
};

static void *at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static uint64_t row(const struct side *side, uint64_t y, uint64_t z)
{
    return side->address + (z * side->height + y) * side->pitch;
}

/* Copies as if there were nothing between the two sides. */
static void move(const struct copy *copy)
{
    for (uint64_t z = 0; z < copy->depth; z++) {
        for (uint64_t y = 0; y < copy->height; y++) {
            memmove(at(row(&copy->to, y, z)), at(row(&copy->from, y, z)), copy->width);
        }
    }
}

static void compare(const struct copy *copy)
{
    for (uint64_t z = 0; z < copy->depth; z++) {
        for (uint64_t y = 0; y < copy->height; y++) {
            compare_moved(row(&copy->from, y, z), copy->width, false);
            compare_moved(row(&copy->to, y, z), copy->width, true);
        }
    }
}

CUresult copy_run(void *block)
{
    const struct copy *copy = block;

    compare(copy);
    move(copy);
    free(copy->staging); /* none in a graph */
    return CUDA_SUCCESS;
}

static uint64_t reach(const struct side *side, const struct copy *copy)
{
    return ((copy->depth - 1) * side->height + copy->height - 1) * side->pitch + copy->width;
}

static bool is_valid(const struct side *side, const struct copy *copy)
{
    uint64_t bytes = reach(side, copy);

    if (side->address == 0 || (copy->height > 1 && side->pitch < copy->width) ||
        (copy->depth > 1 && side->height < copy->height)) {
        return false;
    }
    return side->kind != SIDE_DEVICE || host_memory_is_reachable(side->address, bytes);
}

static bool is_pinned(const struct side *side, const struct copy *copy)
{
    return host_memory_is_pinned(at(side->address), reach(side, copy));
}

static bool is_pageable(const struct side *side, const struct copy *copy)
{
    struct memory_block block;

    if (side->kind == SIDE_DEVICE || is_pinned(side, copy)) {
        return false;
    }
    return !memory_find(side->address, &block) && !module_find_variable(side->address, &block);
}

/* Replaces the source by a contiguous copy of it. */
static bool stage(struct copy *copy)
{
    struct copy first = *copy;

    copy->staging = malloc(copy->width * copy->height * copy->depth);
    if (copy->staging == NULL) {
        return false;
    }
    copy->from = (struct side){(uintptr_t)copy->staging, copy->width, copy->height, SIDE_HOST};
    first.to = copy->from;
    move(&first);
    return true;
}

static CUresult issue(struct copy copy, CUstream stream, bool is_synchronous)
{
    uint64_t number;
    CUresult result;

    DRIVER_ENTER(driver_enter_context);
    if (stream_of(stream) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (copy.width == 0 || copy.height == 0 || copy.depth == 0) {
        return CUDA_SUCCESS;
    }
    if (!is_valid(&copy.to, &copy) || !is_valid(&copy.from, &copy)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (is_pinned(&copy.to, &copy) && is_pinned(&copy.from, &copy) &&
        !stream_is_capturing(stream)) {
        is_synchronous = true;
    }
    /* With foreign memory, a copy of any kind may be between two devices. A captured copy reads and
       writes when the graph runs. */
    if ((!driver_settings()->with_foreign || copy.to.kind != SIDE_ANY) &&
        !stream_is_capturing(stream)) {
        is_synchronous = is_synchronous || is_pageable(&copy.to, &copy);
        if (!is_synchronous && is_pageable(&copy.from, &copy) && !stage(&copy)) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    result = stream_issue(stream, copy_run, &copy, sizeof(copy), &number);
    if (result != CUDA_SUCCESS) {
        free(copy.staging);
        return result;
    }
    return is_synchronous ? queue_wait(number) : CUDA_SUCCESS;
}

static struct copy linear(uint64_t to, enum side_kind to_kind, uint64_t from,
                          enum side_kind from_kind, size_t bytes)
{
    return (struct copy){{to, bytes, 1, to_kind}, {from, bytes, 1, from_kind}, bytes, 1, 1, NULL};
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return issue(linear(to, SIDE_ANY, from, SIDE_ANY, bytes), NULL, true);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return issue(linear(to, SIDE_ANY, from, SIDE_ANY, bytes), stream, false);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return issue(linear(to, SIDE_DEVICE, (uintptr_t)from, SIDE_HOST, bytes), NULL, true);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return issue(linear(to, SIDE_DEVICE, (uintptr_t)from, SIDE_HOST, bytes), stream, false);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    return issue(linear((uintptr_t)to, SIDE_HOST, from, SIDE_DEVICE, bytes), NULL, true);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return issue(linear((uintptr_t)to, SIDE_HOST, from, SIDE_DEVICE, bytes), stream, false);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return issue(linear(to, SIDE_DEVICE, from, SIDE_DEVICE, bytes), NULL, false);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return issue(linear(to, SIDE_DEVICE, from, SIDE_DEVICE, bytes), stream, false);
}

/* One side of a copy that is described by a structure. False: an array, or no kind of memory. */
static bool describe(struct side *side, CUmemorytype type, const void *host, CUdeviceptr device,
                     size_t pitch, size_t height)
{
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        *side = (struct side){(uintptr_t)host, pitch, height, SIDE_HOST};
        return true;
    case CU_MEMORYTYPE_DEVICE:
        *side = (struct side){device, pitch, height, SIDE_DEVICE};
        return true;
    case CU_MEMORYTYPE_UNIFIED:
        *side = (struct side){device, pitch, height, SIDE_ANY};
        return true;
    default:
        return false;
    }
}

/* False: a side is no kind of memory. */
static bool read_3d(const CUDA_MEMCPY3D *given, struct copy *copy)
{
    *copy = (struct copy){.staging = NULL};
    if (given == NULL ||
        !describe(&copy->from, given->srcMemoryType, given->srcHost, given->srcDevice,
                  given->srcPitch, given->srcHeight) ||
        !describe(&copy->to, given->dstMemoryType, given->dstHost, given->dstDevice,
                  given->dstPitch, given->dstHeight)) {
        return false;
    }
    copy->width = given->WidthInBytes;
    copy->height = given->Height;
    copy->depth = given->Depth;
    copy->from.address +=
        (given->srcZ * copy->from.height + given->srcY) * copy->from.pitch + given->srcXInBytes;
    copy->to.address +=
        (given->dstZ * copy->to.height + given->dstY) * copy->to.pitch + given->dstXInBytes;
    return true;
}

static CUresult copy_3d(const CUDA_MEMCPY3D *given, CUstream stream, bool is_synchronous)
{
    struct copy copy;

    return read_3d(given, &copy) ? issue(copy, stream, is_synchronous) : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_make(const CUDA_MEMCPY3D *params, void **block, size_t *bytes)
{
    struct copy copy;

    if (!read_3d(params, &copy) || copy.width == 0 || copy.height == 0 || copy.depth == 0 ||
        !is_valid(&copy.to, &copy) || !is_valid(&copy.from, &copy)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *block = malloc(sizeof(copy));
    if (*block == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(*block, &copy, sizeof(copy));
    *bytes = sizeof(copy);
    return CUDA_SUCCESS;
}

static CUmemorytype type_of(const struct side *side)
{
    return side->kind == SIDE_HOST     ? CU_MEMORYTYPE_HOST
           : side->kind == SIDE_DEVICE ? CU_MEMORYTYPE_DEVICE
                                       : CU_MEMORYTYPE_UNIFIED;
}

void copy_describe(const void *block, CUDA_MEMCPY3D *params)
{
    const struct copy *copy = block;

    *params = (CUDA_MEMCPY3D){
        .srcMemoryType = type_of(&copy->from),
        .srcPitch = copy->from.pitch,
        .srcHeight = copy->from.height,
        .dstMemoryType = type_of(&copy->to),
        .dstPitch = copy->to.pitch,
        .dstHeight = copy->to.height,
        .WidthInBytes = copy->width,
        .Height = copy->height,
        .Depth = copy->depth,
    };
    params->srcHost = copy->from.kind == SIDE_HOST ? at(copy->from.address) : NULL;
    params->srcDevice = copy->from.kind == SIDE_HOST ? 0 : copy->from.address;
    params->dstHost = copy->to.kind == SIDE_HOST ? at(copy->to.address) : NULL;
    params->dstDevice = copy->to.kind == SIDE_HOST ? 0 : copy->to.address;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *given, CUstream stream, bool is_synchronous)
{
    CUDA_MEMCPY3D copy;

    if (given == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    copy = (CUDA_MEMCPY3D){
        .srcXInBytes = given->srcXInBytes,
        .srcY = given->srcY,
        .srcMemoryType = given->srcMemoryType,
        .srcHost = given->srcHost,
        .srcDevice = given->srcDevice,
        .srcPitch = given->srcPitch,
        .dstXInBytes = given->dstXInBytes,
        .dstY = given->dstY,
        .dstMemoryType = given->dstMemoryType,
        .dstHost = given->dstHost,
        .dstDevice = given->dstDevice,
        .dstPitch = given->dstPitch,
        .WidthInBytes = given->WidthInBytes,
        .Height = given->Height,
        .Depth = 1,
    };
    return copy_3d(&copy, stream, is_synchronous);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
    return copy_2d(copy, NULL, true);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
    return copy_2d(copy, NULL, true);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    return copy_2d(copy, stream, false);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy)
{
    return copy_3d(copy, NULL, true);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
    return copy_3d(copy, stream, false);
}
