/*
 * What one access needs, see slice.h: the definitions of the registers in its address, what decides
 * whether it and those definitions run, and so on, backwards. All definitions of a register count,
 * wherever they are, as in the data flow.
 */
#include "interpose/slice/slice_parts.h"

#include "base/array.h"
#include "interpose/flow/flow_parts.h"

#include <stdlib.h>
#include <string.h>

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

/* A walk through the blocks of one side, in depth. */
struct walk {
    const struct ptx_graph *graph;
    const struct slice_bridge *bridge;
    uint32_t *stack;
    uint32_t *next; /* of each block: the successor to visit */
};

static void enter_block(struct walk *walk, uint32_t *depth, uint32_t block, enum slice_side side)
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
    enter_block(walk, &depth, start, side);
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
            enter_block(walk, &depth, to, side);
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

const char *slice_reason(uint32_t flags)
{
    return (flags & FLOW_UNKNOWN) != 0 ? roles_unknown(flags)
           : (flags & FLOW_DATA) != 0  ? "data that the kernel loads"
                                       : "a variable of the module";
}

uint32_t slice_unknown(struct slicer *slicer, const struct ptx_instruction *instruction,
                       uint32_t index)
{
    struct ptx_operand operand = {.kind = OPERAND_REGISTER, .index = index};

    return flow_address(&slicer->flow, instruction, &operand)->flags & slicer->not_known;
}

/* Whether the results of an instruction are among the registers that are needed. */
static bool gives_needed(const struct slicer *slicer, const struct ptx_instruction *instruction)
{
    const struct ptx_operand *operands = slicer->function->operands + instruction->operand_first;

    if (!flow_has_result(instruction->effect)) {
        return false;
    }
    for (uint32_t i = 0; i < instruction->operand_count && operands[i].position == 0; i++) {
        if (operands[i].kind == OPERAND_REGISTER && !operands[i].is_address &&
            slicer->one.registers[operands[i].index]) {
            return true;
        }
    }
    return false;
}

/* Ids that are the same in a launch of the slice. Sizes of shared memory are not, and a slice has
   no clusters of its own. */
static bool is_plain_id(struct span name)
{
    static const char *const ids[] = {"%tid",    "%ntid",     "%ctaid", "%nctaid",
                                      "%laneid", "%lanemask", "WARP_SZ"};

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        if (flow_starts_with(name, ids[i])) {
            return true;
        }
    }
    return false;
}

/* Why a slice cannot have an instruction; NULL: it can. */
static const char *check_instruction(struct slicer *slicer,
                                     const struct ptx_instruction *instruction)
{
    const struct ptx_operand *operands = slicer->function->operands + instruction->operand_first;
    bool is_load = instruction->effect == EFFECT_LOAD;

    if (is_load && flow_space(instruction->opcode) != SPACE_PARAM) {
        return slice_can_load(slicer, instruction) ? NULL : "a load that is not made in advance";
    }
    if (slice_has_variable(slicer, instruction) && !slice_moves_variable(slicer, instruction)) {
        return "where a variable lies";
    }
    if (flow_starts_with(instruction->opcode, "mapa.")) {
        return "an address in another block of the cluster";
    }
    if (!(instruction->effect >= EFFECT_CHOOSE && instruction->effect <= EFFECT_COMPUTE) &&
        !(is_load && flow_space(instruction->opcode) == SPACE_PARAM)) {
        return "an instruction that is no plain computation";
    }
    if (span_has_part(instruction->opcode, "cc") || flow_starts_with(instruction->opcode, "addc") ||
        flow_starts_with(instruction->opcode, "subc") ||
        flow_starts_with(instruction->opcode, "madc")) {
        return "a carry";
    }
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        const struct ptx_operand *operand = &operands[i];
        bool is_sink = operand->kind == OPERAND_NAME && span_is(operand->name, "_");

        if (operand->kind == OPERAND_SPECIAL && !is_plain_id(operand->name)) {
            return "a special register";
        }
        if (operand->kind == OPERAND_LOCAL || (operand->kind == OPERAND_NAME && !is_sink)) {
            return "where a variable lies";
        }
    }
    return NULL;
}

/* Adds an instruction. False: it cannot be in a slice. */
static bool add_instruction(struct slicer *slicer, struct slice_site *site, uint32_t index)
{
    const struct ptx_instruction *instruction = &slicer->function->instructions[index];
    const struct ptx_operand *operands = slicer->function->operands + instruction->operand_first;

    site->reason = check_instruction(slicer, instruction);
    slicer->one.instructions[index] = true;
    slicer->one.blocks[slicer->flow.graph.block_of[index]] = true;
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        if (operands[i].kind == OPERAND_REGISTER &&
            (operands[i].position > 0 || operands[i].is_address)) {
            slicer->one.registers[operands[i].index] = true;
        }
    }
    if (instruction->predicate != PTX_NONE) {
        slicer->one.registers[instruction->predicate] = true;
    }
    return site->reason == NULL;
}

/* Adds a branch that decides whether something needed runs. False: its outcome is not known, and
   both ways cannot be taken. */
static bool add_branch(struct slicer *slicer, struct slice_site *site, uint32_t block)
{
    const struct ptx_instruction *branch =
        &slicer->function->instructions[slicer->flow.graph.blocks[block].end - 1];
    const struct ptx_operand *first = slicer->function->operands + branch->operand_first;

    slicer->one.blocks[block] = true;
    if (slicer->branch_flags[block] != 0) {
        slicer->one.branches[block] = SLICE_BRANCH_MAY;
        site->is_may = true;
        if (slicer->is_barred[block]) {
            site->reason = slice_reason(slicer->branch_flags[block]);
        }
        return !slicer->is_barred[block];
    }
    slicer->one.branches[block] = SLICE_BRANCH_KEPT;
    if (branch->predicate != PTX_NONE) {
        slicer->one.registers[branch->predicate] = true;
    }
    if (branch->effect == EFFECT_BRANCH_TABLE && first->kind == OPERAND_REGISTER) {
        slicer->one.registers[first->index] = true;
    }
    return true;
}

