/*
 * Tests of instructions as rows: a piece of PTX, and the same in C. All rows of a file become one
 * module with a kernel per row, which runs over many operands.
 *
 * The PTX has its operands in %d0 to %d2, as 64 bits, in %r0 to %r2 their lower 32 and in %h0 to
 * %h2 their lower 16, and leaves its result in %d3, %r3, %h3 or %p0, as `width` says: 'd', 'r',
 * 'h', 'p'. The C has them as da, a, ha (unsigned), sda, sa, sha (signed), x (double) and f
 * (float).
 */
#ifndef CAPU_TESTS_PTX_MACHINE_ROWS_H
#define CAPU_TESTS_PTX_MACHINE_ROWS_H

#include "tests/ptx/machine/machine.h"
#include "tests/ptx/machine/prelude_bits.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct row {
    const char *name;
    char width;
    const char *text;
    uint64_t (*compute)(uint64_t a, uint64_t b, uint64_t c);
};

enum { ROWS_RANDOM = 300, ROWS_SPECIAL = 24, ROWS_THREADS = 64 };

#define ROWS_HEAD ".version 8.3\n.target sm_90\n.address_size 64\n"

#define ROWS_FUNCTION(name, width, text, expression)                              \
    static uint64_t compute_##name(uint64_t da, uint64_t db, uint64_t dc)         \
    {                                                                             \
        uint32_t a = (uint32_t)da, b = (uint32_t)db, c = (uint32_t)dc;            \
        uint16_t ha = (uint16_t)da, hb = (uint16_t)db, hc = (uint16_t)dc;         \
        int64_t sda = (int64_t)da, sdb = (int64_t)db, sdc = (int64_t)dc;          \
        int32_t sa = (int32_t)da, sb = (int32_t)db, sc = (int32_t)dc;             \
        int16_t sha = (int16_t)da, shb = (int16_t)db, shc = (int16_t)dc;          \
        float fa = f32_of(a), fb = f32_of(b), fc = f32_of(c);                     \
        double xa = f64_of(da), xb = f64_of(db), xc = f64_of(dc);                 \
        (void)a, (void)b, (void)c, (void)ha, (void)hb, (void)hc, (void)sda;       \
        (void)sdb, (void)sdc, (void)sa, (void)sb, (void)sc, (void)sha, (void)shb; \
        (void)shc, (void)fa, (void)fb, (void)fc, (void)xa, (void)xb, (void)xc;    \
        return (uint64_t)(expression);                                            \
    }
#define ROWS_ENTRY(name, width, text, expression) {#name, width, text, compute_##name},

static inline uint64_t rows_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline size_t rows_operands(uint64_t operands[][3])
{
    static const uint64_t special[ROWS_SPECIAL] = {
        0,
        1,
        2,
        31,
        32,
        63,
        64,
        255,
        UINT64_MAX,
        0x8000000000000000,
        0x7fffffffffffffff,
        0x80000000,
        0x7fffffff,
        0xffffffff,
        0x8000,
        0x3f8000003f800000, /* 1 and almost 1 */
        0xbf8000003f800000,
        0x40600000c0200000, /* 3.5 in the lower half is -2.5 */
        0x7ff000007f800000, /* infinity */
        0xfff00000ff800000,
        0x7ff800007fc00000, /* NaN */
        0x0000000100000001, /* subnormal */
        0x4f0000004f000000, /* 2^31 */
        0x4000000043e00000,
    };
    uint64_t state = 0x9e3779b97f4a7c15;
    size_t count = 0;

    for (size_t i = 0; i < ROWS_SPECIAL; i++) {
        for (size_t j = 0; j < ROWS_SPECIAL; j++) {
            operands[count][0] = special[i];
            operands[count][1] = special[j];
            operands[count++][2] = special[(i + 7 * j) % ROWS_SPECIAL];
        }
    }
    for (size_t i = 0; i < ROWS_RANDOM; i++) {
        for (size_t j = 0; j < 3; j++) {
            operands[count][j] = rows_random(&state);
        }
        count++;
    }
    return count;
}

