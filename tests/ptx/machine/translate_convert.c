/* The translator's conversions, comparisons, carries and dot products. */
#include "tests/ptx/machine/translator.h"

#include <string.h>

/* Comparisons. */

const char *take_comparison(struct translator *tr)
{
    static const char *const names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",
                                        "equ", "neu", "ltu", "leu", "gtu", "geu",
                                        "num", "nan", "lo",  "ls",  "hi",  "hs"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (take_part(tr, names[i])) {
            return names[i];
        }
    }
    (void)refuse(tr, "the instruction is not supported");
    return NULL;
}

/* Whether the prelude compares numbers of the type like this. */
static bool is_comparable(const char *comparison, const struct type *type)
{
    bool is_equality = strcmp(comparison, "eq") == 0 || strcmp(comparison, "ne") == 0;
    bool is_ordering = strcmp(comparison, "lt") == 0 || strcmp(comparison, "le") == 0 ||
                       strcmp(comparison, "gt") == 0 || strcmp(comparison, "ge") == 0;
    bool is_unsigned = strcmp(comparison, "lo") == 0 || strcmp(comparison, "ls") == 0 ||
                       strcmp(comparison, "hi") == 0 || strcmp(comparison, "hs") == 0;

    switch (type->class) {
    case TYPE_BITS:
        return is_equality && type->bits >= 16 && type->bits <= 64;
    case TYPE_UNSIGNED:
        return (is_equality || is_ordering || is_unsigned) && type->bits >= 16;
    case TYPE_SIGNED:
        return (is_equality || is_ordering) && type->bits >= 16;
    case TYPE_FLOAT:
        return !is_unsigned && (span_is(type->name, "f32") || span_is(type->name, "f64") ||
                                span_is(type->name, "f16") || span_is(type->name, "bf16"));
    case TYPE_PREDICATE:
        break;
    }
    return false;
}

struct comparison {
    const char *name;
    const char *with; /* "&", or NULL: no third operand */
    bool flushes;
    struct type result; /* of "set" */
    struct type type;
};

static bool take_compare(struct translator *tr, struct comparison *comparison, bool has_result)
{
    *comparison = (struct comparison){.name = take_comparison(tr)};
    if (comparison->name == NULL) {
        return false;
    }
    comparison->with = take_part(tr, "and")   ? "&"
                       : take_part(tr, "or")  ? "|"
                       : take_part(tr, "xor") ? "^"
                                              : NULL;
    comparison->flushes = take_part(tr, "ftz");
    if ((has_result && !take_type(tr, &comparison->result)) || !take_type(tr, &comparison->type) ||
        !is_taken(tr)) {
        return false;
    }
    if (!is_comparable(comparison->name, &comparison->type) ||
        (comparison->flushes && !span_is(comparison->type.name, "f32")) ||
        positions(tr) != (comparison->with == NULL ? 3 : 4)) {
        return refuse(tr, "the instruction is not supported");
    }
    return true;
}

/* "{ u8 p = lt_s32(a, b), c = ...; ". */
static bool begin_compare(struct translator *tr, const struct comparison *comparison)
{
    const char *a = value_of_type(tr, operand(tr, 1, 0), &comparison->type);
    const char *b = value_of_type(tr, operand(tr, 2, 0), &comparison->type);
    const char *c = comparison->with == NULL ? "0" : value(tr, operand(tr, 3, 0), 1);

    if (a == NULL || b == NULL || c == NULL) {
        return false;
    }
    fprintf(tr->out,
            comparison->flushes ? "{ u8 p = %s_%.*s(flush_f32(%s), flush_f32(%s)), c = %s; "
                                : "{ u8 p = %s_%.*s(%s, %s), c = %s; ",
            comparison->name, (int)comparison->type.name.length, comparison->type.name.text, a, b,
            c);
    return true;
}

static bool is_pair(const struct translator *tr)
{
    struct span type = tr->parts.part[tr->parts.count - 1];

    return span_is(type, "f16x2") || span_is(type, "bf16x2");
}

bool translate_setp(struct translator *tr)
{
    struct comparison comparison;

    if (is_pair(tr)) {
        return translate_setp_pair(tr);
    }
    if (!take_compare(tr, &comparison, false) || !begin_compare(tr, &comparison) ||
        !assign(tr, operand(tr, 0, 0), 1)) {
        return false;
    }
    fprintf(tr->out, "p %s c; ", comparison.with == NULL ? "|" : comparison.with);
    if (operands_at(tr, 0) == 2) {
        if (!assign(tr, operand(tr, 0, 1), 1)) {
            return false;
        }
        fprintf(tr->out, "!p %s c; ", comparison.with == NULL ? "|" : comparison.with);
    }
    fprintf(tr->out, "}");
    return true;
}

