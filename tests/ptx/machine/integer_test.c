/* Integers and bits: each instruction against the same in C. */
#include "tests/ptx/machine/rows.h"

static uint32_t bits_at(uint64_t value, uint32_t at, uint32_t count, uint32_t width)
{
    uint32_t result = 0;

    for (uint32_t i = 0; i < count && i < 32; i++) {
        if (at + i < width && (value >> (at + i) & 1) != 0) {
            result |= 1u << i;
        }
    }
    return result;
}

static uint32_t with_bits(uint32_t from, uint32_t to, uint32_t at, uint32_t count)
{
    for (uint32_t i = 0; i < count && at + i < 32; i++) {
        to = (to & ~(1u << (at + i))) | (from >> i & 1) << (at + i);
    }
    return to;
}

static uint32_t signed_bits_at(uint32_t value, uint32_t at, uint32_t count)
{
    uint32_t result = bits_at(value, at, count, 32);
    uint32_t last = at + count > 32 ? 31 : at + count - 1;

    if (count == 0 || (value >> last & 1) == 0) {
        return result;
    }
    for (uint32_t i = 0; i < 32; i++) {
        if (i >= count || at + i > 31) {
            result |= 1u << i;
        }
    }
    return result;
}

static uint32_t reversed(uint32_t value)
{
    uint32_t result = 0;

    for (unsigned i = 0; i < 32; i++) {
        result = result << 1 | (value >> i & 1);
    }
    return result;
}

static uint32_t chosen_bytes(uint32_t a, uint32_t b, uint32_t c)
{
    unsigned char bytes[8];
    uint32_t result = 0;

    memcpy(bytes, &a, 4);
    memcpy(bytes + 4, &b, 4);
    for (unsigned i = 0; i < 4; i++) {
        unsigned char byte = bytes[c >> 4 * i & 7];

        result |= (uint32_t)((c >> 4 * i & 8) != 0 ? (byte >= 128 ? 255 : 0) : byte) << 8 * i;
    }
    return result;
}

static int32_t dot(uint32_t a, uint32_t b, uint32_t c)
{
    int8_t one[4];
    uint8_t other[4];
    int64_t sum = (int32_t)c;

    memcpy(one, &a, 4);
    memcpy(other, &b, 4);
    for (unsigned i = 0; i < 4; i++) {
        sum += one[i] * other[i];
    }
    return (int32_t)sum;
}

/* `count` bits from bit `first` on. */
static uint32_t mask_of(uint32_t first, uint32_t count)
{
    uint32_t mask = 0;

    for (uint64_t bit = first; bit < (uint64_t)first + count && bit < 32; bit++) {
        mask |= 1u << bit;
    }
    return mask;
}

/* The lowest bits of a value; the highest of them is copied to those above if it is signed. */
static uint32_t lowest_of(uint32_t value, uint32_t count, bool is_signed)
{
    uint32_t mask = mask_of(0, count);

    if (is_signed && count > 0 && count <= 32 && (value >> (count - 1) & 1) != 0) {
        return value | ~mask;
    }
    return value & mask;
}

#define SHIFT(value, count, width) ((count) >= (width) ? 0 : (value) << (count))

