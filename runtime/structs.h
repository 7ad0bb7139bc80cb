/*
 * Structs at the border: the caller's header may be older or newer than the library, and `size`,
 * their first field, tells.
 */
#ifndef CAPU_RUNTIME_STRUCTS_H
#define CAPU_RUNTIME_STRUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Copies a caller's struct; fields it does not have are zero. False: no size, or it has more than
   the library knows and uses it. */
static inline bool struct_read(void *own, size_t own_bytes, const void *theirs, size_t their_bytes)
{
    const unsigned char *from = theirs;

    if (their_bytes < sizeof(size_t)) {
        return false;
    }
    for (size_t i = own_bytes; i < their_bytes; i++) {
        if (from[i] != 0) {
            return false;
        }
    }
    memset(own, 0, own_bytes);
    memcpy(own, from, their_bytes < own_bytes ? their_bytes : own_bytes);
    *(size_t *)own = own_bytes;
    return true;
}

/* Fills a caller's struct as far as it reaches, keeping its size; what the library does not know
   reads as zero. False: no size. */
static inline bool struct_write(void *theirs, size_t their_bytes, const void *own, size_t own_bytes)
{
    if (their_bytes < sizeof(size_t)) {
        return false;
    }
    memset(theirs, 0, their_bytes);
    memcpy(theirs, own, their_bytes < own_bytes ? their_bytes : own_bytes);
    *(size_t *)theirs = their_bytes;
    return true;
}

#endif
