/*
 * Products of matrices by a warp, and tiles. All items are small whole numbers, so that products
 * are exact in every format and order; one test has numbers that are not.
 */
#include "tests/ptx/machine/machine.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.4\n.target sm_90\n.address_size 64\n"

enum format { F16, BF16, TF32, E4M3, E5M2, S8, U8, F32, S32, F64 };

static const char *const names[] = {"f16", "bf16", "tf32", "e4m3", "e5m2",
                                    "s8",  "u8",   "f32",  "s32",  "f64"};
static const unsigned sizes[] = {2, 2, 4, 1, 1, 1, 1, 4, 4, 8};

struct product {
    unsigned m, n, k;
    enum format a, b, sum;
};

/* Whole numbers from -3 to 3 for A and B, or from 0 to 6 without a sign. */
static int item(enum format format, unsigned row, unsigned column)
{
    return (int)((row + 2 * column + row * column / 5) % 7) - (format == U8 ? 0 : 3);
}

static int sum_item(unsigned row, unsigned column)
{
    return (int)(row * 3 + column) - 20;
}

static double expected(const struct product *product, unsigned row, unsigned column)
{
    int sum = sum_item(row, column);

    for (unsigned k = 0; k < product->k; k++) {
        sum += item(product->a, row, k) * item(product->b, column, k);
    }
    return sum;
}

/* A small whole number as a float of that many bits for exponent and fraction. */
static uint32_t small_float(int value, unsigned exponent, unsigned fraction)
{
    float real = (float)value;
    uint32_t bits;

    memcpy(&bits, &real, sizeof(bits));
    if (value == 0) {
        return 0;
    }
    return (bits >> 31) << (exponent + fraction) |
           ((bits >> 23 & 255) - 127 + (1u << (exponent - 1)) - 1) << fraction |
           (bits & 0x7fffff) >> (23 - fraction);
}

static void put(unsigned char *at, enum format format, int value)
{
    double wide = value;
    uint32_t bits = (uint32_t)value;

    switch (format) {
    case F16:
        bits = small_float(value, 5, 10);
        break;
    case BF16:
        bits = small_float(value, 8, 7);
        break;
    case E4M3:
        bits = small_float(value, 4, 3);
        break;
    case E5M2:
        bits = small_float(value, 5, 2);
        break;
    case TF32:
    case F32:
        bits = small_float(value, 8, 23);
        break;
    case F64:
        memcpy(at, &wide, sizeof(wide));
        return;
    case S8:
    case U8:
    case S32:
        break;
    }
    memcpy(at, &bits, sizes[format]);
}

static void check(const struct product *product, const unsigned char *found, unsigned row,
                  unsigned column, const char *text)
{
    unsigned char wanted[8];

    put(wanted, product->sum, (int)expected(product, row, column));
    ck_assert_msg(memcmp(found, wanted, sizes[product->sum]) == 0,
                  "%s, %s: row %u column %u is not %g", text, names[product->a], row, column,
                  expected(product, row, column));
}

static struct machine_module *open_text(char *text)
{
    struct machine_module *module = NULL;
    struct error_text problem = {""};

    ck_assert_msg(machine_open(text, strlen(text), &module, &problem) == CAPU_OK, "%s",
                  problem.text);
    free(text);
    return module;
}

static void run(const struct machine_module *module, const char *name, void *memory)
{
    struct machine_launch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .parameters = &memory};
    struct error_text problem = {""};

    ck_assert_msg(machine_run(machine_function_find(module, name), &launch, &problem) == CAPU_OK,
                  "%s: %s", name, problem.text);
}

/* mma: its fragments are as PTX defines them. */

static const struct product mmas[] = {
    {16, 8, 8, F16, F16, F32},    {16, 8, 16, F16, F16, F32},  {16, 8, 8, F16, F16, F16},
    {16, 8, 16, F16, F16, F16},   {16, 8, 8, BF16, BF16, F32}, {16, 8, 16, BF16, BF16, F32},
    {16, 8, 4, TF32, TF32, F32},  {16, 8, 8, TF32, TF32, F32}, {8, 8, 16, S8, S8, S32},
    {16, 8, 16, U8, S8, S32},     {16, 8, 32, S8, U8, S32},    {8, 8, 4, F64, F64, F64},
    {16, 8, 4, F64, F64, F64},    {16, 8, 16, F64, F64, F64},  {16, 8, 32, E4M3, E5M2, F32},
    {16, 8, 32, E5M2, E4M3, F16},
};
enum { MMAS = sizeof(mmas) / sizeof(mmas[0]), LANE_BYTES = 256, PART_BYTES = 64 };