bool translate_set(struct translator *tr)
{
    static const struct {
        const char *name;
        unsigned bits;
        const char *one;
    } results[] = {{"f32", 32, "0x3f800000u"}, {"u32", 32, "0xffffffffu"},
                   {"s32", 32, "0xffffffffu"}, {"f16", 16, "0x3c00u"},
                   {"bf16", 16, "0x3f80u"},    {"u16", 16, "0xffffu"},
                   {"s16", 16, "0xffffu"}};
    struct comparison comparison;

    if (is_pair(tr)) {
        return translate_set_pair(tr);
    }
    if (!take_compare(tr, &comparison, true)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
        if (span_is(comparison.result.name, results[i].name) &&
            (results[i].bits == 32 || comparison.type.bits == 16)) {
            if (!begin_compare(tr, &comparison) ||
                !assign(tr, operand(tr, 0, 0), results[i].bits)) {
                return false;
            }
            fprintf(tr->out, "(p %s c) ? %s : 0; }",
                    comparison.with == NULL ? "|" : comparison.with, results[i].one);
            return true;
        }
    }
    return refuse(tr, "the instruction is not supported");
}

bool translate_slct(struct translator *tr)
{
    bool flushes = take_part(tr, "ftz");
    struct type type, chooser;
    const char *a, *b, *c;

    if (!take_type(tr, &type) || !take_type(tr, &chooser) || !is_taken(tr)) {
        return false;
    }
    a = value_of_type(tr, operand(tr, 1, 0), &type);
    b = value_of_type(tr, operand(tr, 2, 0), &type);
    c = value_of_type(tr, operand(tr, 3, 0), &chooser);
    if (a == NULL || b == NULL || c == NULL) {
        return false;
    }
    if (type.bits < 16 || type.bits > 64 ||
        (!span_is(chooser.name, "s32") && !span_is(chooser.name, "f32"))) {
        return refuse(tr, "the instruction is not supported");
    }
    if (!assign(tr, operand(tr, 0, 0), type.bits)) {
        return false;
    }
    fprintf(tr->out,
            flushes ? "chooses_%.*s(flush_f32(%s)) ? %s : %s;" : "chooses_%.*s(%s) ? %s : %s;",
            (int)chooser.name.length, chooser.name.text, c, a, b);
    return true;
}

/* Conversions. */

struct conversion {
    const char *rounding; /* "ROUND_RN" */
    bool has_rounding;    /* a rounding of results: rn rz rm rp rna */
    bool is_whole;        /* a rounding to whole numbers: rni rzi rmi rpi */
    bool has_relu, flushes, saturates;
    struct type to, from;
};

static void take_rounding(struct translator *tr, struct conversion *conversion)
{
    static const struct {
        const char *part;
        const char *name;
        bool is_whole;
    } roundings[] = {
        {"rn", "ROUND_RN", false}, {"rz", "ROUND_RZ", false},   {"rm", "ROUND_RM", false},
        {"rp", "ROUND_RP", false}, {"rna", "ROUND_RNA", false}, {"rni", "ROUND_RN", true},
        {"rzi", "ROUND_RZ", true}, {"rmi", "ROUND_RM", true},   {"rpi", "ROUND_RP", true},
    };

    conversion->rounding = "ROUND_RN";
    for (size_t i = 0; i < sizeof(roundings) / sizeof(roundings[0]); i++) {
        if (take_part(tr, roundings[i].part)) {
            conversion->rounding = roundings[i].name;
            conversion->is_whole = roundings[i].is_whole;
            conversion->has_rounding = !roundings[i].is_whole;
            return;
        }
    }
}

static bool is_integer(const struct type *type)
{
    return type->class == TYPE_SIGNED || type->class == TYPE_UNSIGNED;
}

/* The width to which an integer result is extended, as if it were of that type. */
static bool to_integer_from_integer(struct translator *tr, const struct conversion *conversion)
{
    const struct type *to = &conversion->to;
    const struct type *from = &conversion->from;
    const char *text = value_of_type(tr, operand(tr, 1, 0), from);

    if (text == NULL || !assign_extended(tr, operand(tr, 0, 0), to)) {
        return false;
    }
    if (conversion->rounding != NULL && (conversion->has_rounding || conversion->is_whole)) {
        return refuse(tr, "the instruction is not supported");
    }
    text = expression(tr, "(%c%u)(%s)", from->class == TYPE_SIGNED ? 's' : 'u', from->bits, text);
    fprintf(tr->out, conversion->saturates ? "(u%u)clamped((s128)%s, %u, %d);" : "(u%u)%s;",
            to->bits, text, to->bits, to->class == TYPE_SIGNED);
    return true;
}

