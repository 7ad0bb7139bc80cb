/* The translator's barriers, and what a warp does together. */
#include "tests/ptx/machine/translator.h"

#include <inttypes.h>
#include <string.h>

/* An exchange: "{ u32 in[] = {a, b}, out[4]; ...exchange(...); ". */
static void write_exchange(struct translator *tr, const char *kind, const char *mask,
                           const char *words)
{
    fprintf(tr->out,
            "{ u32 in[] = {%s}, out[4] = {0}; t->block->calls->exchange(t, PTX_%s, %s, in, out, "
            "%" PRIu32 "); ",
            words, kind, mask, tr->instruction->line);
}

/* "r1 = out[0]; }" and the like; the last closes the exchange. */
static bool write_result(struct translator *tr, unsigned position, unsigned n, unsigned bits,
                         const char *text)
{
    if (!assign(tr, operand(tr, position, n), bits)) {
        return false;
    }
    fprintf(tr->out, "%s; ", text);
    return true;
}

/* barrier.sync, bar.sync, bar.arrive, bar.red, bar.warp.sync. */
static bool reduce_barrier(struct translator *tr)
{
    const char *kind = take_part(tr, "popc")  ? "POPC"
                       : take_part(tr, "and") ? "AND"
                       : take_part(tr, "or")  ? "OR"
                                              : NULL;
    unsigned last = positions(tr) - 1;
    struct type type;
    const char *id, *count, *predicate;

    (void)take_part(tr, "aligned");
    if (kind == NULL || !take_type(tr, &type) || !is_taken(tr) || positions(tr) < 3 ||
        positions(tr) > 4) {
        return refuse(tr, "the instruction is not supported");
    }
    id = value(tr, operand(tr, 1, 0), 32);
    count = last == 3 ? value(tr, operand(tr, 2, 0), 32) : "0";
    predicate = value(tr, operand(tr, last, 0), 1);
    if (id == NULL || count == NULL || predicate == NULL ||
        !assign(tr, operand(tr, 0, 0), type.bits)) {
        return false;
    }
    fprintf(tr->out, "t->block->calls->barrier(t, PTX_BARRIER_%s, %s, %s, %s, %" PRIu32 ");", kind,
            id, count, predicate, tr->instruction->line);
    return true;
}

bool translate_barrier(struct translator *tr)
{
    bool arrives;
    const char *id, *count;

    if (take_part(tr, "warp")) {
        const char *mask = value(tr, operand(tr, 0, 0), 32);

        if (!take_part(tr, "sync") || !is_taken(tr) || mask == NULL) {
            return refuse(tr, "the instruction is not supported");
        }
        write_exchange(tr, "SYNC", mask, "0");
        fprintf(tr->out, "}");
        return true;
    }
    (void)take_part(tr, "cta");
    if (take_part(tr, "red")) {
        return reduce_barrier(tr);
    }
    arrives = take_part(tr, "arrive");
    if (!arrives && !take_part(tr, "sync")) {
        return refuse(tr, "the instruction is not supported");
    }
    (void)take_part(tr, "aligned");
    id = value(tr, operand(tr, 0, 0), 32);
    count = positions(tr) == 2 ? value(tr, operand(tr, 1, 0), 32) : "0";
    if (!is_taken(tr) || id == NULL || count == NULL) {
        return false;
    }
    if (arrives) {
        fprintf(tr->out, "t->block->calls->arrive(t, %s, %s, %" PRIu32 ");", id, count,
                tr->instruction->line);
    } else {
        fprintf(tr->out, "t->block->calls->barrier(t, PTX_BARRIER_SYNC, %s, %s, 0, %" PRIu32 ");",
                id, count, tr->instruction->line);
    }
    return true;
}