/* Registers of a part of the lane's memory: "{%r0, %r1}". */
static void write_registers(FILE *out, unsigned part, unsigned bytes, bool is_wide)
{
    for (unsigned i = 0; i < bytes / (is_wide ? 8 : 4); i++) {
        fprintf(out, "%s%%%c%u", i == 0 ? "{" : ", ", is_wide ? 'd' : 'r', part * 16 + i);
    }
    fprintf(out, "}");
}

static unsigned part_bytes(const struct product *product, unsigned part)
{
    return part == 0   ? product->m * product->k * sizes[product->a] / 32
           : part == 1 ? product->k * product->n * sizes[product->b] / 32
                       : product->m * product->n * sizes[product->sum] / 32;
}

static void write_mma(FILE *out, unsigned index)
{
    const struct product *product = &mmas[index];
    bool is_wide = product->sum == F64;
    char letter = is_wide ? 'd' : 'r';
    unsigned step = is_wide ? 8 : 4;

    fprintf(out,
            ".visible .entry mma%u(.param .u64 memory)\n{\n.reg .b32 %%r<64>, %%lane;\n"
            ".reg .b64 %%d<64>, %%at, %%by; ld.param.u64 %%at, [memory];\n"
            "mov.u32 %%lane, %%laneid; mul.wide.u32 %%by, %%lane, %d; add.u64 %%at, %%at, %%by;\n",
            index, LANE_BYTES);
    for (unsigned part = 0; part < 3; part++) {
        for (unsigned i = 0; i < part_bytes(product, part) / step; i++) {
            fprintf(out, "ld.global.b%u %%%c%u, [%%at+%u];\n", 8 * step, letter, part * 16 + i,
                    part * PART_BYTES + i * step);
        }
    }
    fprintf(out, "mma.sync.aligned.m%un%uk%u.row.col.%s.%s.%s.%s ", product->m, product->n,
            product->k, names[product->sum], names[product->a], names[product->b],
            names[product->sum]);
    for (unsigned i = 0; i < 4; i++) {
        unsigned part = (i + 3) % 4;

        write_registers(out, part, part_bytes(product, part), is_wide);
        fprintf(out, i < 3 ? ", " : ";\n");
    }
    for (unsigned i = 0; i < part_bytes(product, 3) / step; i++) {
        fprintf(out, "st.global.b%u [%%at+%u], %%%c%u;\n", 8 * step, 3 * PART_BYTES + i * step,
                letter, 48 + i);
    }
    fprintf(out, "ret; }\n");
}

/* The items of a lane: of A, words go from 8 rows to the next 8 first. */
static void fill_lane(const struct product *product, unsigned char *memory, unsigned lane)
{
    unsigned run = sizes[product->a] < 4 ? 4 / sizes[product->a] : 1;

    for (unsigned i = 0; i < product->m * product->k / 32; i++) {
        unsigned row = i / run % (product->m / 8) * 8 + lane / 4;
        unsigned k = i / run / (product->m / 8) * 4 * run + lane % 4 * run + i % run;

        put(memory + i * sizes[product->a], product->a, item(product->a, row, k));
    }
    for (unsigned i = 0; i < product->k * product->n / 32; i++) {
        unsigned k = i / run * 4 * run + lane % 4 * run + i % run;

        put(memory + PART_BYTES + i * sizes[product->b], product->b, item(product->b, lane / 4, k));
    }
    for (unsigned i = 0; i < product->m * product->n / 32; i++) {
        put(memory + 2 * PART_BYTES + i * sizes[product->sum], product->sum,
            sum_item(i / 2 * 8 + lane / 4, lane % 4 * 2 + i % 2));
    }
}

