/* Where registers are defined: how often, whether before their uses, and which branches choose
   between their definitions. See flow.h. */
#include "base/array.h"
#include "interpose/flow/flow_parts.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS_MOST = 8192 };

enum ptx_space flow_space(struct span opcode)
{
    static const struct {
        const char *part;
        enum ptx_space space;
    } spaces[] = {
        {"global", SPACE_GLOBAL},          {"shared", SPACE_SHARED}, {"shared::cta", SPACE_SHARED},
        {"shared::cluster", SPACE_SHARED}, {"param", SPACE_PARAM},   {"param::entry", SPACE_PARAM},
        {"param::func", SPACE_PARAM},      {"local", SPACE_LOCAL},   {"const", SPACE_CONST}};

    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        if (span_has_part(opcode, spaces[i].part)) {
            return spaces[i].space;
        }
    }
    return SPACE_GENERIC;
}

/* Places: registers that hold the address of a parameter, or of a part of one. */

/* Where an operand points, if it is a parameter or a register that points into one. */
struct flow_place flow_place_of(const struct flow *flow, const struct ptx_operand *operand)
{
    struct flow_place place = {PTX_NONE, 0};

    if (operand->kind == OPERAND_PARAMETER) {
        place.parameter = operand->index;
    } else if (operand->kind == OPERAND_REGISTER) {
        place = flow->places[operand->index];
    }
    place.offset = (int64_t)((uint64_t)place.offset + (uint64_t)operand->number);
    return place;
}

/* Follows copies and additions of constants. A register with one definition, which is where nvcc
   puts such an address, has what that gives. */
void flow_find_places(struct flow *flow)
{
    const struct ptx_function *function = flow->function;

    for (size_t i = 0; i < function->instruction_count; i++) {
        const struct ptx_instruction *instruction = &function->instructions[i];
        const struct ptx_operand *operands = function->operands + instruction->operand_first;
        bool is_copy = instruction->effect == EFFECT_CHOOSE && instruction->operand_count == 2;
        bool is_sum = instruction->effect == EFFECT_ADD && instruction->operand_count == 3 &&
                      span_has_part(instruction->opcode, "add") &&
                      operands[2].kind == OPERAND_NUMBER;
        struct flow_place place;

        if ((!is_copy && !is_sum) || operands[0].kind != OPERAND_REGISTER || operands[0].is_list ||
            operands[1].is_list || flow->definitions[operands[0].index] != 1 ||
            instruction->predicate != PTX_NONE) {
            continue;
        }
        place = flow_place_of(flow, &operands[1]);
        place.offset =
            (int64_t)((uint64_t)place.offset + (is_sum ? (uint64_t)operands[2].number : 0));
        flow->places[operands[0].index] = place;
    }
}

/* Halves: a union of a pointer and something else goes through registers of 32 bits. */

/* "mov.b64 {low, high}, whole", or with its operands the other way round if `is_joined`. The
   operands in the order of the halves, then the whole. */
static bool is_halving(const struct ptx_function *function,
                       const struct ptx_instruction *instruction, bool is_joined,
                       const struct ptx_operand *parts[3])
{
    const struct ptx_operand *operands = function->operands + instruction->operand_first;
    bool is_right = instruction->operand_count == 3 && instruction->predicate == PTX_NONE &&
                    span_has_part(instruction->opcode, "mov");

    for (unsigned i = 0; is_right && i < 3; i++) {
        const struct ptx_operand *operand = &operands[is_joined ? (i + 1) % 3 : i];
        bool is_half = i < 2;

        parts[i] = operand;
        is_right = operand->kind == OPERAND_REGISTER && operand->is_list == is_half &&
                   operand->position == (is_joined ? is_half : !is_half) &&
                   function->registers[operand->index].bits == (is_half ? 32 : 64);
    }
    return is_right;
}

void flow_find_halves(struct flow *flow)
{
    for (uint32_t i = 0; i < flow->function->instruction_count; i++) {
        const struct ptx_operand *parts[3];

        if (is_halving(flow->function, &flow->function->instructions[i], false, parts)) {
            for (unsigned j = 0; j < 2; j++) {
                if (flow->definitions[parts[j]->index] == 1) {
                    flow->halved[parts[j]->index] = i;
                }
            }
        }
    }
}

