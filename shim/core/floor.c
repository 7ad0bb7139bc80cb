/* The least budget, see floor.h. */
#include "shim/core/floor.h"

#include "shim/driver/settings.h"

#include "base/array.h"
#include "base/hash.h"
#include "runtime/api/describe.h"

#include <stdlib.h>
#include <string.h>

struct part {
    uint64_t address; /* of a tensor */
    uint64_t bytes;   /* of its own pages */
};

/* Small tensors, by the logarithm of their size. The slots that the library gives them are at most
   half as large again, and slots of at most four sizes serve one of these classes. */
enum { CLASSES = 64, SLOT_SIZES = 4 };

/* Accesses that are remembered: the newest of those with the same part of their number. */
enum { REMEMBERED_SETS = 1024, REMEMBERED_EACH = 8 };

static struct {
    struct part *list; /* of one access */
    size_t count, capacity;
    uint64_t most;  /* bytes that one access needed */
    uint64_t small; /* bytes of small tensors now, and the most of them */
    uint64_t most_small;
    bool classes[CLASSES]; /* that were used */
    uint64_t generation;   /* counts changes of allocations */
    uint64_t remembered[REMEMBERED_SETS][REMEMBERED_EACH];
} needs;

/* Whether this access was noted since allocations changed last: a program repeats its launches. Of
   two accesses with the same 64-bit number, one may be missed. Cuts only make tensors smaller. */
static bool is_remembered(const capu_operand *operands, size_t count)
{
    uint64_t number = needs.generation + 1;
    uint64_t *set;

    for (size_t i = 0; i < count; i++) {
        number = hash_mix_two(number, (uintptr_t)operands[i].address, operands[i].bytes);
    }
    set = needs.remembered[number % REMEMBERED_SETS];
    for (size_t i = 0; i < REMEMBERED_EACH; i++) {
        if (set[i] == number) {
            return true;
        }
    }
    memmove(set + 1, set, (REMEMBERED_EACH - 1) * sizeof(set[0]));
    set[0] = number;
    return false;
}

static uint64_t in_pages(const capu_context *context, uint64_t bytes)
{
    uint64_t page_bytes = capu_context_config(context)->page_bytes;

    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

static int by_address(const void *one, const void *other)
{
    uint64_t a = ((const struct part *)one)->address;
    uint64_t b = ((const struct part *)other)->address;

    return (a > b) - (a < b);
}

/* Adds the tensors that a range touches. */
static void add_parts(capu_context *context, struct describe_range range)
{
    capu_tensor_state state;

    while (describe_next(context, &range, &state) &&
           array_reserve(&needs.list, &needs.capacity, needs.count + 1, sizeof(needs.list[0]))) {
        needs.list[needs.count++] = (struct part){
            (uintptr_t)state.address, in_pages(context, state.bytes - state.fixed_bytes)};
    }
}

void floor_note(capu_context *context, const capu_operand *operands, size_t count)
{
    uint64_t bytes = 0;

    if (settings_get()->report_path == NULL || count == 0 || is_remembered(operands, count)) {
        return;
    }
    needs.count = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = (uintptr_t)operands[i].address;

        add_parts(context, (struct describe_range){address, address + operands[i].bytes});
    }
    if (needs.count > 0) {
        qsort(needs.list, needs.count, sizeof(needs.list[0]), by_address);
    }
    for (size_t i = 0; i < needs.count; i++) {
        if (i == 0 || needs.list[i].address != needs.list[i - 1].address) {
            bytes += needs.list[i].bytes;
        }
    }
    needs.most = bytes > needs.most ? bytes : needs.most;
}

void floor_note_allocation(capu_context *context, uint64_t address, bool is_freed)
{
    struct describe_range range = {address, address + 1};
    capu_tensor_state state;
    unsigned class = 0;

    needs.generation++;
    /* Cut tensors have own pages, too; their shared ones are counted by the cut. */
    if (settings_get()->report_path == NULL || !describe_next(context, &range, &state) ||
        state.fixed_bytes != state.bytes) {
        return;
    }
    while (class < CLASSES - 1 && state.bytes >> class > 1) {
        class ++;
    }
    needs.classes[class] = true;
    needs.small += is_freed ? -state.bytes : state.bytes;
    needs.most_small = needs.small > needs.most_small ? needs.small : needs.most_small;
}

uint64_t floor_bytes(const capu_context *context, uint64_t edge_bytes)
{
    uint64_t peak = 0;
    uint64_t bytes = in_pages(context, needs.most_small + needs.most_small / 2);

    for (unsigned i = 0; i < CLASSES; i++) {
        bytes += needs.classes[i] ? SLOT_SIZES * capu_context_config(context)->page_bytes : 0;
    }
    bytes += needs.most + edge_bytes;
    capu_memory_usage(context, NULL, &peak, NULL);
    /* What was held at most was enough, if all accesses had what they needed. */
    return needs.most <= peak && peak < bytes ? peak : bytes;
}
