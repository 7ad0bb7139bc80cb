/*
 * The translator's tiles and products of matrices, see matrix.h: ldmatrix, stmatrix, movmatrix, mma
 * and wmma. A product is known by its shape and its formats; what is not in the table is refused.
 */
#include "tests/ptx/machine/matrix.h"
#include "tests/ptx/machine/translator.h"

#include <inttypes.h>
#include <string.h>

static bool refuse_this(struct translator *tr)
{
    return refuse(tr, "the instruction is not supported");
}

/* Tiles. */

/* The parts of ldmatrix and stmatrix after their names. */
static bool take_tiles(struct translator *tr, unsigned *count, bool *is_turned)
{
    if (!take_part(tr, "sync") || !take_part(tr, "aligned") || !take_part(tr, "m8n8")) {
        return refuse_this(tr);
    }
    *count = take_part(tr, "x1") ? 1 : take_part(tr, "x2") ? 2 : take_part(tr, "x4") ? 4 : 0;
    *is_turned = take_part(tr, "trans");
    return (*count != 0 && take_one_of(tr, "shared shared::cta") && take_part(tr, "b16") &&
            tr->parts.at == tr->parts.count) ||
           refuse_this(tr);
}

/* "{ u32 in[] = {...}, out[4]; exchange; ". Only the rows of tiles that take part have addresses.
 */
static bool write_tiles(struct translator *tr, const struct ptx_operand *row, const char *kind,
                        unsigned count, bool is_turned, const char *words)
{
    const char *at = address(tr, row);

    if (at == NULL) {
        return false;
    }
    fprintf(
        tr->out,
        "{ u64 row = t->number %% 32 < %u ? (u64)at_shared(t, %s, 16, PTX_%s, %" PRIu32 ") : 0; ",
        8 * count, at, strcmp(kind, "TILES_LOAD") == 0 ? "READ" : "WRITE", tr->instruction->line);
    fprintf(tr->out,
            "u32 in[] = {%u, %d, (u32)row, (u32)(row >> 32)%s}, out[4]; "
            "t->block->calls->exchange(t, PTX_%s, ~0u, in, out, %" PRIu32 "); ",
            count, is_turned, words, kind, tr->instruction->line);
    return true;
}

bool translate_load_tiles(struct translator *tr)
{
    unsigned count;
    bool is_turned;

    if (!take_tiles(tr, &count, &is_turned)) {
        return false;
    }
    if (operands_at(tr, 0) != count) {
        return refuse_this(tr);
    }
    if (!write_tiles(tr, operand(tr, 1, 0), "TILES_LOAD", count, is_turned, "")) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        if (!assign(tr, operand(tr, 0, i), 32)) {
            return false;
        }
        fprintf(tr->out, "out[%u]; ", i);
    }
    fprintf(tr->out, "}");
    return true;
}

bool translate_store_tiles(struct translator *tr)
{
    unsigned count;
    bool is_turned;
    const char *words = "";

    if (!take_tiles(tr, &count, &is_turned)) {
        return false;
    }
    if (operands_at(tr, 1) != count) {
        return refuse_this(tr);
    }
    for (unsigned i = 0; i < count; i++) {
        const char *word = value(tr, operand(tr, 1, i), 32);

        if (word == NULL) {
            return false;
        }
        words = expression(tr, "%s, %s", words, word);
    }
    if (!write_tiles(tr, operand(tr, 0, 0), "TILES_STORE", count, is_turned, words)) {
        return false;
    }
    fprintf(tr->out, "}");
    return true;
}

bool translate_turn_tile(struct translator *tr)
{
    const char *word = value(tr, operand(tr, 1, 0), 32);

    if (word == NULL || !take_part(tr, "sync") || !take_part(tr, "aligned") ||
        !take_part(tr, "m8n8") || !take_part(tr, "trans") || !take_part(tr, "b16") ||
        !is_taken(tr)) {
        return refuse_this(tr);
    }
    fprintf(tr->out,
            "{ u32 in[] = {%s}, out[1]; t->block->calls->exchange(t, PTX_TILES_TURN, ~0u, in, out, "
            "%" PRIu32 "); ",
            word, tr->instruction->line);
    if (!assign(tr, operand(tr, 0, 0), 32)) {
        return false;
    }
    fprintf(tr->out, "out[0]; }");
    return true;
}

/* Products. */

static const struct {
    const char *name;
    enum ptx_format format;
} formats[] = {
    {"f16", PTX_F16},   {"bf16", PTX_BF16}, {"tf32", PTX_TF32}, {"e4m3", PTX_E4M3},
    {"e5m2", PTX_E5M2}, {"s8", PTX_S8},     {"u8", PTX_U8},     {"f32", PTX_F32},
    {"f64", PTX_F64},   {"s32", PTX_S32},
};

