/*
 * A binary heap in an array of the caller's: the element that comes first is at index 0.
 *
 * The caller owns the array, its count and its room. All functions are inlined with the order that
 * they are given: with a constant `element_bytes` and a static `is_before`, the compiler makes the
 * loop that one would write by hand. Planning spends much of its time in heaps, and a call per
 * comparison would show. Hence also no copy of the element that moves: what is pushed lies outside
 * of the array, and what a pop moves lies in the place that it frees.
 *
 * The same pushes and pops give the same array, also among elements that compare equal; plans
 * depend on that.
 */
#ifndef CAPU_BASE_HEAP_H
#define CAPU_BASE_HEAP_H

#include "base/assert.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define HEAP_INLINE static inline __attribute__((always_inline))
#define HEAP_ELEMENT_BYTES_MAX 64

struct heap_order {
    size_t element_bytes; /* at most HEAP_ELEMENT_BYTES_MAX */
    /* Whether a comes out before b; false for equal ones. */
    bool (*is_before)(const void *a, const void *b, const void *context);
    const void *context; /* for is_before; may be NULL */
};

HEAP_INLINE void *heap_at(void *heap, size_t index, struct heap_order order)
{
    return (char *)heap + index * order.element_bytes;
}

/* The child of `hole` that comes first, if it comes before `moving`; else `hole`. */
HEAP_INLINE size_t heap_sooner_child(void *heap, size_t count, size_t hole, const void *moving,
                                     struct heap_order order)
{
    size_t child = hole * 2 + 1;

    if (child >= count) {
        return hole;
    }
    if (child + 1 < count && order.is_before(heap_at(heap, child + 1, order),
                                             heap_at(heap, child, order), order.context)) {
        child++;
    }
    return order.is_before(heap_at(heap, child, order), moving, order.context) ? child : hole;
}

/* Adds a copy of `element` to a heap of `count`. Pre: the array has room for one more, and the
   element is not in it. */
HEAP_INLINE void heap_push(void *heap, size_t count, const void *element, struct heap_order order)
{
    size_t hole = count;

    while (hole > 0) {
        size_t parent = (hole - 1) / 2;

        if (!order.is_before(element, heap_at(heap, parent, order), order.context)) {
            break;
        }
        memcpy(heap_at(heap, hole, order), heap_at(heap, parent, order), order.element_bytes);
        hole = parent;
    }
    memcpy(heap_at(heap, hole, order), element, order.element_bytes);
}

/* Removes the first element of a heap of `count`, which the caller has read at index 0. Pre:
   count > 0. */
HEAP_INLINE void heap_pop(void *heap, size_t count, struct heap_order order)
{
    const void *moving = heap_at(heap, count - 1, order);
    size_t hole = 0;

    ASSERT(count > 0);
    if (count == 1) {
        return;
    }
    for (;;) {
        size_t child = heap_sooner_child(heap, count - 1, hole, moving, order);

        if (child == hole) {
            break;
        }
        memcpy(heap_at(heap, hole, order), heap_at(heap, child, order), order.element_bytes);
        hole = child;
    }
    memcpy(heap_at(heap, hole, order), moving, order.element_bytes);
}

/* Makes a heap of any `count` elements, in linear time. */
HEAP_INLINE void heap_build(void *heap, size_t count, struct heap_order order)
{
    unsigned char swapped[HEAP_ELEMENT_BYTES_MAX];

    ASSERT(order.element_bytes <= sizeof(swapped));
    for (size_t first = count / 2; first-- > 0;) {
        size_t at = first;

        for (;;) {
            size_t child = heap_sooner_child(heap, count, at, heap_at(heap, at, order), order);

            if (child == at) {
                break;
            }
            memcpy(swapped, heap_at(heap, at, order), order.element_bytes);
            memcpy(heap_at(heap, at, order), heap_at(heap, child, order), order.element_bytes);
            memcpy(heap_at(heap, child, order), swapped, order.element_bytes);
            at = child;
        }
    }
}

/* Whether no element comes before its parent. For tests. */
HEAP_INLINE bool heap_validate(void *heap, size_t count, struct heap_order order)
{
    for (size_t i = 1; i < count; i++) {
        if (order.is_before(heap_at(heap, i, order), heap_at(heap, (i - 1) / 2, order),
                            order.context)) {
            return false;
        }
    }
    return true;
}

#endif
