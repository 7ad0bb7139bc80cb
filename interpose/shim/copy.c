/*
 * Copies. The bytes of pageable host memory are read during the call, as the driver reads them, so
 * they are uploads and downloads of the library, which work tensor by tensor. Pinned memory may
 * still be written by earlier work of the program when the call is made: there the driver's own
 * asynchronous copy is enqueued, inside an access. So are copies in two and three dimensions.
 */
#include "interpose/shim/alloc.h"
#include "interpose/shim/code.h"
#include "interpose/shim/core.h"
#include "interpose/shim/cut.h"
#include "interpose/shim/floor.h"
#include "interpose/shim/handlers.h"
#include "interpose/shim/iteration.h"
#include "interpose/shim/operands.h"
#include "interpose/shim/real_calls.h"

struct copy {
    uint64_t to;
    uint64_t from;
    size_t bytes;
    CUstream stream; /* of the program */
    bool waits;
};

/* Memory that the driver does not know is pageable. */
static bool is_pageable(uint64_t address)
{
    unsigned type = 0;

    return real_calls()->cuPointerGetAttribute(&type, POINTER_MEMORY_TYPE, address) !=
           DRIVER_SUCCESS;
}

static bool reaches_out(const struct allocation *allocation, uint64_t address, size_t bytes)
{
    return allocation != NULL && bytes > allocation->bytes - (address - allocation->address);
}

/* Neither end is ours. */
static CUresult copy_others(const struct copy *copy)
{
    CUstream stream = core_stream(copy->stream);
    CUresult result = real_calls()->cuMemcpyAsync(copy->to, copy->from, copy->bytes, stream);

    if (!is_pageable(copy->to)) {
        code_note_stored(); /* it may be a variable */
    }
    return result == DRIVER_SUCCESS && copy->waits ? real_calls()->cuStreamSynchronize(stream)
                                                   : result;
}

static CUresult copy_by_driver(const struct copy *copy, bool to_is_ours)
{
    static const char name[] = "copy";
    CUresult result;

    if (!core_add(to_is_ours ? copy->to : copy->from, copy->bytes,
                  to_is_ours ? CAPU_WRITE : CAPU_READ)) {
        return DRIVER_OUT_OF_MEMORY;
    }
    result = core_begin(name);
    if (result == DRIVER_SUCCESS) {
        result = core_end(real_calls()->cuMemcpyAsync(copy->to, copy->from, copy->bytes,
                                                      core_stream(copy->stream)),
                          name);
    }
    return result;
}

/* What the library's own copies need. */
static void note_need(const struct copy *copy, bool to_is_ours, bool from_is_ours)
{
    capu_operand ends[2];
    size_t count = 0;

    if (to_is_ours) {
        ends[count++] =
            (capu_operand){.address = (void *)(uintptr_t)copy->to, .bytes = copy->bytes};
    }
    if (from_is_ours) {
        ends[count++] =
            (capu_operand){.address = (void *)(uintptr_t)copy->from, .bytes = copy->bytes};
    }
    floor_note(core_context(), ends, count);
}

/* A copy of pageable memory, or on the device, by the library. */
static capu_status copy_once(const struct copy *copy, bool to_is_ours, bool from_is_ours)
{
    void *to = (void *)(uintptr_t)copy->to;
    const void *from = (const void *)(uintptr_t)copy->from;

    return to_is_ours && from_is_ours ? capu_copy(core_context(), to, from, copy->bytes)
           : to_is_ours               ? capu_upload(core_context(), to, from, copy->bytes)
                                      : capu_download(core_context(), to, from, copy->bytes);
}

static CUresult copy_by_library(const struct copy *copy, bool to_is_ours, bool from_is_ours)
{
    capu_status status = copy_once(copy, to_is_ours, from_is_ours);

    if (status == CAPU_OVER_BUDGET && cut_noted(core_context())) {
        status = copy_once(copy, to_is_ours, from_is_ours);
    }
    return core_result(status, to_is_ours && from_is_ours ? "copy on the device"
                               : to_is_ours               ? "upload"
                                                          : "download");
}

