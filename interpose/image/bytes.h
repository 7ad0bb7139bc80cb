/*
 * A run of bytes that another object owns, and bounded reads from it. The bytes come from files, so
 * nothing in them can be trusted: a reader checks with bytes_have before it reads. Numbers are
 * little-endian, as everything that CUDA writes.
 */
#ifndef CAPU_INTERPOSE_BYTES_H
#define CAPU_INTERPOSE_BYTES_H

#include "base/assert.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    const unsigned char *data;
    size_t count;
};

/* Whether `count` bytes start at `offset`. */
static inline bool bytes_have(struct bytes bytes, uint64_t offset, uint64_t count)
{
    return offset <= bytes.count && count <= bytes.count - offset;
}

/* Pre for all of these: the bytes are there. */
static inline struct bytes bytes_part(struct bytes bytes, uint64_t offset, uint64_t count)
{
    ASSERT(bytes_have(bytes, offset, count));
    return (struct bytes){bytes.data + offset, (size_t)count};
}

static inline uint64_t bytes_number(struct bytes bytes, uint64_t offset, unsigned width)
{
    uint64_t number = 0;

    ASSERT(bytes_have(bytes, offset, width));
    for (unsigned i = width; i > 0; i--) {
        number = number << 8 | bytes.data[offset + i - 1];
    }
    return number;
}

static inline uint16_t bytes_u16(struct bytes bytes, uint64_t offset)
{
    return (uint16_t)bytes_number(bytes, offset, 2);
}

static inline uint32_t bytes_u32(struct bytes bytes, uint64_t offset)
{
    return (uint32_t)bytes_number(bytes, offset, 4);
}

static inline uint64_t bytes_u64(struct bytes bytes, uint64_t offset)
{
    return bytes_number(bytes, offset, 8);
}

#endif
