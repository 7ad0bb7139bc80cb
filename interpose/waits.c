/* Loops that wait, see waits.h. */
#include "interpose/waits.h"

#include "interpose/access.h"
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
static bool can_be_awaited(const struct flow *flow, const struct ptx_instruction *load,
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

/* Marks the loads that one loop may wait for. `marks` has two elements per register and one per
   instruction. */
static void check_loop(const struct flow *flow, uint32_t loop, bool *marks, bool *awaited)
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
        awaited[i] |=
            is_load_wanted[i] && can_be_awaited(flow, &function->instructions[i], is_changing);
    }
}

/* Marks the blocks to which a thread can come without the block `without`. */
static void mark_before(const struct ptx_graph *graph, uint32_t without, bool *is_before)
{
    bool has_grown = without != 0;

    is_before[0] = without != 0;
    while (has_grown) {
        has_grown = false;
        for (size_t i = 0; i < graph->block_count; i++) {
            const struct ptx_block *block = &graph->blocks[i];

            for (uint32_t j = 0; is_before[i] && j < block->successor_count; j++) {
                uint32_t to = graph->successors[block->successor_first + j];

                if (to != without && to != graph->block_count && !is_before[to]) {
                    is_before[to] = true;
                    has_grown = true;
                }
            }
        }
    }
}

/* What an access reaches: bits of `bases`, and variables. */
static const struct flow_value *reach(struct flow *flow, const struct ptx_instruction *instruction,
                                      struct access *access)
{
    return access_of(flow->function, instruction, access) && access->address != NULL
               ? flow_address(flow, instruction, access->address)
               : NULL;
}

/* Whether a store in one of the blocks, or an atomic, reaches memory of a slot, or a variable if
   `slot` is SIZE_MAX. */
static bool is_stored_to(struct flow *flow, size_t slot, const bool *is_before)
{
    for (size_t i = 0; i < flow->function->instruction_count; i++) {
        struct access access;
        const struct flow_value *to;

        if (!is_before[flow->graph.block_of[i]]) {
            continue;
        }
        to = reach(flow, &flow->function->instructions[i], &access);
        if (to != NULL && (access.is_written || access.is_atomic) &&
            (slot == SIZE_MAX ? (to->flags & FLOW_AT_VARIABLE) != 0 : flow_has(to->bases, slot))) {
            return true;
        }
    }
    return false;
}

/* Whether what is awaited may be done by another thread of the launch. `is_before` has an element
   per block, all of them false. */
static bool may_be_own(struct flow *flow, uint32_t awaited, bool *is_before)
{
    const struct ptx_instruction *instruction = &flow->function->instructions[awaited];
    const struct flow_value *from;
    struct access access;
    bool has_base = false;

    from = reach(flow, instruction, &access);
    if (from == NULL) {
        return false;
    }
    mark_before(&flow->graph, flow->graph.block_of[awaited], is_before);
    if ((from->flags & FLOW_AT_VARIABLE) != 0) {
        has_base = true;
        if (!access.is_atomic && !is_stored_to(flow, SIZE_MAX, is_before)) {
            return false;
        }
    }
    for (size_t i = 0; i < flow->slot_count; i++) {
        if (flow->slots[i].kind == FLOW_PLACE || !flow_has(from->bases, i)) {
            continue;
        }
        has_base = true;
        if (!access.is_atomic && !is_stored_to(flow, i, is_before)) {
            return false;
        }
    }
    return has_base;
}

static void judge(struct flow *flow, const bool *is_awaited, bool *is_before, struct waits *waits)
{
    for (uint32_t i = 0; i < flow->function->instruction_count; i++) {
        if (!is_awaited[i]) {
            continue;
        }
        waits->has_some = true;
        memset(is_before, 0, flow->graph.block_count * sizeof(*is_before));
        if (!may_be_own(flow, i, is_before)) {
            waits->for_others = &flow->function->instructions[i];
            return;
        }
    }
}

capu_status waits_find(struct flow *flow, struct waits *waits)
{
    const struct ptx_function *function = flow->function;
    size_t marks_count = 2 * function->register_count + function->instruction_count;
    bool *marks = calloc(marks_count + 1, sizeof(*marks));
    bool *is_awaited = calloc(function->instruction_count + 1, sizeof(*is_awaited));
    bool *is_before = calloc(flow->graph.block_count + 1, sizeof(*is_before));
    capu_status status = CAPU_NO_HOST_MEMORY;

    *waits = (struct waits){0};
    if (marks != NULL && is_awaited != NULL && is_before != NULL) {
        for (uint32_t i = 0; i < flow->graph.block_count; i++) {
            if (flow->graph.blocks[i].loop == i) {
                check_loop(flow, i, marks, is_awaited);
            }
        }
        judge(flow, is_awaited, is_before, waits);
        status = CAPU_OK;
    }
    free(marks);
    free(is_awaited);
    free(is_before);
    return status;
}
