/*
 * Instructions that compute one result from operands, as a table. The function of the prelude is
 * named after the form, the rounding if it is not to nearest, and the type.
 */
#include "tests/ptx/machine/translator.h"

#include <string.h>

enum {
    HAS_ROUNDING = 1 << 0, /* .rn .rz .rm .rp, optional */
    ONLY_NEAREST = 1 << 1, /* .rn, optional */
    HAS_FLUSH = 1 << 2,    /* .ftz, of f32 and f16 */
    HAS_SATURATION = 1 << 3,
};

/* `widths`: a letter per operand, the result first. T: the type's; W: twice that; 4: 32 bits; P: a
   predicate; I: a number, 32 bits. */
static const struct form {
    const char *name; /* without type and optional modifiers */
    const char *types;
    const char *widths;
    unsigned flags;
} forms[] = {
    {"add", "u16 s16 u32 s32 u64 s64", "TTT", 0},
    {"add.sat", "s32", "TTT", 0},
    {"sub", "u16 s16 u32 s32 u64 s64", "TTT", 0},
    {"sub.sat", "s32", "TTT", 0},
    {"mul.lo", "u16 s16 u32 s32 u64 s64", "TTT", 0},
    {"mul.hi", "u16 s16 u32 s32 u64 s64", "TTT", 0},
    {"mul.wide", "u16 s16 u32 s32", "WTT", 0},
    {"mad.lo", "u16 s16 u32 s32 u64 s64", "TTTT", 0},
    {"mad.hi", "u16 s16 u32 s32 u64 s64", "TTTT", 0},
    {"mad.wide", "u16 s16 u32 s32", "WTTW", 0},
    {"mul24.lo", "u32 s32", "TTT", 0},
    {"mad24.lo", "u32 s32", "TTTT", 0},
    {"sad", "u16 s16 u32 s32 u64 s64", "TTTT", 0},
    {"div", "u16 s16 u32 s32 u64 s64", "TTT", 0},
    {"rem", "u16 s16 u32 s32 u64 s64", "TTT", 0},
    {"abs", "s16 s32 s64", "TT", 0},
    {"neg", "s16 s32 s64", "TT", 0},
    {"min", "u16 s16 u32 s32 u64 s64", "TTT", 0},
    {"max", "u16 s16 u32 s32 u64 s64", "TTT", 0},
    {"and", "b16 b32 b64 pred", "TTT", 0},
    {"or", "b16 b32 b64 pred", "TTT", 0},
    {"xor", "b16 b32 b64 pred", "TTT", 0},
    {"not", "b16 b32 b64 pred", "TT", 0},
    {"cnot", "b16 b32 b64", "TT", 0},
    {"shl", "b16 b32 b64", "TT4", 0},
    {"shr", "b16 b32 b64 u16 u32 u64 s16 s32 s64", "TT4", 0},
    {"bfe", "u32 s32 u64 s64", "TT44", 0},
    {"bfi", "b32 b64", "TTT44", 0},
    {"bmsk.clamp", "b32", "T44", 0},
    {"bmsk.wrap", "b32", "T44", 0},
    {"szext.clamp", "u32 s32", "TT4", 0},
    {"szext.wrap", "u32 s32", "TT4", 0},
    {"bfind", "u32 s32 u64 s64", "4T", 0},
    {"bfind.shiftamt", "u32 s32", "4T", 0},
    {"brev", "b32 b64", "TT", 0},
    {"popc", "b32 b64", "4T", 0},
    {"clz", "b32 b64", "4T", 0},
    {"prmt", "b32", "TTTT", 0},
    {"shf.l.wrap", "b32", "TTT4", 0},
    {"shf.r.wrap", "b32", "TTT4", 0},
    {"shf.l.clamp", "b32", "TTT4", 0},
    {"shf.r.clamp", "b32", "TTT4", 0},
    {"lop3", "b32", "TTTTI", 0},
    {"selp", "b16 u16 s16 b32 u32 s32 f32 b64 u64 s64 f64", "TTTP", 0},
    {"add", "f32 f64", "TTT", HAS_ROUNDING | HAS_FLUSH | HAS_SATURATION},
    {"sub", "f32 f64", "TTT", HAS_ROUNDING | HAS_FLUSH | HAS_SATURATION},
    {"mul", "f32 f64", "TTT", HAS_ROUNDING | HAS_FLUSH | HAS_SATURATION},
    {"fma", "f32 f64", "TTTT", HAS_ROUNDING | HAS_FLUSH | HAS_SATURATION},
    {"mad", "f32 f64", "TTTT", HAS_ROUNDING | HAS_FLUSH | HAS_SATURATION},
    {"div", "f32 f64", "TTT", HAS_ROUNDING | HAS_FLUSH},
    {"div.approx", "f32", "TTT", HAS_FLUSH},
    {"div.full", "f32", "TTT", HAS_FLUSH},
    {"rcp", "f32 f64", "TT", HAS_ROUNDING | HAS_FLUSH},
    {"rcp.approx", "f32", "TT", HAS_FLUSH},
    {"rcp.approx.ftz", "f64", "TT", 0},
    {"rsqrt.approx.ftz", "f64", "TT", 0},
    {"sqrt", "f32 f64", "TT", HAS_ROUNDING | HAS_FLUSH},
    {"sqrt.approx", "f32", "TT", HAS_FLUSH},
    {"rsqrt.approx", "f64", "TT", 0},
    {"rsqrt.approx", "f32", "TT", HAS_FLUSH},
    {"sin.approx", "f32", "TT", HAS_FLUSH},
    {"cos.approx", "f32", "TT", HAS_FLUSH},
    {"lg2.approx", "f32", "TT", HAS_FLUSH},
    {"ex2.approx", "f32 f16 f16x2 bf16 bf16x2", "TT", HAS_FLUSH},
    {"tanh.approx", "f32 f16 f16x2 bf16 bf16x2", "TT", 0},
    {"abs", "f32 f64 f16 f16x2 bf16 bf16x2", "TT", HAS_FLUSH},
    {"neg", "f32 f64 f16 f16x2 bf16 bf16x2", "TT", HAS_FLUSH},
    {"min", "f32 f64 f16 f16x2 bf16 bf16x2", "TTT", HAS_FLUSH},
    {"max", "f32 f64 f16 f16x2 bf16 bf16x2", "TTT", HAS_FLUSH},
    {"min.NaN", "f32 f16 f16x2 bf16 bf16x2", "TTT", HAS_FLUSH},
    {"max.NaN", "f32 f16 f16x2 bf16 bf16x2", "TTT", HAS_FLUSH},
    {"copysign", "f32 f64", "TTT", 0},
    {"testp.finite", "f32 f64", "PT", 0},
    {"testp.infinite", "f32 f64", "PT", 0},
    {"testp.number", "f32 f64", "PT", 0},
    {"testp.notanumber", "f32 f64", "PT", 0},
    {"testp.normal", "f32 f64", "PT", 0},
    {"testp.subnormal", "f32 f64", "PT", 0},
    {"add", "f16 f16x2 bf16 bf16x2", "TTT", ONLY_NEAREST | HAS_SATURATION},
    {"sub", "f16 f16x2 bf16 bf16x2", "TTT", ONLY_NEAREST | HAS_SATURATION},
    {"mul", "f16 f16x2 bf16 bf16x2", "TTT", ONLY_NEAREST | HAS_SATURATION},
    {"fma", "f16 f16x2 bf16 bf16x2", "TTTT", ONLY_NEAREST | HAS_SATURATION},
    {"fma.relu", "f16 f16x2 bf16 bf16x2", "TTTT", ONLY_NEAREST},
};

