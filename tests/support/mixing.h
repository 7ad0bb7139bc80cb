/*
 * An op whose outputs depend on every byte of its inputs: what it writes is a stream of numbers
 * seeded by a hash of all it reads, and what it updates is mixed with that stream. Run on device
 * memory through the library and on plain memory beside it, it tells any lost or stale byte.
 */
#ifndef CAPU_TESTS_SUPPORT_MIXING_H
#define CAPU_TESTS_SUPPORT_MIXING_H

#include "capuchin/op.h"

#include <stddef.h>
#include <stdint.h>

enum { MIXING_OPERANDS = 8 };

struct mixing_operand {
    unsigned char *address;
    uint64_t bytes;
    uint32_t role;            /* capu_role */
    uint32_t written_percent; /* of a write-cleared operand: how much the op itself writes */
};

/* The argument block. */
struct mixing {
    uint64_t seed;
    size_t count;
    struct mixing_operand operands[MIXING_OPERANDS];
};

/* The op's run function. */
capu_status mixing_run(capu_stream stream, const void *arguments);

/* The next number of a seeded sequence (splitmix64). */
uint64_t mixing_random(uint64_t *state);

#endif
