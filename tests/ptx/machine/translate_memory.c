/* The translator's moves, loads, stores, atomics, copies and addresses. */
#include "tests/ptx/machine/translator.h"

#include <inttypes.h>
#include <string.h>

/* "mov": also packs and unpacks vectors. */
static bool unpack(struct translator *tr, const struct type *type, unsigned count)
{
    unsigned part = type->bits / count;

    fprintf(tr->out, "{ ");
    if (!keep(tr, "m", operand(tr, 1, 0), type)) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        if (!assign(tr, operand(tr, 0, i), part)) {
            return false;
        }
        fprintf(tr->out, "(u%u)(m >> %u); ", part, i * part);
    }
    fprintf(tr->out, "}");
    return true;
}

static bool pack(struct translator *tr, const struct type *type, unsigned count)
{
    unsigned part = type->bits / count;
    struct type element = {TYPE_BITS, part, {0}};

    fprintf(tr->out, "{ u%u m = 0; ", type->bits);
    for (unsigned i = 0; i < count; i++) {
        const char *text = value_of_type(tr, operand(tr, 1, i), &element);

        if (text == NULL) {
            return false;
        }
        fprintf(tr->out, "m |= (u%u)%s << %u; ", type->bits, text, i * part);
    }
    if (!assign(tr, operand(tr, 0, 0), type->bits)) {
        return false;
    }
    fprintf(tr->out, "m; }");
    return true;
}

bool translate_move(struct translator *tr)
{
    struct type type;
    unsigned to = operands_at(tr, 0);
    unsigned from = operands_at(tr, 1);
    const char *text;

    if (!take_type(tr, &type) || !is_taken(tr)) {
        return false;
    }
    if (positions(tr) != 2 || (to > 1 && from > 1) || to == 0 || from == 0 ||
        type.bits % (to * from) != 0 || type.bits / (to * from) < 8 - 7 * (to * from == 1)) {
        return refuse(tr, "the instruction is not supported");
    }
    if (to > 1) {
        return unpack(tr, &type, to);
    }
    if (from > 1) {
        return pack(tr, &type, from);
    }
    text = value_of_type(tr, operand(tr, 1, 0), &type);
    if (text == NULL || !assign(tr, operand(tr, 0, 0), type.bits)) {
        return false;
    }
    fprintf(tr->out, "%s;", text);
    return true;
}

/* Modifiers that say how, not what: order, scope and caches. One thread runs at a time, in an order
   that satisfies all of them. */
static const char hints[] =
    "weak volatile relaxed acquire release acq_rel mmio cta cluster gpu sys "
    "ca cg cs lu cv nc wb wt unified noftz "
    "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last "
    "L1::no_allocate L2::evict_normal L2::evict_first L2::evict_last "
    "L2::cache_hint L2::64B L2::128B L2::256B";

static void take_hints(struct translator *tr)
{
    while (take_one_of(tr, hints)) {
    }
}

/* The space of an access, as in the functions of the prelude. */
static const char *take_space(struct translator *tr)
{
    static const char *const spaces[] = {"global", "shared", "local", "const", "param"};

    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        if (take_part(tr, spaces[i])) {
            return spaces[i];
        }
    }
    if (take_part(tr, "shared::cta")) {
        return "shared";
    }
    if (take_one_of(tr, "param::entry param::func")) {
        return "param";
    }
    return "generic";
}

static unsigned take_vector(struct translator *tr)
{
    return take_part(tr, "v2") ? 2 : take_part(tr, "v4") ? 4 : take_part(tr, "v8") ? 8 : 1;
}

/* Whether a loop may wait with an access. */
static bool may_spin(const struct ptx_instruction *instruction)
{
    static const char *const ordered[] = {"volatile", "relaxed", "acquire", "mmio"};
    bool is_ordered = false;

    for (size_t i = 0; i < sizeof(ordered) / sizeof(ordered[0]); i++) {
        is_ordered |= span_has_part(instruction->opcode, ordered[i]);
    }
    return instruction->effect == EFFECT_ATOMIC ||
           (instruction->effect == EFFECT_LOAD && is_ordered);
}

/* What comes before the operands: "{ unsigned char *m = at_global(...); ". */
static bool begin_access(struct translator *tr, const char *space, const char *kind,
                         unsigned position, unsigned bytes)
{
    const char *at = address(tr, operand(tr, position, 0));

    if (at == NULL) {
        return false;
    }
    fprintf(tr->out, "{ %sunsigned char *m = at_%s(t, %s, %u, PTX_%s, %" PRIu32 "); ",
            may_spin(tr->instruction) ? "spin(t); " : "", space, at, bytes, kind,
            tr->instruction->line);
    return true;
}