/* Adds the branches on which the needed blocks depend. Stores whether there were some. */
static bool add_branches(struct slicer *slicer, struct slice_site *site, bool *has_grown)
{
    const struct ptx_graph *graph = &slicer->flow.graph;

    for (uint32_t i = (uint32_t)graph->block_count; i > 0; i--) {
        const struct ptx_block *block = &graph->blocks[i - 1];

        for (uint32_t j = 0; slicer->one.blocks[i - 1] && j < block->control_count; j++) {
            uint32_t from = graph->sources[graph->controls[block->control_first + j]];

            if (slicer->one.branches[from] == SLICE_BRANCH_DROPPED) {
                *has_grown = true;
                if (!add_branch(slicer, site, from)) {
                    return false;
                }
            }
        }
    }
    return true;
}

static void clear_part(const struct slicer *slicer, const struct slice_part *part)
{
    memset(part->registers, 0, slicer->function->register_count);
    memset(part->instructions, 0, slicer->function->instruction_count);
    memset(part->blocks, 0, slicer->flow.graph.block_count);
    memset(part->branches, 0, slicer->flow.graph.block_count);
}

/* Whether it is known how far an access reaches from its address, once its stride or length is. */
static bool has_extent(const struct slicer *slicer, const struct access *access)
{
    const struct ptx_operand *measure = access->is_tile ? access->stride : access->length;
    bool has_bytes =
        access->is_tile ? access->line_count != 0 && access->line_bytes != 0 : access->bytes != 0;

    return has_bytes && (measure == NULL || measure->kind == OPERAND_NUMBER ||
                         (measure->kind == OPERAND_REGISTER &&
                          slicer->function->registers[measure->index].bits == 32));
}

/* What the access itself needs. False: it is not known. */
static bool begin_part(struct slicer *slicer, struct slice_site *site)
{
    const struct access *access = &site->access;
    uint32_t flags = flow_address(&slicer->flow, access->instruction, access->address)->flags;
    uint32_t predicate = access->instruction->predicate;
    const struct ptx_operand *measure = access_measure(access);

    flags |= measure == NULL ? 0 : slice_unknown(slicer, access->instruction, measure->index);
    if ((flags & slicer->not_known) != 0) {
        site->reason = slice_reason(flags & slicer->not_known);
    } else if ((flags & FLOW_AT) != 0) {
        site->reason = "an address that may be that of a variable";
    } else if (!has_extent(slicer, access)) {
        site->reason = "an access whose size is not known";
    } else if (access->address->kind != OPERAND_REGISTER ||
               slicer->function->registers[access->address->index].bits != 64) {
        site->reason = "an address that is no register";
    }
    if (site->reason != NULL) {
        return false;
    }
    site->is_may = access->may_be_cut;
    slicer->one.registers[access->address->index] = true;
    if (measure != NULL) {
        slicer->one.registers[measure->index] = true;
    }
    slicer->one.blocks[slicer->flow.graph.block_of[site->instruction]] = true;
    if (predicate != PTX_NONE && slice_unknown(slicer, access->instruction, predicate) != 0) {
        site->is_may = true;
    } else if (predicate != PTX_NONE) {
        slicer->one.registers[predicate] = true;
    }
    return true;
}

void slice_find_part(struct slicer *slicer, struct slice_site *site)
{
    bool has_grown = true;

    clear_part(slicer, &slicer->one);
    site->is_may = false;
    site->reason = NULL;
    if (!begin_part(slicer, site)) {
        return;
    }
    while (has_grown) {
        has_grown = false;
        for (uint32_t i = (uint32_t)slicer->function->instruction_count; i > 0; i--) {
            if (!slicer->one.instructions[i - 1] &&
                gives_needed(slicer, &slicer->function->instructions[i - 1])) {
                has_grown = true;
                if (!add_instruction(slicer, site, i - 1)) {
                    return;
                }
            }
        }
        if (!add_branches(slicer, site, &has_grown)) {
            return;
        }
    }
}

void slice_add_part(struct slicer *slicer)
{
    for (size_t i = 0; i < slicer->function->instruction_count; i++) {
        slicer->all.instructions[i] |= slicer->one.instructions[i];
    }
    for (size_t i = 0; i < slicer->flow.graph.block_count; i++) {
        /* A branch has the same kind in all parts that have it. */
        slicer->all.branches[i] |= slicer->one.branches[i];
    }
}

void slice_clear_all(const struct slicer *slicer)
{
    memset(slicer->all.registers, 0, slicer->function->register_count);
    memset(slicer->all.instructions, 0, slicer->function->instruction_count);
    memset(slicer->all.branches, 0, slicer->flow.graph.block_count);
}

void slice_list_registers(const struct slicer *slicer)
{
    const struct ptx_function *function = slicer->function;

    for (size_t i = 0; i < function->instruction_count; i++) {
        const struct ptx_instruction *instruction = &function->instructions[i];

        for (uint32_t j = 0; slicer->all.instructions[i] && j < instruction->operand_count; j++) {
            const struct ptx_operand *operand = &function->operands[instruction->operand_first + j];

            if (operand->kind == OPERAND_REGISTER) {
                slicer->all.registers[operand->index] = true;
            }
        }
    }
}
