/* The access of an instruction, see access.h. */
#include "interpose/access.h"

#include "interpose/ptx_opcode.h"

/* Finds the operand in brackets that an instruction accesses. */
static const struct ptx_operand *address_at(const struct ptx_function *function,
                                            const struct ptx_instruction *instruction,
                                            unsigned position)
{
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        const struct ptx_operand *operand = &function->operands[instruction->operand_first + i];

        if (operand->position == position && operand->is_address) {
            return operand;
        }
    }
    return NULL;
}

/* How much an asynchronous copy moves: a number after both addresses. */
static unsigned copied_bytes(const struct ptx_function *function,
                             const struct ptx_instruction *instruction)
{
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        const struct ptx_operand *operand = &function->operands[instruction->operand_first + i];

        if (operand->position == 2 && operand->kind == OPERAND_NUMBER) {
            return (unsigned)operand->number;
        }
    }
    return 16; /* the most */
}

/* The space of an access's address: a copy names two. */
static enum ptx_space space_of(const struct ptx_instruction *instruction)
{
    return instruction->effect == EFFECT_COPY_ASYNC ? SPACE_GLOBAL
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
    access->address = address_at(function, instruction, access->position);
    return true;
}