static inline void rows_write_kernel(FILE *out, const struct row *row)
{
    fprintf(out,
            ".visible .entry %s(.param .u64 in, .param .u64 out, .param .u32 count)\n{\n"
            ".reg .pred %%p<8>; .reg .b16 %%h<12>; .reg .b32 %%r<16>; .reg .b64 %%d<16>;\n"
            "ld.param.u64 %%d8, [in]; ld.param.u64 %%d9, [out]; ld.param.u32 %%r9, [count];\n"
            "mov.u32 %%r8, %%ctaid.x; mov.u32 %%r10, %%ntid.x; mov.u32 %%r11, %%tid.x;\n"
            "mad.lo.u32 %%r8, %%r8, %%r10, %%r11; setp.ge.u32 %%p7, %%r8, %%r9;\n"
            "@%%p7 bra END; mul.wide.u32 %%d10, %%r8, 24; add.u64 %%d8, %%d8, %%d10;\n"
            "ld.global.u64 %%d0, [%%d8]; ld.global.u64 %%d1, [%%d8+8];\n"
            "ld.global.u64 %%d2, [%%d8+16];\n"
            "cvt.u32.u64 %%r0, %%d0; cvt.u32.u64 %%r1, %%d1; cvt.u32.u64 %%r2, %%d2;\n"
            "cvt.u16.u64 %%h0, %%d0; cvt.u16.u64 %%h1, %%d1; cvt.u16.u64 %%h2, %%d2;\n"
            "%s\n%s\nmul.wide.u32 %%d10, %%r8, 8; add.u64 %%d9, %%d9, %%d10;\n"
            "st.global.u64 [%%d9], %%d3;\nEND: ret;\n}\n",
            row->name, row->text,
            row->width == 'r'   ? "cvt.u64.u32 %d3, %r3;"
            : row->width == 'h' ? "cvt.u64.u16 %d3, %h3;"
            : row->width == 'p' ? "selp.b64 %d3, 1, 0, %p0;"
                                : "");
}

static inline struct machine_module *rows_open(const struct row *rows, size_t count)
{
    struct machine_module *module = NULL;
    struct error_text problem = {""};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    ck_assert_ptr_nonnull(out);
    fputs(ROWS_HEAD, out);
    for (size_t i = 0; i < count; i++) {
        rows_write_kernel(out, &rows[i]);
    }
    fclose(out);
    ck_assert_msg(machine_open(text, bytes, &module, &problem) == CAPU_OK, "%s", problem.text);
    free(text);
    return module;
}

static inline void rows_run(const struct machine_module *module, const struct row *row)
{
    static uint64_t operands[ROWS_SPECIAL * ROWS_SPECIAL + ROWS_RANDOM][3];
    static uint64_t results[ROWS_SPECIAL * ROWS_SPECIAL + ROWS_RANDOM];
    size_t count = rows_operands(operands);
    struct {
        const void *in;
        void *out;
        uint32_t count;
    } parameters = {operands, results, (uint32_t)count};
    struct machine_launch launch = {
        .grid = {(uint32_t)((count + ROWS_THREADS - 1) / ROWS_THREADS), 1, 1},
        .block = {ROWS_THREADS, 1, 1},
        .parameters = &parameters,
    };
    struct error_text problem = {""};

    ck_assert_msg(machine_run(machine_function_find(module, row->name), &launch, &problem) ==
                      CAPU_OK,
                  "%s", problem.text);
    for (size_t i = 0; i < count; i++) {
        uint64_t expected = row->compute(operands[i][0], operands[i][1], operands[i][2]);

        ck_assert_msg(
            results[i] == expected,
            "%s: %016" PRIx64 " %016" PRIx64 " %016" PRIx64 ": is %" PRIx64 ", should be %" PRIx64,
            row->text, operands[i][0], operands[i][1], operands[i][2], results[i], expected);
    }
}

static inline void rows_run_all(const struct row *rows, size_t count)
{
    struct machine_module *module = rows_open(rows, count);

    for (size_t i = 0; i < count; i++) {
        rows_run(module, &rows[i]);
    }
    machine_close(module);
}

#endif