START_TEST(mma_multiplies_fragments)
{
    static _Alignas(16) unsigned char memory[32][LANE_BYTES];
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    struct machine_module *module;

    ck_assert_ptr_nonnull(out);
    fputs(HEAD, out);
    for (unsigned i = 0; i < MMAS; i++) {
        write_mma(out, i);
    }
    fclose(out);
    module = open_text(text);
    for (unsigned i = 0; i < MMAS; i++) {
        const struct product *product = &mmas[i];
        char name[16];

        memset(memory, 0, sizeof(memory));
        for (unsigned lane = 0; lane < 32; lane++) {
            fill_lane(product, memory[lane], lane);
        }
        snprintf(name, sizeof(name), "mma%u", i);
        run(module, name, memory);
        for (unsigned lane = 0; lane < 32; lane++) {
            for (unsigned j = 0; j < product->m * product->n / 32; j++) {
                check(product, memory[lane] + 3 * PART_BYTES + j * sizes[product->sum],
                      j / 2 * 8 + lane / 4, lane % 4 * 2 + j % 2, name);
            }
        }
    }
    machine_close(module);
}
END_TEST

/* wmma: matrices in memory, by rows or columns, with gaps between them. */

static const struct product wmmas[] = {
    {16, 16, 16, F16, F16, F32},   {32, 8, 16, F16, F16, F16},   {8, 32, 16, F16, F16, F32},
    {16, 16, 16, BF16, BF16, F32}, {32, 8, 16, BF16, BF16, F32}, {8, 32, 16, BF16, BF16, F32},
    {16, 16, 8, TF32, TF32, F32},  {16, 16, 16, S8, S8, S32},    {32, 8, 16, U8, U8, S32},
    {8, 32, 16, S8, S8, S32},      {8, 8, 4, F64, F64, F64},
};
enum { WMMAS = sizeof(wmmas) / sizeof(wmmas[0]), MATRIX_BYTES = 8192, GAP = 8 };

/* Bit `part` of the product's number: whether A, B or C and D are by columns. */
static bool is_by_columns(unsigned index, unsigned part)
{
    return (index >> (part < 2 ? part : 2) & 1) != 0;
}

static unsigned part_rows(const struct product *product, unsigned part)
{
    return part == 1 ? product->k : product->m;
}

static unsigned part_columns(const struct product *product, unsigned part)
{
    return part == 0 ? product->k : product->n;
}

static enum format part_format(const struct product *product, unsigned part)
{
    return part == 0 ? product->a : part == 1 ? product->b : product->sum;
}

static unsigned part_stride(unsigned index, unsigned part)
{
    return GAP + (is_by_columns(index, part) ? part_rows(&wmmas[index], part)
                                             : part_columns(&wmmas[index], part));
}

static unsigned wmma_bytes(const struct product *product, unsigned part)
{
    return part < 2 && product->a == F16 ? 32 : part_bytes(product, part);
}

/* wmma.load.a and so on, and wmma.store.d. */
static void write_access(FILE *out, unsigned index, unsigned part)
{
    const struct product *product = &wmmas[index];
    bool is_wide = product->sum == F64;

    fprintf(out, "wmma.%s.%c.sync.aligned.%s.m%un%uk%u.global.%s ", part < 3 ? "load" : "store",
            (char)('a' + part), is_by_columns(index, part) ? "col" : "row", product->m, product->n,
            product->k, names[part_format(product, part)]);
    if (part < 3) {
        write_registers(out, part, wmma_bytes(product, part), is_wide);
        fprintf(out, ", ");
    }
    fprintf(out, "[%%at+%u]", part * MATRIX_BYTES);
    if (part == 3) {
        fprintf(out, ", ");
        write_registers(out, part, wmma_bytes(product, part), is_wide);
    }
    fprintf(out, ", %u;\n", part_stride(index, part));
}

static void write_wmma(FILE *out, unsigned index)
{
    const struct product *product = &wmmas[index];

    fprintf(out,
            ".visible .entry wmma%u(.param .u64 memory)\n{\n.reg .b32 %%r<64>;\n"
            ".reg .b64 %%d<64>, %%at; ld.param.u64 %%at, [memory];\n",
            index);
    for (unsigned part = 0; part < 3; part++) {
        write_access(out, index, part);
    }
    fprintf(out, "wmma.mma.sync.aligned.%s.%s.m%un%uk%u.%s",
            is_by_columns(index, 0) ? "col" : "row", is_by_columns(index, 1) ? "col" : "row",
            product->m, product->n, product->k, names[product->sum]);
    if (product->a != F16) {
        fprintf(out, ".%s.%s", names[product->a], names[product->b]);
    }
    fprintf(out, ".%s%s ", names[product->sum], product->sum == F64 ? ".rn" : "");
    for (unsigned i = 0; i < 4; i++) {
        unsigned part = (i + 3) % 4;

        write_registers(out, part, wmma_bytes(product, part), product->sum == F64);
        fprintf(out, i < 3 ? ", " : ";\n");
    }
    write_access(out, index, 3);
    fprintf(out, "ret; }\n");
}

