/*
 * How the items of a tensor are stored: fp32, or bf16, its upper half. Arithmetic is fp32 in either
 * case: items are widened when they are loaded, exactly, and rounded once when they are stored, to
 * the nearest and of two to the even one. Host and devices share the functions, so a value is
 * rounded to the same bits everywhere.
 */
#ifndef CAPU_KERNELS_ELEMENT_H
#define CAPU_KERNELS_ELEMENT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define ELEMENT_INLINE static inline __host__ __device__
#else
#define ELEMENT_INLINE static inline
#endif

/* Arguments that say nothing mean fp32. */
enum element { ELEMENT_FP32 = 0, ELEMENT_BF16 = 1 };

static inline size_t element_bytes(uint32_t element)
{
    return element == ELEMENT_BF16 ? sizeof(uint16_t) : sizeof(float);
}

static inline const char *element_name(uint32_t element)
{
    return element == ELEMENT_BF16 ? "bf16" : "fp32";
}

ELEMENT_INLINE float element_widen(uint16_t bf16)
{
    uint32_t bits = (uint32_t)bf16 << 16;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* What is too large becomes infinite, as rounding has it; a NaN stays one, made quiet. */
ELEMENT_INLINE uint16_t element_round(float value)
{
    uint32_t bits;
    uint32_t rounded;

    memcpy(&bits, &value, sizeof(bits));
    /* Adding this carries into the upper half from above its middle, and from it to the even. */
    rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}

/* Stores a value as an item of a host array. */
static inline void element_set(uint32_t element, void *items, size_t index, float value)
{
    if (element == ELEMENT_BF16) {
        ((uint16_t *)items)[index] = element_round(value);
    } else {
        ((float *)items)[index] = value;
    }
}

#endif