static void note_event(uint64_t to, uint64_t from, bool is_from_host)
{
    operands_note_pointer(to);
    operands_note_pointer(from);
    iteration_event(core_context(), is_from_host ? "copy from the host" : "copy",
                    is_from_host ? PERIOD_COPY_IN : PERIOD_OTHER);
}

/* At least one end is ours. */
static CUresult copy_own(const struct copy *copy, const struct allocation *to,
                         const struct allocation *from)
{
    if (reaches_out(to, copy->to, copy->bytes) || reaches_out(from, copy->from, copy->bytes)) {
        return DRIVER_INVALID_VALUE;
    }
    note_event(copy->to, copy->from, from == NULL);
    if (to != NULL) {
        cut_range(core_context(), copy->to, copy->bytes);
    }
    if (from != NULL) {
        cut_range(core_context(), copy->from, copy->bytes);
    }
    note_need(copy, to != NULL, from != NULL);
    return (to != NULL && from != NULL) || is_pageable(to != NULL ? copy->from : copy->to)
               ? copy_by_library(copy, to != NULL, from != NULL)
               : copy_by_driver(copy, to != NULL);
}

/* Takes the lock and finds the ends. Earlier work is waited for without the lock if the copy would
   wait for it. */
static CUresult enter(const struct copy *copy, const struct allocation **to,
                      const struct allocation **from)
{
    bool has_waited = false;

    for (;;) {
        CUresult result = core_enter();

        if (result != DRIVER_SUCCESS) {
            return result;
        }
        *to = alloc_find(copy->to);
        *from = alloc_find(copy->from);
        if (has_waited || *to != NULL || *from == NULL || !is_pageable(copy->to)) {
            return DRIVER_SUCCESS;
        }
        core_leave();
        result = core_wait();
        if (result != DRIVER_SUCCESS) {
            return result;
        }
        has_waited = true;
    }
}

static CUresult carry_out(const struct copy *copy)
{
    const struct allocation *to;
    const struct allocation *from;
    CUresult result;

    if (copy->bytes == 0) {
        return DRIVER_SUCCESS;
    }
    result = enter(copy, &to, &from);
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    if (to == NULL && from == NULL) {
        core_leave();
        return copy_others(copy);
    }
    result = core_settle(copy_own(copy, to, from));
    core_leave();
    return result == DRIVER_SUCCESS && copy->waits ? core_wait() : result;
}

static CUresult copy_linear(uint64_t to, uint64_t from, size_t bytes, CUstream stream)
{
    return carry_out(&(struct copy){to, from, bytes, stream, false});
}

static CUresult copy_linear_now(uint64_t to, uint64_t from, size_t bytes)
{
    return carry_out(&(struct copy){to, from, bytes, NULL, true});
}

CUresult on_cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_linear_now(to, from, bytes);
}

CUresult on_cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return copy_linear_now(to, (uintptr_t)from, bytes);
}

CUresult on_cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    return copy_linear_now((uintptr_t)to, from, bytes);
}

CUresult on_cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_linear_now(to, from, bytes);
}

CUresult on_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_linear(to, from, bytes, stream);
}

CUresult on_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return copy_linear(to, (uintptr_t)from, bytes, stream);
}

CUresult on_cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_linear((uintptr_t)to, from, bytes, stream);
}

CUresult on_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_linear(to, from, bytes, stream);
}

/* One end of a copy in two or three dimensions: where its first row begins, and how far rows and
   slices are apart. */
struct end {
    unsigned type;
    uint64_t address;
    size_t pitch;
    size_t slice;
};

static uint64_t end_address(unsigned type, const void *host, CUdeviceptr device)
{
    return type == MEMORY_HOST ? (uint64_t)(uintptr_t)host : device;
}

/* Adds an end as an operand, from its first byte to its last, if it is ours; else it may be a
 * variable. */
static CUresult add_end(const struct end *end, const size_t size[3], capu_role role)
{
    uint64_t bytes = (size[2] - 1) * end->slice + (size[1] - 1) * end->pitch + size[0];
    const struct allocation *allocation =
        end->type == MEMORY_DEVICE || end->type == MEMORY_UNIFIED ? alloc_find(end->address) : NULL;

    if (allocation == NULL) {
        if (role != CAPU_READ && end->type != MEMORY_HOST) {
            code_note_stored();
        }
        return DRIVER_SUCCESS;
    }
    if (reaches_out(allocation, end->address, bytes)) {
        return DRIVER_INVALID_VALUE;
    }
    return core_add(end->address, bytes, role) ? DRIVER_SUCCESS : DRIVER_OUT_OF_MEMORY;
}