static unsigned char *place(unsigned char *memory, unsigned index, unsigned part, unsigned row,
                            unsigned column)
{
    unsigned outer = is_by_columns(index, part) ? column : row;
    unsigned inner = is_by_columns(index, part) ? row : column;

    return memory + part * MATRIX_BYTES +
           (outer * part_stride(index, part) + inner) * sizes[part_format(&wmmas[index], part)];
}

static void fill_matrices(unsigned char *memory, unsigned index)
{
    const struct product *product = &wmmas[index];

    for (unsigned part = 0; part < 3; part++) {
        for (unsigned row = 0; row < part_rows(product, part); row++) {
            for (unsigned column = 0; column < part_columns(product, part); column++) {
                put(place(memory, index, part, row, column), part_format(product, part),
                    part == 0   ? item(product->a, row, column)
                    : part == 1 ? item(product->b, column, row)
                                : sum_item(row, column));
            }
        }
    }
}

START_TEST(wmma_multiplies_matrices)
{
    static _Alignas(32) unsigned char memory[4 * MATRIX_BYTES];
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    struct machine_module *module;

    ck_assert_ptr_nonnull(out);
    fputs(HEAD, out);
    for (unsigned i = 0; i < WMMAS; i++) {
        write_wmma(out, i);
    }
    fclose(out);
    module = open_text(text);
    for (unsigned i = 0; i < WMMAS; i++) {
        char name[16];

        memset(memory, 0x55, sizeof(memory));
        fill_matrices(memory, i);
        snprintf(name, sizeof(name), "wmma%u", i);
        run(module, name, memory);
        for (unsigned row = 0; row < wmmas[i].m; row++) {
            for (unsigned column = 0; column < wmmas[i].n; column++) {
                check(&wmmas[i], place(memory, i, 3, row, column), row, column, name);
            }
        }
        /* What lies between the rows stays. */
        ck_assert_uint_eq(place(memory, i, 3, 0, 0)[(part_stride(i, 3) - 1) * sizes[wmmas[i].sum]],
                          0x55);
    }
    machine_close(module);
}
END_TEST

/* Sums of f32 are rounded after each product, in order of k; those of wmma go through shared
   memory. Tiles: each item is its row, of all four tiles, times 8 plus its column. */
