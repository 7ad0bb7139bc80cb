/*
 * An op whose outputs depend on every byte of its inputs. It writes a stream of random numbers
 * whose seed is a hash of everything it reads, and it combines updated operands with that stream.
 * Tests run it on device memory through the library and on plain memory, and compare: a lost or
 * stale byte shows up in every later output.
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
    uint32_t written_percent; /* for CAPU_WRITE_REST_ZERO: how much the op itself writes */
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