const struct ptx_operand *flow_whole_of(const struct flow *flow,
                                        const struct ptx_instruction *instruction)
{
    const struct ptx_operand *joined[3];
    const struct ptx_operand *halved[3];
    uint32_t from;

    if (!is_halving(flow->function, instruction, true, joined)) {
        return NULL;
    }
    from = flow->halved[joined[0]->index];
    return from != PTX_NONE && from == flow->halved[joined[1]->index] &&
                   is_halving(flow->function, &flow->function->instructions[from], false, halved) &&
                   halved[0]->index == joined[0]->index && halved[1]->index == joined[1]->index
               ? halved[2]
               : NULL;
}

/* Slots. */

bool flow_find_slot(const struct flow *flow, const struct flow_slot *wanted, size_t *index)
{
    for (size_t i = 0; i < flow->slot_count; i++) {
        const struct flow_slot *slot = &flow->slots[i];

        if (slot->kind == wanted->kind && slot->parameter == wanted->parameter &&
            slot->offset == wanted->offset && slot->bytes == wanted->bytes) {
            *index = i;
            return true;
        }
    }
    return false;
}

static capu_status add_slot(struct flow *flow, struct flow_slot slot)
{
    size_t index;

    if (flow_find_slot(flow, &slot, &index)) {
        return CAPU_OK;
    }
    if (flow->slot_count >= SLOTS_MOST) {
        return CAPU_TOO_LARGE;
    }
    if (!array_reserve(&flow->slots, &flow->slot_capacity, flow->slot_count + 1,
                       sizeof(*flow->slots))) {
        return CAPU_NO_HOST_MEMORY;
    }
    flow->slots[flow->slot_count++] = slot;
    return CAPU_OK;
}

/* The slot that element `element` of a load from a place in the parameters reads. */
struct flow_slot flow_word_of(const struct ptx_instruction *instruction, struct flow_place place,
                              unsigned element)
{
    unsigned bytes = ptx_opcode_bits(instruction->opcode) / 8;

    return (struct flow_slot){FLOW_WORD, place.parameter,
                              (uint32_t)((uint64_t)place.offset + (uint64_t)element * bytes),
                              bytes};
}

/* Lists what one operand reads. */
static capu_status list_slots_of(struct flow *flow, const struct ptx_instruction *instruction,
                                 const struct ptx_operand *operand)
{
    struct flow_place place = flow_place_of(flow, operand);
    capu_status status;

    if (place.parameter != PTX_NONE && operand->is_address && instruction->effect == EFFECT_LOAD &&
        flow_space(instruction->opcode) == SPACE_PARAM) {
        unsigned elements = ptx_opcode_elements(instruction->opcode);

        status = CAPU_OK;
        for (unsigned i = 0; i < elements && status == CAPU_OK; i++) {
            status = add_slot(flow, flow_word_of(instruction, place, i));
        }
        return status;
    }
    if (operand->kind != OPERAND_PARAMETER) {
        return CAPU_OK;
    }
    status = add_slot(flow, (struct flow_slot){FLOW_PLACE, operand->index, 0, 0});
    return status != CAPU_OK ? status
                             : add_slot(flow, (struct flow_slot){FLOW_ANY, operand->index, 0, 8});
}

capu_status flow_list_slots(struct flow *flow)
{
    const struct ptx_function *function = flow->function;

    for (size_t i = 0; i < function->instruction_count; i++) {
        const struct ptx_instruction *instruction = &function->instructions[i];

        for (uint32_t j = 0; j < instruction->operand_count; j++) {
            capu_status status = list_slots_of(flow, instruction,
                                               &function->operands[instruction->operand_first + j]);

            if (status != CAPU_OK) {
                return status;
            }
        }
    }
    return CAPU_OK;
}

bool flow_has_result(enum effect effect)
{
    return effect != EFFECT_NONE && effect != EFFECT_STORE && effect != EFFECT_REDUCE &&
           effect != EFFECT_COPY_ASYNC && effect != EFFECT_BULK_LOAD &&
           effect != EFFECT_STORE_TILE && effect != EFFECT_DISCARD && effect != EFFECT_BRANCH &&
           effect != EFFECT_BRANCH_TABLE && effect != EFFECT_EXIT && effect != EFFECT_CALL;
}

/* Counts definitions, and marks registers that may be read before they are set. */

