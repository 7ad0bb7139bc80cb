/* The table of opcodes, see ptx_opcode.h. */
#define _GNU_SOURCE /* memrchr */
#include "interpose/ptx/ptx_opcode.h"

#include <stdlib.h>
#include <string.h>

/* By name; where one is the beginning of another, the longer one comes first. A name ends at a dot
   of the opcode. */
static const struct {
    const char *name;
    enum effect effect;
} table[] = {
    {"abs", EFFECT_COMPUTE},
    {"activemask", EFFECT_EXCHANGE},
    {"add", EFFECT_ADD},
    {"addc", EFFECT_ADD},
    {"alloca", EFFECT_UNKNOWN},
    {"and", EFFECT_ADD},
    {"applypriority", EFFECT_NONE},
    {"atom", EFFECT_ATOMIC},
    {"bar.red", EFFECT_EXCHANGE},
    {"bar.warp", EFFECT_NONE},
    {"bar", EFFECT_NONE},
    {"barrier.cluster", EFFECT_NONE},
    {"barrier.cta.red", EFFECT_EXCHANGE},
    {"barrier.red", EFFECT_EXCHANGE},
    {"barrier", EFFECT_NONE},
    {"bfe", EFFECT_COMPUTE},
    {"bfi", EFFECT_COMPUTE},
    {"bfind", EFFECT_COMPUTE},
    {"bmsk", EFFECT_COMPUTE},
    {"bra", EFFECT_BRANCH},
    {"brev", EFFECT_COMPUTE},
    {"brkpt", EFFECT_NONE},
    {"brx", EFFECT_BRANCH_TABLE},
    {"call", EFFECT_CALL},
    {"clz", EFFECT_COMPUTE},
    {"cnot", EFFECT_COMPUTE},
    {"copysign", EFFECT_COMPUTE},
    {"cos", EFFECT_COMPUTE},
    {"cp.async.bulk.commit_group", EFFECT_NONE},
    {"cp.async.bulk.wait_group", EFFECT_NONE},
    {"cp.async.bulk.shared::cluster.global", EFFECT_BULK_LOAD},
    {"cp.async.bulk.shared::cta.global", EFFECT_BULK_LOAD},
    {"cp.async.bulk", EFFECT_BULK_COPY},
    {"cp.async.ca", EFFECT_COPY_ASYNC},
    {"cp.async.cg", EFFECT_COPY_ASYNC},
    {"cp.async.commit_group", EFFECT_NONE},
    {"cp.async.mbarrier", EFFECT_NONE},
    {"cp.async.wait_all", EFFECT_NONE},
    {"cp.async.wait_group", EFFECT_NONE},
    {"cp.reduce", EFFECT_BULK_COPY},
    {"createpolicy", EFFECT_COMPUTE},
    {"cvt", EFFECT_CONVERT},
    {"cvta", EFFECT_CHOOSE},
    {"discard", EFFECT_DISCARD},
    {"div", EFFECT_COMPUTE},
    {"dp2a", EFFECT_COMPUTE},
    {"dp4a", EFFECT_COMPUTE},
    {"elect", EFFECT_EXCHANGE},
    {"ex2", EFFECT_COMPUTE},
    {"exit", EFFECT_EXIT},
    {"fence", EFFECT_NONE},
    {"fma", EFFECT_COMPUTE},
    {"fns", EFFECT_COMPUTE},
    {"getctarank", EFFECT_COMPUTE},
    {"griddepcontrol", EFFECT_NONE},
    {"isspacep", EFFECT_COMPUTE},
    {"istypep", EFFECT_TEXTURE},
    {"ld", EFFECT_LOAD},
    {"ldmatrix", EFFECT_SHARED},
    {"ldu", EFFECT_LOAD},
    {"lg2", EFFECT_COMPUTE},
    {"lop3", EFFECT_COMPUTE},
    {"mad", EFFECT_MULTIPLY_ADD},
    {"mad24", EFFECT_MULTIPLY_ADD},
    {"madc", EFFECT_MULTIPLY_ADD},
    {"mapa", EFFECT_CHOOSE},
    {"match", EFFECT_EXCHANGE},
    {"max", EFFECT_CHOOSE},
    {"mbarrier", EFFECT_SHARED},
    {"membar", EFFECT_NONE},
    {"min", EFFECT_CHOOSE},
    {"mma", EFFECT_EXCHANGE},
    {"mov", EFFECT_CHOOSE},
    {"movmatrix", EFFECT_EXCHANGE},
    {"mul", EFFECT_COMPUTE},
    {"mul24", EFFECT_COMPUTE},
    {"multimem", EFFECT_MULTIMEM},
    {"nanosleep", EFFECT_NONE},
    {"neg", EFFECT_COMPUTE},
    {"not", EFFECT_COMPUTE},
    {"or", EFFECT_ADD},
    {"pmevent", EFFECT_NONE},
    {"popc", EFFECT_COMPUTE},
    {"prefetch", EFFECT_NONE},
    {"prefetchu", EFFECT_NONE},
    {"prmt", EFFECT_COMPUTE},
    {"rcp", EFFECT_COMPUTE},
    {"red.async", EFFECT_SHARED},
    {"red", EFFECT_REDUCE},
    {"redux", EFFECT_EXCHANGE},
    {"rem", EFFECT_COMPUTE},
    {"ret", EFFECT_EXIT},
    {"rsqrt", EFFECT_COMPUTE},
    {"sad", EFFECT_COMPUTE},
    {"selp", EFFECT_CHOOSE},
    {"set", EFFECT_COMPUTE},
    {"setmaxnreg", EFFECT_NONE},
    {"setp", EFFECT_COMPUTE},
    {"shf", EFFECT_COMPUTE},
    {"shfl", EFFECT_EXCHANGE},
    {"shl", EFFECT_COMPUTE},
    {"shr", EFFECT_COMPUTE},
    {"sin", EFFECT_COMPUTE},
    {"slct", EFFECT_CHOOSE},
    {"sqrt", EFFECT_COMPUTE},
    {"st.async", EFFECT_SHARED},
    {"st.bulk", EFFECT_SHARED},
    {"st", EFFECT_STORE},
    {"stmatrix", EFFECT_SHARED},
    {"sub", EFFECT_SUBTRACT},
    {"subc", EFFECT_SUBTRACT},
    {"suld", EFFECT_TEXTURE},
    {"suq", EFFECT_TEXTURE},
    {"sured", EFFECT_TEXTURE},
    {"sust", EFFECT_TEXTURE},
    {"szext", EFFECT_COMPUTE},
    {"tanh", EFFECT_COMPUTE},
    {"tensormap", EFFECT_BULK_COPY},
    {"testp", EFFECT_COMPUTE},
    {"tex", EFFECT_TEXTURE},
    {"tld4", EFFECT_TEXTURE},
    {"trap", EFFECT_EXIT},
    {"txq", EFFECT_TEXTURE},
    {"vabsdiff", EFFECT_COMPUTE},
    {"vabsdiff2", EFFECT_COMPUTE},
    {"vabsdiff4", EFFECT_COMPUTE},
    {"vadd", EFFECT_COMPUTE},
    {"vadd2", EFFECT_COMPUTE},
    {"vadd4", EFFECT_COMPUTE},
    {"vavrg2", EFFECT_COMPUTE},
    {"vavrg4", EFFECT_COMPUTE},
    {"vmad", EFFECT_COMPUTE},
    {"vmax", EFFECT_COMPUTE},
    {"vmax2", EFFECT_COMPUTE},
    {"vmax4", EFFECT_COMPUTE},
    {"vmin", EFFECT_COMPUTE},
    {"vmin2", EFFECT_COMPUTE},
    {"vmin4", EFFECT_COMPUTE},
    {"vote", EFFECT_EXCHANGE},
    {"vset", EFFECT_COMPUTE},
    {"vset2", EFFECT_COMPUTE},
    {"vset4", EFFECT_COMPUTE},
    {"vshl", EFFECT_COMPUTE},
    {"vshr", EFFECT_COMPUTE},
    {"vsub", EFFECT_COMPUTE},
    {"vsub2", EFFECT_COMPUTE},
    {"vsub4", EFFECT_COMPUTE},
    {"wgmma", EFFECT_EXCHANGE},
    {"wmma.load", EFFECT_LOAD_TILE},
    {"wmma.mma", EFFECT_EXCHANGE},
    {"wmma.store", EFFECT_STORE_TILE},
    {"xor", EFFECT_ADD},
};

