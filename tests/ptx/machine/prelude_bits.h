/* Floating-point numbers and their bits, for translated code and for what tests expect of it. */
#ifndef CAPU_TESTS_PTX_MACHINE_PRELUDE_BITS_H
#define CAPU_TESTS_PTX_MACHINE_PRELUDE_BITS_H

#include <stdint.h>
#include <string.h>

static inline float f32_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline double f64_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* GPUs have one NaN. */
static inline uint32_t bits_f32(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return value != value ? 0x7fffffff : bits;
}

static inline uint64_t bits_f64(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return value != value ? 0x7ff8000000000000 : bits;
}

#endif
