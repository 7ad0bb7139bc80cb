/* Opcodes and operands of the translator: parts, types, values, addresses. */
#include "tests/ptx/machine/translator.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

bool refuse(struct translator *tr, const char *what)
{
    if (tr->status == CAPU_OK) {
        tr->status =
            error_text_set(tr->problem, CAPU_UNSUPPORTED, "%s: %.*s", what,
                           (int)tr->instruction->opcode.length, tr->instruction->opcode.text);
    }
    return false;
}

const char *expression(struct translator *tr, const char *format, ...)
{
    char *text = tr->expressions[tr->expression_count++ % EXPRESSIONS];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text, EXPRESSION_BYTES, format, arguments);
    va_end(arguments);
    if (length < 0 || length >= EXPRESSION_BYTES) {
        (void)refuse(tr, "an operand that is too long");
    }
    return text;
}

bool take_part(struct translator *tr, const char *name)
{
    if (tr->parts.at < tr->parts.count && span_is(tr->parts.part[tr->parts.at], name)) {
        tr->parts.at++;
        return true;
    }
    return false;
}

bool take_one_of(struct translator *tr, const char *names)
{
    struct span part;

    if (tr->parts.at == tr->parts.count) {
        return false;
    }
    part = tr->parts.part[tr->parts.at];
    while (*names != '\0') {
        size_t length = strcspn(names, " ");

        if (length == part.length && memcmp(names, part.text, length) == 0) {
            tr->parts.at++;
            return true;
        }
        names += length;
        names += *names == ' ';
    }
    return false;
}

bool take_type(struct translator *tr, struct type *type)
{
    static const struct {
        const char *name;
        enum type_class class;
        unsigned bits;
    } types[] = {
        {"b8", TYPE_BITS, 8},       {"b16", TYPE_BITS, 16},     {"b32", TYPE_BITS, 32},
        {"b64", TYPE_BITS, 64},     {"b128", TYPE_BITS, 128},   {"u8", TYPE_UNSIGNED, 8},
        {"u16", TYPE_UNSIGNED, 16}, {"u32", TYPE_UNSIGNED, 32}, {"u64", TYPE_UNSIGNED, 64},
        {"s8", TYPE_SIGNED, 8},     {"s16", TYPE_SIGNED, 16},   {"s32", TYPE_SIGNED, 32},
        {"s64", TYPE_SIGNED, 64},   {"f16", TYPE_FLOAT, 16},    {"bf16", TYPE_FLOAT, 16},
        {"f32", TYPE_FLOAT, 32},    {"f64", TYPE_FLOAT, 64},    {"f16x2", TYPE_FLOAT, 32},
        {"bf16x2", TYPE_FLOAT, 32}, {"tf32", TYPE_FLOAT, 32},   {"pred", TYPE_PREDICATE, 1},
    };

    for (size_t i = 0; tr->parts.at < tr->parts.count && i < sizeof(types) / sizeof(types[0]);
         i++) {
        if (span_is(tr->parts.part[tr->parts.at], types[i].name)) {
            *type = (struct type){types[i].class, types[i].bits, tr->parts.part[tr->parts.at]};
            tr->parts.at++;
            return true;
        }
    }
    return refuse(tr, "the instruction is not supported");
}

bool is_taken(struct translator *tr)
{
    return tr->parts.at == tr->parts.count || refuse(tr, "the instruction is not supported");
}

const struct ptx_operand *operand(const struct translator *tr, unsigned position, unsigned n)
{
    for (uint32_t i = 0; i < tr->instruction->operand_count; i++) {
        if (tr->operands[i].position == position && n-- == 0) {
            return &tr->operands[i];
        }
    }
    return NULL;
}

unsigned operands_at(const struct translator *tr, unsigned position)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < tr->instruction->operand_count; i++) {
        count += tr->operands[i].position == position;
    }
    return count;
}

unsigned positions(const struct translator *tr)
{
    uint32_t count = tr->instruction->operand_count;

    return count == 0 ? 0 : tr->operands[count - 1].position + 1u;
}

/* Special registers. */