static void note_definitions(const struct flow *flow, const struct ptx_instruction *instruction,
                             uint8_t *definitions, uint64_t *is_set)
{
    const struct ptx_operand *operands = flow->function->operands + instruction->operand_first;

    if (!flow_has_result(instruction->effect)) {
        return;
    }
    for (uint32_t i = 0; i < instruction->operand_count && operands[i].position == 0; i++) {
        uint32_t index = operands[i].index;

        if (operands[i].kind != OPERAND_REGISTER || operands[i].is_address) {
            continue;
        }
        if (definitions != NULL && definitions[index] < 2) {
            /* Under a predicate, the old value is another one. */
            definitions[index] += instruction->predicate == PTX_NONE ? 1 : 2;
        }
        if (is_set != NULL && instruction->predicate == PTX_NONE) {
            is_set[index / 64] |= (uint64_t)1 << index % 64;
        }
    }
}

static void note_unset(struct flow *flow, const struct ptx_instruction *instruction,
                       const uint64_t *is_set)
{
    const struct ptx_operand *operands = flow->function->operands + instruction->operand_first;
    bool skips_first = flow_has_result(instruction->effect);

    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        if (operands[i].kind == OPERAND_REGISTER &&
            (operands[i].is_address || operands[i].position > 0 || !skips_first) &&
            !flow_has(is_set, operands[i].index)) {
            flow->values[operands[i].index].flags |= FLOW_UNSET | FLOW_BASELESS;
        }
    }
    if (instruction->predicate != PTX_NONE && !flow_has(is_set, instruction->predicate)) {
        flow->values[instruction->predicate].flags |= FLOW_UNSET | FLOW_BASELESS;
    }
}

/* Sets of registers that are set whenever a block begins: all that are set at the end of each block
   that leads to it. */
static void spread_set(const struct flow *flow, uint64_t *at_start, uint64_t *is_set, size_t words)
{
    bool has_changed = true;

    while (has_changed) {
        has_changed = false;
        for (uint32_t i = 0; i < flow->graph.block_count; i++) {
            const struct ptx_block *block = &flow->graph.blocks[i];

            memcpy(is_set, at_start + i * words, words * sizeof(*is_set));
            for (uint32_t j = block->first; j < block->end; j++) {
                note_definitions(flow, &flow->function->instructions[j], NULL, is_set);
            }
            for (uint32_t j = 0; j < block->successor_count; j++) {
                uint32_t to = flow->graph.successors[block->successor_first + j];
                uint64_t *start = at_start + to * words;

                for (size_t k = 0; to < flow->graph.block_count && k < words; k++) {
                    has_changed |= (start[k] & ~is_set[k]) != 0;
                    start[k] &= is_set[k];
                }
            }
        }
    }
}

