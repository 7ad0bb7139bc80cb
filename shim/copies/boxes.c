/*
 * Copies in two and three dimensions: the driver's own, inside accesses of the rows that they
 * touch.
 *
 * Rows that are less than a page apart are named together, and what is between them counts as kept.
 * A box that is large for the budget is copied in bands of rows, or of slices, each in an access of
 * its own.
 */

#include "shim/copies/copy.h"
#include "shim/core/alloc.h"
#include "shim/core/capture.h"
#include "shim/core/code.h"
#include "shim/core/core.h"
#include "shim/core/cut.h"
#include "shim/core/operands.h"
#include "shim/driver/real.h"
#include "shim/graph/graph.h"

/* The rows of a box. */

uint64_t rows_bytes(const struct rows *rows)
{
    return (uint64_t)(rows->depth - 1) * rows->slice + (uint64_t)(rows->height - 1) * rows->pitch +
           rows->width;
}

static uint64_t address_of_row(const struct rows *rows, size_t row)
{
    return rows->address + row / rows->height * rows->slice + row % rows->height * rows->pitch;
}

bool rows_next(const struct rows *rows, uint64_t gap, struct rows_cursor *cursor)
{
    size_t count = rows->height * rows->depth;
    uint64_t end;

    if (cursor->row == count) {
        return false;
    }
    cursor->address = address_of_row(rows, cursor->row);
    cursor->is_dense = true;
    end = cursor->address + rows->width;
    cursor->row++;
    while (cursor->row < count) {
        uint64_t next = address_of_row(rows, cursor->row);

        if (next < end || next - end >= gap) {
            break;
        }
        cursor->is_dense &= next == end;
        end = next + rows->width;
        cursor->row++;
    }
    cursor->bytes = end - cursor->address;
    return true;
}

static size_t at_least_one(uint64_t bytes, uint64_t each, size_t most)
{
    uint64_t count = each > 0 ? bytes / each : most;

    return count < 1 ? 1 : count < most ? (size_t)count : most;
}

size_t rows_slices_in(const struct rows *rows, uint64_t bytes)
{
    return at_least_one(bytes, rows->slice, rows->depth);
}

size_t rows_rows_in(const struct rows *rows, uint64_t bytes)
{
    return at_least_one(bytes, rows->pitch, rows->height);
}

/* Copies. */

enum { BAND_SHARE = 8 }; /* of the budget: what an end of a band has at most */

static const char name[] = "copy";

/* A copy in either form; what is not named in a 2D one is 0 and 1. */
struct box {
    bool is_flat;
    struct copy_2d flat;
    struct copy_3d deep;
    unsigned to_type, from_type;
    struct rows to, from; /* where they are in linear memory */
};

static uint64_t address_of_end(unsigned type, const void *host, CUdeviceptr device)
{
    return type == MEMORY_HOST ? (uint64_t)(uintptr_t)host : device;
}

static struct box box_of_flat(const struct copy_2d *copy)
{
    struct box box = {
        .is_flat = true, .flat = *copy, .to_type = copy->to_type, .from_type = copy->from_type};
    struct rows rows = {.width = copy->width, .height = copy->height, .depth = 1};

    box.to = box.from = rows;
    box.to.pitch = copy->to_pitch;
    box.to.slice = copy->to_pitch * copy->height;
    box.to.address = address_of_end(copy->to_type, copy->to_host, copy->to_device) +
                     copy->to_y * copy->to_pitch + copy->to_x;
    box.from.pitch = copy->from_pitch;
    box.from.slice = copy->from_pitch * copy->height;
    box.from.address = address_of_end(copy->from_type, copy->from_host, copy->from_device) +
                       copy->from_y * copy->from_pitch + copy->from_x;
    return box;
}

static struct box box_of_deep(const struct copy_3d *copy)
{
    struct box box = {.deep = *copy, .to_type = copy->to_type, .from_type = copy->from_type};
    struct rows rows = {.width = copy->width, .height = copy->height, .depth = copy->depth};

    box.to = box.from = rows;
    box.to.pitch = copy->to_pitch;
    box.to.slice = copy->to_pitch * copy->to_height;
    box.to.address = address_of_end(copy->to_type, copy->to_host, copy->to_device) +
                     copy->to_z * box.to.slice + copy->to_y * copy->to_pitch + copy->to_x;
    box.from.pitch = copy->from_pitch;
    box.from.slice = copy->from_pitch * copy->from_height;
    box.from.address = address_of_end(copy->from_type, copy->from_host, copy->from_device) +
                       copy->from_z * box.from.slice + copy->from_y * copy->from_pitch +
                       copy->from_x;
    return box;
}

static CUresult enqueue_box(const struct box *box, CUstream stream)
{
    return box->is_flat ? real_calls()->cuMemcpy2DAsync_v2(&box->flat, core_stream(stream))
                        : real_calls()->cuMemcpy3DAsync_v2(&box->deep, core_stream(stream));
}

/* The band of `height` rows from `y` in `depth` slices from `z`. */
static struct box band_of(const struct box *box, size_t z, size_t depth, size_t y, size_t height)
{
    struct box band = *box;

    band.flat.from_y += y;
    band.flat.to_y += y;
    band.flat.height = height;
    band.deep.from_z += z;
    band.deep.to_z += z;
    band.deep.depth = depth;
    band.deep.from_y += y;
    band.deep.to_y += y;
    band.deep.height = height;
    band.to.address += z * box->to.slice + y * box->to.pitch;
    band.from.address += z * box->from.slice + y * box->from.pitch;
    band.to.height = band.from.height = height;
    band.to.depth = band.from.depth = depth;
    return band;
}

