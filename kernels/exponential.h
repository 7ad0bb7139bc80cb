/*
 * e^x and tanh for loops that the compiler vectorizes: plain arithmetic without tables or branches.
 * The results have the same bits in vector code and in scalar tails, which the functions of the C
 * library do not promise; so they do not depend on where a tile begins. The error is below 2 units
 * in the last place.
 */
#ifndef CAPU_KERNELS_EXPONENTIAL_H
#define CAPU_KERNELS_EXPONENTIAL_H

#include <stdint.h>
#include <string.h>

static inline uint32_t exponential_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* e^x; 0 below -87, huge but finite above 88; NaN for NaN. */
static inline float exponential(float x)
{
    /* Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. */
    const float shift = 12582912.0f;
    /* ln 2 in two parts, so that n times the first one is exact. */
    const float ln2_high = 0.693359375f;
    const float ln2_low = -2.12194440e-4f;
    float clamped = x > 88.0f ? 88.0f : x;
    float shifted;
    float n;
    float r;
    float series;
    uint32_t bits;
    float power;

    clamped = clamped < -87.0f ? -87.0f : clamped;
    shifted = clamped * 1.44269504f + shift;
    n = shifted - shift;
    r = clamped - n * ln2_high;
    r = r - n * ln2_low;
    /* Taylor series up to r^7; as |r| <= 0.35, the first omitted term is below 1e-8. */
    series = 1.98412698e-4f;
    series = series * r + 1.38888889e-3f;
    series = series * r + 8.33333333e-3f;
    series = series * r + 4.16666667e-2f;
    series = series * r + 1.66666667e-1f;
    series = series * r + 0.5f;
    series = series * r * r + r + 1.0f;
    bits = (exponential_bits(shifted) - exponential_bits(shift) + 127u) << 23;
    memcpy(&power, &bits, sizeof(power));
    return x < -87.0f ? 0.0f : series * power;
}

/* tanh x = 1 - 2 / (e^2x + 1). Small results lose relative precision, which is harmless because
 * every caller adds 1 to them. */
static inline float exponential_tanh(float x)
{
    return 1.0f - 2.0f / (exponential(2.0f * x) + 1.0f);
}

#endif