capu_status flow_find_unset(struct flow *flow)
{
    size_t words = flow->function->register_count / 64 + 1;
    size_t blocks = flow->graph.block_count;
    uint64_t *at_start;

    if ((uint64_t)words * (blocks + 1) * 64 > FLOW_BITS_MOST) {
        return CAPU_TOO_LARGE;
    }
    at_start = malloc(words * (blocks + 1) * sizeof(*at_start));
    if (at_start == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    memset(at_start, 0xff, words * (blocks + 1) * sizeof(*at_start));
    memset(at_start, 0, words * sizeof(*at_start)); /* nothing is set at the entry */
    spread_set(flow, at_start, at_start + blocks * words, words);
    for (uint32_t i = 0; i < blocks; i++) {
        uint64_t *is_set = at_start + i * words;

        for (uint32_t j = flow->graph.blocks[i].first; j < flow->graph.blocks[i].end; j++) {
            note_unset(flow, &flow->function->instructions[j], is_set);
            note_definitions(flow, &flow->function->instructions[j], NULL, is_set);
        }
    }
    free(at_start);
    return CAPU_OK;
}

/* Choosers: the branches that choose between a register's definitions. */

struct choosing {
    uint64_t *any; /* of one register: the ways out that decide about some definition */
    uint32_t *definition_first; /* of each register, among `definitions`; one more at the end */
    uint32_t *definitions;      /* instructions */
};

static void spread_deciding(const struct flow *flow)
{
    const struct ptx_graph *graph = &flow->graph;
    bool has_grown = true;

    while (has_grown) {
        has_grown = false;
        for (uint32_t i = 0; i < graph->block_count; i++) {
            uint64_t *to = flow->deciding + i * flow->deciding_words;

            for (uint32_t j = 0; j < graph->blocks[i].control_count; j++) {
                uint32_t way = graph->controls[graph->blocks[i].control_first + j];
                const uint64_t *from = flow->deciding + graph->sources[way] * flow->deciding_words;

                has_grown |= !flow_has(to, way);
                to[way / 64] |= (uint64_t)1 << way % 64;
                for (size_t k = 0; k < flow->deciding_words; k++) {
                    has_grown |= (from[k] & ~to[k]) != 0;
                    to[k] |= from[k];
                }
            }
        }
    }
}

/* Lists the choosers of the register whose definitions `any` describes. */
static bool list_choosers(struct flow *flow, const struct choosing *choosing)
{
    size_t before = flow->chooser_count;

    for (uint32_t way = 0; way < flow->graph.successor_count; way++) {
        uint32_t block = flow->graph.sources[way];

        if (!flow_has(choosing->any, way) ||
            (flow->chooser_count > before && flow->choosers[flow->chooser_count - 1] == block)) {
            continue;
        }
        if (!array_reserve(&flow->choosers, &flow->chooser_capacity, flow->chooser_count + 1,
                           sizeof(*flow->choosers))) {
            return false;
        }
        flow->choosers[flow->chooser_count++] = block;
    }
    return true;
}

/* Gathers the ways that decide about the definitions of a register. */
static void gather_ways(const struct flow *flow, const struct choosing *choosing, uint32_t index)
{
    memset(choosing->any, 0, flow->deciding_words * sizeof(*choosing->any));
    for (uint32_t i = choosing->definition_first[index]; i < choosing->definition_first[index + 1];
         i++) {
        const uint64_t *deciding =
            flow->deciding + flow->graph.block_of[choosing->definitions[i]] * flow->deciding_words;

        for (size_t j = 0; j < flow->deciding_words; j++) {
            choosing->any[j] |= deciding[j];
        }
    }
}

/* The register that result `which` of an instruction goes to; PTX_NONE: there is none. */
static uint32_t result_of(const struct ptx_function *function,
                          const struct ptx_instruction *instruction, uint32_t which)
{
    const struct ptx_operand *operand = &function->operands[instruction->operand_first + which];

    return which < instruction->operand_count && operand->position == 0 &&
                   operand->kind == OPERAND_REGISTER && !operand->is_address &&
                   flow_has_result(instruction->effect)
               ? operand->index
               : PTX_NONE;
}

/* Lists the definitions of each register. Pre: the arrays are zeroed, and large enough. */
static void list_definitions(const struct ptx_function *function, const struct choosing *choosing)
{
    uint32_t *first = choosing->definition_first;

    /* Counts, then sums, then fills; each step leaves `first` one register further. */
    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < function->instruction_count; i++) {
            const struct ptx_instruction *instruction = &function->instructions[i];

            for (uint32_t j = 0; j < instruction->operand_count; j++) {
                uint32_t index = result_of(function, instruction, j);

                if (index != PTX_NONE && pass == 0) {
                    first[index + 2]++;
                } else if (index != PTX_NONE) {
                    choosing->definitions[first[index + 1]++] = i;
                }
            }
        }
        for (size_t i = 0; i < function->register_count && pass == 0; i++) {
            first[i + 2] += first[i + 1];
        }
    }
}

static bool find_choosers_of(struct flow *flow, const struct choosing *choosing)
{
    for (uint32_t i = 0; i < flow->function->register_count; i++) {
        flow->chooser_first[i] = (uint32_t)flow->chooser_count;
        if (flow->definitions[i] > 1) {
            gather_ways(flow, choosing, i);
            if (!list_choosers(flow, choosing)) {
                return false;
            }
        }
    }
    flow->chooser_first[flow->function->register_count] = (uint32_t)flow->chooser_count;
    return true;
}

/* A definition under a predicate counts as two; see count_definitions. */
static void number_branches(struct flow *flow)
{
    for (uint32_t i = 0; i < flow->graph.block_count; i++) {
        const struct ptx_block *block = &flow->graph.blocks[i];

        flow->branch_numbers[i] = PTX_NONE;
        if (block->successor_count > 1 && block->loop == PTX_NONE) {
            flow->branch_numbers[i] = (uint32_t)flow->branch_count;
            flow->branches[flow->branch_count++] = i;
        }
    }
    flow->choice_words = flow->branch_count / 64 + 1;
}

