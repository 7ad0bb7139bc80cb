/* Each lane loads or stores its own items, see fragments.h. The warp meets before and after: what
   its lanes have stored is there for the instruction, and the other way round. */
#include "tests/ptx/machine/fragments.h"

#include "tests/ptx/machine/matrix.h"
#include "tests/ptx/machine/prelude_memory.h"

static void meet(struct ptx_thread *thread, uint32_t line)
{
    uint32_t in = 0, out;

    thread->block->calls->exchange(thread, PTX_SYNC, UINT32_MAX, &in, &out, line);
}

/* An item in memory. */
static unsigned char *at(struct ptx_thread *thread, const struct ptx_fragment *fragment,
                         uint32_t item, uint32_t bytes, enum ptx_access kind, uint32_t line)
{
    struct matrix_place place =
        matrix_place(&fragment->product, fragment->which, thread->number % 32, item);
    uint64_t outer = fragment->is_by_rows ? place.row : place.column;
    uint64_t inner = fragment->is_by_rows ? place.column : place.row;
    uint64_t address = fragment->address + (outer * fragment->stride + inner) * bytes;

    return fragment->is_shared ? at_shared(thread, address, bytes, kind, line)
                               : at_generic(thread, address, bytes, kind, line);
}

static uint32_t bytes_of(const struct ptx_fragment *fragment)
{
    return matrix_item_bytes(matrix_format(&fragment->product, fragment->which));
}

void fragments_load(struct ptx_thread *thread, const struct ptx_fragment *fragment, uint32_t *words,
                    uint32_t line)
{
    uint32_t bytes = bytes_of(fragment);

    meet(thread, line);
    for (uint32_t i = 0; i < matrix_items(&fragment->product, fragment->which); i++) {
        memcpy((unsigned char *)words + i * bytes, at(thread, fragment, i, bytes, PTX_READ, line),
               bytes);
    }
    meet(thread, line);
}

void fragments_store(struct ptx_thread *thread, const struct ptx_fragment *fragment,
                     const uint32_t *words, uint32_t line)
{
    uint32_t bytes = bytes_of(fragment);

    meet(thread, line);
    for (uint32_t i = 0; i < matrix_items(&fragment->product, fragment->which); i++) {
        memcpy(at(thread, fragment, i, bytes, PTX_WRITE, line),
               (const unsigned char *)words + i * bytes, bytes);
    }
    meet(thread, line);
}
