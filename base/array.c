/* Arrays that grow: see array.h. */
#include "base/array.h"

#include "base/assert.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Small enough for the many arrays that stay short, large enough to skip the first few doublings.
 */
#define FIRST_CAPACITY ((size_t)16)

bool array_grow(void *array, size_t *capacity, size_t needed, size_t element_bytes)
{
    size_t larger = FIRST_CAPACITY;
    void *elements;

    ASSERT(needed > *capacity && element_bytes > 0);
    if (needed > SIZE_MAX / 2 / element_bytes) {
        return false;
    }
    if (larger < *capacity * 2) {
        larger = *capacity * 2;
    }
    if (larger < needed) {
        larger = needed;
    }
    /* The caller's pointer has a type of its own, so it is copied, not read as a void pointer. */
    memcpy(&elements, array, sizeof(elements));
    elements = realloc(elements, larger * element_bytes);
    if (elements == NULL) {
        return false;
    }
    memcpy(array, &elements, sizeof(elements));
    *capacity = larger;
    return true;
}
