/*
 * Data flow, see flow.h. Values only grow, and the instructions are walked until none does: two or
 * three walks as a rule, since compilers write definitions before uses.
 */
#include "interpose/flow/flow_parts.h"

#include <stdlib.h>
#include <string.h>

/* Beyond this an analysis would take minutes; no real kernel comes near. */
enum { WALKS_MOST = 2000 };

/* What decides whether a block runs: the predicates of the branches that it depends on, and what
   decides whether those run. */
static bool walk_condition(struct flow *flow, uint32_t index)
{
    const struct ptx_block *block = &flow->graph.blocks[index];
    struct flow_value *condition = flow_extra(flow, FLOW_BLOCKS + index);
    struct flow_value *scratch = flow_extra(flow, FLOW_SCRATCH);

    flow_clear(flow, scratch);
    for (uint32_t i = 0; i < block->control_count; i++) {
        uint32_t from = flow->graph.sources[flow->graph.controls[block->control_first + i]];

        (void)flow_join_dependence(flow, scratch, flow_extra(flow, FLOW_BLOCKS + from));
        (void)flow_depend_on_branch(flow, from, scratch);
    }
    return flow_join(flow, condition, scratch);
}

/* Gives a value its sets, one after another. */
static void place_sets(const struct flow *flow, struct flow_value *value, uint64_t *sets)
{
    value->bases = sets;
    value->uses = sets + flow->set_words;
    value->choices = sets + 2 * flow->set_words;
}

static capu_status walk_function(struct flow *flow)
{
    struct flow_transfer transfer = {.flow = flow};
    size_t words = 2 * flow->set_words + flow->choice_words;
    uint64_t *sets = calloc(2 * words, sizeof(*sets));
    bool has_grown = true;
    unsigned walks = 0;

    if (sets == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    place_sets(flow, &transfer.value, sets);
    place_sets(flow, &transfer.operand, sets + words);
    while (has_grown && walks < WALKS_MOST) {
        has_grown = false;
        for (uint32_t i = 0; i < flow->graph.block_count; i++) {
            has_grown |= walk_condition(flow, i);
            for (uint32_t j = flow->graph.blocks[i].first; j < flow->graph.blocks[i].end; j++) {
                transfer.instruction = &flow->function->instructions[j];
                has_grown |= flow_walk_instruction(&transfer);
            }
        }
        walks++;
    }
    free(sets);
    return has_grown ? CAPU_TOO_LARGE : CAPU_OK;
}

static capu_status make_values(struct flow *flow)
{
    size_t words = 2 * flow->set_words + flow->choice_words;

    flow->value_count = flow->function->register_count + FLOW_BLOCKS + flow->graph.block_count;
    if ((uint64_t)flow->value_count * words * 64 > 2 * FLOW_BITS_MOST) {
        return CAPU_TOO_LARGE;
    }
    flow->values = calloc(flow->value_count, sizeof(*flow->values));
    flow->sets = calloc(flow->value_count * words, sizeof(*flow->sets));
    if (flow->values == NULL || flow->sets == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < flow->value_count; i++) {
        place_sets(flow, &flow->values[i], flow->sets + i * words);
    }
    return CAPU_OK;
}

capu_status flow_build(const struct ptx_module *module, const struct ptx_function *function,
                       struct flow *flow)
{
    capu_status status;

    *flow = (struct flow){.module = module, .function = function};
    status = ptx_graph_build(function, &flow->graph);
    if (status == CAPU_OK) {
        status = flow_count_definitions(flow);
    }
    if (status == CAPU_OK) {
        flow_find_places(flow);
        flow_find_halves(flow);
        status = flow_list_slots(flow);
    }
    if (status == CAPU_OK) {
        flow->set_words = flow->slot_count / 64 + 1;
        status = flow_find_choosers(flow);
    }
    if (status == CAPU_OK) {
        status = make_values(flow);
    }
    if (status == CAPU_OK) {
        status = flow_find_unset(flow);
    }
    if (status == CAPU_OK) {
        status = walk_function(flow);
    }
    if (status != CAPU_OK) {
        flow_finish(flow);
    }
    return status;
}

void flow_finish(struct flow *flow)
{
    ptx_graph_finish(&flow->graph);
    free(flow->slots);
    free(flow->values);
    free(flow->sets);
    free(flow->places);
    free(flow->halved);
    free(flow->chooser_first);
    free(flow->choosers);
    free(flow->branch_numbers);
    free(flow->branches);
    free(flow->reached);
    free(flow->deciding);
    free(flow->definitions);
    *flow = (struct flow){0};
}

/* Whether a branch, by number, makes no difference where a block runs: it comes later, or the block
   is on one of its ways. */
static bool is_decided(const struct flow *flow, uint32_t number, uint32_t block)
{
    uint32_t branch = flow->branches[number];
    const struct ptx_block *from = &flow->graph.blocks[branch];
    const uint64_t *deciding = flow->deciding + block * flow->deciding_words;
    unsigned count = 0;

    if (!flow_has(flow->reached + number * flow->reached_words, block)) {
        return true;
    }
    for (uint32_t i = 0; i < from->successor_count; i++) {
        count += flow_has(deciding, from->successor_first + i);
    }
    return count == 1;
}

/* Adds what the branches among the value's choices depend on, whose predicates may have choices of
   their own; not those whose outcome is known where `block` runs, unless it is PTX_NONE. */
static void settle_choices(const struct flow *flow, struct flow_value *value, uint32_t block)
{
    bool has_more = true;

    while (has_more) {
        has_more = false;
        for (uint32_t i = 0; i < flow->branch_count; i++) {
            if (flow_has(value->choices, i) && (block == PTX_NONE || !is_decided(flow, i, block))) {
                has_more |= flow_depend_on_branch(flow, flow->branches[i], value);
            }
        }
    }
}

const struct flow_value *flow_address(struct flow *flow, const struct ptx_instruction *instruction,
                                      const struct ptx_operand *operand)
{
    struct flow_value *scratch = flow_extra(flow, FLOW_SCRATCH);

    flow_clear(flow, scratch);
    flow_read_operand(flow, operand, scratch);
    settle_choices(flow, scratch, flow->graph.block_of[instruction - flow->function->instructions]);
    return scratch;
}

const struct flow_value *flow_condition(struct flow *flow,
                                        const struct ptx_instruction *instruction)
{
    struct flow_value *scratch = flow_extra(flow, FLOW_SCRATCH);
    uint32_t block = flow->graph.block_of[instruction - flow->function->instructions];

    flow_clear(flow, scratch);
    (void)flow_join_dependence(flow, scratch, flow_extra(flow, FLOW_BLOCKS + block));
    if (instruction->predicate != PTX_NONE) {
        (void)flow_join_dependence(flow, scratch, &flow->values[instruction->predicate]);
    }
    settle_choices(flow, scratch, PTX_NONE);
    return scratch;
}