bool translate_shuffle(struct translator *tr)
{
    const char *kind = NULL;
    struct type type;
    const char *words[4];

    if (take_part(tr, "sync")) {
        kind = take_part(tr, "up")     ? "SHUFFLE_UP"
               : take_part(tr, "down") ? "SHUFFLE_DOWN"
               : take_part(tr, "bfly") ? "SHUFFLE_BFLY"
               : take_part(tr, "idx")  ? "SHUFFLE_IDX"
                                       : NULL;
    }
    if (kind == NULL || !take_type(tr, &type) || !is_taken(tr) || type.bits != 32 ||
        positions(tr) != 5) {
        return refuse(tr, "the instruction is not supported");
    }
    for (unsigned i = 0; i < 4; i++) {
        words[i] = value(tr, operand(tr, i + 1, 0), 32);
        if (words[i] == NULL) {
            return false;
        }
    }
    write_exchange(tr, kind, words[3], expression(tr, "%s, %s, %s", words[0], words[1], words[2]));
    if (!write_result(tr, 0, 0, 32, "out[0]") ||
        (operands_at(tr, 0) == 2 && !write_result(tr, 0, 1, 1, "(u8)out[1]"))) {
        return false;
    }
    fprintf(tr->out, "}");
    return true;
}

bool translate_vote(struct translator *tr)
{
    const char *kind;
    bool is_ballot;
    bool is_sync = take_part(tr, "sync");
    struct type type;
    const char *predicate = value(tr, operand(tr, 1, 0), 1);
    const char *mask = value(tr, operand(tr, 2, 0), 32);

    /* Code that was written by hand has the parts in either order. */
    kind = take_part(tr, "all")      ? "VOTE_ALL"
           : take_part(tr, "any")    ? "VOTE_ANY"
           : take_part(tr, "uni")    ? "VOTE_UNI"
           : take_part(tr, "ballot") ? "VOTE_BALLOT"
                                     : NULL;
    is_sync = take_part(tr, "sync") || is_sync;
    if (predicate == NULL || mask == NULL || kind == NULL || !is_sync || !take_type(tr, &type) ||
        !is_taken(tr)) {
        return refuse(tr, "the instruction is not supported");
    }
    is_ballot = strcmp(kind, "VOTE_BALLOT") == 0;
    write_exchange(tr, kind, mask, predicate);
    if (!write_result(tr, 0, 0, is_ballot ? 32 : 1, is_ballot ? "out[0]" : "(u8)out[0]")) {
        return false;
    }
    fprintf(tr->out, "}");
    return true;
}

bool translate_match(struct translator *tr)
{
    const char *kind = take_part(tr, "any")   ? "MATCH_ANY"
                       : take_part(tr, "all") ? "MATCH_ALL"
                                              : NULL;
    struct type type;
    const char *word, *mask;

    if (kind == NULL || !take_part(tr, "sync") || !take_type(tr, &type) || !is_taken(tr) ||
        (type.bits != 32 && type.bits != 64)) {
        return refuse(tr, "the instruction is not supported");
    }
    word = value_of_type(tr, operand(tr, 1, 0), &type);
    mask = value(tr, operand(tr, 2, 0), 32);
    if (word == NULL || mask == NULL) {
        return false;
    }
    write_exchange(tr, kind, mask, expression(tr, "(u32)%s, (u32)((u64)%s >> 32)", word, word));
    if (!write_result(tr, 0, 0, 32, "out[0]") ||
        (operands_at(tr, 0) == 2 && !write_result(tr, 0, 1, 1, "(u8)out[1]"))) {
        return false;
    }
    fprintf(tr->out, "}");
    return true;
}

bool translate_redux(struct translator *tr)
{
    static const struct {
        const char *operation;
        const char *type;
        const char *kind;
    } kinds[] = {
        {"add", "u32", "REDUX_ADD"},   {"add", "s32", "REDUX_ADD"},   {"min", "u32", "REDUX_MIN_U"},
        {"min", "s32", "REDUX_MIN_S"}, {"max", "u32", "REDUX_MAX_U"}, {"max", "s32", "REDUX_MAX_S"},
        {"and", "b32", "REDUX_AND"},   {"or", "b32", "REDUX_OR"},     {"xor", "b32", "REDUX_XOR"}};
    const char *word = value(tr, operand(tr, 1, 0), 32);
    const char *mask = value(tr, operand(tr, 2, 0), 32);

    if (word == NULL || mask == NULL || !take_part(tr, "sync") || tr->parts.count != 4) {
        return refuse(tr, "the instruction is not supported");
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (span_is(tr->parts.part[2], kinds[i].operation) &&
            span_is(tr->parts.part[3], kinds[i].type)) {
            write_exchange(tr, kinds[i].kind, mask, word);
            if (!write_result(tr, 0, 0, 32, "out[0]")) {
                return false;
            }
            fprintf(tr->out, "}");
            return true;
        }
    }
    return refuse(tr, "the instruction is not supported");
}

