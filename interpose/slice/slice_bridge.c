/*
 * Branches whose outcome is not known, see slice.h: the slice takes one way, and then, from where
 * the ways would meet, the other. That is right for addresses that do not depend on the branch,
 * which the data flow knows, if
 *
 * - neither way leads back to the branch;
 * - the ways have no block in common before they meet;
 * - nothing that the slice computes on the first way can be taken for an older value on the second;
 * - nothing is loaded on either way, since the address could be wrong where it would not run.
 *
 * A loop on one of the ways could be endless where the kernel would not come. So its rounds are
 * counted, see slice_text.c.
 */
#include "interpose/slice/slice_parts.h"

#include "interpose/flow/flow_parts.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* A walk through the blocks of one side, in depth. */
struct walk {
    const struct ptx_graph *graph;
    const struct slice_bridge *bridge;
    uint32_t *stack;
    uint32_t *next; /* of each block: the successor to visit */
};

static void enter(struct walk *walk, uint32_t *depth, uint32_t block, enum slice_side side)
{
    walk->stack[(*depth)++] = block;
    walk->next[block] = 0;
    walk->bridge->sides[block] = (uint8_t)side;
}

/* Marks the blocks of a side. False: it leads back to the branch, or has blocks of the
   other side. */
static bool mark_side(struct walk *walk, uint32_t start, enum slice_side side)
{
    const struct slice_bridge *bridge = walk->bridge;
    uint32_t depth = 0;
    bool is_right = true;

    if (start == bridge->meeting) {
        return true;
    }
    if (bridge->sides[start] != SLICE_OUTSIDE || start == bridge->branch) {
        return false;
    }
    enter(walk, &depth, start, side);
    while (depth > 0) {
        uint32_t at = walk->stack[depth - 1];
        const struct ptx_block *block = &walk->graph->blocks[at];
        uint32_t to;

        if (walk->next[at] == block->successor_count) {
            depth--;
            continue;
        }
        to = walk->graph->successors[block->successor_first + walk->next[at]++];
        if (to == bridge->meeting) {
            continue;
        }
        is_right &= to != bridge->branch &&
                    (bridge->sides[to] == SLICE_OUTSIDE || bridge->sides[to] == side);
        if (bridge->sides[to] == SLICE_OUTSIDE) {
            enter(walk, &depth, to, side);
        }
    }
    return is_right;
}

/* Whether both ways of a block's branch can be taken. */
static bool find_bridge(struct walk *walk, const struct ptx_function *function, uint32_t branch,
                        struct slice_bridge *bridge)
{
    const struct ptx_block *block = &walk->graph->blocks[branch];
    const uint32_t *ways = walk->graph->successors + block->successor_first;

    if (block->successor_count != 2 || ways[0] == ways[1] ||
        function->instructions[block->end - 1].effect == EFFECT_BRANCH_TABLE) {
        return false;
    }
    bridge->branch = branch;
    bridge->meeting = block->meeting;
    bridge->first = ways[0] == block->meeting ? ways[1] : ways[0];
    bridge->second = ways[0] == block->meeting ? ways[0] : ways[1];
    walk->bridge = bridge;
    if (!mark_side(walk, bridge->first, SLICE_FIRST) ||
        !mark_side(walk, bridge->second, SLICE_SECOND)) {
        return false;
    }
    for (size_t i = 0; i < walk->graph->block_count; i++) {
        bridge->size += bridge->sides[i] == SLICE_FIRST;
    }
    return true;
}

static capu_status find_bridges(struct slicer *slicer, struct walk *walk)
{
    size_t blocks = slicer->flow.graph.block_count;

    for (uint32_t i = 0; i < blocks; i++) {
        struct slice_bridge bridge = {.branch = i};

        if (slicer->branch_flags[i] == 0) {
            continue;
        }
        bridge.sides = calloc(blocks + 1, sizeof(*bridge.sides));
        if (bridge.sides == NULL ||
            !array_reserve(&slicer->bridges, &slicer->bridge_capacity, slicer->bridge_count + 1,
                           sizeof(*slicer->bridges))) {
            free(bridge.sides);
            return CAPU_NO_HOST_MEMORY;
        }
        if (find_bridge(walk, slicer->function, i, &bridge)) {
            slicer->bridges[slicer->bridge_count++] = bridge;
        } else {
            slicer->is_barred[i] = true;
            free(bridge.sides);
        }
    }
    return CAPU_OK;
}