static CUresult begin_shaped(const struct end *to, const struct end *from, const size_t size[3])
{
    bool is_whole = to->pitch == size[0] && to->slice == size[0] * size[1];
    CUresult result = add_end(from, size, CAPU_READ);

    if (result == DRIVER_SUCCESS) {
        result = add_end(to, size, is_whole ? CAPU_WRITE : CAPU_UPDATE);
    }
    if (result == DRIVER_SUCCESS) {
        note_event(to->address, from->address, from->type == MEMORY_HOST);
        result = core_begin("copy");
    }
    return result;
}

static CUresult shaped_2d(const struct copy_2d *copy, CUstream stream)
{
    const size_t size[3] = {copy->width, copy->height, 1};
    struct end to = {copy->to_type, end_address(copy->to_type, copy->to_host, copy->to_device),
                     copy->to_pitch, copy->to_pitch * copy->height};
    struct end from = {copy->from_type,
                       end_address(copy->from_type, copy->from_host, copy->from_device),
                       copy->from_pitch, copy->from_pitch * copy->height};
    CUresult result;

    if (copy->width == 0 || copy->height == 0) {
        return real_calls()->cuMemcpy2DAsync_v2(copy, core_stream(stream));
    }
    to.address += copy->to_y * copy->to_pitch + copy->to_x;
    from.address += copy->from_y * copy->from_pitch + copy->from_x;
    result = core_enter();
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    result = begin_shaped(&to, &from, size);
    if (result == DRIVER_SUCCESS) {
        result = core_end(real_calls()->cuMemcpy2DAsync_v2(copy, core_stream(stream)), "copy");
    }
    core_leave();
    return result;
}

static CUresult shaped_3d(const struct copy_3d *copy, CUstream stream)
{
    const size_t size[3] = {copy->width, copy->height, copy->depth};
    struct end to = {copy->to_type, end_address(copy->to_type, copy->to_host, copy->to_device),
                     copy->to_pitch, copy->to_pitch * copy->to_height};
    struct end from = {copy->from_type,
                       end_address(copy->from_type, copy->from_host, copy->from_device),
                       copy->from_pitch, copy->from_pitch * copy->from_height};
    CUresult result;

    if (copy->width == 0 || copy->height == 0 || copy->depth == 0) {
        return real_calls()->cuMemcpy3DAsync_v2(copy, core_stream(stream));
    }
    to.address += copy->to_z * to.slice + copy->to_y * to.pitch + copy->to_x;
    from.address += copy->from_z * from.slice + copy->from_y * from.pitch + copy->from_x;
    result = core_enter();
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    result = begin_shaped(&to, &from, size);
    if (result == DRIVER_SUCCESS) {
        result = core_end(real_calls()->cuMemcpy3DAsync_v2(copy, core_stream(stream)), "copy");
    }
    core_leave();
    return result;
}

CUresult on_cuMemcpy2DAsync_v2(const struct copy_2d *copy, CUstream stream)
{
    return copy != NULL ? shaped_2d(copy, stream) : DRIVER_INVALID_VALUE;
}

CUresult on_cuMemcpy3DAsync_v2(const struct copy_3d *copy, CUstream stream)
{
    return copy != NULL ? shaped_3d(copy, stream) : DRIVER_INVALID_VALUE;
}

CUresult on_cuMemcpy2D_v2(const struct copy_2d *copy)
{
    CUresult result = on_cuMemcpy2DAsync_v2(copy, NULL);

    return result == DRIVER_SUCCESS ? core_wait() : result;
}

CUresult on_cuMemcpy2DUnaligned_v2(const struct copy_2d *copy)
{
    return on_cuMemcpy2D_v2(copy);
}

CUresult on_cuMemcpy3D_v2(const struct copy_3d *copy)
{
    CUresult result = on_cuMemcpy3DAsync_v2(copy, NULL);

    return result == DRIVER_SUCCESS ? core_wait() : result;
}