static const char others[] = HEAD
    ".visible .entry order(.param .u64 memory)\n{ .reg .b32 %a<4>, %b<2>, %lane; .reg .f32 %s<4>;\n"
    ".reg .b64 %at, %by; .reg .pred %p; ld.param.u64 %at, [memory]; mov.u32 %lane, %laneid;\n"
    /* Each row of A: 1, 1, 0, 0, -1 and zeros; B: 2^24, 1, 0, 0, 2^24 and zeros. */
    "and.b32 %lane, %lane, 3; mov.b32 %a0, 0; mov.b32 %b0, 0; setp.eq.u32 %p, %lane, 0;\n"
    "@%p mov.b32 %a0, 0x3f803f80; @%p mov.b32 %b0, 0x3f804b80; setp.eq.u32 %p, %lane, 2;\n"
    "@%p mov.b32 %a0, 0xbf80; @%p mov.b32 %b0, 0x4b80; mov.b32 %a1, %a0;\n"
    "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%s0, %s1, %s2, %s3}, {%a0, %a1}, {%b0},\n"
    "{0f00000000, 0f3f800000, 0f00000000, 0f40400000}; mov.u32 %lane, %laneid;\n"
    "mul.wide.u32 %by, %lane, 16; add.u64 %at, %at, %by;\n"
    "st.global.v4.f32 [%at], {%s0, %s1, %s2, %s3}; ret; }\n"
    ".visible .entry round(.param .u64 memory)\n{ .reg .f32 %f<8>; .reg .b64 %at, %to;\n"
    ".shared .align 32 .b8 s[1024]; .reg .b32 %s; mov.u32 %s, s;\n"
    "ld.param.u64 %at, [memory];\n"
    "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7},\n"
    "[%at]; wmma.store.d.sync.aligned.col.m16n16k16.shared.f32 [%s], {%f0, %f1, %f2, %f3, %f4,\n"
    "%f5, %f6, %f7}, 16; cvta.shared.u64 %to, s;\n"
    "wmma.load.c.sync.aligned.row.m16n16k16.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%to];\n"
    "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%at+1024], {%f0, %f1, %f2, %f3, %f4,\n"
    "%f5, %f6, %f7}; ret; }\n"
    ".visible .entry tiles(.param .u64 memory)\n{ .reg .pred %p; .reg .b32 %r<16>, %lane;\n"
    ".reg .b64 %at, %by; .shared .align 16 .b8 s[1024]; ld.param.u64 %at, [memory];\n"
    "mov.u32 %lane, %laneid; shl.b32 %r4, %lane, 4; mov.u32 %r5, s; add.u32 %r4, %r4, %r5;\n"
    "mov.u32 %r6, 0;\n"
    "A: shl.b32 %r7, %r6, 1; add.u32 %r7, %r7, %r4; shl.b32 %r8, %lane, 3;\n"
    "add.u32 %r8, %r8, %r6; st.shared.u16 [%r7], %r8; add.u32 %r6, %r6, 1;\n"
    "setp.lt.u32 %p, %r6, 8; @%p bra A; bar.sync 0;\n"
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%r4];\n"
    "movmatrix.sync.aligned.m8n8.trans.b16 %r9, %r1;\n"
    "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r4+512], {%r0, %r1, %r2, %r3};\n"
    "stmatrix.sync.aligned.m8n8.x1.shared::cta.b16 [%r4], {%r9}; bar.warp.sync -1;\n"
    "mul.wide.u32 %by, %lane, 32; add.u64 %at, %at, %by; ld.shared.u32 %r9, [%r4+4];\n"
    "ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%r4+512];\n"
    "st.global.v4.u32 [%at], {%r0, %r1, %r2, %r3}; st.global.u32 [%at+16], %r9; ret; }\n";

START_TEST(sums_are_rounded_in_order_of_k)
{
    static float sums[32][4];
    struct machine_module *module = open_text(strdup(others));

    run(module, "order", sums);
    for (unsigned lane = 0; lane < 32; lane++) {
        /* 2^24 + 1 is 2^24; 1 + 2^24 + 1 too; but 3 + 2^24 is even. */
        ck_assert(sums[lane][0] == 0.0f && sums[lane][1] == 0.0f);
        ck_assert(sums[lane][2] == 0.0f && sums[lane][3] == 4.0f);
    }
    machine_close(module);
}
END_TEST

START_TEST(fragments_go_through_shared_memory)
{
    static _Alignas(32) float items[2][16][16];
    struct machine_module *module = open_text(strdup(others));

    for (unsigned i = 0; i < 256; i++) {
        items[0][i / 16][i % 16] = (float)i;
    }
    run(module, "round", items);
    for (unsigned i = 0; i < 256; i++) {
        ck_assert(items[1][i / 16][i % 16] == items[0][i % 16][i / 16]);
    }
    machine_close(module);
}
END_TEST

START_TEST(tiles_are_stored_and_turned)
{
    static uint32_t words[32][8];
    struct machine_module *module = open_text(strdup(others));

    run(module, "tiles", words);
    for (uint32_t row = 0; row < 32; row++) {
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t low = (row / 8 * 8 + 2 * i) * 8 + row % 8;

            ck_assert_uint_eq(words[row][i], low | (low + 8) << 16);
        }
        if (row < 8) { /* the second tile, over the first */
            uint32_t low = (8 + 2) * 8 + row;

            ck_assert_uint_eq(words[row][4], low | (low + 8) << 16);
        }
    }
    machine_close(module);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ptx_matrix");
    TCase *matrices = tcase_create("matrices");

    tcase_add_test(matrices, mma_multiplies_fragments);
    tcase_add_test(matrices, wmma_multiplies_matrices);
    tcase_add_test(matrices, sums_are_rounded_in_order_of_k);
    tcase_add_test(matrices, fragments_go_through_shared_memory);
    tcase_add_test(matrices, tiles_are_stored_and_turned);
    suite_add_tcase(suite, matrices);
    return suite_run(suite);
}
