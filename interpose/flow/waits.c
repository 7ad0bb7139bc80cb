/* Loops that wait, see flow.h. */
#include "interpose/flow/flow_parts.h"

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

/* Whether a load, in a loop, can be what the loop waits for. Plain loads cannot be relied on for
   that. In loops within loops, where computations end that way often, they do not count. */
static bool can_be_awaited(const struct flow *flow, const struct ptx_instruction *load,
                           const bool *is_changing, bool is_nested)
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
        return !is_nested;
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

/* Adds to the marked blocks those to which a thread can come from there without `without`. */
static void spread(const struct ptx_graph *graph, uint32_t without, bool *is_marked)
{
    bool has_grown = true;

    while (has_grown) {
        has_grown = false;
        for (size_t i = 0; i < graph->block_count; i++) {
            const struct ptx_block *block = &graph->blocks[i];

            for (uint32_t j = 0; is_marked[i] && j < block->successor_count; j++) {
                uint32_t to = graph->successors[block->successor_first + j];

                if (to != without && to != graph->block_count && !is_marked[to]) {
                    is_marked[to] = true;
                    has_grown = true;
                }
            }
        }
    }
}

/* Whether each way from a block back to itself leads through `through`. `is_marked`: an element per
   block. */
static bool is_in_each_round(const struct ptx_graph *graph, uint32_t block, uint32_t through,
                             bool *is_marked)
{
    const struct ptx_block *start = &graph->blocks[block];

    if (block == through) {
        return true;
    }
    memset(is_marked, 0, graph->block_count * sizeof(*is_marked));
    for (uint32_t i = 0; i < start->successor_count; i++) {
        uint32_t to = graph->successors[start->successor_first + i];

        if (to != through && to != graph->block_count) {
            is_marked[to] = true;
        }
    }
    spread(graph, through, is_marked);
    return !is_marked[block];
}

/* The only instruction of a loop that computes a register, if it has no predicate; else NULL. */
static const struct ptx_instruction *only_definition(const struct flow *flow, uint32_t loop,
                                                     uint32_t reg)
{
    const struct ptx_function *function = flow->function;
    const struct ptx_instruction *found = NULL;

    for (size_t i = 0; i < function->instruction_count; i++) {
        const struct ptx_instruction *instruction = &function->instructions[i];
        const struct ptx_operand *operands = function->operands + instruction->operand_first;

        if (flow->graph.blocks[flow->graph.block_of[i]].loop != loop ||
            !flow_has_result(instruction->effect)) {
            continue;
        }
        for (uint32_t j = 0; j < instruction->operand_count && operands[j].position == 0; j++) {
            if (operands[j].kind != OPERAND_REGISTER || operands[j].index != reg) {
                continue;
            }
            if (found != NULL || instruction->predicate != PTX_NONE) {
                return NULL;
            }
            found = instruction;
        }
    }
    return found;
}

/* Whether an instruction copies a register, or adds to it what stays the same. Then *from is that
   register. */
static bool is_step(const struct flow *flow, const struct ptx_instruction *instruction,
                    const bool *is_changing, uint32_t *from, bool *adds)
{
    const struct ptx_operand *operands = flow->function->operands + instruction->operand_first;
    bool is_sum = flow_starts_with(instruction->opcode, "add.") ||
                  flow_starts_with(instruction->opcode, "sub.");

    if (is_sum && instruction->operand_count == 3 && operands[1].kind == OPERAND_REGISTER &&
        (operands[2].kind == OPERAND_NUMBER ||
         (operands[2].kind == OPERAND_REGISTER && !is_changing[operands[2].index]))) {
        *from = operands[1].index;
        *adds = true;
        return true;
    }
    if (flow_starts_with(instruction->opcode, "mov.") && instruction->operand_count == 2 &&
        operands[1].kind == OPERAND_REGISTER) {
        *from = operands[1].index;
        return true;
    }
    return false;
}

/* Whether an instruction takes the next number from a counter in memory. */
static bool is_ticket(const struct flow *flow, const struct ptx_instruction *instruction,
                      const bool *is_changing)
{
    const struct ptx_operand *operands = flow->function->operands + instruction->operand_first;

    return instruction->effect == EFFECT_ATOMIC && instruction->operand_count == 3 &&
           span_has_part(instruction->opcode, "add") &&
           (operands[2].kind == OPERAND_NUMBER
                ? operands[2].number != 0
                : operands[2].kind == OPERAND_REGISTER && !is_changing[operands[2].index]);
}

/* Whether a register of a loop counts the rounds between two passes of `block`, or the rounds of
   all threads. */
