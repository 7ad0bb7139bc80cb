/* What a function reads from its parameters, see flow.h. */
#include "interpose/flow/flow_parts.h"

#include "base/array.h"

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
