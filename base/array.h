/*
 * Arrays that grow: room for one more element, whatever its type.
 *
 * The owner keeps pointer, count and capacity as three fields of its own struct; only growing is
 * done here. The capacity doubles, so that n elements added one by one are copied about 2n times
 * in all. A failure leaves everything as it was, and the caller passes it on as a status.
 */
#ifndef CAPU_BASE_ARRAY_H
#define CAPU_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* The slow half of array_reserve. Pre: needed > *capacity. */
bool array_grow(void *array, size_t *capacity, size_t needed, size_t element_bytes);

/*
 * Makes `*capacity` at least `needed`. `array` is the address of a pointer to the elements, which
 * is NULL while the capacity is 0. Elements keep their values and may move; new ones are undefined.
 * False: no host memory, or the bytes overflow a size_t; nothing has changed.
 */
static inline bool array_reserve(void *array, size_t *capacity, size_t needed, size_t element_bytes)
{
    return needed <= *capacity || array_grow(array, capacity, needed, element_bytes);
}

#endif