/* Which threads run together is not defined; here each runs alone. */
bool translate_activemask(struct translator *tr)
{
    struct type type;

    if (!take_type(tr, &type) || !is_taken(tr) || !assign(tr, operand(tr, 0, 0), 32)) {
        return false;
    }
    fprintf(tr->out, "1u << t->number %% 32;");
    return true;
}

bool translate_elect(struct translator *tr)
{
    const char *mask = value(tr, operand(tr, 1, 0), 32);

    if (mask == NULL || !take_part(tr, "sync") || !is_taken(tr)) {
        return refuse(tr, "the instruction is not supported");
    }
    write_exchange(tr, "ELECT", mask, "0");
    if (!write_result(tr, 0, 0, 32, "out[0]") ||
        (operands_at(tr, 0) == 2 && !write_result(tr, 0, 1, 1, "(u8)out[1]"))) {
        return false;
    }
    fprintf(tr->out, "}");
    return true;
}

/* ldmatrix. */
bool translate_tiles(struct translator *tr)
{
    unsigned count;
    bool is_turned;
    const char *at = address(tr, operand(tr, 1, 0));

    if (at == NULL || !take_part(tr, "sync") || !take_part(tr, "aligned") ||
        !take_part(tr, "m8n8")) {
        return refuse(tr, "the instruction is not supported");
    }
    count = take_part(tr, "x1") ? 1 : take_part(tr, "x2") ? 2 : take_part(tr, "x4") ? 4 : 0;
    is_turned = take_part(tr, "trans");
    if (count == 0 || !take_one_of(tr, "shared shared::cta") || !take_part(tr, "b16") ||
        !is_taken(tr) || operands_at(tr, 0) != count) {
        return refuse(tr, "the instruction is not supported");
    }
    /* Only the rows of the tiles that are loaded have addresses. */
    fprintf(tr->out,
            "{ u64 row = t->number %% 32 < %u ? (u64)at_shared(t, %s, 16, PTX_READ, %" PRIu32
            ") : 0; ",
            8 * count, at, tr->instruction->line);
    write_exchange(tr, expression(tr, "TILES_%u%s", count, is_turned ? "_TURNED" : ""), "~0u",
                   "(u32)row, (u32)(row >> 32)");
    for (unsigned i = 0; i < count; i++) {
        if (!write_result(tr, 0, i, 32, expression(tr, "out[%u]", i))) {
            return false;
        }
    }
    fprintf(tr->out, "} }");
    return true;
}

/* mma.sync with sums in f32. */
bool translate_product(struct translator *tr)
{
    static const struct {
        const char *opcode;
        const char *kind;
        unsigned a, b;
    } kinds[] = {
        {"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", "PRODUCT_BF16_8", 2, 1},
        {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "PRODUCT_BF16_16", 4, 2},
        {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "PRODUCT_F16_8", 2, 1},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "PRODUCT_F16_16", 4, 2},
        {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", "PRODUCT_TF32_4", 2, 1},
        {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "PRODUCT_TF32_8", 4, 2},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        unsigned counts[] = {4, kinds[i].a, kinds[i].b, 4};

        if (!span_is(tr->instruction->opcode, kinds[i].opcode)) {
            continue;
        }
        fprintf(tr->out, "{ u32 in[10] = {0}, out[4]; ");
        for (unsigned position = 1, at = 0; position < 4; position++) {
            for (unsigned j = 0; j < counts[position]; j++, at++) {
                const char *word = value(tr, operand(tr, position, j), 32);

                if (word == NULL) {
                    return false;
                }
                fprintf(tr->out, "in[%u] = %s; ",
                        position == 3   ? 6 + j
                        : position == 2 ? 4 + j
                                        : j,
                        word);
            }
        }
        fprintf(tr->out, "t->block->calls->exchange(t, PTX_%s, ~0u, in, out, %" PRIu32 "); ",
                kinds[i].kind, tr->instruction->line);
        for (unsigned j = 0; j < 4; j++) {
            if (!write_result(tr, 0, j, 32, expression(tr, "out[%u]", j))) {
                return false;
            }
        }
        fprintf(tr->out, "}");
        return true;
    }
    return refuse(tr, "the instruction is not supported");
}
