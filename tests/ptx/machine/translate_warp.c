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
