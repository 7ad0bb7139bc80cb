/*
 * What translated code is made of: integers. Values of all types are unsigned
 * integers of their width, floating-point numbers their bits; a function is named after its
 * instruction and type: add_s32, fma_f32, min_NaN_f32.
 */
#ifndef CAPU_TESTS_PTX_MACHINE_PRELUDE_H
#define CAPU_TESTS_PTX_MACHINE_PRELUDE_H

#include "tests/ptx/machine/prelude_memory.h"

/* One text for signed and unsigned types. */
#pragma GCC diagnostic ignored "-Wtype-limits"

/* Integers. */

#define INTEGER(N, U, S, W, T, WS)                                                       \
    static inline U add_##N(U a, U b)                                                    \
    {                                                                                    \
        return (U)(a + b);                                                               \
    }                                                                                    \
    static inline U sub_##N(U a, U b)                                                    \
    {                                                                                    \
        return (U)(a - b);                                                               \
    }                                                                                    \
    static inline U mul_lo_##N(U a, U b)                                                 \
    {                                                                                    \
        return (U)((u64)a * b);                                                          \
    }                                                                                    \
    static inline U mul_hi_##N(U a, U b)                                                 \
    {                                                                                    \
        return (U)((W)((WS)(T)a * (T)b) >> (8 * sizeof(U)));                             \
    }                                                                                    \
    static inline W mul_wide_##N(U a, U b)                                               \
    {                                                                                    \
        return (W)((WS)(T)a * (T)b);                                                     \
    }                                                                                    \
    static inline U mad_lo_##N(U a, U b, U c)                                            \
    {                                                                                    \
        return (U)(mul_lo_##N(a, b) + c);                                                \
    }                                                                                    \
    static inline U mad_hi_##N(U a, U b, U c)                                            \
    {                                                                                    \
        return (U)(mul_hi_##N(a, b) + c);                                                \
    }                                                                                    \
    static inline W mad_wide_##N(U a, U b, W c)                                          \
    {                                                                                    \
        return (W)(mul_wide_##N(a, b) + c);                                              \
    }                                                                                    \
    /* Division by zero gives ones, as GPUs do. */                                       \
    static inline U div_##N(U a, U b)                                                    \
    {                                                                                    \
        return b == 0 ? (U)-1 : (T)-1 < 0 && b == (U)-1 ? (U)(0 - a) : (U)((T)a / (T)b); \
    }                                                                                    \
    static inline U rem_##N(U a, U b)                                                    \
    {                                                                                    \
        return b == 0 ? a : (T)-1 < 0 && b == (U)-1 ? 0 : (U)((T)a % (T)b);              \
    }                                                                                    \
    static inline U min_##N(U a, U b)                                                    \
    {                                                                                    \
        return (T)a < (T)b ? a : b;                                                      \
    }                                                                                    \
    static inline U max_##N(U a, U b)                                                    \
    {                                                                                    \
        return (T)a > (T)b ? a : b;                                                      \
    }                                                                                    \
    static inline U sad_##N(U a, U b, U c)                                               \
    {                                                                                    \
        return (U)(c + ((T)a < (T)b ? b - a : a - b));                                   \
    }                                                                                    \
    static inline U shr_##N(U a, u32 b)                                                  \
    {                                                                                    \
        u32 most = 8 * sizeof(U) - 1;                                                    \
        return b > most ? (U)((T)a < 0 ? -1 : 0) : (U)((T)a >> b);                       \
    }                                                                                    \
    static inline bool lt_##N(U a, U b)                                                  \
    {                                                                                    \
        return (T)a < (T)b;                                                              \
    }                                                                                    \
    static inline bool le_##N(U a, U b)                                                  \
    {                                                                                    \
        return (T)a <= (T)b;                                                             \
    }                                                                                    \
    static inline bool gt_##N(U a, U b)                                                  \
    {                                                                                    \
        return (T)a > (T)b;                                                              \
    }                                                                                    \
    static inline bool ge_##N(U a, U b)                                                  \
    {                                                                                    \
        return (T)a >= (T)b;                                                             \
    }                                                                                    \
    static inline bool eq_##N(U a, U b)                                                  \
    {                                                                                    \
        return a == b;                                                                   \
    }                                                                                    \
    static inline bool ne_##N(U a, U b)                                                  \
    {                                                                                    \
        return a != b;                                                                   \
    }

INTEGER(u16, u16, s16, u32, u16, u32)
INTEGER(s16, u16, s16, u32, s16, s32)
INTEGER(u32, u32, s32, u64, u32, u64)
INTEGER(s32, u32, s32, u64, s32, s64)
INTEGER(u64, u64, s64, u128, u64, u128)
INTEGER(s64, u64, s64, u128, s64, s128)

#define lo_u16 lt_u16
#define lo_u32 lt_u32
#define lo_u64 lt_u64
#define ls_u16 le_u16
#define ls_u32 le_u32
#define ls_u64 le_u64
#define hi_u16 gt_u16
#define hi_u32 gt_u32
#define hi_u64 gt_u64
#define hs_u16 ge_u16
#define hs_u32 ge_u32
#define hs_u64 ge_u64

#define SIGNED(N, U)                                           \
    static inline U abs_##N(U a)                               \
    {                                                          \
        return a >> (8 * sizeof(U) - 1) != 0 ? (U)(0 - a) : a; \
    }                                                          \
    static inline U neg_##N(U a)                               \
    {                                                          \
        return (U)(0 - a);                                     \
    }

SIGNED(s16, u16)
SIGNED(s32, u32)
SIGNED(s64, u64)

#define BITS(N, U)                                        \
    static inline U and_##N(U a, U b)                     \
    {                                                     \
        return a & b;                                     \
    }                                                     \
    static inline U or_##N(U a, U b)                      \
    {                                                     \
        return a | b;                                     \
    }                                                     \
    static inline U xor_##N(U a, U b)                     \
    {                                                     \
        return a ^ b;                                     \
    }                                                     \
    static inline U not_##N(U a)                          \
    {                                                     \
        return (U)~a;                                     \
    }                                                     \
    static inline U cnot_##N(U a)                         \
    {                                                     \
        return a == 0;                                    \
    }                                                     \
    static inline U shl_##N(U a, u32 b)                   \
    {                                                     \
        return b >= 8 * sizeof(U) ? 0 : (U)((u64)a << b); \
    }                                                     \
    static inline U shr_##N(U a, u32 b)                   \
    {                                                     \
        return b >= 8 * sizeof(U) ? 0 : (U)(a >> b);      \
    }                                                     \
    static inline bool eq_##N(U a, U b)                   \
    {                                                     \
        return a == b;                                    \
    }                                                     \
    static inline bool ne_##N(U a, U b)                   \
    {                                                     \
        return a != b;                                    \
    }

BITS(b16, u16)
BITS(b32, u32)
BITS(b64, u64)

static inline u8 and_pred(u8 a, u8 b)
{
    return a & b;
}

static inline u8 or_pred(u8 a, u8 b)
{
    return a | b;
}

static inline u8 xor_pred(u8 a, u8 b)
{
    return a ^ b;
}

static inline u8 not_pred(u8 a)
{
    return !a;
}

static inline u32 clamp_s32(s64 value)
{
    return (u32)(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (s32)value);
}

static inline u32 add_sat_s32(u32 a, u32 b)
{
    return clamp_s32((s64)(s32)a + (s32)b);
}

static inline u32 sub_sat_s32(u32 a, u32 b)
{
    return clamp_s32((s64)(s32)a - (s32)b);
}

static inline u32 mul24_lo_u32(u32 a, u32 b)
{
    return (a & 0xffffff) * (b & 0xffffff);
}

static inline u32 mul24_lo_s32(u32 a, u32 b)
{
    return (u32)(((s32)(a << 8) >> 8) * (s64)((s32)(b << 8) >> 8));
}

static inline u32 mad24_lo_u32(u32 a, u32 b, u32 c)
{
    return mul24_lo_u32(a, b) + c;
}

static inline u32 mad24_lo_s32(u32 a, u32 b, u32 c)
{
    return mul24_lo_s32(a, b) + c;
}

/* Fields of bits. */

static inline u64 field(u64 a, u32 position, u32 length, u32 bits, bool is_signed)
{
    u32 at = position & 255;
    u32 count = length & 255;
    u32 last = at + count < bits ? at + count - 1 : bits - 1;
    bool sign = is_signed && count != 0 && (a >> last & 1) != 0;
    u64 result = sign ? ~(u64)0 : 0;

    if (count == 0) {
        return 0;
    }
    if (at < bits) {
        u32 width = count < bits - at ? count : bits - at;
        u64 mask = width >= 64 ? ~(u64)0 : ((u64)1 << width) - 1;

        result = (result & ~mask) | (a >> at & mask);
    }
    return result;
}

static inline u32 bfe_u32(u32 a, u32 b, u32 c)
{
    return (u32)field(a, b, c, 32, false);
}

static inline u32 bfe_s32(u32 a, u32 b, u32 c)
{
    return (u32)field(a, b, c, 32, true);
}

static inline u64 bfe_u64(u64 a, u32 b, u32 c)
{
    return field(a, b, c, 64, false);
}

static inline u64 bfe_s64(u64 a, u32 b, u32 c)
{
    return field(a, b, c, 64, true);
}

static inline u64 insert(u64 a, u64 b, u32 position, u32 length, u32 bits)
{
    u32 at = position & 255;
    u32 count = length & 255;
    u64 mask;

    if (at >= bits || count == 0) {
        return b;
    }
    count = count < bits - at ? count : bits - at;
    mask = (count >= 64 ? ~(u64)0 : ((u64)1 << count) - 1) << at;
    return (b & ~mask) | (a << at & mask);
}

/* A mask of b bits, beginning at bit a: PTX ISA, "bmsk". */
static inline u32 bmsk_clamp_b32(u32 a, u32 b)
{
    u64 mask = b >= 32 ? 0xffffffffu : (1ull << b) - 1;

    return a >= 32 ? 0 : (u32)(mask << a);
}

static inline u32 bmsk_wrap_b32(u32 a, u32 b)
{
    return bmsk_clamp_b32(a & 31, b & 31);
}

/* The lowest b bits of a, extended: PTX ISA, "szext". */
static inline u32 szext_clamp_u32(u32 a, u32 b)
{
    return b >= 32 ? a : a & (u32)((1ull << b) - 1);
}

static inline u32 szext_wrap_u32(u32 a, u32 b)
{
    return szext_clamp_u32(a, b & 31);
}

static inline u32 szext_clamp_s32(u32 a, u32 b)
{
    return b == 0 ? 0 : b >= 32 ? a : (u32)((s32)(a << (32 - b)) >> (32 - b));
}

static inline u32 szext_wrap_s32(u32 a, u32 b)
{
    return szext_clamp_s32(a, b & 31);
}

static inline u32 bfi_b32(u32 a, u32 b, u32 c, u32 d)
{
    return (u32)insert(a, b, c, d, 32);
}

static inline u64 bfi_b64(u64 a, u64 b, u32 c, u32 d)
{
    return insert(a, b, c, d, 64);
}

static inline u32 popc_b32(u32 a)
{
    return (u32)__builtin_popcount(a);
}

static inline u32 popc_b64(u64 a)
{
    return (u32)__builtin_popcountll(a);
}

static inline u32 clz_b32(u32 a)
{
    return a == 0 ? 32 : (u32)__builtin_clz(a);
}

static inline u32 clz_b64(u64 a)
{
    return a == 0 ? 64 : (u32)__builtin_clzll(a);
}

static inline u64 brev_b64(u64 a)
{
    u64 result = 0;

    for (unsigned i = 0; i < 64; i++) {
        result |= (a >> i & 1) << (63 - i);
    }
    return result;
}

static inline u32 brev_b32(u32 a)
{
    return (u32)(brev_b64(a) >> 32);
}

static inline u32 bfind_u32(u32 a)
{
    return a == 0 ? ~0u : 31 - clz_b32(a);
}

static inline u32 bfind_u64(u64 a)
{
    return a == 0 ? ~0u : 63 - clz_b64(a);
}

static inline u32 bfind_s32(u32 a)
{
    return bfind_u32((s32)a < 0 ? ~a : a);
}

static inline u32 bfind_s64(u64 a)
{
    return bfind_u64((s64)a < 0 ? ~a : a);
}

static inline u32 bfind_shiftamt_u32(u32 a)
{
    return a == 0 ? ~0u : clz_b32(a);
}

static inline u32 bfind_shiftamt_s32(u32 a)
{
    return bfind_shiftamt_u32((s32)a < 0 ? ~a : a);
}

static inline u32 prmt_b32(u32 a, u32 b, u32 c)
{
    u64 bytes = (u64)b << 32 | a;
    u32 result = 0;

    for (unsigned i = 0; i < 4; i++) {
        u32 selector = c >> 4 * i & 15;
        u32 byte = (u32)(bytes >> 8 * (selector & 7)) & 255;

        if (selector & 8) {
            byte = byte & 128 ? 255 : 0;
        }
        result |= byte << 8 * i;
    }
    return result;
}

static inline u32 shf_l_wrap_b32(u32 a, u32 b, u32 c)
{
    return (u32)(((u64)b << 32 | a) << (c & 31) >> 32);
}

static inline u32 shf_r_wrap_b32(u32 a, u32 b, u32 c)
{
    return (u32)(((u64)b << 32 | a) >> (c & 31));
}

static inline u32 shf_l_clamp_b32(u32 a, u32 b, u32 c)
{
    return c >= 32 ? a : (u32)(((u64)b << 32 | a) << c >> 32);
}

static inline u32 shf_r_clamp_b32(u32 a, u32 b, u32 c)
{
    return c >= 32 ? b : (u32)(((u64)b << 32 | a) >> c);
}

/* One of the eight terms; `table` is a constant, so most vanish. */
static inline u32 lop3_term(u32 table, unsigned i, u32 term)
{
    return (0 - (table >> i & 1)) & term;
}

static inline u32 lop3_b32(u32 a, u32 b, u32 c, u32 table)
{
    return lop3_term(table, 0, ~a & ~b & ~c) | lop3_term(table, 1, ~a & ~b & c) |
           lop3_term(table, 2, ~a & b & ~c) | lop3_term(table, 3, ~a & b & c) |
           lop3_term(table, 4, a & ~b & ~c) | lop3_term(table, 5, a & ~b & c) |
           lop3_term(table, 6, a & b & ~c) | lop3_term(table, 7, a & b & c);
}

static inline s32 byte_of(u32 a, unsigned i, bool is_signed)
{
    u32 byte = a >> 8 * i & 255;

    return is_signed ? (s32)(s8)byte : (s32)byte;
}

static inline u32 dp4a(u32 a, bool is_a_signed, u32 b, bool is_b_signed, u32 c)
{
    for (unsigned i = 0; i < 4; i++) {
        c += (u32)(byte_of(a, i, is_a_signed) * byte_of(b, i, is_b_signed));
    }
    return c;
}

#define CHOICE(N, U)                         \
    static inline U selp_##N(U a, U b, u8 c) \
    {                                        \
        return c ? a : b;                    \
    }

CHOICE(b16, u16)
CHOICE(u16, u16)
CHOICE(s16, u16)
CHOICE(b32, u32)
CHOICE(u32, u32)
CHOICE(s32, u32)
CHOICE(f32, u32)
CHOICE(b64, u64)
CHOICE(u64, u64)
CHOICE(s64, u64)
CHOICE(f64, u64)

/* Operations of atomics that are no instructions. */

#define EXCHANGES(N, U)                \
    static inline U exch_##N(U a, U b) \
    {                                  \
        (void)a;                       \
        return b;                      \
    }

EXCHANGES(b32, u32)
EXCHANGES(b64, u64)
EXCHANGES(b128, u128)

static inline u32 inc_u32(u32 a, u32 b)
{
    return a >= b ? 0 : a + 1;
}

static inline u32 dec_u32(u32 a, u32 b)
{
    return a == 0 || a > b ? b : a - 1;
}

#endif