static bool take_format(struct translator *tr, uint32_t *format)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (take_part(tr, formats[i].name)) {
            *format = formats[i].format;
            return true;
        }
    }
    return refuse_this(tr);
}

/* By the formats of A and B: shapes as in the opcode, and formats of C and D. */
static const struct {
    uint32_t formats; /* bits */
    uint32_t sums;
    const char *mma, *wmma;
} products[] = {
    {1u << PTX_F16, 1u << PTX_F16 | 1u << PTX_F32, "m16n8k8 m16n8k16",
     "m16n16k16 m32n8k16 m8n32k16"},
    {1u << PTX_BF16, 1u << PTX_F32, "m16n8k8 m16n8k16", "m16n16k16 m32n8k16 m8n32k16"},
    {1u << PTX_TF32, 1u << PTX_F32, "m16n8k4 m16n8k8", "m16n16k8"},
    {1u << PTX_F64, 1u << PTX_F64, "m8n8k4 m16n8k4 m16n8k8 m16n8k16", "m8n8k4"},
    {1u << PTX_S8 | 1u << PTX_U8, 1u << PTX_S32, "m8n8k16 m16n8k16 m16n8k32",
     "m16n16k16 m32n8k16 m8n32k16"},
    {1u << PTX_E4M3 | 1u << PTX_E5M2, 1u << PTX_F16 | 1u << PTX_F32, "m16n8k16 m16n8k32", ""},
};

/* A shape that a table above names, which is taken: "m16n8k8". */
static bool take_shape(struct translator *tr, const char *shapes, struct ptx_product *product)
{
    char shape[16];
    struct span part =
        tr->parts.at < tr->parts.count ? tr->parts.part[tr->parts.at] : (struct span){"", 0};

    if (part.length >= sizeof(shape) || !take_one_of(tr, shapes)) {
        return false;
    }
    memcpy(shape, part.text, part.length);
    shape[part.length] = '\0';
    return sscanf(shape, "m%" SCNu32 "n%" SCNu32 "k%" SCNu32, &product->m, &product->n,
                  &product->k) == 3;
}

/* Whether there is such a product; its shape is taken. The order in which an opcode names shape and
   formats differs, so all formats are known by then. */
static bool take_known_shape(struct translator *tr, struct ptx_product *product, bool is_wmma)
{
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
        if ((products[i].formats >> product->formats[PTX_MATRIX_A] & 1) != 0 &&
            (products[i].formats >> product->formats[PTX_MATRIX_B] & 1) != 0 &&
            (products[i].sums >> product->formats[PTX_MATRIX_C] & 1) != 0 &&
            (products[i].sums >> product->formats[PTX_MATRIX_D] & 1) != 0) {
            return take_shape(tr, is_wmma ? products[i].wmma : products[i].mma, product) ||
                   refuse_this(tr);
        }
    }
    return refuse_this(tr);
}

/* Writes a product in braces for C. */
static void write_product(struct translator *tr, const struct ptx_product *product)
{
    fprintf(tr->out,
            "{%" PRIu32 ", %" PRIu32 ", %" PRIu32 ", {%" PRIu32 ", %" PRIu32 ", %" PRIu32
            ", %" PRIu32 "}, %" PRIu32 "}",
            product->m, product->n, product->k, product->formats[0], product->formats[1],
            product->formats[2], product->formats[3], product->saturates);
}

/* Registers of a matrix: those of the opcode can be more than its words, and repeat them. */
static bool check_registers(struct translator *tr, unsigned position,
                            const struct ptx_product *product, enum ptx_matrix which)
{
    uint32_t words = matrix_words(product, which);
    uint32_t registers = words / (matrix_format(product, which) == PTX_F64 ? 2 : 1);
    unsigned count = operands_at(tr, position);

    return count == registers ||
           (count == 8 && registers < 8 && which < PTX_MATRIX_C &&
            matrix_format(product, which) == PTX_F16 && product->m * product->n == 256) ||
           refuse_this(tr);
}

/* Sets words of `array` from the registers of a matrix. */
static bool write_words(struct translator *tr, unsigned position, const struct ptx_product *product,
                        enum ptx_matrix which, const char *array, uint32_t first)
{
    bool is_wide = matrix_format(product, which) == PTX_F64;