static bool is_counter(const struct flow *flow, uint32_t loop, uint32_t reg, uint32_t block,
                       const bool *is_changing, bool *is_marked)
{
    enum { STEPS_MOST = 4 };
    uint32_t at = reg;
    bool adds = false;

    for (unsigned i = 0; i < STEPS_MOST; i++) {
        const struct ptx_instruction *step = only_definition(flow, loop, at);

        if (step == NULL ||
            !is_in_each_round(&flow->graph, block,
                              flow->graph.block_of[step - flow->function->instructions],
                              is_marked)) {
            return false;
        }
        if (is_ticket(flow, step, is_changing)) {
            return true;
        }
        if (!is_step(flow, step, is_changing, &at, &adds)) {
            return false;
        }
        if (at == reg) {
            return adds;
        }
    }
    return false;
}

/* Whether an instruction of a loop compares with a counter: the rounds end, whatever memory holds.
 */
static bool ends_by_itself(const struct flow *flow, uint32_t loop, size_t index,
                           const bool *is_changing, bool *is_marked)
{
    const struct ptx_instruction *instruction = &flow->function->instructions[index];
    const struct ptx_operand *operands = flow->function->operands + instruction->operand_first;

    if (!flow_starts_with(instruction->opcode, "setp.")) {
        return false;
    }
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        if (operands[i].position > 0 && operands[i].kind == OPERAND_REGISTER &&
            is_counter(flow, loop, operands[i].index, flow->graph.block_of[index], is_changing,
                       is_marked)) {
            return true;
        }
    }
    return false;
}

/* Whether an instruction compares what an exchange has found with what it has compared that with.
 */
static bool compares_found(const struct ptx_operand *exchange,
                           const struct ptx_instruction *instruction,
                           const struct ptx_operand *operands)
{
    bool is_equality = flow_starts_with(instruction->opcode, "setp.eq.") ||
                       flow_starts_with(instruction->opcode, "setp.ne.");

    return is_equality && instruction->operand_count == 3 && instruction->predicate == PTX_NONE &&
           !span_has_part(instruction->opcode, "f32") &&
           !span_has_part(instruction->opcode, "f64") && operands[1].kind == OPERAND_REGISTER &&
           operands[2].kind == OPERAND_REGISTER &&
           ((operands[1].index == exchange[0].index && operands[2].index == exchange[2].index) ||
            (operands[1].index == exchange[2].index && operands[2].index == exchange[0].index));
}

/* Whether a loop is left as soon as the compare-and-swap at `index` has stored something. Then what
   it stores does not decide how long the loop goes on. */
static bool ends_when_stored(const struct flow *flow, uint32_t loop, size_t index)
{
    const struct ptx_function *function = flow->function;
    const struct ptx_instruction *exchange = &function->instructions[index];
    const struct ptx_operand *parts = function->operands + exchange->operand_first;
    const struct ptx_block *block = &flow->graph.blocks[flow->graph.block_of[index]];
    const struct ptx_instruction *last = &function->instructions[block->end - 1];
    const struct ptx_instruction *test = NULL;
    uint32_t way;

    if (exchange->effect != EFFECT_ATOMIC || !span_has_part(exchange->opcode, "cas") ||
        exchange->operand_count < 4 || exchange->predicate != PTX_NONE ||
        parts[0].kind != OPERAND_REGISTER || parts[2].kind != OPERAND_REGISTER ||
        last->effect != EFFECT_BRANCH || last->predicate == PTX_NONE ||
        block->successor_count != 2) {
        return false;
    }
    for (size_t i = index + 1; i + 1 < block->end; i++) {
        const struct ptx_instruction *instruction = &function->instructions[i];
        const struct ptx_operand *operands = function->operands + instruction->operand_first;

        if (test == NULL && compares_found(parts, instruction, operands) &&
            operands[0].index == last->predicate) {
            test = instruction;
            continue;
        }
        for (uint32_t j = 0; j < instruction->operand_count && operands[j].position == 0; j++) {
            if (operands[j].kind == OPERAND_REGISTER &&
                (operands[j].index == last->predicate ||
                 (test == NULL &&
                  (operands[j].index == parts[0].index || operands[j].index == parts[2].index)))) {
                return false;
            }
        }
    }
    if (test == NULL) {
        return false;
    }
    /* The ways out: that of the branch, then to the next block. */
    way = flow_starts_with(test->opcode, "setp.eq.") != last->is_negated ? 0 : 1;
    way = flow->graph.successors[block->successor_first + way];
    return way == flow->graph.block_count || flow->graph.blocks[way].loop != loop;
}

/* Marks what the marked registers are computed from within a loop. True: something was added. */
static bool spread_back(const struct flow *flow, uint32_t loop, const bool *is_changing,
                        bool *is_marked, bool *is_wanted, bool *is_load_wanted)
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
        if (!is_result_wanted || is_load_wanted[i] || instruction->effect == EFFECT_STORE ||
            ends_by_itself(flow, loop, i, is_changing, is_marked)) {
            continue;
        }
        is_load_wanted[i] = true;
        for (uint32_t j = 0; j < instruction->operand_count; j++) {
            bool is_stored = operands[j].position > 2 && ends_when_stored(flow, loop, i);

            if (operands[j].kind == OPERAND_REGISTER && operands[j].position > 0 && !is_stored &&
                !operands[j].is_address && !is_wanted[operands[j].index]) {
                is_wanted[operands[j].index] = true;
                has_grown = true;
            }
        }
    }
    return has_grown;
}