/* The first part of an opcode or of a name in the table: up to the first dot. */
static size_t first_part(const char *text, size_t length)
{
    const char *dot = memchr(text, '.', length);

    return dot == NULL ? length : (size_t)(dot - text);
}

static int by_first_part(struct span opcode, const char *name)
{
    size_t mine = first_part(opcode.text, opcode.length);
    size_t its = first_part(name, strlen(name));
    int order = memcmp(opcode.text, name, mine < its ? mine : its);

    return order != 0 ? order : (mine > its) - (mine < its);
}

static bool starts_with(struct span opcode, const char *name)
{
    size_t length = strlen(name);

    return opcode.length >= length && memcmp(opcode.text, name, length) == 0 &&
           (opcode.length == length || opcode.text[length] == '.');
}

enum effect ptx_opcode_effect(struct span opcode)
{
    size_t low = 0;
    size_t high = sizeof(table) / sizeof(table[0]);

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (by_first_part(opcode, table[middle].name) > 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < sizeof(table) / sizeof(table[0]) && by_first_part(opcode, table[low].name) == 0;
         low++) {
        if (starts_with(opcode, table[low].name)) {
            return table[low].effect;
        }
    }
    return EFFECT_UNKNOWN;
}

/* The part after the last dot. */
static struct span last_part(struct span opcode)
{
    const char *dot = memrchr(opcode.text, '.', opcode.length);

