/* Memsets: zeros are known to the library, which then needs no memory for them; others are the
   driver's own, inside accesses that write the rows. */
#include "shim/copies/copy.h"
#include "shim/core/alloc.h"
#include "shim/core/capture.h"
#include "shim/core/code.h"
#include "shim/core/core.h"
#include "shim/core/cut.h"
#include "shim/core/iteration.h"
#include "shim/core/operands.h"
#include "shim/driver/real.h"
#include "shim/graph/graph.h"

static const char name[] = "memset";

enum { BAND_SHARE = 8 }; /* of the budget: what is set at once at most */

/* Rows of `width` elements of `unit` bytes each, `pitch` bytes apart. */
struct fill {
    uint64_t to;
    size_t pitch;
    unsigned value;
    unsigned unit;
    size_t width, height;
    CUstream stream; /* of the program */
    bool waits;      /* a call without a stream */
};

static struct memset_node node_of(const struct fill *fill)
{
    return (struct memset_node){fill->to,   fill->pitch, fill->value,
                                fill->unit, fill->width, fill->height};
}

static CUresult enqueue_fill(const struct fill *fill)
{
    const struct memset_node node = node_of(fill);

    return graph_enqueue_fill(&node, core_stream(fill->stream));
}

static capu_status zero_range(uint64_t to, uint64_t bytes)
{
    capu_status status = capu_zero(core_context(), (void *)(uintptr_t)to, bytes);

    while (status == CAPU_OVER_BUDGET && core_make_room()) {
        status = capu_zero(core_context(), (void *)(uintptr_t)to, bytes);
    }
    return status;
}

/* The bytes that it sets. */
static struct rows rows_of(const struct fill *fill)
{
    return (struct rows){.address = fill->to,
                         .width = fill->width * fill->unit,
                         .height = fill->height,
                         .depth = 1,
                         .pitch = fill->pitch};
}

static CUresult fill_band(const struct fill *fill)
{
    uint64_t page_bytes = capu_context_config(core_context())->page_bytes;
    const struct rows rows = rows_of(fill);
    struct rows_cursor range = {0};
    struct operands operands = {0};
    CUresult result;

    while (rows_next(&rows, page_bytes, &range)) {
        operands_put(&operands, range.address, range.bytes,
                     range.is_dense ? CAPU_WRITE : CAPU_UPDATE);
    }
    result = core_begin(&operands, name);
    operands_finish(&operands);
    return result == DRIVER_SUCCESS ? core_end(enqueue_fill(fill), name) : result;
}

/* In bands that are small for the budget: of rows, or if there is only one, of parts of it. */
static CUresult fill_bands(const struct fill *fill)
{
    uint64_t most = core_full_budget() / BAND_SHARE;
    const struct rows rows = rows_of(fill);
    size_t row_count = rows_rows_in(&rows, most);
    size_t part = fill->height > 1 || most < fill->unit ? fill->width : (size_t)(most / fill->unit);
    CUresult result = DRIVER_SUCCESS;

    for (size_t y = 0; y < fill->height && result == DRIVER_SUCCESS; y += row_count) {
        for (size_t x = 0; x < fill->width && result == DRIVER_SUCCESS; x += part) {
            struct fill band = *fill;

            band.to += y * fill->pitch + x * fill->unit;
            band.height = fill->height - y < row_count ? fill->height - y : row_count;
            band.width = fill->width - x < part ? fill->width - x : part;
            result = fill_band(&band);
        }
    }
    return result;
}

static CUresult fill_own(const struct fill *fill, const struct allocation *allocation)
{
    const struct rows rows = rows_of(fill);
    uint64_t bytes = rows_bytes(&rows);
    struct rows_cursor all = {0};

    /* What the driver would refuse must not get here: memory that is set as a whole is not fetched.
     */
    if (bytes > allocation->bytes - (fill->to - allocation->address) ||
        fill->to % fill->unit != 0 || (fill->height > 1 && fill->pitch < rows.width)) {
        return DRIVER_INVALID_VALUE;
    }
    iteration_event(core_context(), name, PERIOD_OTHER, operands_note_pointer(0, fill->to));
    cut_range(core_context(), fill->to, bytes);
    if (fill->value == 0 && rows_next(&rows, UINT64_MAX, &all) && all.is_dense) {
        return core_result(zero_range(fill->to, bytes), name);
    }
    return fill_bands(fill);
}

static CUresult carry_out(struct fill fill)
{
    const struct allocation *allocation;
    CUresult result;

    if (fill.height == 1) {
        fill.pitch = fill.width * fill.unit;
    }
    if (fill.width == 0 || fill.height == 0) {
        return DRIVER_SUCCESS;
    }
    if (capture_takes(fill.stream)) {
        const struct memset_node node = node_of(&fill);

        return graph_capture_fill(&node, fill.stream);
    }
    result = core_enter();
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    allocation = alloc_find(fill.to);
    if (allocation != NULL) {
        result = core_settle(fill_own(&fill, allocation));
    }
    core_leave();
    if (allocation != NULL) {
        return result;
    }
    code_note_stored(); /* it may be a variable */
    result = enqueue_fill(&fill);
    return result == DRIVER_SUCCESS && fill.waits && copy_is_visible(fill.to) ? core_wait()
                                                                              : result;
}

/* Calls without a stream wait for memory that the host can look at, such as pinned memory, as the
   driver's do. For memory of the device neither waits. */
#define FILL(bits, type)                                                                           \
    CUresult on_cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream)  \
    {                                                                                              \
        return carry_out((struct fill){to, 0, value, bits / 8, count, 1, stream, false});          \
    }                                                                                              \
    CUresult on_cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count)                     \
    {                                                                                              \
        return carry_out((struct fill){to, 0, value, bits / 8, count, 1, NULL, true});             \
    }                                                                                              \
    CUresult on_cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width,   \
                                         size_t height, CUstream stream)                           \
    {                                                                                              \
        return carry_out((struct fill){to, pitch, value, bits / 8, width, height, stream, false}); \
    }                                                                                              \
    CUresult on_cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width,     \
                                       size_t height)                                              \
    {                                                                                              \
        return carry_out((struct fill){to, pitch, value, bits / 8, width, height, NULL, true});    \
    }

FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)
