/* Loops that wait, see waits.h. */
#include "interpose/waits.h"

#include "interpose/flow_parts.h"

#include <stdlib.h>
#include <string.h>

/* Marks the registers whose value can change from one round of a loop to the next: those defined in
   it from memory or other threads, those with another definition, and what is computed from them.
 */
static void find_changing(const struct flow *flow, uint32_t loop, bool *is_changing)
{
    const struct ptx_function *function = flow->function;
    const struct ptx_graph *graph = &flow->graph;
    bool has_grown = true;

    while (has_grown) {
        has_grown = false;
        for (size_t i = 0; i < function->instruction_count; i++) {
            const struct ptx_instruction *instruction = &function->instructions[i];
            const struct ptx_operand *operands = function->operands + instruction->operand_first;
            bool changes =
                instruction->effect > EFFECT_COMPUTE || instruction->effect == EFFECT_UNKNOWN;

            if (graph->blocks[graph->block_of[i]].loop != loop ||
                !flow_has_result(instruction->effect)) {
                continue;
            }
            for (uint32_t j = 0; j < instruction->operand_count; j++) {
                changes |= operands[j].kind == OPERAND_REGISTER &&
                           (operands[j].position > 0 ? is_changing[operands[j].index]
                                                     : flow->definitions[operands[j].index] > 1);
            }
            for (uint32_t j = 0; changes && j < instruction->operand_count; j++) {
                if (operands[j].kind == OPERAND_REGISTER && operands[j].position == 0 &&
                    !is_changing[operands[j].index]) {
                    is_changing[operands[j].index] = true;
                    has_grown = true;
                }
            }
        }
    }
}

/* Whether a load, in a loop, can be what the loop waits for. */
static bool is_awaited(const struct flow *flow, const struct ptx_instruction *load,
                       const bool *is_changing)
{
    const struct ptx_function *function = flow->function;
    enum ptx_space space = flow_space(load->opcode);
    const struct ptx_operand *address = NULL;

    for (uint32_t i = 0; i < load->operand_count && address == NULL; i++) {
        const struct ptx_operand *operand = &function->operands[load->operand_first + i];

        address = operand->position == 1 && operand->is_address ? operand : NULL;
    }
    if ((load->effect != EFFECT_LOAD && load->effect != EFFECT_ATOMIC) || address == NULL ||
        (space != SPACE_GENERIC && space != SPACE_GLOBAL)) {
        return false;
    }
    if (load->effect == EFFECT_LOAD &&
        (span_has_part(load->opcode, "volatile") || span_has_part(load->opcode, "acquire"))) {
        return true;
    }
    if (address->kind == OPERAND_REGISTER && is_changing[address->index]) {
        return false;
    }
    if (load->effect == EFFECT_LOAD) {
        return true;
    }
    /* An update that is repeated with what it has found does not wait; a lock is taken with
     * constants. */
    for (uint32_t i = 0; i < load->operand_count; i++) {
        const struct ptx_operand *operand = &function->operands[load->operand_first + i];

        if (operand->position > 1 && operand->kind == OPERAND_REGISTER &&
            is_changing[operand->index]) {
            return false;
        }
    }
    return true;
}

/* Marks what the marked registers are computed from within a loop. True: something was added. */
static bool spread_back(const struct flow *flow, uint32_t loop, bool *is_wanted,
                        bool *is_load_wanted)
{
    const struct ptx_function *function = flow->function;
    const struct ptx_graph *graph = &flow->graph;
    bool has_grown = false;

    for (size_t i = 0; i < function->instruction_count; i++) {
        const struct ptx_instruction *instruction = &function->instructions[i];
        const struct ptx_operand *operands = function->operands + instruction->operand_first;
        bool is_result_wanted = false;

        if (graph->blocks[graph->block_of[i]].loop != loop) {
            continue;
        }
        for (uint32_t j = 0; j < instruction->operand_count && operands[j].position == 0; j++) {
            is_result_wanted |= operands[j].kind == OPERAND_REGISTER && !operands[j].is_address &&
                                is_wanted[operands[j].index];
        }
        if (!is_result_wanted || instruction->effect == EFFECT_STORE) {
            continue;
        }
        is_load_wanted[i] = true;
        for (uint32_t j = 0; j < instruction->operand_count; j++) {
            if (operands[j].kind == OPERAND_REGISTER && operands[j].position > 0 &&
                !operands[j].is_address && !is_wanted[operands[j].index]) {
                is_wanted[operands[j].index] = true;
                has_grown = true;
            }
        }
    }
    return has_grown;
}

/* The load that one loop may wait for; NULL: none. `marks` has two elements per register and one
   per instruction. */
static const struct ptx_instruction *check_loop(const struct flow *flow, uint32_t loop, bool *marks)
{
    const struct ptx_function *function = flow->function;
    const struct ptx_graph *graph = &flow->graph;
    bool *is_wanted = marks;
    bool *is_changing = marks + function->register_count;
    bool *is_load_wanted = is_changing + function->register_count;

    memset(marks, 0, 2 * function->register_count + function->instruction_count);
    find_changing(flow, loop, is_changing);
    for (size_t i = 0; i < graph->block_count; i++) {
        const struct ptx_block *block = &graph->blocks[i];
        const struct ptx_instruction *last = &function->instructions[block->end - 1];

        for (uint32_t j = 0; block->loop == loop && j < block->successor_count; j++) {
            uint32_t to = graph->successors[block->successor_first + j];

            if ((to == graph->block_count || graph->blocks[to].loop != loop) &&
                last->predicate != PTX_NONE) {
                is_wanted[last->predicate] = true;
            }
        }
    }
    while (spread_back(flow, loop, is_wanted, is_load_wanted)) {
    }
    for (size_t i = 0; i < function->instruction_count; i++) {
        if (is_load_wanted[i] && is_awaited(flow, &function->instructions[i], is_changing)) {
            return &function->instructions[i];
        }
    }
    return NULL;
}

capu_status waits_find(const struct flow *flow, const struct ptx_instruction **awaited)
{
    const struct ptx_function *function = flow->function;
    bool *marks =
        calloc(2 * function->register_count + function->instruction_count + 1, sizeof(*marks));

    *awaited = NULL;
    if (marks == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < flow->graph.block_count && *awaited == NULL; i++) {
        if (flow->graph.blocks[i].loop == i) {
            *awaited = check_loop(flow, i, marks);
        }
    }
    free(marks);
    return CAPU_OK;
}