static const char *special(struct translator *tr, struct span name)
{
    static const struct {
        const char *name;
        const char *text;
    } specials[] = {
        {"%tid.x", "t->index[0]"},
        {"%tid.y", "t->index[1]"},
        {"%tid.z", "t->index[2]"},
        {"%ntid.x", "t->block->size[0]"},
        {"%ntid.y", "t->block->size[1]"},
        {"%ntid.z", "t->block->size[2]"},
        {"%ctaid.x", "t->block->index[0]"},
        {"%ctaid.y", "t->block->index[1]"},
        {"%ctaid.z", "t->block->index[2]"},
        {"%nctaid.x", "t->block->grid[0]"},
        {"%nctaid.y", "t->block->grid[1]"},
        {"%nctaid.z", "t->block->grid[2]"},
        {"%laneid", "(t->number % 32)"},
        {"%warpid", "(t->number / 32)"},
        {"%nwarpid", "((t->block->size[0] * t->block->size[1] * t->block->size[2] + 31) / 32)"},
        {"%smid", "0u"},
        {"%nsmid", "1u"},
        {"%gridid", "t->block->grid_number"},
        {"%lanemask_eq", "(1u << t->number % 32)"},
        {"%lanemask_lt", "((1u << t->number % 32) - 1)"},
        {"%lanemask_le", "((2u << t->number % 32) - 1)"},
        {"%lanemask_gt", "(0u - (2u << t->number % 32))"},
        {"%lanemask_ge", "(0u - (1u << t->number % 32))"},
        {"%clock", "t->block->calls->clock()"},
        {"%clock64", "t->block->calls->clock()"},
        {"%clock_hi", "(t->block->calls->clock() >> 32)"},
        {"%globaltimer", "t->block->calls->clock()"},
        {"%globaltimer_lo", "t->block->calls->clock()"},
        {"%globaltimer_hi", "(t->block->calls->clock() >> 32)"},
        {"%envreg1", "(u32)(t->block->grid_barrier >> 32)"},
        {"%envreg2", "(u32)t->block->grid_barrier"},
        {"%reserved_smem_offset_1", "t->block->reserved"}, /* of cooperative groups */
        {"%dynamic_smem_size", "t->block->dynamic_bytes"},
        {"%total_smem_size", "(t->block->static_bytes + t->block->dynamic_bytes)"},
        {"WARP_SZ", "32u"},
    };

    for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
        if (span_is(name, specials[i].name)) {
            return specials[i].text;
        }
    }
    (void)refuse(tr, "a special register is not supported");
    return NULL;
}

/* The place of something, as an address of its own space, 64 bits. */
static const char *place(struct translator *tr, const struct ptx_operand *operand)
{
    switch (operand->kind) {
    case OPERAND_VARIABLE:
        if (tr->module->variables[operand->index].space == SPACE_SHARED) {
            return expression(tr, "(u64)%" PRIu64,
                              tr->layout->variable_offsets[operand->index] +
                                  (uint64_t)operand->number);
        }
        return expression(tr, "((u64)t->block->variables + %" PRIu64 ")",
                          tr->layout->variable_offsets[operand->index] + (uint64_t)operand->number);
    case OPERAND_LOCAL:
        if (tr->function->locals[operand->index].space == SPACE_PARAM) {
            return expression(tr, "((u64)l%" PRIu32 " + %" PRId64 ")", operand->index,
                              operand->number);
        }
        return expression(tr, "(u64)%" PRIu64,
                          tr->placed->local_offsets[operand->index] + (uint64_t)operand->number);
    case OPERAND_PARAMETER:
        if (tr->function->parameters[operand->index].is_register) {
            (void)refuse(tr, "parameters in registers are not supported");
            return NULL;
        }
        if (!tr->function->is_kernel) {
            return expression(tr, "((u64)p%" PRIu32 " + %" PRId64 ")", operand->index,
                              operand->number);
        }
        return expression(tr, "((u64)t->block->parameters + %" PRId64 ")",
                          tr->function->parameters[operand->index].offset + operand->number);
    case OPERAND_REGISTER:
    case OPERAND_NUMBER:
    case OPERAND_SPECIAL:
    case OPERAND_NAME:
        break;
    }
    (void)refuse(tr, "an operand is not supported");
    return NULL;
}

/* Whether a place is an offset in shared or local memory, which also fits 32 bits. */
static bool is_offset(const struct translator *tr, const struct ptx_operand *operand)
{
    if (operand->kind == OPERAND_VARIABLE) {
        return tr->module->variables[operand->index].space == SPACE_SHARED;
    }
    return operand->kind == OPERAND_LOCAL &&
           tr->function->locals[operand->index].space != SPACE_PARAM;
}