/* What an opcode says beside the name of its form. */
struct modifiers {
    const char *rounding; /* "rz" or NULL */
    bool flushes;
    bool saturates;
    struct type type;
};

static bool take_optional(struct translator *tr, const struct form *form,
                          struct modifiers *modifiers)
{
    if ((form->flags & (HAS_ROUNDING | ONLY_NEAREST)) != 0 && take_part(tr, "rn")) {
        return true;
    }
    if ((form->flags & HAS_ROUNDING) != 0) {
        static const char *const roundings[] = {"rz", "rm", "rp"};

        for (size_t i = 0; i < sizeof(roundings) / sizeof(roundings[0]); i++) {
            if (take_part(tr, roundings[i])) {
                modifiers->rounding = roundings[i];
                return true;
            }
        }
    }
    if ((form->flags & HAS_FLUSH) != 0 && take_part(tr, "ftz")) {
        modifiers->flushes = true;
        return true;
    }
    if ((form->flags & HAS_SATURATION) != 0 && take_part(tr, "sat")) {
        modifiers->saturates = true;
        return true;
    }
    return false;
}

static bool has_word(const char *words, struct span word)
{
    while (*words != '\0') {
        size_t length = strcspn(words, " ");

        if (length == word.length && memcmp(words, word.text, length) == 0) {
            return true;
        }
        words += length;
        words += *words == ' ';
    }
    return false;
}

