/*
 * How the items of a tensor are stored: as fp32, or as bf16, which is the upper half of fp32.
 * Arithmetic is fp32 in either case: items are widened exactly when they are loaded, and rounded
 * once when they are stored, to nearest even. Host and devices share these functions, so a value is
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

/* fp32 is 0, the default of arguments that do not name a type. */
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

/* Values that are too large become infinite, as rounding requires; a NaN stays a NaN, made quiet.
 */
ELEMENT_INLINE uint16_t element_round(float value)
{
    uint32_t bits;
    uint32_t rounded;

    memcpy(&bits, &value, sizeof(bits));
    /* Carries into the upper half if the lower one is above its middle, or at the middle and the
       upper half is odd: round to nearest even. */
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