/* The allocation that an end is in; NULL: it is not ours. Pre: entered. */
static const struct allocation *find_end(unsigned type, const struct rows *rows)
{
    return type == MEMORY_DEVICE || type == MEMORY_UNIFIED ? alloc_find(rows->address) : NULL;
}

static uint64_t page_bytes(void)
{
    return capu_context_config(core_context())->page_bytes;
}

/* Adds an end as operands if it is ours; else it may be a variable. Pre: entered. */
static void add_end(struct operands *operands, unsigned type, const struct rows *rows, bool is_read)
{
    const struct allocation *allocation = find_end(type, rows);
    struct rows_cursor range = {0};

    if (allocation == NULL) {
        if (!is_read && type != MEMORY_HOST) {
            code_note_stored();
        }
        return;
    }
    while (rows_next(rows, page_bytes(), &range)) {
        capu_role role = is_read ? CAPU_READ : range.is_dense ? CAPU_WRITE : CAPU_UPDATE;

        operands_put(operands, range.address, range.bytes, role);
    }
}

static CUresult copy_band(const struct box *band, CUstream stream)
{
    struct operands operands = {0};
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    add_end(&operands, band->from_type, &band->from, true);
    add_end(&operands, band->to_type, &band->to, false);
    result = core_begin(&operands, name);
    operands_finish(&operands);
    if (result == DRIVER_SUCCESS) {
        result = core_end(enqueue_box(band, stream), name);
    }
    core_leave();
    return result;
}

/* Checks an end against its allocation, cuts what it is the first to touch, and limits how many
   slices and rows of it are copied at once. Pre: entered. */
static CUresult prepare_end(unsigned type, const struct rows *rows, size_t *slices,
                            size_t *row_count)
{
    const struct allocation *allocation = find_end(type, rows);
    uint64_t most = core_full_budget() / BAND_SHARE;
    struct rows_cursor range = {0};

    if (allocation == NULL) {
        return DRIVER_SUCCESS;
    }
    if (rows_bytes(rows) > allocation->bytes - (rows->address - allocation->address) ||
        (rows->height > 1 && rows->pitch < rows->width)) {
        return DRIVER_INVALID_VALUE;
    }
    cut_range(core_context(), rows->address,
              rows_bytes(rows)); /* into smaller parts if it is large */
    while (rows_next(rows, page_bytes(), &range)) {
        cut_range(core_context(), range.address, range.bytes);
    }
    if (rows_slices_in(rows, most) < *slices) {
        *slices = rows_slices_in(rows, most);
    }
    if (rows_rows_in(rows, most) < *row_count) {
        *row_count = rows_rows_in(rows, most);
    }
    return DRIVER_SUCCESS;
}

static CUresult prepare_box(const struct box *box, size_t *slices, size_t *row_count)
{
    CUresult result = core_enter();

    *slices = box->to.depth;
    *row_count = box->to.height;
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    result = prepare_end(box->from_type, &box->from, slices, row_count);
    if (result == DRIVER_SUCCESS) {
        result = prepare_end(box->to_type, &box->to, slices, row_count);
    }
    if (result == DRIVER_SUCCESS) {
        copy_note(box->to.address, box->from.address, box->from_type == MEMORY_HOST);
    }
    core_leave();
    return result;
}

/* The driver's call may wait for earlier work if an end is pageable: that is waited for without the
   lock. */
static CUresult wait_before(const struct box *box)
{
    bool waits = (box->from_type == MEMORY_HOST && copy_is_pageable(box->from.address)) ||
                 (box->to_type == MEMORY_HOST && copy_is_pageable(box->to.address)) ||
                 box->from_type == MEMORY_UNIFIED || box->to_type == MEMORY_UNIFIED;

    return waits ? core_wait() : DRIVER_SUCCESS;
}

static CUresult copy_box(const struct box *box, CUstream stream)
{
    size_t slices;
    size_t row_count;
    CUresult result = wait_before(box);

    if (result == DRIVER_SUCCESS) {
        result = prepare_box(box, &slices, &row_count);
    }
    /* Bands of rows lie in one slice each. */
    slices = result == DRIVER_SUCCESS && row_count < box->to.height ? 1 : slices;
    for (size_t z = 0; z < box->to.depth && result == DRIVER_SUCCESS; z += slices) {
        size_t depth = box->to.depth - z < slices ? box->to.depth - z : slices;

        for (size_t y = 0; y < box->to.height && result == DRIVER_SUCCESS; y += row_count) {
            size_t height = box->to.height - y < row_count ? box->to.height - y : row_count;
            struct box band = band_of(box, z, depth, y, height);

            result = copy_band(&band, stream);
        }
    }
    return result;
}

CUresult on_cuMemcpy2DAsync_v2(const struct copy_2d *copy, CUstream stream)
{
    struct box box;

    if (copy == NULL) {
        return DRIVER_INVALID_VALUE;
    }
    if (capture_takes(stream)) {
        return graph_capture_2d(copy, stream);
    }
    if (copy->width == 0 || copy->height == 0) {
        return real_calls()->cuMemcpy2DAsync_v2(copy, core_stream(stream));
    }
    box = box_of_flat(copy);
    return copy_box(&box, stream);
}

CUresult on_cuMemcpy3DAsync_v2(const struct copy_3d *copy, CUstream stream)
{
    struct box box;

    if (copy == NULL) {
        return DRIVER_INVALID_VALUE;
    }
    if (capture_takes(stream)) {
        return graph_capture_3d(copy, stream);
    }
    if (copy->width == 0 || copy->height == 0 || copy->depth == 0) {
        return real_calls()->cuMemcpy3DAsync_v2(copy, core_stream(stream));
    }
    box = box_of_deep(copy);
    return copy_box(&box, stream);
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