/* Walks from each branch. `stack` has an element per block. */
static void find_reached(struct flow *flow, uint32_t *stack)
{
    const struct ptx_graph *graph = &flow->graph;

    for (size_t i = 0; i < flow->branch_count; i++) {
        uint64_t *reached = flow->reached + i * flow->reached_words;
        size_t depth = 0;

        stack[depth++] = flow->branches[i];
        while (depth > 0) {
            const struct ptx_block *block = &graph->blocks[stack[--depth]];

            for (uint32_t j = 0; j < block->successor_count; j++) {
                uint32_t to = graph->successors[block->successor_first + j];

                if (to < graph->block_count && !flow_has(reached, to)) {
                    reached[to / 64] |= (uint64_t)1 << to % 64;
                    stack[depth++] = to;
                }
            }
        }
    }
}

/* Numbers the branches that no loop contains, and finds what can run after each. */
static capu_status find_branches(struct flow *flow)
{
    size_t blocks = flow->graph.block_count;
    uint32_t *stack;

    flow->branch_numbers = calloc(blocks + 1, sizeof(*flow->branch_numbers));
    flow->branches = calloc(blocks + 1, sizeof(*flow->branches));
    if (flow->branch_numbers == NULL || flow->branches == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    number_branches(flow);
    flow->reached_words = blocks / 64 + 1;
    if ((uint64_t)flow->branch_count * flow->reached_words * 64 > FLOW_BITS_MOST) {
        return CAPU_TOO_LARGE;
    }
    flow->reached = calloc(flow->branch_count * flow->reached_words + 1, sizeof(*flow->reached));
    stack = malloc((blocks + 1) * sizeof(*stack));
    if (flow->reached != NULL && stack != NULL) {
        find_reached(flow, stack);
    }
    free(stack);
    return flow->reached != NULL && stack != NULL ? CAPU_OK : CAPU_NO_HOST_MEMORY;
}

capu_status flow_find_choosers(struct flow *flow)
{
    const struct ptx_function *function = flow->function;
    size_t blocks = flow->graph.block_count;
    struct choosing choosing = {NULL, NULL, NULL};
    capu_status status = CAPU_NO_HOST_MEMORY;

    flow->deciding_words = flow->graph.successor_count / 64 + 1;
    if ((uint64_t)flow->deciding_words * (blocks + 1) * 64 > FLOW_BITS_MOST) {
        return CAPU_TOO_LARGE;
    }
    flow->chooser_first = calloc(function->register_count + 1, sizeof(*flow->chooser_first));
    flow->deciding = calloc(flow->deciding_words * (blocks + 1), sizeof(*flow->deciding));
    choosing.definition_first =
        calloc(function->register_count + 3, sizeof(*choosing.definition_first));
    choosing.definitions = calloc(function->operand_count + 1, sizeof(*choosing.definitions));
    if (flow->chooser_first != NULL && flow->deciding != NULL &&
        choosing.definition_first != NULL && choosing.definitions != NULL) {
        choosing.any = flow->deciding + flow->deciding_words * blocks;
        list_definitions(function, &choosing);
        spread_deciding(flow);
        status = find_choosers_of(flow, &choosing) ? find_branches(flow) : CAPU_NO_HOST_MEMORY;
    }
    free(choosing.definition_first);
    free(choosing.definitions);
    return status;
}

capu_status flow_count_definitions(struct flow *flow)
{
    const struct ptx_function *function = flow->function;

    flow->definitions = calloc(function->register_count + 1, sizeof(*flow->definitions));
    flow->places = malloc((function->register_count + 1) * sizeof(*flow->places));
    flow->halved = malloc((function->register_count + 1) * sizeof(*flow->halved));
    if (flow->definitions == NULL || flow->places == NULL || flow->halved == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < function->register_count; i++) {
        flow->places[i] = (struct flow_place){PTX_NONE, 0};
        flow->halved[i] = PTX_NONE;
    }
    for (size_t i = 0; i < function->instruction_count; i++) {
        note_definitions(flow, &function->instructions[i], flow->definitions, NULL);
    }
    return CAPU_OK;
}
