/* The access of an instruction, see flow.h. */
#include "interpose/flow/flow.h"

#include "interpose/ptx/ptx_opcode.h"

enum { BULK_UNIT = 16 }; /* bulk copies are of whole units */

/* The operand at a position that is in brackets, or is not. NULL: there is none. */
static const struct ptx_operand *operand_at(const struct ptx_function *function,
                                            const struct ptx_instruction *instruction,
                                            unsigned position, bool is_address)
{
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        const struct ptx_operand *operand = &function->operands[instruction->operand_first + i];

        if (operand->position == position && operand->is_address == is_address) {
            return operand;
        }
    }
    return NULL;
}

/* How much an asynchronous copy moves: a number after both addresses. */
static unsigned copied_bytes(const struct ptx_function *function,
                             const struct ptx_instruction *instruction)
{
    const struct ptx_operand *operand = operand_at(function, instruction, 2, false);

    return operand != NULL && operand->kind == OPERAND_NUMBER ? (unsigned)operand->number
                                                              : 16; /* the most */
}

/* The lines of a tile of wmma: "wmma.load.b.sync.aligned.row.m16n16k16.f16" has 16 of 16 items. */
static void find_lines(const struct ptx_function *function,
                       const struct ptx_instruction *instruction, struct access *access)
{
    static const struct {
        const char *name;
        unsigned m, n, k;
    } shapes[] = {{"m16n16k16", 16, 16, 16},
                  {"m32n8k16", 32, 8, 16},
                  {"m8n32k16", 8, 32, 16},
                  {"m16n16k8", 16, 16, 8},
                  {"m8n8k4", 8, 8, 4}};
    struct span opcode = instruction->opcode;
    bool is_a = span_has_part(opcode, "a");
    bool is_b = span_has_part(opcode, "b");
    bool is_by_rows = span_has_part(opcode, "row");

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (span_has_part(opcode, shapes[i].name) && (is_by_rows || span_has_part(opcode, "col"))) {
            unsigned rows = is_b ? shapes[i].k : shapes[i].m;
            unsigned columns = is_a ? shapes[i].k : shapes[i].n;

            access->line_count = is_by_rows ? rows : columns;
            access->line_bytes = (is_by_rows ? columns : rows) * access->bytes;
            access->stride = operand_at(function, instruction, 2, false);
        }
    }
}

/* The space of an access's address: a copy names two. */
static enum ptx_space space_of(const struct ptx_instruction *instruction)
{
    return instruction->effect == EFFECT_COPY_ASYNC || instruction->effect == EFFECT_BULK_LOAD
               ? SPACE_GLOBAL
               : flow_space(instruction->opcode);
}

/* Whether something follows the size of an asynchronous copy: a smaller size, or a predicate; a
   cache policy is taken for one of them. */
static bool has_operand_after_size(const struct ptx_function *function,
                                   const struct ptx_instruction *instruction)
{
    uint32_t last = instruction->operand_first + instruction->operand_count;

    return instruction->operand_count > 0 && function->operands[last - 1].position > 2;
}

bool access_of(const struct ptx_function *function, const struct ptx_instruction *instruction,
               struct access *access)
{
    *access = (struct access){.instruction = instruction, .space = space_of(instruction)};
    switch (instruction->effect) {
    case EFFECT_LOAD:
    case EFFECT_LOAD_TILE:
        access->is_read = true;
        access->position = 1;
        break;
    case EFFECT_STORE:
    case EFFECT_STORE_TILE:
    case EFFECT_DISCARD:
        access->is_written = true;
        break;
    case EFFECT_ATOMIC:
        access->is_atomic = access->is_read = access->is_written = true;
        access->position = 1;
        break;
    case EFFECT_REDUCE:
        access->is_atomic = access->is_read = access->is_written = true;
        break;
    case EFFECT_COPY_ASYNC:
    case EFFECT_BULK_LOAD:
        access->is_read = true;
        access->position = 1;
        break;
    default:
        return false;
    }
    access->is_tile = instruction->effect == EFFECT_LOAD_TILE ||
                      instruction->effect == EFFECT_STORE_TILE ||
                      instruction->effect == EFFECT_DISCARD;
    access->bytes =
        ptx_opcode_bits(instruction->opcode) / 8 * ptx_opcode_elements(instruction->opcode);
    if (instruction->effect == EFFECT_COPY_ASYNC) {
        access->bytes = copied_bytes(function, instruction);
        access->may_be_cut = has_operand_after_size(function, instruction);
    }
    if (instruction->effect == EFFECT_BULK_LOAD) {
        access->length = operand_at(function, instruction, 2, false);
        access->bytes = access->length == NULL ? 0 : BULK_UNIT;
    }
    if (instruction->effect == EFFECT_LOAD_TILE || instruction->effect == EFFECT_STORE_TILE) {
        find_lines(function, instruction, access);
    }
    access->address = operand_at(function, instruction, access->position, true);
    return true;
}

const struct ptx_operand *access_measure(const struct access *access)
{
    const struct ptx_operand *operand = access->length != NULL ? access->length : access->stride;

    return operand != NULL && operand->kind == OPERAND_REGISTER ? operand : NULL;
}
