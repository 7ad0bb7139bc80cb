/*
 * What translated code is made of: floating point. Results are rounded to nearest unless the name
 * says otherwise (_rz, _rm, _rp); approximations are computed with the host's functions.
 */
#ifndef CAPU_TESTS_PTX_MACHINE_PRELUDE_FLOAT_H
#define CAPU_TESTS_PTX_MACHINE_PRELUDE_FLOAT_H

#include "tests/ptx/machine/prelude.h"
#include "tests/ptx/machine/prelude_bits.h"

#include <fenv.h>
#include <math.h>

enum rounding { ROUND_RN, ROUND_RZ, ROUND_RM, ROUND_RP, ROUND_RNA };

/* .ftz and .sat. */
static inline u32 flush_f32(u32 bits)
{
    return (bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits;
}

static inline u32 saturate_f32(u32 bits)
{
    float value = f32_of(bits);

    return value >= 1.0f ? 0x3f800000 : value > 0.0f ? bits : 0;
}

static inline u64 saturate_f64(u64 bits)
{
    double value = f64_of(bits);

    return value >= 1.0 ? 0x3ff0000000000000 : value > 0.0 ? bits : 0;
}

/* Evaluates an expression in another rounding mode. The operands are volatile, so that nothing is
   computed outside. */
#define IN_MODE(N, U, F, MODE, HOST)                                  \
    static inline U add_##MODE##_##N(U a, U b)                        \
    {                                                                 \
        volatile F x = N##_of(a), y = N##_of(b), z;                   \
        fesetround(HOST);                                             \
        z = x + y;                                                    \
        fesetround(FE_TONEAREST);                                     \
        return bits_##N(z);                                           \
    }                                                                 \
    static inline U mul_##MODE##_##N(U a, U b)                        \
    {                                                                 \
        volatile F x = N##_of(a), y = N##_of(b), z;                   \
        fesetround(HOST);                                             \
        z = x * y;                                                    \
        fesetround(FE_TONEAREST);                                     \
        return bits_##N(z);                                           \
    }                                                                 \
    static inline U div_##MODE##_##N(U a, U b)                        \
    {                                                                 \
        volatile F x = N##_of(a), y = N##_of(b), z;                   \
        fesetround(HOST);                                             \
        z = x / y;                                                    \
        fesetround(FE_TONEAREST);                                     \
        return bits_##N(z);                                           \
    }                                                                 \
    static inline U sqrt_##MODE##_##N(U a)                            \
    {                                                                 \
        volatile F x = N##_of(a), z;                                  \
        fesetround(HOST);                                             \
        z = sizeof(F) == 4 ? (F)sqrtf((float)x) : (F)sqrt((double)x); \
        fesetround(FE_TONEAREST);                                     \
        return bits_##N(z);                                           \
    }                                                                 \
    static inline U fma_##MODE##_##N(U a, U b, U c)                   \
    {                                                                 \
        volatile F x = N##_of(a), y = N##_of(b), w = N##_of(c), z;    \
        fesetround(HOST);                                             \
        z = sizeof(F) == 4 ? (F)fmaf((float)x, (float)y, (float)w)    \
                           : (F)fma((double)x, (double)y, (double)w); \
        fesetround(FE_TONEAREST);                                     \
        return bits_##N(z);                                           \
    }                                                                 \
    static inline U sub_##MODE##_##N(U a, U b)                        \
    {                                                                 \
        return add_##MODE##_##N(a, b ^ (U)1 << (8 * sizeof(U) - 1));  \
    }                                                                 \
    static inline U mad_##MODE##_##N(U a, U b, U c)                   \
    {                                                                 \
        return fma_##MODE##_##N(a, b, c);                             \
    }                                                                 \
    static inline U rcp_##MODE##_##N(U a)                             \
    {                                                                 \
        return div_##MODE##_##N(bits_##N(1), a);                      \
    }

#define REAL(N, U, F, SUFFIX)                                                      \
    static inline U add_##N(U a, U b)                                              \
    {                                                                              \
        return bits_##N(N##_of(a) + N##_of(b));                                    \
    }                                                                              \
    static inline U sub_##N(U a, U b)                                              \
    {                                                                              \
        return bits_##N(N##_of(a) - N##_of(b));                                    \
    }                                                                              \
    static inline U mul_##N(U a, U b)                                              \
    {                                                                              \
        return bits_##N(N##_of(a) * N##_of(b));                                    \
    }                                                                              \
    static inline U div_##N(U a, U b)                                              \
    {                                                                              \
        return bits_##N(N##_of(a) / N##_of(b));                                    \
    }                                                                              \
    static inline U fma_##N(U a, U b, U c)                                         \
    {                                                                              \
        return bits_##N(fma##SUFFIX(N##_of(a), N##_of(b), N##_of(c)));             \
    }                                                                              \
    static inline U mad_##N(U a, U b, U c)                                         \
    {                                                                              \
        return fma_##N(a, b, c);                                                   \
    }                                                                              \
    static inline U sqrt_##N(U a)                                                  \
    {                                                                              \
        return bits_##N(sqrt##SUFFIX(N##_of(a)));                                  \
    }                                                                              \
    static inline U rcp_##N(U a)                                                   \
    {                                                                              \
        return bits_##N(1 / N##_of(a));                                            \
    }                                                                              \
    static inline U rsqrt_approx_##N(U a)                                          \
    {                                                                              \
        return bits_##N(1 / sqrt##SUFFIX(N##_of(a)));                              \
    }                                                                              \
    static inline U abs_##N(U a)                                                   \
    {                                                                              \
        return a & ~((U)1 << (8 * sizeof(U) - 1));                                 \
    }                                                                              \
    static inline U neg_##N(U a)                                                   \
    {                                                                              \
        return a ^ (U)1 << (8 * sizeof(U) - 1);                                    \
    }                                                                              \
    static inline U copysign_##N(U a, U b)                                         \
    {                                                                              \
        return abs_##N(b) | (a & (U)1 << (8 * sizeof(U) - 1));                     \
    }                                                                              \
    /* Of zeros, the one with the sign; a NaN only if both are. */                 \
    static inline U min_##N(U a, U b)                                              \
    {                                                                              \
        F x = N##_of(a), y = N##_of(b);                                            \
        return x != x ? bits_##N(y) : y != y ? a : x == y ? a | b : x < y ? a : b; \
    }                                                                              \
    static inline U max_##N(U a, U b)                                              \
    {                                                                              \
        F x = N##_of(a), y = N##_of(b);                                            \
        return x != x ? bits_##N(y) : y != y ? a : x == y ? a & b : x > y ? a : b; \
    }                                                                              \
    static inline U min_NaN_##N(U a, U b)                                          \
    {                                                                              \
        F x = N##_of(a), y = N##_of(b);                                            \
        return x != x || y != y ? bits_##N(x + y) : min_##N(a, b);                 \
    }                                                                              \
    static inline U max_NaN_##N(U a, U b)                                          \
    {                                                                              \
        F x = N##_of(a), y = N##_of(b);                                            \
        return x != x || y != y ? bits_##N(x + y) : max_##N(a, b);                 \
    }                                                                              \
    static inline u8 testp_finite_##N(U a)                                         \
    {                                                                              \
        return isfinite(N##_of(a)) != 0;                                           \
    }                                                                              \
    static inline u8 testp_infinite_##N(U a)                                       \
    {                                                                              \
        return isinf(N##_of(a)) != 0;                                              \
    }                                                                              \
    static inline u8 testp_number_##N(U a)                                         \
    {                                                                              \
        return !isnan(N##_of(a));                                                  \
    }                                                                              \
    static inline u8 testp_notanumber_##N(U a)                                     \
    {                                                                              \
        return isnan(N##_of(a)) != 0;                                              \
    }                                                                              \
    static inline u8 testp_normal_##N(U a)                                         \
    {                                                                              \
        return isnormal(N##_of(a)) != 0;                                           \
    }                                                                              \
    static inline u8 testp_subnormal_##N(U a)                                      \
    {                                                                              \
        return fpclassify(N##_of(a)) == FP_SUBNORMAL;                              \
    }                                                                              \
    COMPARISONS(N, U)                                                              \
    IN_MODE(N, U, F, rz, FE_TOWARDZERO)                                            \
    IN_MODE(N, U, F, rm, FE_DOWNWARD)                                              \
    IN_MODE(N, U, F, rp, FE_UPWARD)

#define COMPARISON(NAME, N, U, WITH_NAN, OPERATOR)                                              \
    static inline bool NAME##_##N(U a, U b)                                                     \
    {                                                                                           \
        return N##_of(a) != N##_of(a) || N##_of(b) != N##_of(b) ? WITH_NAN                      \
                                                                : N##_of(a) OPERATOR N##_of(b); \
    }

#define COMPARISONS(N, U)                                        \
    COMPARISON(eq, N, U, false, ==)                              \
    COMPARISON(ne, N, U, false, !=)                              \
    COMPARISON(lt, N, U, false, <)                               \
    COMPARISON(le, N, U, false, <=)                              \
    COMPARISON(gt, N, U, false, >)                               \
    COMPARISON(ge, N, U, false, >=)                              \
    COMPARISON(equ, N, U, true, ==)                              \
    COMPARISON(neu, N, U, true, !=)                              \
    COMPARISON(ltu, N, U, true, <)                               \
    COMPARISON(leu, N, U, true, <=)                              \
    COMPARISON(gtu, N, U, true, >)                               \
    COMPARISON(geu, N, U, true, >=)                              \
    static inline bool num_##N(U a, U b)                         \
    {                                                            \
        return N##_of(a) == N##_of(a) && N##_of(b) == N##_of(b); \
    }                                                            \
    static inline bool nan_##N(U a, U b)                         \
    {                                                            \
        return !num_##N(a, b);                                   \
    }

REAL(f32, u32, float, f)
REAL(f64, u64, double, )

#define APPROXIMATION(NAME, CALL)              \
    static inline u32 NAME##_approx_f32(u32 a) \
    {                                          \
        float x = f32_of(a);                   \
        return bits_f32(CALL);                 \
    }

APPROXIMATION(sin, sinf(x))
APPROXIMATION(cos, cosf(x))
APPROXIMATION(lg2, log2f(x))
APPROXIMATION(ex2, exp2f(x))
APPROXIMATION(sqrt, sqrtf(x))
APPROXIMATION(rcp, 1 / x)

/* The upper half of an operand gives the upper half of a result. */
static inline u64 rcp_approx_ftz_f64(u64 a)
{
    return bits_f64(1 / f64_of(a & 0xffffffff00000000)) & 0xffffffff00000000;
}

static inline u64 rsqrt_approx_ftz_f64(u64 a)
{
    return bits_f64(1 / sqrt(f64_of(a & 0xffffffff00000000))) & 0xffffffff00000000;
}

static inline u32 tanh_approx_f32(u32 a)
{
    return bits_f32(tanhf(f32_of(a)));
}

static inline u32 div_approx_f32(u32 a, u32 b)
{
    return div_f32(a, b);
}

static inline u32 div_full_f32(u32 a, u32 b)
{
    return div_f32(a, b);
}

/* slct: whether the third operand is not negative. */
static inline bool chooses_f32(u32 a)
{
    return f32_of(a) >= 0.0f;
}

static inline bool chooses_s32(u32 a)
{
    return (s32)a >= 0;
}

#endif