/* Marks the loads that one loop may wait for. `marks` has two elements per register, one per
   instruction, and one per block. */
static void check_loop(const struct flow *flow, uint32_t loop, bool is_nested, bool *marks,
                       bool *awaited)
{
    const struct ptx_function *function = flow->function;
    const struct ptx_graph *graph = &flow->graph;
    bool *is_wanted = marks;
    bool *is_changing = marks + function->register_count;
    bool *is_load_wanted = is_changing + function->register_count;
    bool *is_marked = is_load_wanted + function->instruction_count;

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
    while (spread_back(flow, loop, is_changing, is_marked, is_wanted, is_load_wanted)) {
    }
    for (size_t i = 0; i < function->instruction_count; i++) {
        awaited[i] |= is_load_wanted[i] &&
                      can_be_awaited(flow, &function->instructions[i], is_changing, is_nested);
    }
}

/* Marks the blocks to which a thread can come without the block `without`. */
static void mark_before(const struct ptx_graph *graph, uint32_t without, bool *is_before)
{
    is_before[0] = without != 0;
    spread(graph, without, is_before);
}

/* What an access reaches: bits of `bases`, and variables. */
static const struct flow_value *
reach_of(struct flow *flow, const struct ptx_instruction *instruction, struct access *access)
{
    return access_of(flow->function, instruction, access) && access->address != NULL
               ? flow_address(flow, instruction, access->address)
               : NULL;
}

/* Whether a store in one of the blocks or before `awaited` in its own, or an atomic, reaches memory
   of a slot, or a variable if `slot` is SIZE_MAX. */
static bool is_stored_to(struct flow *flow, size_t slot, uint32_t awaited, const bool *is_before)
{
    for (size_t i = 0; i < flow->function->instruction_count; i++) {
        struct access access;
        const struct flow_value *to;

        if (!is_before[flow->graph.block_of[i]] &&
            (flow->graph.block_of[i] != flow->graph.block_of[awaited] || i > awaited)) {
            continue;
        }
        to = reach_of(flow, &flow->function->instructions[i], &access);
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

    from = reach_of(flow, instruction, &access);
    if (from == NULL) {
        return false;
    }
    /* Nothing else stores to a launch's own barrier, nor to memory of a block. */
    if (flow_is_grid(flow, from)) {
        return true;
    }
    has_base =
        (from->flags & (FLOW_AT_SHARED | FLOW_AT_LOCAL)) != 0 && (from->flags & FLOW_BASELESS) == 0;
    mark_before(&flow->graph, flow->graph.block_of[awaited], is_before);
    if ((from->flags & FLOW_AT_VARIABLE) != 0) {
        has_base = true;
        if (!access.is_atomic && !is_stored_to(flow, SIZE_MAX, awaited, is_before)) {
            return false;
        }
    }
    for (size_t i = 0; i < flow->slot_count; i++) {
        if (flow->slots[i].kind == FLOW_PLACE || !flow_has(from->bases, i)) {
            continue;
        }
        has_base = true;
        if (!access.is_atomic && !is_stored_to(flow, i, awaited, is_before)) {
            return false;
        }
    }
    return has_base;
}

static void judge_wait(struct flow *flow, const bool *is_awaited, bool *is_before,
                       struct waits *waits)
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

/* Marks the loads that some loop may wait for. `marks` is as for one loop. */
static capu_status check_loops(struct flow *flow, bool *marks, bool *awaited)
{
    struct ptx_loops loops;
    bool is_nested = false;

    if (ptx_loops_begin(&flow->graph, &loops) != CAPU_OK) {
        return CAPU_NO_HOST_MEMORY;
    }
    do {
        for (uint32_t i = 0; i < flow->graph.block_count; i++) {
            if (flow->graph.blocks[i].loop == i) {
                check_loop(flow, i, is_nested, marks, awaited);
            }
        }
        is_nested = true;
    } while (ptx_loops_open(&loops));
    ptx_loops_end(&loops);
    return CAPU_OK;
}

capu_status waits_find(struct flow *flow, struct waits *waits)
{
    const struct ptx_function *function = flow->function;
    size_t marks_count =
        2 * function->register_count + function->instruction_count + flow->graph.block_count;
    bool *marks = calloc(marks_count + 1, sizeof(*marks));
    bool *is_awaited = calloc(function->instruction_count + 1, sizeof(*is_awaited));
    bool *is_before = calloc(flow->graph.block_count + 1, sizeof(*is_before));
    capu_status status = CAPU_NO_HOST_MEMORY;

    *waits = (struct waits){0};
    if (marks != NULL && is_awaited != NULL && is_before != NULL) {
        status = check_loops(flow, marks, is_awaited);
        if (status == CAPU_OK) {
            judge_wait(flow, is_awaited, is_before, waits);
        }
    }
    free(marks);
    free(is_awaited);
    free(is_before);
    return status;
}
