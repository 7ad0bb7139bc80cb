/*
 * What translated code is made of: conversions, and the formats of 16 bits. Every format up to f64
 * becomes a double exactly, and a double is rounded once to any format.
 */
#ifndef CAPU_TESTS_PTX_MACHINE_PRELUDE_CONVERT_H
#define CAPU_TESTS_PTX_MACHINE_PRELUDE_CONVERT_H

#include "tests/ptx/machine/prelude_float.h"

static inline u64 raw_f64(double value)
{
    u64 bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Whether a magnitude that was cut is rounded up. */
static inline bool rounds_up(enum rounding mode, bool is_negative, bool is_odd, u64 rest, u64 half)
{
    switch (mode) {
    case ROUND_RN:
        return rest > half || (rest == half && is_odd);
    case ROUND_RNA:
        return rest >= half;
    case ROUND_RM:
        return is_negative && rest != 0;
    case ROUND_RP:
        return !is_negative && rest != 0;
    case ROUND_RZ:
        break;
    }
    return false;
}

/* The number in a format of that many bits for exponent and fraction; NaN: all ones but the sign.
 */
static inline u32 pack(double value, int exponent_bits, int fraction_bits, enum rounding mode)
{
    u64 bits = raw_f64(value);
    bool is_negative = bits >> 63 != 0;
    u32 sign = (u32)is_negative << (exponent_bits + fraction_bits);
    u32 infinity = ((1u << exponent_bits) - 1) << fraction_bits;
    int exponent = (int)(bits >> 52 & 2047) - 1023;
    int least = 2 - (1 << (exponent_bits - 1)); /* of normal numbers */
    u64 significand = (bits & 0xfffffffffffff) | (u64)1 << 52;
    int cut = 52 - fraction_bits;
    u64 kept, rest, half;
    u32 result;

    if (value != value) {
        return (1u << (exponent_bits + fraction_bits)) - 1;
    }
    if (exponent == 1024) {
        return sign | infinity;
    }
    if (exponent == -1023) { /* zero; a subnormal double is smaller than half of anything */
        return sign | rounds_up(mode, is_negative, false, value != 0 ? 1 : 0, 2);
    }
    if (exponent < least) {
        cut += least - exponent;
        exponent = least - 1;
    }
    if (cut > 54) {
        return sign | rounds_up(mode, is_negative, false, 1, 2);
    }
    kept = significand >> cut;
    rest = significand & (((u64)1 << cut) - 1);
    half = (u64)1 << (cut - 1);
    if (exponent >= least) {
        kept &= ((u64)1 << fraction_bits) - 1;
        kept |= (u64)(exponent - least + 1) << fraction_bits;
    }
    result = exponent > 1 - least ? infinity
                                  : (u32)kept + rounds_up(mode, is_negative, kept & 1, rest, half);
    if (result >= infinity) { /* beyond the largest number */
        bool is_largest = mode == ROUND_RZ || (mode == ROUND_RM && !is_negative) ||
                          (mode == ROUND_RP && is_negative);

        result = is_largest ? infinity - 1 : infinity;
    }
    return sign | result;
}

static inline double unpack(u32 bits, int exponent_bits, int fraction_bits)
{
    u32 ones = (1u << exponent_bits) - 1;
    u32 exponent = bits >> fraction_bits & ones;
    u32 fraction = bits & ((1u << fraction_bits) - 1);
    int bias = (1 << (exponent_bits - 1)) - 1;
    double value;

    if (exponent == ones) {
        value = fraction != 0 ? NAN : INFINITY;
    } else if (exponent == 0) {
        value = ldexp(fraction, 1 - bias - fraction_bits);
    } else {
        value = f64_of((u64)((int)exponent - bias + 1023) << 52 | (u64)fraction
                                                                      << (52 - fraction_bits));
    }
    return bits >> (exponent_bits + fraction_bits) & 1 ? -value : value;
}

static inline double from_f16(u16 bits)
{
    return unpack(bits, 5, 10);
}

static inline double from_bf16(u16 bits)
{
    return f32_of((u32)bits << 16);
}

/* e4m3 has no infinities: the largest magnitude is a NaN, and what would be others are numbers. */
static inline double from_e4m3(u8 bits)
{
    int exponent = bits >> 3 & 15;
    double value = exponent == 0 ? ldexp(bits & 7, -9) : ldexp(8 | (bits & 7), exponent - 10);

    value = (bits & 0x7f) == 0x7f ? NAN : value;
    return (bits & 0x80) != 0 ? -value : value;
}

static inline double from_e5m2(u8 bits)
{
    return unpack(bits, 5, 2);
}

static inline double from_f32(u32 bits)
{
    return f32_of(bits);
}

static inline double from_f64(u64 bits)
{
    return f64_of(bits);
}

static inline u16 to_f16(double value, enum rounding mode)
{
    return (u16)pack(value, 5, 10, mode);
}

static inline u16 to_bf16(double value, enum rounding mode)
{
    return (u16)pack(value, 8, 7, mode);
}

/* To nearest; what is too large becomes the largest number. */
static inline u8 to_e4m3(double value)
{
    double size = fabs(value);
    u8 sign = signbit(value) ? 0x80 : 0;

    return value != value ? 0x7f
           : size >= 448  ? sign | 0x7e
           : size >= 256  ? sign | (u8)(0x70 + (int)rint(size / 32))
                          : (u8)pack(value, 4, 3, ROUND_RN);
}

static inline u8 to_e5m2(double value)
{
    u8 bits = (u8)pack(value, 5, 2, ROUND_RN);

    return (bits & 0x7f) == 0x7c ? bits - 1 : bits;
}

static inline u32 to_tf32(double value, enum rounding mode)
{
    u32 bits = pack(value, 8, 10, mode);

    return value != value ? 0x7fffffff : bits << 13;
}

static inline u32 to_f32(double value, enum rounding mode)
{
    return mode == ROUND_RN ? bits_f32((float)value)
           : value != value ? 0x7fffffff
                            : pack(value, 8, 23, mode);
}

static inline u64 to_f64(double value, enum rounding mode)
{
    (void)mode;
    return bits_f64(value);
}

static inline double flushed(double value, bool is_flushed)
{
    return is_flushed && fabs(value) < 0x1p-126 ? copysign(0.0, value) : value;
}

static inline double saturated(double value)
{
    return value >= 1.0 ? 1.0 : value > 0.0 ? value : 0.0;
}

static inline double not_negative(double value)
{
    return value != value || value > 0.0 ? value : 0.0;
}

static inline double to_whole(double value, enum rounding mode)
{
    switch (mode) {
    case ROUND_RZ:
        return trunc(value);
    case ROUND_RM:
        return floor(value);
    case ROUND_RP:
        return ceil(value);
    case ROUND_RN:
    case ROUND_RNA:
        break;
    }
    return rint(value);
}

/* Of a whole number. What is out of range gives the nearest; a NaN 0, or the top bit where 64 bits
   take part. */
static inline u64 to_integer(double value, unsigned bits, bool is_signed, bool is_wide)
{
    double end = ldexp(1.0, (int)bits - is_signed);
    u64 most = is_signed ? ((u64)1 << (bits - 1)) - 1 : bits == 64 ? ~(u64)0 : ((u64)1 << bits) - 1;

    if (value != value) {
        return is_wide ? (u64)1 << (bits - 1) : 0;
    }
    if (value >= end) {
        return most;
    }
    if (value < (is_signed ? -end : 0.0)) {
        return is_signed ? 0 - ((u64)1 << (bits - 1)) : 0;
    }
    return is_signed ? (u64)(s64)value : (u64)value;
}

/* A double that rounds to anything shorter as the integer would: to odd. */
static inline double from_integer(s128 value)
{
    bool is_negative = value < 0;
    u128 magnitude = is_negative ? 0 - (u128)value : (u128)value;
    int shift = 0;
    bool has_rest = false;
    double result;

    while (magnitude >> 53 != 0) {
        has_rest |= (magnitude & 1) != 0;
        magnitude >>= 1;
        shift++;
    }
    result = ldexp((double)((u64)magnitude | has_rest), shift);
    return is_negative ? -result : result;
}

static inline u64 integer_to_f64(s128 value, enum rounding mode)
{
    volatile double result;

    fesetround(mode == ROUND_RZ   ? FE_TOWARDZERO
               : mode == ROUND_RM ? FE_DOWNWARD
               : mode == ROUND_RP ? FE_UPWARD
                                  : FE_TONEAREST);
    if (value < 0) {
        volatile s64 whole = (s64)value;

        result = (double)whole;
    } else {
        volatile u64 whole = (u64)value;

        result = (double)whole;
    }
    fesetround(FE_TONEAREST);
    return raw_f64(result);
}

static inline u64 f64_to_f64_in(double value)
{
    return raw_f64(value);
}

static inline s128 clamped(s128 value, unsigned bits, bool is_signed)
{
    s128 least = is_signed ? -((s128)1 << (bits - 1)) : 0;
    s128 most = ((s128)1 << (bits - is_signed)) - 1;

    return value < least ? least : value > most ? most : value;
}

/* Arithmetic on 16 bits: exact in double, or to odd, and rounded once. */

static inline double fma_odd(double a, double b, double c)
{
    double product = a * b; /* exact */
    double sum = product + c;
    double back = sum - product;
    double rest = (product - (sum - back)) + (c - back);
    u64 bits = raw_f64(sum);

    if (rest != 0 && isfinite(sum) && (bits & 1) == 0) {
        /* The neighbour on the side of the rest; it is odd. */
        bits += (rest > 0) == (sum > 0) ? 1 : (u64)-1;
        return f64_of(bits);
    }
    return sum;
}

#define HALF(N)                                                                              \
    static inline u16 add_##N(u16 a, u16 b)                                                  \
    {                                                                                        \
        return to_##N(fma_odd(from_##N(a), 1.0, from_##N(b)), ROUND_RN);                     \
    }                                                                                        \
    static inline u16 sub_##N(u16 a, u16 b)                                                  \
    {                                                                                        \
        return add_##N(a, b ^ 0x8000);                                                       \
    }                                                                                        \
    static inline u16 mul_##N(u16 a, u16 b)                                                  \
    {                                                                                        \
        return to_##N(from_##N(a) * from_##N(b), ROUND_RN);                                  \
    }                                                                                        \
    static inline u16 fma_##N(u16 a, u16 b, u16 c)                                           \
    {                                                                                        \
        return to_##N(fma_odd(from_##N(a), from_##N(b), from_##N(c)), ROUND_RN);             \
    }                                                                                        \
    static inline u16 relu_##N(u16 a)                                                        \
    {                                                                                        \
        return to_##N(not_negative(from_##N(a)), ROUND_RN);                                  \
    }                                                                                        \
    static inline u16 fma_relu_##N(u16 a, u16 b, u16 c)                                      \
    {                                                                                        \
        return relu_##N(fma_##N(a, b, c));                                                   \
    }                                                                                        \
    static inline u16 abs_##N(u16 a)                                                         \
    {                                                                                        \
        return a & 0x7fff;                                                                   \
    }                                                                                        \
    static inline u16 neg_##N(u16 a)                                                         \
    {                                                                                        \
        return a ^ 0x8000;                                                                   \
    }                                                                                        \
    static inline u16 saturate_##N(u16 a)                                                    \
    {                                                                                        \
        return to_##N(saturated(from_##N(a)), ROUND_RN);                                     \
    }                                                                                        \
    static inline u16 min_##N(u16 a, u16 b)                                                  \
    {                                                                                        \
        double x = from_##N(a), y = from_##N(b);                                             \
        return x != x ? (y != y ? 0x7fff : b) : y != y ? a : x == y ? a | b : x < y ? a : b; \
    }                                                                                        \
    static inline u16 max_##N(u16 a, u16 b)                                                  \
    {                                                                                        \
        double x = from_##N(a), y = from_##N(b);                                             \
        return x != x ? (y != y ? 0x7fff : b) : y != y ? a : x == y ? a & b : x > y ? a : b; \
    }                                                                                        \
    static inline u16 min_NaN_##N(u16 a, u16 b)                                              \
    {                                                                                        \
        return isnan(from_##N(a)) || isnan(from_##N(b)) ? 0x7fff : min_##N(a, b);            \
    }                                                                                        \
    static inline u16 max_NaN_##N(u16 a, u16 b)                                              \
    {                                                                                        \
        return isnan(from_##N(a)) || isnan(from_##N(b)) ? 0x7fff : max_##N(a, b);            \
    }                                                                                        \
    static inline u16 ex2_approx_##N(u16 a)                                                  \
    {                                                                                        \
        return to_##N(exp2(from_##N(a)), ROUND_RN);                                          \
    }                                                                                        \
    static inline u16 tanh_approx_##N(u16 a)                                                 \
    {                                                                                        \
        return to_##N(tanh(from_##N(a)), ROUND_RN);                                          \
    }                                                                                        \
    static inline double N##_of(u16 a)                                                       \
    {                                                                                        \
        return from_##N(a);                                                                  \
    }                                                                                        \
    COMPARISONS(N, u16)                                                                      \
    PAIR2(add, N)                                                                            \
    PAIR2(sub, N)                                                                            \
    PAIR2(mul, N)                                                                            \
    PAIR2(min, N)                                                                            \
    PAIR2(max, N)                                                                            \
    PAIR2(min_NaN, N)                                                                        \
    PAIR2(max_NaN, N)                                                                        \
    PAIR1(relu, N)                                                                           \
    PAIR1(abs, N)                                                                            \
    PAIR1(neg, N)                                                                            \
    PAIR1(saturate, N)                                                                       \
    PAIR1(ex2_approx, N)                                                                     \
    PAIR1(tanh_approx, N)                                                                    \
    PAIR3(fma, N)                                                                            \
    PAIR3(fma_relu, N)

/* The same on both halves of 32 bits. */
#define PAIR1(NAME, N)                                                     \
    static inline u32 NAME##_##N##x2(u32 a)                                \
    {                                                                      \
        return NAME##_##N((u16)a) | (u32)NAME##_##N((u16)(a >> 16)) << 16; \
    }
#define PAIR2(NAME, N)                                                                             \
    static inline u32 NAME##_##N##x2(u32 a, u32 b)                                                 \
    {                                                                                              \
        return NAME##_##N((u16)a, (u16)b) | (u32)NAME##_##N((u16)(a >> 16), (u16)(b >> 16)) << 16; \
    }
#define PAIR3(NAME, N)                                                                \
    static inline u32 NAME##_##N##x2(u32 a, u32 b, u32 c)                             \
    {                                                                                 \
        return NAME##_##N((u16)a, (u16)b, (u16)c) |                                   \
               (u32)NAME##_##N((u16)(a >> 16), (u16)(b >> 16), (u16)(c >> 16)) << 16; \
    }

HALF(f16)
HALF(bf16)

#endif