/* The parts of a load or store after its name. */
static bool take_access(struct translator *tr, const char **space, unsigned *count,
                        struct type *type)
{
    take_hints(tr);
    *space = take_space(tr);
    take_hints(tr);
    *count = take_vector(tr);
    return take_type(tr, type) && is_taken(tr) &&
           (*count * type->bits <= 256 || refuse(tr, "the instruction is not supported"));
}

bool translate_load(struct translator *tr)
{
    const char *space;
    unsigned count;
    struct type type;

    if (!take_access(tr, &space, &count, &type)) {
        return false;
    }
    if (operands_at(tr, 0) != count || positions(tr) < 2 || positions(tr) > 3) {
        return refuse(tr, "the instruction is not supported");
    }
    if (!begin_access(tr, space, "READ", 1, count * type.bits / 8)) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        if (!assign_extended(tr, operand(tr, 0, i), &type)) {
            return false;
        }
        fprintf(tr->out, "get_u%u(m + %u); ", type.bits, i * type.bits / 8);
    }
    fprintf(tr->out, "}");
    return true;
}

bool translate_store(struct translator *tr)
{
    const char *space;
    unsigned count;
    struct type type;

    if (!take_access(tr, &space, &count, &type)) {
        return false;
    }
    if (operands_at(tr, 1) != count || positions(tr) < 2 || positions(tr) > 3 ||
        strcmp(space, "const") == 0) {
        return refuse(tr, "the instruction is not supported");
    }
    if (!begin_access(tr, space, "WRITE", 0, count * type.bits / 8)) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        const char *text = value_of_type(tr, operand(tr, 1, i), &type);

        if (text == NULL) {
            return false;
        }
        fprintf(tr->out, "put_u%u(m + %u, %s); ", type.bits, i * type.bits / 8, text);
    }
    fprintf(tr->out, "}");
    return true;
}

/* Atomics. */

static const struct {
    const char *name;
    const char *types;
} atomics[] = {
    {"add", "u32 s32 u64 s64 f32 f64 f16 f16x2 bf16 bf16x2"},
    {"min", "u32 s32 u64 s64 f16 f16x2 bf16 bf16x2"},
    {"max", "u32 s32 u64 s64 f16 f16x2 bf16 bf16x2"},
    {"and", "b32 b64"},
    {"or", "b32 b64"},
    {"xor", "b32 b64"},
    {"inc", "u32"},
    {"dec", "u32"},
    {"exch", "b32 b64 b128"},
    {"cas", "b16 b32 b64 b128"},
};

/* One of the table; NULL: refused. */
static const char *take_operation(struct translator *tr, const char **types)
{
    for (size_t i = 0; i < sizeof(atomics) / sizeof(atomics[0]); i++) {
        if (take_part(tr, atomics[i].name)) {
            *types = atomics[i].types;
            return atomics[i].name;
        }
    }
    (void)refuse(tr, "the instruction is not supported");
    return NULL;
}

/* Element `i`: the old value becomes the result, if there is one. */
static bool atomic_element(struct translator *tr, const char *operation, const struct type *type,
                           bool has_result, unsigned i, bool flushes)
{
    unsigned first = has_result ? 2 : 1;
    unsigned at = i * type->bits / 8;
    bool is_cas = strcmp(operation, "cas") == 0;
    const char *b = value_of_type(tr, operand(tr, first, i), type);
    const char *c = is_cas ? value_of_type(tr, operand(tr, first + 1, i), type) : "";

    if (b == NULL || c == NULL) {
        return false;
    }
    fprintf(tr->out, "u%u old%u = get_u%u(m + %u); ", type->bits, i, type->bits, at);
    if (is_cas) {
        fprintf(tr->out, "if (old%u == %s) { put_u%u(m + %u, %s); } ", i, b, type->bits, at, c);
    } else {
        fprintf(tr->out,
                flushes ? "put_u%u(m + %u, flush_f32(%s_%.*s(flush_f32(old%u), flush_f32(%s)))); "
                        : "put_u%u(m + %u, %s_%.*s(old%u, %s)); ",
                type->bits, at, operation, (int)type->name.length, type->name.text, i, b);
    }
    if (has_result) {
        if (!assign(tr, operand(tr, 0, i), type->bits)) {
            return false;
        }
        fprintf(tr->out, "old%u; ", i);
    }
    return true;
}

static bool has_word(const char *words, struct span word)
{
    char name[16];
    const char *found;

    if (word.length >= sizeof(name)) {
        return false;
    }
    memcpy(name, word.text, word.length);
    name[word.length] = '\0';
    for (found = strstr(words, name); found != NULL; found = strstr(found + 1, name)) {
        if ((found == words || found[-1] == ' ') &&
            (found[word.length] == ' ' || found[word.length] == '\0')) {
            return true;
        }
    }
    return false;
}