capu_status slice_find_bridges(struct slicer *slicer)
{
    size_t blocks = slicer->flow.graph.block_count;
    struct walk walk = {.graph = &slicer->flow.graph,
                        .stack = calloc(blocks + 1, sizeof(*walk.stack)),
                        .next = calloc(blocks + 1, sizeof(*walk.next))};
    capu_status status = CAPU_NO_HOST_MEMORY;

    if (walk.stack != NULL && walk.next != NULL) {
        status = find_bridges(slicer, &walk);
    }
    free(walk.stack);
    free(walk.next);
    return status;
}

/* Whether an instruction of the slice defines a register that has other definitions. */
static bool redefines(const struct slicer *slicer, const struct ptx_instruction *instruction)
{
    const struct ptx_operand *operands = slicer->function->operands + instruction->operand_first;

    for (uint32_t i = 0; i < instruction->operand_count && operands[i].position == 0; i++) {
        if (operands[i].kind == OPERAND_REGISTER &&
            slicer->flow.definitions[operands[i].index] > 1) {
            return true;
        }
    }
    return false;
}

/* Whether the slice has something on the ways of a bridge that must not be there. */
static bool is_spoilt(const struct slicer *slicer, const struct slice_bridge *bridge)
{
    for (size_t i = 0; i < slicer->function->instruction_count; i++) {
        const struct ptx_instruction *instruction = &slicer->function->instructions[i];
        const struct ptx_operand *operands =
            slicer->function->operands + instruction->operand_first;
        enum slice_side side = bridge->sides[slicer->flow.graph.block_of[i]];
        bool is_plain_load = instruction->effect == EFFECT_LOAD && instruction->operand_count > 0 &&
                             operands[instruction->operand_count - 1].kind == OPERAND_PARAMETER;

        if (!slicer->all.instructions[i] || side == SLICE_OUTSIDE) {
            continue;
        }
        if ((instruction->effect == EFFECT_LOAD && !is_plain_load) ||
            (side == SLICE_FIRST && bridge->second != bridge->meeting &&
             redefines(slicer, instruction))) {
            return true;
        }
    }
    return false;
}

bool slice_bar_bridges(struct slicer *slicer)
{
    bool has_barred = false;

    for (size_t i = 0; i < slicer->bridge_count; i++) {
        const struct slice_bridge *bridge = &slicer->bridges[i];

        if (slicer->all.branches[bridge->branch] == SLICE_BRANCH_MAY &&
            !slicer->is_barred[bridge->branch] && is_spoilt(slicer, bridge)) {
            slicer->is_barred[bridge->branch] = true;
            has_barred = true;
        }
    }
    return has_barred;
}

const struct slice_bridge *slice_bridge_at(const struct slicer *slicer, uint32_t block)
{
    for (size_t i = 0; i < slicer->bridge_count; i++) {
        if (slicer->bridges[i].branch == block) {
            return &slicer->bridges[i];
        }
    }
    return NULL;
}

bool slice_is_bridged(const struct slicer *slicer, uint32_t block)
{
    for (size_t i = 0; i < slicer->bridge_count; i++) {
        if (slicer->all.branches[slicer->bridges[i].branch] == SLICE_BRANCH_MAY &&
            slicer->bridges[i].sides[block] != SLICE_OUTSIDE) {
            return true;
        }
    }
    return false;
}

/* The first way of a bridge leads on to its second. Of several that meet there, the innermost; one
   whose second way is empty changes nothing. */
uint32_t slice_next_block(const struct slicer *slicer, uint32_t block, uint32_t to)
{
    const struct slice_bridge *innermost = NULL;

    for (size_t i = 0; i < slicer->bridge_count; i++) {
        const struct slice_bridge *bridge = &slicer->bridges[i];

        if (slicer->all.branches[bridge->branch] == SLICE_BRANCH_MAY && bridge->meeting == to &&
            bridge->second != to && bridge->sides[block] == SLICE_FIRST &&
            (innermost == NULL || bridge->size < innermost->size)) {
            innermost = bridge;
        }
    }
    return innermost == NULL ? to : innermost->second;
}
