/* Floating point and conversions: each instruction against the same in C. */
#include "tests/ptx/machine/rows.h"

/* A value that is exact in double, rounded to float in a direction: -1 down, 1 up, 0 to zero. */
static uint32_t rounded(double exact, int direction)
{
    float near = (float)exact;

    if (direction == 0) {
        direction = exact > 0 ? -1 : 1;
    }
    if (isfinite(exact) && (double)near != exact && ((double)near > exact) != (direction > 0)) {
        near = nextafterf(near, direction > 0 ? INFINITY : -INFINITY);
    }
    return bits_f32(near);
}

/* The greater of two is chosen by sign, where they are equal. */
static float least(float a, float b)
{
    return isnan(a) ? b : isnan(b) ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}

static float most(float a, float b)
{
    return isnan(a) ? b : isnan(b) ? a : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}

static float flushed(float value)
{
    return fpclassify(value) == FP_SUBNORMAL ? copysignf(0.0f, value) : value;
}

static float saturated(float value)
{
    return value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f;
}

/* To whole numbers of a range. */
static uint64_t whole(double value, double least_value, double most_value, uint64_t not_a_number)
{
    if (value != value) {
        return not_a_number;
    }
    if (value <= least_value) {
        return (uint64_t)(int64_t)least_value;
    }
    return value >= most_value ? (most_value < 0x1p63 ? (uint64_t)most_value : UINT64_MAX)
           : value < 0         ? (uint64_t)(int64_t)value
                               : (uint64_t)value;
}

/* bf16 and f16 by their definition: the nearest of all, the even one of two. */
static double small_value(uint16_t bits, int exponent_bits)
{
    int fraction_bits = 15 - exponent_bits;
    int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    int fraction = bits & ((1 << fraction_bits) - 1);
    int bias = (1 << (exponent_bits - 1)) - 1;
    double value;

    if (exponent == (1 << exponent_bits) - 1) {
        value = fraction != 0 ? NAN : INFINITY;
    } else if (exponent == 0) {
        value = ldexp(fraction, 1 - bias - fraction_bits);
    } else {
        value = ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    }
    return bits >> 15 != 0 ? -value : value;
}

static uint16_t small_bits(double value, int exponent_bits)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    uint16_t infinity = (uint16_t)(((1 << exponent_bits) - 1) << (15 - exponent_bits));
    uint16_t low = 0, high = infinity;
    double most_finite = small_value((uint16_t)(infinity - 1), exponent_bits);
    double step = most_finite - small_value((uint16_t)(infinity - 2), exponent_bits);

    if (value != value) {
        return 0x7fff;
    }
    value = fabs(value);
    if (value >= most_finite + step / 2) {
        return sign | infinity;
    }
    while (low + 1 < high) { /* the greatest that is not above it */
        uint16_t middle = (uint16_t)((low + high) / 2);

        *(small_value(middle, exponent_bits) <= value ? &low : &high) = middle;
    }
    if (low + 1 == infinity) {
        return sign | low;
    }
    {
        double below = value - small_value(low, exponent_bits);
        double above = small_value((uint16_t)(low + 1), exponent_bits) - value;

        low += below > above || (below == above && (low & 1) != 0);
    }
    return sign | low;
}

#define F16(bits) small_value((bits), 5)
#define BF16(bits) small_value((bits), 8)

/* The same for 8 bits, where what is too large becomes the largest. With an exponent of 4 bits all
   codes but the last are numbers. */
static double tiny_value(unsigned bits, int exponent_bits)
{
    int fraction_bits = 7 - exponent_bits;
    int exponent = (int)(bits & 0x7f) >> fraction_bits;
    int fraction = (int)bits & ((1 << fraction_bits) - 1);
    int scale = (exponent == 0 ? 1 : exponent) - (1 << (exponent_bits - 1)) + 1 - fraction_bits;
    double value = ldexp(fraction + (exponent == 0 ? 0 : 1 << fraction_bits), scale);

    if (exponent_bits == 4 && (bits & 0x7f) == 0x7f) {
        value = NAN;
    } else if (exponent_bits == 5 && exponent == 31) {
        value = fraction == 0 ? INFINITY : NAN;
    }
    return (bits & 0x80) != 0 ? -value : value;
}

