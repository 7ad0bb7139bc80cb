/* The translator's comparisons of pairs of 16 bits, and its conversions of formats of 8 bits. */
#include "tests/ptx/machine/translator.h"

#include <string.h>

static bool refuse_this(struct translator *tr)
{
    return refuse(tr, "the instruction is not supported");
}

/* Comparisons. */

struct pair_comparison {
    const char *name;
    const char *with; /* of the predicate that follows; "|" and 0 without one */
    struct type result, type;
};

/* Not "lo", "ls", "hi", "hs", which are of integers. */
static bool is_float_comparison(const char *name)
{
    return name[0] != 'h' && (name[0] != 'l' || name[1] == 'e' || name[1] == 't');
}

static bool take_pair(struct translator *tr, struct pair_comparison *comparison, bool has_result)
{
    comparison->name = take_comparison(tr);
    if (comparison->name == NULL) {
        return false;
    }
    comparison->with = take_part(tr, "and")   ? "&"
                       : take_part(tr, "or")  ? "|"
                       : take_part(tr, "xor") ? "^"
                                              : NULL;
    if ((has_result && !take_type(tr, &comparison->result)) || !take_type(tr, &comparison->type) ||
        !is_taken(tr)) {
        return false;
    }
    return (is_float_comparison(comparison->name) &&
            positions(tr) == (comparison->with == NULL ? 3 : 4)) ||
           refuse_this(tr);
}

/* "{ u32 a = ..., b = ...; u8 c = ..., p = lt_f16(...) | c, q = ...; ". */
static bool begin_pair(struct translator *tr, const struct pair_comparison *comparison)
{
    struct span half = {comparison->type.name.text, comparison->type.name.length - 2};
    const char *with = comparison->with == NULL ? "|" : comparison->with;
    const char *c = comparison->with == NULL ? "0" : value(tr, operand(tr, 3, 0), 1);

    fprintf(tr->out, "{ ");
    if (c == NULL || !keep(tr, "a", operand(tr, 1, 0), &comparison->type) ||
        !keep(tr, "b", operand(tr, 2, 0), &comparison->type)) {
        return false;
    }
    fprintf(tr->out,
            "u8 c = %s, p = %s_%.*s((u16)a, (u16)b) %s c, "
            "q = %s_%.*s((u16)(a >> 16), (u16)(b >> 16)) %s c; ",
            c, comparison->name, (int)half.length, half.text, with, comparison->name,
            (int)half.length, half.text, with);
    return true;
}

bool translate_set_pair(struct translator *tr)
{
    struct pair_comparison comparison;
    const char *one;

    if (!take_pair(tr, &comparison, true)) {
        return false;
    }
    one = span_is(comparison.result.name, "f16x2")    ? "0x3c00u"
          : span_is(comparison.result.name, "bf16x2") ? "0x3f80u"
          : span_is(comparison.result.name, "u32") || span_is(comparison.result.name, "s32")
              ? "0xffffu"
              : NULL;
    if (one == NULL) {
        return refuse_this(tr);
    }
    if (!begin_pair(tr, &comparison) || !assign(tr, operand(tr, 0, 0), 32)) {
        return false;
    }
    fprintf(tr->out, "(p ? %s : 0) | (q ? %s : 0) << 16; }", one, one);
    return true;
}

bool translate_setp_pair(struct translator *tr)
{
    struct pair_comparison comparison;

    if (!take_pair(tr, &comparison, false) || !begin_pair(tr, &comparison) ||
        !assign(tr, operand(tr, 0, 0), 1)) {
        return false;
    }
    fprintf(tr->out, "p; ");
    if (!assign(tr, operand(tr, 0, 1), 1)) {
        return false;
    }
    fprintf(tr->out, "q; }");
    return true;
}

/* Formats of 8 bits, always two. */

static const char *take_small(struct translator *tr)
{
    return take_part(tr, "e4m3x2") ? "e4m3" : take_part(tr, "e5m2x2") ? "e5m2" : NULL;
}

/* "to_e4m3(number)". */
static void write_small(struct translator *tr, const char *format, const char *number,
                        bool has_relu)
{
    fprintf(tr->out, has_relu ? "to_%s(not_negative(%s))" : "to_%s(%s)", format, number);
}

static bool to_small(struct translator *tr, const char *format, bool has_relu)
{
    const char *upper, *lower;

    if (take_part(tr, "f32")) {
        upper = value(tr, operand(tr, 1, 0), 32);
        lower = value(tr, operand(tr, 2, 0), 32);
        if (upper == NULL || lower == NULL) {
            return false;
        }
        upper = expression(tr, "from_f32(%s)", upper);
        lower = expression(tr, "from_f32(%s)", lower);
    } else if (take_part(tr, "f16x2") && positions(tr) == 2) {
        upper = value(tr, operand(tr, 1, 0), 32);
        if (upper == NULL) {
            return false;
        }
        lower = expression(tr, "from_f16((u16)(%s))", upper);
        upper = expression(tr, "from_f16((u16)(%s >> 16))", upper);
    } else {
        return refuse_this(tr);
    }
    if (!is_taken(tr) || !assign(tr, operand(tr, 0, 0), 16)) {
        return false;
    }
    fprintf(tr->out, "(u16)(");
    write_small(tr, format, upper, has_relu);
    fprintf(tr->out, " << 8 | ");
    write_small(tr, format, lower, has_relu);
    fprintf(tr->out, ");");
    return true;
}

static bool from_small(struct translator *tr, bool has_relu)
{
    const char *format = take_part(tr, "f16x2") ? take_small(tr) : NULL;
    const char *text = value(tr, operand(tr, 1, 0), 16);

    if (format == NULL || text == NULL || !is_taken(tr)) {
        return refuse_this(tr);
    }
    if (!assign(tr, operand(tr, 0, 0), 32)) {
        return false;
    }
    fprintf(tr->out, "%s(to_f16(from_%s((u8)(%s >> 8)), ROUND_RN) << 16 | ",
            has_relu ? "relu_f16x2" : "(u32)", format, text);
    fprintf(tr->out, "to_f16(from_%s((u8)%s), ROUND_RN));", format, text);
    return true;
}

bool translate_convert_small(struct translator *tr)
{
    bool is_finite, has_relu;
    const char *format;

    if (!take_part(tr, "rn")) {
        return refuse_this(tr);
    }
    is_finite = take_part(tr, "satfinite");
    has_relu = take_part(tr, "relu");
    format = take_small(tr);
    if (is_finite != (format != NULL)) {
        return refuse_this(tr);
    }
    return is_finite ? to_small(tr, format, has_relu) : from_small(tr, has_relu);
}
