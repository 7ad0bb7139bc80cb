/* Copies of allocations, see moved.h. */
#include "shim/core/moved.h"

#include "shim/driver/settings.h"

#include "base/array.h"
#include "runtime/api/describe.h"

#include <stdlib.h>

static struct {
    struct moved *list; /* by ordinal */
    size_t count, capacity;
} all;

/* NULL: no host memory. */
static struct moved *find(uint64_t ordinal)
{
    if (!array_reserve(&all.list, &all.capacity, ordinal + 1, sizeof(all.list[0]))) {
        return NULL;
    }
    for (; all.count <= ordinal; all.count++) {
        all.list[all.count] = (struct moved){.ordinal = all.count};
    }
    return &all.list[ordinal];
}

void moved_note(capu_context *context, const struct allocation *allocation)
{
    struct describe_range range = {allocation->address, allocation->address + allocation->bytes};
    capu_tensor_state state;
    struct moved *moved = settings_get()->report_path != NULL ? find(allocation->ordinal) : NULL;

    if (moved == NULL) {
        return;
    }
    moved->count++;
    moved->address = allocation->address;
    moved->bytes = moved->bytes > allocation->bytes ? moved->bytes : allocation->bytes;
    while (describe_next(context, &range, &state)) {
        moved->out_bytes += state.out_bytes;
        moved->back_bytes += state.back_bytes;
    }
}

static int by_bytes(const void *left, const void *right)
{
    const struct moved *a = left;
    const struct moved *b = right;
    uint64_t a_bytes = a->out_bytes + a->back_bytes;
    uint64_t b_bytes = b->out_bytes + b->back_bytes;

    if (a_bytes != b_bytes) {
        return a_bytes > b_bytes ? -1 : 1;
    }
    return a->ordinal < b->ordinal ? -1 : a->ordinal > b->ordinal;
}

size_t moved_sort(const struct moved **list)
{
    size_t count = 0;

    if (all.count > 0) {
        qsort(all.list, all.count, sizeof(all.list[0]), by_bytes);
    }
    while (count < all.count && all.list[count].out_bytes + all.list[count].back_bytes > 0) {
        count++;
    }
    *list = all.list;
    return count;
}
