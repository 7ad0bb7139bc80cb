/*
 * Stands for a GPU's runtime: memory and copies, in host memory so that the program runs anywhere.
 * Each returns 0 on success.
 */
#ifndef CAPU_EXAMPLES_PORTS_DEVICE_H
#define CAPU_EXAMPLES_PORTS_DEVICE_H

#include <stdlib.h>
#include <string.h>

static inline int device_malloc(void **address, size_t bytes)
{
    *address = malloc(bytes);
    return *address != NULL ? 0 : -1;
}

static inline int device_zero(void *address, size_t bytes)
{
    memset(address, 0, bytes);
    return 0;
}

static inline int copy_to_device(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}

static inline int copy_from_device(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}

#endif