#define ROWS(X)                                                                                   \
    X(add_s32, 'r', "add.s32 %r3, %r0, %r1;", (uint32_t)(a + b))                                  \
    X(add_u16, 'h', "add.u16 %h3, %h0, %h1;", (uint16_t)(ha + hb))                                \
    X(add_s64, 'd', "add.s64 %d3, %d0, %d1;", da + db)                                            \
    X(add_number, 'r', "add.s32 %r3, %r0, -7;", (uint32_t)(a - 7))                                \
    X(add_sat, 'r', "add.sat.s32 %r3, %r0, %r1;",                                                 \
      (uint32_t)((int64_t)sa + sb > INT32_MAX   ? INT32_MAX                                       \
                 : (int64_t)sa + sb < INT32_MIN ? INT32_MIN                                       \
                                                : (int64_t)sa + sb))                              \
    X(sub_u32, 'r', "sub.u32 %r3, %r0, %r1;", (uint32_t)(a - b))                                  \
    X(mul_lo_s16, 'h', "mul.lo.s16 %h3, %h0, %h1;", (uint16_t)((uint32_t)ha * hb))                \
    X(mul_lo_u64, 'd', "mul.lo.u64 %d3, %d0, %d1;", da *db)                                       \
    X(mul_hi_u32, 'r', "mul.hi.u32 %r3, %r0, %r1;", (uint64_t)a *b >> 32)                         \
    X(mul_hi_s32, 'r', "mul.hi.s32 %r3, %r0, %r1;", (uint32_t)((int64_t)sa * sb >> 32))           \
    X(mul_hi_u64, 'd', "mul.hi.u64 %d3, %d0, %d1;", (unsigned __int128)da *db >> 64)              \
    X(mul_hi_s64, 'd', "mul.hi.s64 %d3, %d0, %d1;", (__int128)sda *sdb >> 64)                     \
    X(mul_wide_s32, 'd', "mul.wide.s32 %d3, %r0, %r1;", (int64_t)sa *sb)                          \
    X(mul_wide_u16, 'r', "mul.wide.u16 %r3, %h0, %h1;", (uint32_t)ha *hb)                         \
    X(mad_lo_s32, 'r', "mad.lo.s32 %r3, %r0, %r1, %r2;", (uint32_t)(a * b + c))                   \
    X(mad_wide_u32, 'd', "mad.wide.u32 %d3, %r0, %r1, %d2;", (uint64_t)a *b + dc)                 \
    X(mad_wide_s16, 'r', "mad.wide.s16 %r3, %h0, %h1, %r2;", (uint32_t)(sha * shb) + c)           \
    X(mul24, 'r', "mul24.lo.u32 %r3, %r0, %r1;", (a & 0xffffff) * (b & 0xffffff))                 \
    X(sad_s32, 'r', "sad.s32 %r3, %r0, %r1, %r2;", (uint32_t)(c + (sa < sb ? b - a : a - b)))     \
    X(div_u32, 'r', "div.u32 %r3, %r0, %r1;", b == 0 ? UINT32_MAX : a / b)                        \
    X(div_s32, 'r', "div.s32 %r3, %r0, %r1;", b == 0 ? UINT32_MAX : (uint32_t)((int64_t)sa / sb)) \
    X(div_s64, 'd', "div.s64 %d3, %d0, %d1;",                                                     \
      db == 0 ? UINT64_MAX : (uint64_t)((__int128)sda / sdb))                                     \
    X(rem_s32, 'r', "rem.s32 %r3, %r0, %r1;", b == 0 ? a : (uint32_t)((int64_t)sa % sb))          \
    X(rem_u16, 'h', "rem.u16 %h3, %h0, %h1;", hb == 0 ? ha : ha % hb)                             \
    X(abs_s32, 'r', "abs.s32 %r3, %r0;", sa < 0 ? (uint32_t)(0 - a) : a)                          \
    X(neg_s64, 'd', "neg.s64 %d3, %d0;", 0 - da)                                                  \
    X(min_s32, 'r', "min.s32 %r3, %r0, %r1;", (uint32_t)(sa < sb ? sa : sb))                      \
    X(max_u64, 'd', "max.u64 %d3, %d0, %d1;", da > db ? da : db)                                  \
    X(min_s16, 'h', "min.s16 %h3, %h0, %h1;", (uint16_t)(sha < shb ? sha : shb))                  \
    X(and_b32, 'r', "and.b32 %r3, %r0, %r1;", a &b)                                               \
    X(or_b64, 'd', "or.b64 %d3, %d0, %d1;", da | db)                                              \
    X(xor_b16, 'h', "xor.b16 %h3, %h0, %h1;", ha ^ hb)                                            \
    X(not_b16, 'h', "not.b16 %h3, %h0;", (uint16_t)~ha)                                           \
    X(cnot_b32, 'r', "cnot.b32 %r3, %r0;", a == 0)                                                \
    X(shl_b32, 'r', "shl.b32 %r3, %r0, %r1;", SHIFT(a, b, 32))                                    \
    X(shl_b64, 'd', "shl.b64 %d3, %d0, %r1;", SHIFT(da, b, 64))                                   \
    X(shl_b16, 'h', "shl.b16 %h3, %h0, 3;", (uint16_t)(ha << 3))                                  \
    X(shr_u32, 'r', "shr.u32 %r3, %r0, %r1;", b >= 32 ? 0 : a >> b)                               \
    X(shr_s32, 'r', "shr.s32 %r3, %r0, %r1;", (uint32_t)(sa >> (b >= 32 ? 31 : b)))               \
    X(shr_s64, 'd', "shr.s64 %d3, %d0, %r1;", sda >> (b >= 64 ? 63 : b))                          \
    X(bfe_u32, 'r', "bfe.u32 %r3, %r0, %r1, %r2;", bits_at(a, b & 255, c & 255, 32))              \
    X(bfe_s32, 'r', "bfe.s32 %r3, %r0, %r1, %r2;", signed_bits_at(a, b & 255, c & 255))           \
    X(bfe_u64, 'd', "bfe.u64 %d3, %d0, %r1, 17;", bits_at(da, b & 255, 17, 64))                   \
    X(bfi_b32, 'r', "bfi.b32 %r3, %r0, %r1, %r2, 9;", with_bits(a, b, c & 255, 9))                \
    X(bmsk_clamp, 'r',                                                                            \
      "and.b32 %r0, %r0, 47; and.b32 %r1, %r1, 47; bmsk.clamp.b32 %r3, %r0, %r1;",                \
      mask_of(a & 47, b & 47))                                                                    \
    X(bmsk_wrap, 'r', "bmsk.wrap.b32 %r3, %r0, %r1;", mask_of(a & 31, b & 31))                    \
    X(szext_clamp_u32, 'r', "and.b32 %r1, %r1, 47; szext.clamp.u32 %r3, %r0, %r1;",               \
      lowest_of(a, b & 47, false))                                                                \
    X(szext_clamp_s32, 'r', "and.b32 %r1, %r1, 47; szext.clamp.s32 %r3, %r0, %r1;",               \
      lowest_of(a, b & 47, true))                                                                 \
    X(szext_wrap_u32, 'r', "szext.wrap.u32 %r3, %r0, %r1;", lowest_of(a, b & 31, false))          \
    X(szext_wrap_s32, 'r', "szext.wrap.s32 %r3, %r0, %r1;", lowest_of(a, b & 31, true))           \
    X(popc_b32, 'r', "popc.b32 %r3, %r0;", __builtin_popcount(a))                                 \
    X(popc_b64, 'r', "popc.b64 %r3, %d0;", __builtin_popcountll(da))                              \
    X(clz_b32, 'r', "clz.b32 %r3, %r0;", a == 0 ? 32 : __builtin_clz(a))                          \
    X(clz_b64, 'r', "clz.b64 %r3, %d0;", da == 0 ? 64 : __builtin_clzll(da))                      \
    X(brev_b32, 'r', "brev.b32 %r3, %r0;", reversed(a))                                           \
    X(brev_b64, 'd', "brev.b64 %d3, %d0;",                                                        \
      (uint64_t)reversed(a) << 32 | reversed((uint32_t)(da >> 32)))                               \
    X(bfind_u32, 'r', "bfind.u32 %r3, %r0;", a == 0 ? UINT32_MAX : 31u - __builtin_clz(a))        \
    X(bfind_s64, 'r', "bfind.s64 %r3, %d0;",                                                      \
      sda == 0 || sda == -1 ? UINT32_MAX : 63u - __builtin_clzll(sda < 0 ? ~da : da))             \
    X(prmt_b32, 'r', "prmt.b32 %r3, %r0, %r1, %r2;", chosen_bytes(a, b, c))                       \
    X(shf_l_wrap, 'r', "shf.l.wrap.b32 %r3, %r0, %r1, %r2;",                                      \
      (c & 31) == 0 ? b : b << (c & 31) | a >> (32 - (c & 31)))                                   \
    X(shf_r_wrap, 'r', "shf.r.wrap.b32 %r3, %r0, %r1, %r2;",                                      \
      (c & 31) == 0 ? a : a >> (c & 31) | b << (32 - (c & 31)))                                   \
    X(shf_r_clamp, 'r', "shf.r.clamp.b32 %r3, %r0, %r1, %r2;",                                    \
      c == 0    ? a                                                                               \
      : c >= 32 ? b                                                                               \
                : a >> c | b << (32 - c))                                                         \
    X(lop3_majority, 'r', "lop3.b32 %r3, %r0, %r1, %r2, 0xe8;", (a & b) | (b & c) | (a & c))      \
    X(lop3_choice, 'r', "lop3.b32 %r3, %r0, %r1, %r2, 0xca;", (a & b) | (~a & c))                 \
    X(dp4a, 'r', "dp4a.s32.u32 %r3, %r0, %r1, %r2;", (uint32_t)dot(a, b, c))                      \
    X(selp, 'r', "setp.lt.s32 %p1, %r0, %r1; selp.b32 %r3, %r0, %r2, %p1;", sa < sb ? a : c)      \
    X(slct, 'd', "slct.u64.s32 %d3, %d0, %d1, %r2;", sc >= 0 ? da : db)                           \
    X(set_u32, 'r', "set.le.u32.s32 %r3, %r0, %r1;", sa <= sb ? UINT32_MAX : 0)                   \
    X(setp_eq, 'p', "setp.eq.b64 %p0, %d0, %d1;", da == db)                                       \
    X(setp_hi, 'p', "setp.hi.u32 %p0, %r0, %r1;", a > b)                                          \
    X(setp_pair, 'p', "setp.ge.s32 %p1|%p0, %r0, %r1;", !(sa >= sb))                              \
    X(setp_and, 'p', "setp.lt.u16 %p1, %h0, %h1; setp.ne.and.s32 %p0, %r0, %r2, !%p1;",           \
      !(ha < hb) && a != c)                                                                       \
    X(predicates, 'p',                                                                            \
      "setp.lt.s32 %p1, %r0, %r1; setp.lt.s32 %p2, %r1, %r2; xor.pred %p3, %p1, %p2;\n"           \
      "not.pred %p4, %p3; or.pred %p0, %p4, %p2;",                                                \
      !((sa < sb) ^ (sb < sc)) | (sb < sc))                                                       \
    X(guarded, 'r', "mov.b32 %r3, %r0; setp.gt.s32 %p1, %r1, 0; @!%p1 add.s32 %r3, %r3, 5;",      \
      sb > 0 ? a : (uint32_t)(a + 5))                                                             \
    X(carries, 'd',                                                                               \
      "mov.b64 {%r4, %r5}, %d0; mov.b64 {%r6, %r7}, %d1;\n"                                       \
      "add.cc.u32 %r4, %r4, %r6; addc.u32 %r5, %r5, %r7; mov.b64 %d3, {%r4, %r5};",               \
      da + db)                                                                                    \
    X(borrows, 'd',                                                                               \
      "mov.b64 {%r4, %r5}, %d0; mov.b64 {%r6, %r7}, %d1;\n"                                       \
      "sub.cc.u32 %r4, %r4, %r6; subc.u32 %r5, %r5, %r7; mov.b64 %d3, {%r4, %r5};",               \
      da - db)                                                                                    \
    X(mad_carries, 'd',                                                                           \
      "mov.b64 {%r4, %r5}, %d2; mad.lo.cc.u32 %r4, %r0, %r1, %r4;\n"                              \
      "madc.hi.u32 %r5, %r0, %r1, %r5; mov.b64 %d3, {%r4, %r5};",                                 \
      (uint64_t)a *b + dc)                                                                        \
    X(halves, 'r', "mov.b32 {%h4, %h5}, %r0; mov.b32 %r3, {%h5, %h4};", a >> 16 | a << 16)        \
    X(cvt_s8, 'r', "cvt.s32.s8 %r3, %r0;", (uint32_t)(int8_t)a)                                   \
    X(cvt_u16, 'd', "cvt.u64.u16 %d3, %h0;", ha)                                                  \
    X(cvt_s16, 'd', "cvt.s64.s16 %d3, %h0;", sha)                                                 \
    X(cvt_to_s8, 'r', "cvt.s8.s32 %r3, %r0;", (uint32_t)(int8_t)a)                                \
    X(cvt_sat_u8, 'r', "cvt.sat.u8.s32 %r3, %r0;", sa<0 ? 0 : sa> 255 ? 255 : sa)                 \
    X(cvt_sat_s32, 'r', "cvt.sat.s32.s64 %r3, %d0;",                                              \
      (uint32_t)(sda > INT32_MAX   ? INT32_MAX                                                    \
                 : sda < INT32_MIN ? INT32_MIN                                                    \
                                   : sda))                                                        \
    X(cvt_sat_u32, 'r', "cvt.sat.s32.u64 %r3, %d0;", da > INT32_MAX ? INT32_MAX : da)             \
    X(table, 'r',                                                                                 \
      "and.b32 %r4, %r0, 3; mov.u32 %r3, 9;\n"                                                    \
      "TABLE: .branchtargets A, B, C, B;\n brx.idx %r4, TABLE;\n"                                 \
      "A: mov.u32 %r3, 1; bra D; B: mov.u32 %r3, 2; bra D; C: mov.u32 %r3, 3; D:",                \
      (a & 3) == 0   ? 1                                                                          \
      : (a & 3) == 2 ? 3                                                                          \
                     : 2)                                                                         \
    X(loop, 'r',                                                                                  \
      "and.b32 %r4, %r0, 15; mov.u32 %r3, 0;\n"                                                   \
      "A: setp.eq.u32 %p1, %r4, 0; @%p1 bra B; add.u32 %r3, %r3, %r4; sub.u32 %r4, %r4, 1;\n"     \
      "bra.uni A; B:",                                                                            \
      (a & 15) * ((a & 15) + 1) / 2)                                                              \
    X(scopes, 'r',                                                                                \
      "mov.u32 %r3, %r0; { .reg .b32 %r3; mov.u32 %r3, 7; { .reg .pred p; setp.eq.s32 p, %r1,\n"  \
      "%r3; @p bra A; } bra B; A: mov.u32 %r0, 1; B: } add.u32 %r3, %r3, %r0;",                   \
      (uint32_t)(a + (b == 7 ? 1 : a)))

ROWS(ROWS_FUNCTION)
static const struct row rows[] = {ROWS(ROWS_ENTRY)};

START_TEST(integers_are_those_of_c)
{
    rows_run_all(rows, sizeof(rows) / sizeof(rows[0]));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ptx_integer");
    TCase *instructions = tcase_create("instructions");

    tcase_add_test(instructions, integers_are_those_of_c);
    suite_add_tcase(suite, instructions);
    return suite_run(suite);
}
