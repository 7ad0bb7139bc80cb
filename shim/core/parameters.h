/* A launch's parameters, in either of the two ways in which programs give them. */
#ifndef CAPU_SHIM_PARAMETERS_H
#define CAPU_SHIM_PARAMETERS_H

#include "interpose/flow/roles.h"

#include <string.h>

/* Borrowed from the caller of the launch. */
struct parameters {
    void **list;                /* one address per parameter, or NULL */
    const unsigned char *bytes; /* the whole block, if there is no such array; or NULL */
    size_t byte_count;
};

/* From what a launch was called with; either may be NULL. */
struct parameters parameters_of(void **list, void **extra);

enum { PARAMETERS_BYTES_MOST = 33024 }; /* of a block, and something that is added to it */

/* Copies a parameter, or a part of one: nearly all are numbers and pointers. */
static inline void parameters_copy(unsigned char *to, const void *from, size_t bytes)
{
    if (bytes == sizeof(uint64_t)) {
        memcpy(to, from, sizeof(uint64_t));
    } else if (bytes == sizeof(uint32_t)) {
        memcpy(to, from, sizeof(uint32_t));
    } else {
        memcpy(to, from, bytes);
    }
}

/* Copies all of them to a block, as the driver would. False: some are not there, or too many. */
bool parameters_block(const struct parameters *parameters, const struct kernel *roles,
                      unsigned char block[PARAMETERS_BYTES_MOST]);

/* Visits the pointers that a word stands for: the one at its offset, or all of its parameter. Begin
   with *offset 0. False: there are no more. */
bool parameters_next(const unsigned char *block, const struct kernel *roles,
                     const struct kernel_word *word, uint32_t *offset, uint64_t *pointer);

#endif