    if (!check_registers(tr, position, product, which)) {
        return false;
    }
    for (uint32_t i = 0; i < matrix_words(product, which); i++) {
        const char *word = value(tr, operand(tr, position, is_wide ? i / 2 : i), is_wide ? 64 : 32);

        if (word == NULL) {
            return false;
        }
        fprintf(tr->out, "%s[%" PRIu32 "] = (u32)(%s%s); ", array, first + i, word,
                is_wide && i % 2 == 1 ? " >> 32" : "");
    }
    return true;
}

/* Sets the registers of a matrix from words of `array`. */
static bool write_registers(struct translator *tr, unsigned position,
                            const struct ptx_product *product, enum ptx_matrix which,
                            const char *array)
{
    bool is_wide = matrix_format(product, which) == PTX_F64;
    uint32_t words = matrix_words(product, which);

    if (!check_registers(tr, position, product, which)) {
        return false;
    }
    for (uint32_t i = 0; i < operands_at(tr, position); i++) {
        if (!assign(tr, operand(tr, position, i), is_wide ? 64 : 32)) {
            return false;
        }
        if (is_wide) {
            fprintf(tr->out, "(u64)%s[%" PRIu32 "] << 32 | %s[%" PRIu32 "]; ", array, 2 * i + 1,
                    array, 2 * i);
        } else {
            fprintf(tr->out, "%s[%" PRIu32 "]; ", array, i % words);
        }
    }
    return true;
}

/* "{ struct { product; words } in; ...exchange...; d = out[0]; }". */
static bool write_multiply(struct translator *tr, const struct ptx_product *product)
{
    uint32_t a = matrix_words(product, PTX_MATRIX_A);
    uint32_t b = matrix_words(product, PTX_MATRIX_B);
    uint32_t c = matrix_words(product, PTX_MATRIX_C);

    if (positions(tr) != 4) {
        return refuse_this(tr);
    }
    fprintf(tr->out, "{ struct { struct ptx_product product; u32 words[%" PRIu32 "]; } in = {",
            a + b + c);
    write_product(tr, product);
    fprintf(tr->out, "}; u32 out[%d]; ", MATRIX_WORDS_MOST);
    if (!write_words(tr, 1, product, PTX_MATRIX_A, "in.words", 0) ||
        !write_words(tr, 2, product, PTX_MATRIX_B, "in.words", a) ||
        !write_words(tr, 3, product, PTX_MATRIX_C, "in.words", a + b)) {
        return false;
    }
    fprintf(tr->out,
            "t->block->calls->exchange(t, PTX_PRODUCT, ~0u, (const u32 *)&in, out, %" PRIu32 "); ",
            tr->instruction->line);
    if (!write_registers(tr, 0, product, PTX_MATRIX_D, "out")) {
        return false;
    }
    fprintf(tr->out, "}");
    return true;
}

/* Takes what comes after the shape, and then the shape. */
static bool take_product(struct translator *tr, struct ptx_product *product, bool is_wmma)
{
    unsigned shape = tr->parts.at++;
    unsigned end;

    if (!is_wmma && (!take_part(tr, "row") || !take_part(tr, "col"))) {
        return refuse_this(tr);
    }
    product->saturates = take_part(tr, "satfinite");
    if (!take_format(tr, &product->formats[PTX_MATRIX_D]) ||
        !take_format(tr, &product->formats[PTX_MATRIX_A])) {
        return false;
    }
    if (is_wmma && tr->parts.at == tr->parts.count) { /* D and C are named alone */
        product->formats[PTX_MATRIX_C] = product->formats[PTX_MATRIX_A];
        product->formats[PTX_MATRIX_A] = product->formats[PTX_MATRIX_B] = PTX_F16;
    } else if (!take_format(tr, &product->formats[PTX_MATRIX_B]) ||
               !take_format(tr, &product->formats[PTX_MATRIX_C])) {
        return false;
    }
    (void)(product->formats[PTX_MATRIX_D] == PTX_F64 && take_part(tr, "rn"));
    product->saturates |= is_wmma && take_part(tr, "satfinite");
    if (!is_taken(tr) || (product->saturates && product->formats[PTX_MATRIX_D] != PTX_S32)) {
        return refuse_this(tr);
    }
    end = tr->parts.at;
    tr->parts.at = shape;
    if (!take_known_shape(tr, product, is_wmma)) {
        return false;
    }
    tr->parts.at = end;
    return true;
}

bool translate_product(struct translator *tr)
{
    struct ptx_product product = {0};

    return ((take_part(tr, "sync") && take_part(tr, "aligned")) || refuse_this(tr)) &&
           take_product(tr, &product, false) && write_multiply(tr, &product);
}

/* wmma. */

/* The parts of a load or store after the name of the matrix. A matrix of sums stands for all
   products of its shape; for the other formats any that go with it do. */