static bool to_float_from_integer(struct translator *tr, const struct conversion *conversion)
{
    const struct type *to = &conversion->to;
    const struct type *from = &conversion->from;
    const char *text = value_of_type(tr, operand(tr, 1, 0), from);

    if (text == NULL || !assign(tr, operand(tr, 0, 0), to->bits)) {
        return false;
    }
    if (conversion->is_whole || !conversion->has_rounding || conversion->flushes ||
        span_is(to->name, "tf32")) {
        return refuse(tr, "the instruction is not supported");
    }
    text = expression(tr, "(%c%u)(%s)", from->class == TYPE_SIGNED ? 's' : 'u', from->bits, text);
    if (conversion->saturates) {
        fprintf(tr->out, "saturate_%.*s(", (int)to->name.length, to->name.text);
    }
    if (span_is(to->name, "f64")) {
        fprintf(tr->out, "integer_to_f64(%s, %s)", text, conversion->rounding);
    } else if (span_is(to->name, "f32") && strcmp(conversion->rounding, "ROUND_RN") == 0) {
        fprintf(tr->out, "bits_f32((float)%s)", text);
    } else {
        fprintf(tr->out, "to_%.*s(from_integer(%s), %s)", (int)to->name.length, to->name.text, text,
                conversion->rounding);
    }
    fprintf(tr->out, conversion->saturates ? ");" : ";");
    return true;
}

static bool is_simple_float(const struct type *type)
{
    return span_is(type->name, "f16") || span_is(type->name, "bf16") ||
           span_is(type->name, "f32") || span_is(type->name, "f64");
}

/* An operand as a double, flushed if it has to be. */
static const char *as_double(struct translator *tr, const struct conversion *conversion,
                             unsigned position)
{
    const struct type *from = &conversion->from;
    const char *text = value_of_type(tr, operand(tr, position, 0), from);

    if (text == NULL) {
        return NULL;
    }
    text = expression(tr, "from_%.*s(%s)", (int)from->name.length, from->name.text, text);
    if (conversion->flushes && span_is(from->name, "f32")) {
        text = expression(tr, "flushed(%s, true)", text);
    }
    return text;
}

static bool to_integer_from_float(struct translator *tr, const struct conversion *conversion)
{
    const struct type *to = &conversion->to;
    const char *text = as_double(tr, conversion, 1);

    if (text == NULL || !assign_extended(tr, operand(tr, 0, 0), to)) {
        return false;
    }
    if (!conversion->is_whole || conversion->has_relu) {
        return refuse(tr, "the instruction is not supported");
    }
    fprintf(tr->out, "(u%u)to_integer(to_whole(%s, %s), %u, %d, %d);", to->bits, text,
            conversion->rounding, to->bits, to->class == TYPE_SIGNED,
            to->bits == 64 || conversion->from.bits == 64);
    return true;
}

/* Writes one number in the format of the result. */
static bool write_rounded(struct translator *tr, const struct conversion *conversion,
                          struct span format, unsigned position)
{
    const char *text = as_double(tr, conversion, position);
    bool flushes = conversion->flushes && span_is(format, "f32");

    if (text == NULL) {
        return false;
    }
    if (conversion->is_whole) {
        text = expression(tr, "to_whole(%s, %s)", text, conversion->rounding);
    }
    if (conversion->saturates) {
        text = expression(tr, "saturated(%s)", text);
    }
    if (conversion->has_relu) {
        text = expression(tr, "not_negative(%s)", text);
    }
    fprintf(tr->out, "%sto_%.*s(%s, %s)%s", flushes ? "flush_f32(" : "", (int)format.length,
            format.text, text, conversion->is_whole ? "ROUND_RN" : conversion->rounding,
            flushes ? ")" : "");
    return true;
}

static bool to_float_from_float(struct translator *tr, const struct conversion *conversion)
{
    const struct type *to = &conversion->to;
    bool is_pair = span_is(to->name, "f16x2") || span_is(to->name, "bf16x2");
    bool is_narrower =
        to->bits < conversion->from.bits || span_is(to->name, "tf32") ||
        (is_simple_float(to) && to->bits == 16 && !span_is_same(to->name, conversion->from.name));

    if (!is_simple_float(&conversion->from) ||
        (!is_simple_float(to) && !is_pair && !span_is(to->name, "tf32")) ||
        positions(tr) != (is_pair ? 3 : 2) || (is_pair && !span_is(conversion->from.name, "f32")) ||
        (conversion->is_whole && !span_is_same(to->name, conversion->from.name)) ||
        (is_narrower || is_pair) != conversion->has_rounding) {
        return refuse(tr, "the instruction is not supported");
    }
    if (!assign(tr, operand(tr, 0, 0), to->bits)) {
        return false;
    }
    if (is_pair) { /* the first operand is the upper half */
        struct span half = {to->name.text, to->name.length - 2};

        fprintf(tr->out, "(u32)");
        if (!write_rounded(tr, conversion, half, 1)) {
            return false;
        }
        fprintf(tr->out, " << 16 | ");
        if (!write_rounded(tr, conversion, half, 2)) {
            return false;
        }
    } else if (!write_rounded(tr, conversion, to->name, 1)) {
        return false;
    }
    fprintf(tr->out, ";");
    return true;
}