bool translate_atomic(struct translator *tr, bool has_result)
{
    unsigned first = has_result ? 2 : 1;
    const char *space, *operation, *types;
    struct type type;
    unsigned count;
    bool is_cas, flushes;

    take_hints(tr);
    space = take_space(tr);
    take_hints(tr);
    operation = take_operation(tr, &types);
    if (operation == NULL) {
        return false;
    }
    take_hints(tr);
    count = take_vector(tr);
    if (!take_type(tr, &type) || !is_taken(tr)) {
        return false;
    }
    is_cas = strcmp(operation, "cas") == 0;
    if (!has_word(types, type.name) || operands_at(tr, first) != count ||
        positions(tr) < first + 1 + is_cas || positions(tr) > first + 2 + is_cas ||
        (is_cas && !has_result) || strcmp(space, "const") == 0 || strcmp(space, "param") == 0 ||
        strcmp(space, "local") == 0 || (has_result && operands_at(tr, 0) != count)) {
        return refuse(tr, "the instruction is not supported");
    }
    /* Additions in f32 flush subnormal numbers, except in shared memory. */
    flushes = span_is(type.name, "f32") && strcmp(space, "shared") != 0;
    if (!begin_access(tr, space, "ATOMIC", first - 1, count * type.bits / 8)) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        if (!atomic_element(tr, operation, &type, has_result, i, flushes)) {
            return false;
        }
    }
    fprintf(tr->out, "}");
    return true;
}

/* cp.async: carried out at once, which every wait allows. The rest of it has no effect. */
bool translate_copy(struct translator *tr)
{
    const struct ptx_operand *size = operand(tr, 2, 0);
    const struct ptx_operand *source = operand(tr, 3, 0);
    const char *to, *from, *bytes;

    if (!take_part(tr, "async")) {
        return refuse(tr, "the instruction is not supported");
    }
    if (take_part(tr, "bulk")) {
        return translate_bulk_copy(tr);
    }
    if (take_one_of(tr, "commit_group wait_group wait_all")) {
        return is_taken(tr);
    }
    if (!take_one_of(tr, "ca cg") || !take_one_of(tr, "shared shared::cta") ||
        !take_part(tr, "global")) {
        return refuse(tr, "the instruction is not supported");
    }
    take_hints(tr);
    if (!is_taken(tr)) {
        return false;
    }
    if (size == NULL || size->kind != OPERAND_NUMBER || positions(tr) > 4 ||
        (size->number != 4 && size->number != 8 && size->number != 16) ||
        (source != NULL && span_has_part(tr->instruction->opcode, "L2::cache_hint"))) {
        return refuse(tr, "the instruction is not supported");
    }
    to = address(tr, operand(tr, 0, 0));
    from = address(tr, operand(tr, 1, 0));
    bytes = source == NULL ? expression(tr, "%" PRId64, size->number) : value(tr, source, 32);
    if (to == NULL || from == NULL || bytes == NULL) {
        return false;
    }
    fprintf(tr->out, "copy_async(t, %s, %s, %" PRId64 ", %s, %" PRIu32 ");", to, from, size->number,
            bytes, tr->instruction->line);
    return true;
}

/* What generic addresses have to an address of a space. */
static const char *base_of(const char *space)
{
    return strcmp(space, "shared") == 0  ? "(u64)t->block->shared"
           : strcmp(space, "local") == 0 ? "(u64)t->local"
                                         : "0";
}

bool translate_cvta(struct translator *tr)
{
    bool is_to = take_part(tr, "to");
    const char *space = take_space(tr);
    struct type type;
    const char *text;

    if (!take_type(tr, &type) || !is_taken(tr)) {
        return false;
    }
    text = value_of_type(tr, operand(tr, 1, 0), &type);
    if (text == NULL || !assign(tr, operand(tr, 0, 0), type.bits)) {
        return false;
    }
    if (type.bits != 64 || strcmp(space, "generic") == 0) {
        return refuse(tr, "the instruction is not supported");
    }
    fprintf(tr->out, "%s %s %s;", text, is_to ? "-" : "+", base_of(space));
    return true;
}

bool translate_isspacep(struct translator *tr)
{
    const char *space = take_space(tr);
    const char *text = value(tr, operand(tr, 1, 0), 64);

    if (!is_taken(tr) || text == NULL || !assign(tr, operand(tr, 0, 0), 1)) {
        return false;
    }
    if (strcmp(space, "global") == 0) {
        fprintf(tr->out, "!is_shared(t, %s) && !is_local(t, %s);", text, text);
    } else if (strcmp(space, "shared") == 0 || strcmp(space, "local") == 0) {
        fprintf(tr->out, "is_%s(t, %s);", space, text);
    } else {
        return refuse(tr, "the instruction is not supported");
    }
    return true;
}