static bool take_access(struct translator *tr, struct ptx_fragment *fragment)
{
    struct ptx_product *product = &fragment->product;
    unsigned shape, end;
    uint32_t format;

    if (!take_part(tr, "sync") || !take_part(tr, "aligned")) {
        return refuse_this(tr);
    }
    fragment->is_by_rows = take_part(tr, "row");
    if (!fragment->is_by_rows && !take_part(tr, "col")) {
        return refuse_this(tr);
    }
    shape = tr->parts.at++;
    fragment->is_shared = take_one_of(tr, "shared shared::cta");
    if (!fragment->is_shared) {
        (void)take_part(tr, "global");
    }
    if (!take_format(tr, &format) || !is_taken(tr)) {
        return false;
    }
    end = tr->parts.at;
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
        bool is_sum = fragment->which >= PTX_MATRIX_C;

        tr->parts.at = shape;
        if (((is_sum ? products[i].sums : products[i].formats) >> format & 1) != 0 &&
            take_shape(tr, products[i].wmma, product)) {
            for (unsigned j = 0; j < 4; j++) {
                product->formats[j] = format;
            }
            tr->parts.at = end;
            return true;
        }
    }
    return refuse_this(tr);
}

/* "struct ptx_fragment m = {...}; u32 words[16]; ". */
static bool write_fragment(struct translator *tr, const struct ptx_fragment *fragment,
                           unsigned position, unsigned stride_position)
{
    static const char *const names[] = {"PTX_MATRIX_A", "PTX_MATRIX_B", "PTX_MATRIX_C",
                                        "PTX_MATRIX_D"};
    const char *at = address(tr, operand(tr, position, 0));
    const char *stride =
        positions(tr) == stride_position
            ? expression(tr, "%" PRIu32,
                         fragment->is_by_rows ? matrix_columns(&fragment->product, fragment->which)
                                              : matrix_rows(&fragment->product, fragment->which))
            : value(tr, operand(tr, stride_position, 0), 32);

    if (at == NULL || stride == NULL) {
        return false;
    }
    fprintf(tr->out, "struct ptx_fragment m = {");
    write_product(tr, &fragment->product);
    fprintf(tr->out, ", %s, %d, %d, %s, %s}; u32 words[%d]; ", names[fragment->which],
            fragment->is_by_rows, fragment->is_shared, at, stride, MATRIX_WORDS_MOST);
    return true;
}

static bool translate_load_fragment(struct translator *tr)
{
    struct ptx_fragment fragment = {.which = take_part(tr, "a")   ? PTX_MATRIX_A
                                             : take_part(tr, "b") ? PTX_MATRIX_B
                                                                  : PTX_MATRIX_C};

    if (fragment.which == PTX_MATRIX_C && !take_part(tr, "c")) {
        return refuse_this(tr);
    }
    if (!take_access(tr, &fragment)) {
        return false;
    }
    fprintf(tr->out, "{ ");
    if (!write_fragment(tr, &fragment, 1, 2)) {
        return false;
    }
    fprintf(tr->out, "t->block->calls->load_fragment(t, &m, words, %" PRIu32 "); ",
            tr->instruction->line);
    if (!write_registers(tr, 0, &fragment.product, fragment.which, "words")) {
        return false;
    }
    fprintf(tr->out, "}");
    return true;
}

static bool translate_store_fragment(struct translator *tr)
{
    struct ptx_fragment fragment = {.which = PTX_MATRIX_D};

    if (!take_part(tr, "d")) {
        return refuse_this(tr);
    }
    if (!take_access(tr, &fragment)) {
        return false;
    }
    fprintf(tr->out, "{ ");
    if (!write_fragment(tr, &fragment, 0, 2) ||
        !write_words(tr, 1, &fragment.product, PTX_MATRIX_D, "words", 0)) {
        return false;
    }
    fprintf(tr->out, "t->block->calls->store_fragment(t, &m, words, %" PRIu32 "); }",
            tr->instruction->line);
    return true;
}

bool translate_fragment(struct translator *tr)
{
    struct ptx_product product = {0};

    if (take_part(tr, "load")) {
        return translate_load_fragment(tr);
    }
    if (take_part(tr, "store")) {
        return translate_store_fragment(tr);
    }
    /* Fragments are the same for both layouts in memory. */
    return ((take_part(tr, "mma") && take_part(tr, "sync") && take_part(tr, "aligned") &&
             take_one_of(tr, "row col") && take_one_of(tr, "row col")) ||
            refuse_this(tr)) &&
           take_product(tr, &product, true) && write_multiply(tr, &product);
}