static const char *number(struct translator *tr, const struct ptx_operand *operand, unsigned bits)
{
    uint64_t wanted = (uint64_t)operand->number;

    if (bits == 1) {
        return wanted != 0 ? "1" : "0";
    }
    if (operand->form == NUMBER_F64 && bits == 32) {
        double wide;
        float narrow;
        uint32_t word;

        memcpy(&wide, &wanted, sizeof(wide));
        narrow = (float)wide;
        memcpy(&word, &narrow, sizeof(word));
        wanted = word;
    } else if ((operand->form == NUMBER_F64 && bits != 64) ||
               (operand->form == NUMBER_F32 && bits != 32) || bits > 64) {
        (void)refuse(tr, "a number does not fit its type");
        return NULL;
    }
    return expression(tr, "(u%u)0x%" PRIx64 "u", bits,
                      bits == 64 ? wanted : wanted & ((UINT64_C(1) << bits) - 1));
}

const char *value(struct translator *tr, const struct ptx_operand *operand, unsigned bits)
{
    const char *text;
    unsigned width;

    if (operand == NULL || operand->is_address) {
        (void)refuse(tr, "an operand is missing");
        return NULL;
    }
    switch (operand->kind) {
    case OPERAND_REGISTER:
        width = tr->function->registers[operand->index].bits;
        tr->is_used[operand->index] = true;
        if (width < bits || (operand->is_negated && bits != 1) || operand->number != 0) {
            (void)refuse(tr, "a register of the wrong width");
            return NULL;
        }
        return width == bits
                   ? expression(tr, "%sr%" PRIu32, operand->is_negated ? "!" : "", operand->index)
                   : expression(tr, "(u%u)r%" PRIu32, bits, operand->index);
    case OPERAND_NUMBER:
        return number(tr, operand, bits);
    case OPERAND_SPECIAL:
        text = special(tr, operand->name);
        return text == NULL ? NULL : expression(tr, "(u%u)(%s)", bits, text);
    case OPERAND_PARAMETER:
    case OPERAND_LOCAL:
    case OPERAND_VARIABLE:
    case OPERAND_NAME:
        break;
    }
    if (bits != 64 && !(bits == 32 && is_offset(tr, operand))) {
        (void)refuse(tr, "an address of the wrong width");
        return NULL;
    }
    text = place(tr, operand);
    return text == NULL ? NULL : expression(tr, "(u%u)(%s)", bits, text);
}

const char *value_of_type(struct translator *tr, const struct ptx_operand *operand,
                          const struct type *type)
{
    return value(tr, operand, type->bits);
}

bool assign(struct translator *tr, const struct ptx_operand *operand, unsigned bits)
{
    if (operand != NULL && operand->kind == OPERAND_NAME && span_is(operand->name, "_")) {
        fprintf(tr->out, "(void)");
        return true;
    }
    if (operand == NULL || operand->kind != OPERAND_REGISTER || operand->is_address ||
        tr->function->registers[operand->index].bits < bits) {
        return refuse(tr, "a result of the wrong width");
    }
    tr->is_used[operand->index] = true;
    fprintf(tr->out, "r%" PRIu32 " = ", operand->index);
    return true;
}

bool assign_extended(struct translator *tr, const struct ptx_operand *operand,
                     const struct type *type)
{
    if (!assign(tr, operand, type->bits)) {
        return false;
    }
    if (type->class == TYPE_SIGNED && operand->kind == OPERAND_REGISTER) {
        unsigned width = tr->function->registers[operand->index].bits;

        fprintf(tr->out, "(u%u)(s%u)(s%u)", width, width, type->bits);
    }
    return true;
}

const char *address(struct translator *tr, const struct ptx_operand *operand)
{
    unsigned width;

    if (operand == NULL || !operand->is_address) {
        (void)refuse(tr, "an address is missing");
        return NULL;
    }
    if (operand->kind == OPERAND_NUMBER) {
        return expression(tr, "(u64)%" PRId64, operand->number);
    }
    if (operand->kind != OPERAND_REGISTER) {
        return place(tr, operand);
    }
    width = tr->function->registers[operand->index].bits;
    tr->is_used[operand->index] = true;
    if (width != 32 && width != 64) {
        (void)refuse(tr, "an address of the wrong width");
        return NULL;
    }
    return expression(tr, "(u64)(u%u)(r%" PRIu32 " + (u%u)%" PRId64 ")", width, operand->index,
                      width, operand->number);
}

bool keep(struct translator *tr, const char *name, const struct ptx_operand *operand,
          const struct type *type)
{
    const char *text = value_of_type(tr, operand, type);

    if (text == NULL) {
        return false;
    }
    fprintf(tr->out, "u%u %s = %s; ", type->bits == 1 ? 8 : type->bits, name, text);
    return true;
}
