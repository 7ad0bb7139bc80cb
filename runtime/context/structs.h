/*
 * Structs at the API boundary. The caller may have been compiled with an older or newer header than
 * the library. The first field of each public struct, `size`, says how long the caller's is. New
 * fields are only ever added at the end, and zero means the default.
 */
#ifndef CAPU_RUNTIME_STRUCTS_H
#define CAPU_RUNTIME_STRUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Copies a caller's struct into the library's; fields that the caller's lacks become zero. False if
   the size is not set, or if a field that the library does not know is not zero. */
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

/* Fills a caller's struct as far as it reaches and keeps its size. Fields that the library does not
   know become zero. False if the size is not set. */
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
