/* Functions that do the same each time, see flow.h. */
#include "interpose/flow/flow_parts.h"

/* Registers whose values a launch determines. */
static bool is_determined(struct span name)
{
    static const char *const names[] = {
        "%tid",          "%ntid",       "%ctaid",
        "%nctaid",       "%laneid",     "%lanemask_",
        "%cluster",      "%nclusterid", "%is_explicit_cluster",
        "%dynamic_smem", "%total_smem", "%aggr_smem",
        "WARP_SZ",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (flow_starts_with(name, names[i])) {
            return true;
        }
    }
    return false;
}

/* Accesses for memory that others may change or read meanwhile. */
static bool is_for_others(struct span opcode)
{
    static const char *const parts[] = {"volatile", "relaxed", "acquire", "release", "mmio", "cv"};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (span_has_part(opcode, parts[i])) {
            return true;
        }
    }
    return false;
}

static bool is_same_effect(const struct ptx_instruction *instruction)
{
    struct span opcode = instruction->opcode;

    switch (instruction->effect) {
    case EFFECT_CHOOSE:
    case EFFECT_CONVERT:
    case EFFECT_ADD:
    case EFFECT_SUBTRACT:
    case EFFECT_MULTIPLY_ADD:
    case EFFECT_COMPUTE:
    case EFFECT_COPY_ASYNC:
    case EFFECT_LOAD_TILE:
    case EFFECT_STORE_TILE:
    case EFFECT_BRANCH:
    case EFFECT_BRANCH_TABLE:
        return true;
    case EFFECT_NONE: /* waits for other kernels or for transfers of hardware */
        return !flow_starts_with(opcode, "griddepcontrol") &&
               !flow_starts_with(opcode, "cp.async.mbarrier") &&
               !flow_starts_with(opcode, "cp.async.bulk");
    case EFFECT_EXIT:
        return !flow_starts_with(opcode, "trap");
    case EFFECT_EXCHANGE: /* between threads that are known */
        return span_has_part(opcode, "sync") && !flow_starts_with(opcode, "elect") &&
               !flow_starts_with(opcode, "wgmma");
    case EFFECT_LOAD:
    case EFFECT_STORE:
        return !is_for_others(opcode);
    case EFFECT_SHARED: /* of the others, some are atomics */
        return flow_starts_with(opcode, "ldmatrix") || flow_starts_with(opcode, "stmatrix");
    default:
        return false;
    }
}

static bool is_same_operand(const struct ptx_module *module, const struct ptx_operand *operand)
{
    switch (operand->kind) {
    case OPERAND_SPECIAL:
        return is_determined(operand->name);
    case OPERAND_VARIABLE:
        return module->variables[operand->index].space == SPACE_SHARED;
    default:
        return true;
    }
}

bool repeat_is_same(const struct ptx_module *module, const struct ptx_function *function)
{
    for (size_t i = 0; i < function->instruction_count; i++) {
        if (!is_same_effect(&function->instructions[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < function->operand_count; i++) {
        if (!is_same_operand(module, &function->operands[i])) {
            return false;
        }
    }
    return true;
}