/* Whether the opcode is of this form. */
static bool matches(struct translator *tr, const struct form *form, struct modifiers *modifiers)
{
    const char *name = form->name;

    *modifiers = (struct modifiers){0};
    tr->parts.at = 0;
    if (!has_word(form->types, tr->parts.part[tr->parts.count - 1])) {
        return false;
    }
    while (tr->parts.at + 1 < tr->parts.count) {
        size_t length = strcspn(name, ".");
        struct span part = tr->parts.part[tr->parts.at];

        if (length > 0 && part.length == length && memcmp(part.text, name, length) == 0) {
            tr->parts.at++;
            name += length;
            name += *name == '.';
        } else if (!take_optional(tr, form, modifiers)) {
            return false;
        }
    }
    return *name == '\0' && take_type(tr, &modifiers->type);
}

static const struct form *find(struct translator *tr, struct modifiers *modifiers)
{
    if (tr->parts.count < 2) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (matches(tr, &forms[i], modifiers)) {
            return &forms[i];
        }
    }
    return NULL;
}

static unsigned width_of(char letter, unsigned bits)
{
    return letter == 'W' ? 2 * bits : letter == 'T' ? bits : letter == 'P' ? 1 : 32;
}

/* "shf.l.wrap" as "shf_l_wrap_". */
static void write_name(struct translator *tr, const struct form *form,
                       const struct modifiers *modifiers)
{
    for (const char *c = form->name; *c != '\0'; c++) {
        fputc(*c == '.' ? '_' : *c, tr->out);
    }
    if (modifiers->rounding != NULL) {
        fprintf(tr->out, "_%s", modifiers->rounding);
    }
    fprintf(tr->out, "_%.*s(", (int)modifiers->type.name.length, modifiers->type.name.text);
}

static bool write_operands(struct translator *tr, const struct form *form,
                           const struct modifiers *modifiers, bool flushes)
{
    for (unsigned i = 1; form->widths[i] != '\0'; i++) {
        const char *text =
            value(tr, operand(tr, i, 0), width_of(form->widths[i], modifiers->type.bits));

        if (text == NULL) {
            return false;
        }
        fprintf(tr->out, flushes ? "%sflush_f32(%s)" : "%s%s", i == 1 ? "" : ", ", text);
    }
    return true;
}

bool translate_plain(struct translator *tr)
{
    struct modifiers modifiers;
    const struct form *form = find(tr, &modifiers);
    struct span type;
    bool flushes;

    if (form == NULL || positions(tr) != strlen(form->widths)) {
        return refuse(tr, "the instruction is not supported");
    }
    type = modifiers.type.name;
    /* Formats of 16 bits keep small numbers: there .ftz is not the default of anything, and only
       ex2 has it. */
    flushes = modifiers.flushes && span_is(type, "f32");
    if (modifiers.flushes && !flushes && !span_is(type, "bf16") && !span_is(type, "bf16x2")) {
        return refuse(tr, "the instruction is not supported");
    }
    if (!assign(tr, operand(tr, 0, 0), width_of(form->widths[0], modifiers.type.bits))) {
        return false;
    }
    if (flushes) {
        fprintf(tr->out, "flush_f32(");
    }
    if (modifiers.saturates) {
        fprintf(tr->out, "saturate_%.*s(", (int)type.length, type.text);
    }
    write_name(tr, form, &modifiers);
    if (!write_operands(tr, form, &modifiers, flushes)) {
        return false;
    }
    fprintf(tr->out, ")%s%s;", modifiers.saturates ? ")" : "", flushes ? ")" : "");
    return true;
}