bool translate_convert(struct translator *tr)
{
    struct conversion conversion = {0};
    bool is_satfinite;

    if (span_has_part(tr->instruction->opcode, "e4m3x2") ||
        span_has_part(tr->instruction->opcode, "e5m2x2")) {
        return translate_convert_small(tr);
    }
    take_rounding(tr, &conversion);
    conversion.has_relu = take_part(tr, "relu");
    is_satfinite = take_part(tr, "satfinite");
    conversion.flushes = take_part(tr, "ftz");
    conversion.saturates = take_part(tr, "sat");
    if (!take_type(tr, &conversion.to) || !take_type(tr, &conversion.from) || !is_taken(tr)) {
        return false;
    }
    if (is_satfinite || (conversion.has_relu && conversion.to.class != TYPE_FLOAT)) {
        return refuse(tr, "the instruction is not supported");
    }
    if (is_integer(&conversion.to) && is_integer(&conversion.from)) {
        return to_integer_from_integer(tr, &conversion);
    }
    if (is_integer(&conversion.from) && (is_simple_float(&conversion.to))) {
        return to_float_from_integer(tr, &conversion);
    }
    if (is_integer(&conversion.to) && is_simple_float(&conversion.from)) {
        return to_integer_from_float(tr, &conversion);
    }
    return to_float_from_float(tr, &conversion);
}

/* "add.cc", "addc", "sub.cc", "subc", "mad.lo.cc", "madc.hi.cc": the carry is a variable. */
bool translate_carry(struct translator *tr)
{
    static const struct {
        const char *name;
        bool takes, multiplies, subtracts;
    } names[] = {{"add", false, false, false}, {"addc", true, false, false},
                 {"sub", false, false, true},  {"subc", true, false, true},
                 {"mad", false, true, false},  {"madc", true, true, false}};
    struct type type;
    size_t which = 0;
    const char *half = "";

    tr->parts.at = 0;
    while (which < sizeof(names) / sizeof(names[0]) && !take_part(tr, names[which].name)) {
        which++;
    }
    if (which == sizeof(names) / sizeof(names[0])) {
        return refuse(tr, "the instruction is not supported");
    }
    if (names[which].multiplies) {
        half = take_part(tr, "lo") ? "mul_lo" : take_part(tr, "hi") ? "mul_hi" : NULL;
    }
    {
        bool sets = take_part(tr, "cc");

        if (half == NULL || !take_type(tr, &type) || !is_taken(tr) || !is_integer(&type) ||
            (type.bits != 32 && type.bits != 64)) {
            return refuse(tr, "the instruction is not supported");
        }
        fprintf(tr->out, "{ ");
        if (!keep(tr, "x", operand(tr, 1, 0), &type) || !keep(tr, "y", operand(tr, 2, 0), &type)) {
            return false;
        }
        if (names[which].multiplies) {
            fprintf(tr->out, "x = %s_%.*s(x, y); ", half, (int)type.name.length, type.name.text);
            if (!keep(tr, "z", operand(tr, 3, 0), &type)) {
                return false;
            }
            fprintf(tr->out, "y = z; ");
        }
        fprintf(tr->out, "u128 sum = (u128)x %s y %s %s; ", names[which].subtracts ? "-" : "+",
                names[which].subtracts ? "-" : "+", names[which].takes ? "carry" : "0");
        if (sets) {
            fprintf(tr->out, "carry = (u8)(sum >> %u & 1); ", type.bits);
        }
        if (!assign(tr, operand(tr, 0, 0), type.bits)) {
            return false;
        }
        fprintf(tr->out, "(u%u)sum; }", type.bits);
    }
    return true;
}

bool translate_dp4a(struct translator *tr)
{
    struct type one, other;
    const char *a = value(tr, operand(tr, 1, 0), 32);
    const char *b = value(tr, operand(tr, 2, 0), 32);
    const char *c = value(tr, operand(tr, 3, 0), 32);

    if (!take_type(tr, &one) || !take_type(tr, &other) || !is_taken(tr) || a == NULL || b == NULL ||
        c == NULL) {
        return false;
    }
    if (!is_integer(&one) || !is_integer(&other) || one.bits != 32 || other.bits != 32) {
        return refuse(tr, "the instruction is not supported");
    }
    if (!assign(tr, operand(tr, 0, 0), 32)) {
        return false;
    }
    fprintf(tr->out, "dp4a(%s, %d, %s, %d, %s);", a, one.class == TYPE_SIGNED, b,
            other.class == TYPE_SIGNED, c);
    return true;
}