static uint16_t tiny_bits(double value, int exponent_bits)
{
    unsigned last = exponent_bits == 4 ? 0x7e : 0x7b;
    double size = fmin(fabs(value), tiny_value(last, exponent_bits));
    unsigned best = 0;

    if (value != value) {
        return 0x7f;
    }
    for (unsigned i = 1; i <= last; i++) {
        double before = fabs(size - tiny_value(best, exponent_bits));
        double after = fabs(size - tiny_value(i, exponent_bits));

        best = after < before || (after == before && i % 2 == 0) ? i : best;
    }
    return (uint16_t)((signbit(value) ? 0x80 : 0) | best);
}

#define UPPER(a) ((uint16_t)((a) >> 16))

#define ROWS(X)                                                                                    \
    X(add_f32, 'r', "add.f32 %r3, %r0, %r1;", bits_f32(fa + fb))                                   \
    X(add_ftz, 'r', "add.rn.ftz.f32 %r3, %r0, %r1;", bits_f32(flushed(flushed(fa) + flushed(fb)))) \
    X(add_sat, 'r', "add.sat.f32 %r3, %r0, %r1;", bits_f32(saturated(fa + fb)))                    \
    X(add_number, 'r', "add.f32 %r3, %r0, 0f3FC00000;", bits_f32(fa + 1.5f))                       \
    X(add_decimal, 'r', "add.f32 %r3, %r0, -1.5;", bits_f32(fa - 1.5f))                            \
    X(sub_f64, 'd', "sub.f64 %d3, %d0, %d1;", bits_f64(xa - xb))                                   \
    X(mul_f32, 'r', "mul.rn.f32 %r3, %r0, %r1;", bits_f32(fa *fb))                                 \
    X(mul_rz, 'r', "mul.rz.f32 %r3, %r0, %r1;", rounded((double)fa *fb, 0))                        \
    X(mul_rm, 'r', "mul.rm.f32 %r3, %r0, %r1;", rounded((double)fa *fb, -1))                       \
    X(mul_rp, 'r', "mul.rp.f32 %r3, %r0, %r1;", rounded((double)fa *fb, 1))                        \
    X(mul_f64, 'd', "mul.f64 %d3, %d0, 0d3FF8000000000000;", bits_f64(xa * 1.5))                   \
    X(fma_f32, 'r', "fma.rn.f32 %r3, %r0, %r1, %r2;", bits_f32(fmaf(fa, fb, fc)))                  \
    X(fma_f64, 'd', "fma.rn.f64 %d3, %d0, %d1, %d2;", bits_f64(fma(xa, xb, xc)))                   \
    X(div_f32, 'r', "div.rn.f32 %r3, %r0, %r1;", bits_f32(fa / fb))                                \
    X(div_f64, 'd', "div.rn.f64 %d3, %d0, %d1;", bits_f64(xa / xb))                                \
    X(rcp_f32, 'r', "rcp.rn.f32 %r3, %r0;", bits_f32(1.0f / fa))                                   \
    X(sqrt_f32, 'r', "sqrt.rn.f32 %r3, %r0;", bits_f32(sqrtf(fa)))                                 \
    X(sqrt_f64, 'd', "sqrt.rn.f64 %d3, %d0;", bits_f64(sqrt(xa)))                                  \
    X(sqrt_approx, 'r', "sqrt.approx.ftz.f32 %r3, %r0;", bits_f32(sqrtf(flushed(fa))))             \
    X(ex2, 'r', "ex2.approx.f32 %r3, %r0;", bits_f32(exp2f(fa)))                                   \
    X(lg2, 'r', "lg2.approx.f32 %r3, %r0;", bits_f32(log2f(fa)))                                   \
    X(sin, 'r', "sin.approx.f32 %r3, %r0;", bits_f32(sinf(fa)))                                    \
    X(cos, 'r', "cos.approx.f32 %r3, %r0;", bits_f32(cosf(fa)))                                    \
    X(tanh, 'r', "tanh.approx.f32 %r3, %r0;", bits_f32(tanhf(fa)))                                 \
    X(rsqrt, 'r', "rsqrt.approx.f32 %r3, %r0;", bits_f32(1.0f / sqrtf(fa)))                        \
    X(abs_f32, 'r', "abs.f32 %r3, %r0;", a & 0x7fffffff)                                           \
    X(neg_f64, 'd', "neg.f64 %d3, %d0;", da ^ 0x8000000000000000)                                  \
    X(min_f32, 'r', "min.f32 %r3, %r0, %r1;", bits_f32(least(fa, fb)))                             \
    X(max_f32, 'r', "max.f32 %r3, %r0, %r1;", bits_f32(most(fa, fb)))                              \
    X(max_nan, 'r', "max.NaN.f32 %r3, %r0, %r1;",                                                  \
      bits_f32(isnan(fa) || isnan(fb) ? NAN : most(fa, fb)))                                       \
    X(copysign_f32, 'r', "copysign.f32 %r3, %r0, %r1;", (a & 0x80000000) | (b & 0x7fffffff))       \
    X(testp_finite, 'p', "testp.finite.f32 %p0, %r0;", isfinite(fa) != 0)                          \
    X(testp_normal, 'p', "testp.normal.f64 %p0, %d0;", isnormal(xa) != 0)                          \
    X(setp_lt, 'p', "setp.lt.f32 %p0, %r0, %r1;", fa < fb)                                         \
    X(setp_ltu, 'p', "setp.ltu.f32 %p0, %r0, %r1;", !(fa >= fb))                                   \
    X(setp_neu, 'p', "setp.neu.f64 %p0, %d0, %d1;", xa != xb)                                      \
    X(setp_ne, 'p', "setp.ne.f64 %p0, %d0, %d1;", xa<xb || xa> xb)                                 \
    X(setp_nan, 'p', "setp.nan.f32 %p0, %r0, %r1;", isnan(fa) || isnan(fb))                        \
    X(setp_ftz, 'p', "setp.gt.ftz.f32 %p0, %r0, %r1;", flushed(fa) > flushed(fb))                  \
    X(set_f32, 'r', "set.gt.f32.f32 %r3, %r0, %r1;", fa > fb ? 0x3f800000 : 0)                     \
    X(setp_f16, 'p', "setp.lt.f16 %p0, %h0, %h1;", F16(ha) < F16(hb))                              \
    X(f64_of_f32, 'd', "cvt.f64.f32 %d3, %r0;", bits_f64(fa))                                      \
    X(f32_of_f64, 'r', "cvt.rn.f32.f64 %r3, %d0;", bits_f32((float)xa))                            \
    X(f32_of_f64_rz, 'r', "cvt.rz.f32.f64 %r3, %d0;", rounded(xa, 0))                              \
    X(f32_of_f64_rm, 'r', "cvt.rm.f32.f64 %r3, %d0;", rounded(xa, -1))                             \
    X(f32_of_f64_rp, 'r', "cvt.rp.f32.f64 %r3, %d0;", rounded(xa, 1))                              \
    X(f32_sat, 'r', "cvt.sat.f32.f32 %r3, %r0;", bits_f32(saturated(fa)))                          \
    X(f32_whole, 'r', "cvt.rni.f32.f32 %r3, %r0;", bits_f32(rintf(fa)))                            \
    X(f32_floor, 'r', "cvt.rmi.f32.f32 %r3, %r0;", bits_f32(floorf(fa)))                           \
    X(f64_ceil, 'd', "cvt.rpi.f64.f64 %d3, %d0;", bits_f64(ceil(xa)))                              \
    X(f32_of_s32, 'r', "cvt.rn.f32.s32 %r3, %r0;", bits_f32((float)sa))                            \
    X(f32_of_u64, 'r', "cvt.rn.f32.u64 %r3, %d0;", bits_f32((float)da))                            \
    X(f32_of_s32_rz, 'r', "cvt.rz.f32.s32 %r3, %r0;", rounded(sa, 0))                              \
    X(f32_of_s32_rp, 'r', "cvt.rp.f32.s32 %r3, %r0;", rounded(sa, 1))                              \
    X(f64_of_s64, 'd', "cvt.rn.f64.s64 %d3, %d0;", bits_f64((double)sda))                          \
    X(f64_of_u32, 'd', "cvt.rn.f64.u32 %d3, %r0;", bits_f64(a))                                    \
    X(s32_of_f32, 'r', "cvt.rzi.s32.f32 %r3, %r0;",                                                \
      (uint32_t)whole(truncf(fa), INT32_MIN, INT32_MAX, 0))                                        \
    X(u32_of_f32, 'r', "cvt.rni.u32.f32 %r3, %r0;", (uint32_t)whole(rintf(fa), 0, UINT32_MAX, 0))  \
    X(s64_of_f64, 'd', "cvt.rmi.s64.f64 %d3, %d0;",                                                \
      xa >= 0x1p63 ? INT64_MAX : whole(floor(xa), -0x1p63, 0x1p63, UINT64_C(1) << 63))             \
    X(u64_of_f32, 'd', "cvt.rzi.u64.f32 %d3, %r0;",                                                \
      whole(truncf(fa), 0, 0x1p64, UINT64_C(1) << 63))                                             \
    X(u16_of_f32, 'h', "cvt.rzi.u16.f32 %h3, %r0;", whole(truncf(fa), 0, 65535, 0))                \
    X(s8_of_f32, 'r', "cvt.rzi.s8.f32 %r3, %r0;",                                                  \
      (uint32_t)(int32_t)whole(truncf(fa), -128, 127, 0))                                          \
    X(f32_of_f16, 'r', "cvt.f32.f16 %r3, %h0;", bits_f32((float)F16(ha)))                          \
    X(f16_of_f32, 'h', "cvt.rn.f16.f32 %h3, %r0;", small_bits(fa, 5))                              \
    X(f16_of_f64, 'h', "cvt.rn.f16.f64 %h3, %d0;", small_bits(xa, 5))                              \
    X(f16_of_s16, 'h', "cvt.rn.f16.s16 %h3, %h0;", small_bits(sha, 5))                             \
    X(f32_of_bf16, 'r', "cvt.f32.bf16 %r3, %h0;", bits_f32((float)BF16(ha)))                       \
    X(bf16_of_f32, 'h', "cvt.rn.bf16.f32 %h3, %r0;", small_bits(fa, 8))                            \
    X(bf16_relu, 'h', "cvt.rn.relu.bf16.f32 %h3, %r0;",                                            \
      isnan(fa) ? 0x7fff : small_bits(fa > 0 ? fa : 0.0f, 8))                                      \
    X(bf16x2_of_f32, 'r', "cvt.rn.bf16x2.f32 %r3, %r0, %r1;",                                      \
      (uint32_t)small_bits(fa, 8) << 16 | small_bits(fb, 8))                                       \
    X(f16x2_of_f32, 'r', "cvt.rn.f16x2.f32 %r3, %r0, %r1;",                                        \
      (uint32_t)small_bits(fa, 5) << 16 | small_bits(fb, 5))                                       \
    X(tf32_of_f32, 'r', "cvt.rna.tf32.f32 %r3, %r0;",                                              \
      isnan(fa)   ? 0x7fffffff                                                                     \
      : isinf(fa) ? a                                                                              \
                  : (a + 0x1000) & 0xffffe000)                                                     \
    X(add_f16, 'h', "add.f16 %h3, %h0, %h1;", small_bits(F16(ha) + F16(hb), 5))                    \
    X(mul_bf16, 'h', "mul.rn.bf16 %h3, %h0, %h1;", small_bits(BF16(ha) * BF16(hb), 8))             \
    X(fma_f16, 'h', "fma.rn.f16 %h3, %h0, %h1, %h2;",                                              \
      small_bits((double)((long double)F16(ha) * F16(hb) + (long double)F16(hc)), 5))              \
    X(max_f16x2, 'r', "max.f16x2 %r3, %r0, %r0;",                                                  \
      small_bits(F16(ha), 5) | (uint32_t)small_bits(F16((uint16_t)(a >> 16)), 5) << 16)            \
    X(neg_bf16x2, 'r', "neg.bf16x2 %r3, %r0;", a ^ 0x80008000)                                     \
    X(add_f16x2, 'r', "add.f16x2 %r3, %r0, %r1;",                                                  \
      small_bits(F16(ha) + F16(hb), 5) |                                                           \
          (uint32_t)small_bits(F16((uint16_t)(a >> 16)) + F16((uint16_t)(b >> 16)), 5) << 16)      \
    X(set_f16, 'h', "set.eq.f16.f16 %h3, %h0, %h1;", F16(ha) == F16(hb) ? 0x3c00 : 0)              \
    X(set_f16x2, 'r', "set.lt.f16x2.f16x2 %r3, %r0, %r1;",                                         \
      (F16(ha) < F16(hb) ? 0x3c00u : 0) | (F16(UPPER(a)) < F16(UPPER(b)) ? 0x3c00u << 16 : 0))     \
    X(set_bf16x2, 'r', "setp.gt.f32 %p1, %r0, %r1; set.geu.and.u32.bf16x2 %r3, %r0, %r1, %p1;",    \
      !(fa > fb) ? 0                                                                               \
                 : (BF16(ha) < BF16(hb) ? 0 : 0xffffu) |                                           \
                       (BF16(UPPER(a)) < BF16(UPPER(b)) ? 0 : 0xffffu << 16))                      \
    X(setp_f16x2, 'p',                                                                             \
      "setp.ne.f16x2 %p1|%p2, %r0, %r1; not.pred %p2, %p2; and.pred %p0, %p1, "                    \
      "%p2;",                                                                                      \
      (F16(ha) < F16(hb) || F16(ha) > F16(hb)) &&                                                  \
          !(F16(UPPER(a)) < F16(UPPER(b)) || F16(UPPER(a)) > F16(UPPER(b))))                       \
    X(e4m3_of_f16, 'h', "cvt.rn.satfinite.e4m3x2.f16x2 %h3, %r0;",                                 \
      tiny_bits(F16(UPPER(a)), 4) << 8 | tiny_bits(F16(ha), 4))                                    \
    X(e5m2_of_f32, 'h', "cvt.rn.satfinite.e5m2x2.f32 %h3, %r0, %r1;",                              \
      tiny_bits(fa, 5) << 8 | tiny_bits(fb, 5))                                                    \
    X(e4m3_relu, 'h', "cvt.rn.satfinite.relu.e4m3x2.f32 %h3, %r0, %r1;",                           \
      tiny_bits(fa <= 0 ? 0 : fa, 4) << 8 | tiny_bits(fb <= 0 ? 0 : fb, 4))                        \
    X(f16_of_e4m3, 'r', "cvt.rn.f16x2.e4m3x2 %r3, %h0;",                                           \
      small_bits(tiny_value(ha & 255, 4), 5) | (uint32_t)small_bits(tiny_value(ha >> 8, 4), 5)     \
                                                   << 16)                                          \
    X(f16_of_e5m2, 'r', "cvt.rn.relu.f16x2.e5m2x2 %r3, %h0;",                                      \
      small_bits(tiny_value(ha & 255, 5) <= 0 ? 0 : tiny_value(ha & 255, 5), 5) |                  \
          (uint32_t)small_bits(tiny_value(ha >> 8, 5) <= 0 ? 0 : tiny_value(ha >> 8, 5), 5) << 16)

ROWS(ROWS_FUNCTION)
static const struct row rows[] = {ROWS(ROWS_ENTRY)};

START_TEST(floats_are_those_of_c)
{
    rows_run_all(rows, sizeof(rows) / sizeof(rows[0]));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ptx_float");
    TCase *instructions = tcase_create("instructions");

    tcase_add_test(instructions, floats_are_those_of_c);
    suite_add_tcase(suite, instructions);
    return suite_run(suite);
}