    return dot == NULL ? (struct span){opcode.text + opcode.length, 0}
                       : (struct span){dot + 1, (uint32_t)(opcode.text + opcode.length - dot - 1)};
}

unsigned ptx_opcode_bits(struct span opcode)
{
    static const struct {
        const char *digits;
        unsigned bits;
    } widths[] = {{"8", 8}, {"16", 16}, {"32", 32}, {"64", 64}, {"128", 128}};
    struct span type = last_part(opcode);

    if (span_is(type, "pred")) {
        return 1;
    }
    if (span_is(type, "f16x2") || span_is(type, "bf16x2") || span_is(type, "tf32") ||
        span_is(type, "u16x2") || span_is(type, "s16x2")) {
        return 32;
    }
    if (span_is(type, "bf16")) {
        return 16;
    }
    if (span_is(type, "f32x2")) {
        return 64;
    }
    if (type.length >= 2 && memchr("bsuf", type.text[0], 4) != NULL) {
        struct span digits = {type.text + 1, type.length - 1};

        for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
            if (span_is(digits, widths[i].digits)) {
                return widths[i].bits;
            }
        }
    }
    return 0;
}

unsigned ptx_opcode_elements(struct span opcode)
{
    return span_has_part(opcode, "v8")   ? 8
           : span_has_part(opcode, "v4") ? 4
           : span_has_part(opcode, "v2") ? 2
                                         : 1;
}

bool ptx_opcode_is_inexact(struct span opcode)
{
    static const char *const contractible[] = {"add", "sub", "mul", "mad"};
    struct span type = last_part(opcode);

    if (span_has_part(opcode, "approx") || span_has_part(opcode, "full")) {
        return true;
    }
    if (type.length == 0 || (type.text[0] != 'f' && type.text[0] != 'b') ||
        (type.text[0] == 'b' && type.length > 1 && type.text[1] != 'f')) {
        return false;
    }
    for (size_t i = 0; i < sizeof(contractible) / sizeof(contractible[0]); i++) {
        if (starts_with(opcode, contractible[i])) {
            return !span_has_part(opcode, "rn") && !span_has_part(opcode, "rz") &&
                   !span_has_part(opcode, "rm") && !span_has_part(opcode, "rp");
        }
    }
    return false;
}
