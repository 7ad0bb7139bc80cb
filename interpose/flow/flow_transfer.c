/* The data flow of single instructions, see flow.h: values, and what a result is made of. */
#include "interpose/flow/flow_parts.h"

#include <string.h>

/* Values: sets and their unions. */

bool flow_is_empty(const struct flow *flow, const uint64_t *set)
{
    for (size_t i = 0; i < flow->set_words; i++) {
        if (set[i] != 0) {
            return false;
        }
    }
    return true;
}

bool flow_is_grid(const struct flow *flow, const struct flow_value *address)
{
    return (address->flags & FLOW_DEPENDENCE & ~(uint32_t)FLOW_ID) == FLOW_GRID &&
           (address->flags & FLOW_AT) == 0 && flow_is_empty(flow, address->bases) &&
           flow_is_empty(flow, address->uses);
}

static bool join_words(size_t count, uint64_t *to, const uint64_t *from)
{
    uint64_t added = 0;

    for (size_t i = 0; i < count; i++) {
        added |= from[i] & ~to[i];
        to[i] |= from[i];
    }
    return added != 0;
}

bool flow_join_set(const struct flow *flow, uint64_t *to, const uint64_t *from)
{
    return join_words(flow->set_words, to, from);
}

bool flow_join(const struct flow *flow, struct flow_value *to, const struct flow_value *from)
{
    uint32_t flags = to->flags | from->flags;
    bool has_grown = flags != to->flags;

    to->flags = flags;
    has_grown |= flow_join_set(flow, to->bases, from->bases);
    has_grown |= flow_join_set(flow, to->uses, from->uses);
    has_grown |= join_words(flow->choice_words, to->choices, from->choices);
    return has_grown;
}

bool flow_join_dependence(const struct flow *flow, struct flow_value *to,
                          const struct flow_value *from)
{
    uint32_t flags = to->flags | (from->flags & FLOW_DEPENDENCE);
    bool has_grown = flags != to->flags;

    to->flags = flags;
    has_grown |= flow_join_set(flow, to->uses, from->uses);
    has_grown |= flow_join_set(flow, to->uses, from->bases);
    has_grown |= join_words(flow->choice_words, to->choices, from->choices);
    return has_grown;
}

void flow_clear(const struct flow *flow, struct flow_value *value)
{
    value->flags = 0;
    memset(value->bases, 0, flow->set_words * sizeof(*value->bases));
    memset(value->uses, 0, flow->set_words * sizeof(*value->uses));
    memset(value->choices, 0, flow->choice_words * sizeof(*value->choices));
}

void flow_forget_bases(const struct flow *flow, struct flow_value *value)
{
    (void)flow_join_set(flow, value->uses, value->bases);
    memset(value->bases, 0, flow->set_words * sizeof(*value->bases));
    value->flags = (value->flags & FLOW_DEPENDENCE) | FLOW_BASELESS;
}

struct flow_value *flow_extra(struct flow *flow, size_t which)
{
    return &flow->values[flow->function->register_count + which];
}

void flow_set_base(const struct flow *flow, struct flow_value *value, struct flow_slot slot)
{
    size_t index;

    if (flow_find_slot(flow, &slot, &index)) {
        value->bases[index / 64] |= (uint64_t)1 << index % 64;
    }
}

/* Operands. */

bool flow_starts_with(struct span name, const char *text)
{
    size_t length = strlen(text);

    return name.length >= length && memcmp(name.text, text, length) == 0;
}

/* Everything else may differ from launch to launch. */
static uint32_t special_flags(struct span name)
{
    static const char *const ids[] = {"%tid",           "%ntid",       "%ctaid",
                                      "%nctaid",        "%laneid",     "%lanemask",
                                      "%cluster",       "%nclusterid", "%is_explicit_cluster",
                                      "%dynamic_smem",  "%total_smem", "%aggr_smem",
                                      "%reserved_smem", "WARP_SZ"};

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        if (flow_starts_with(name, ids[i])) {
            return FLOW_ID | FLOW_BASELESS;
        }
    }
    /* The two halves of one address. */
    if (span_is(name, "%envreg1") || span_is(name, "%envreg2")) {
        return FLOW_GRID | FLOW_BASELESS;
    }
    return FLOW_CLOCK | FLOW_BASELESS;
}

static uint32_t place_flags(enum ptx_space space)
{
    switch (space) {
    case SPACE_GLOBAL:
        return FLOW_AT_VARIABLE;
    case SPACE_CONST:
        return FLOW_AT_CONST;
    case SPACE_SHARED:
        return FLOW_AT_SHARED;
    case SPACE_LOCAL:
        return FLOW_AT_LOCAL;
    case SPACE_PARAM:
    case SPACE_GENERIC:
        break;
    }
    return FLOW_AT_PARAMETER; /* of a call: what is loaded from there comes from a call */
}

/* Adds an operand's value. */
void flow_read_operand(const struct flow *flow, const struct ptx_operand *operand,
                       struct flow_value *value)
{
    switch (operand->kind) {
    case OPERAND_REGISTER:
        (void)flow_join(flow, value, &flow->values[operand->index]);
        break;
    case OPERAND_NUMBER:
        value->flags |= FLOW_BASELESS;
        break;
    case OPERAND_PARAMETER:
        value->flags |= FLOW_AT_PARAMETER;
        flow_set_base(flow, value, (struct flow_slot){FLOW_PLACE, operand->index, 0, 0});
        break;
    case OPERAND_LOCAL:
        value->flags |= place_flags(flow->function->locals[operand->index].space);
        break;
    case OPERAND_VARIABLE:
        value->flags |= place_flags(flow->module->variables[operand->index].space);
        break;
    case OPERAND_SPECIAL:
        value->flags |= special_flags(operand->name);
        break;
    case OPERAND_NAME:
        value->flags |= FLOW_OPCODE | FLOW_BASELESS;
        break;
    }
}

const struct flow_value *flow_operand(struct flow *flow, const struct ptx_operand *operand)
{
    struct flow_value *scratch = flow_extra(flow, FLOW_SCRATCH);

    flow_clear(flow, scratch);
    flow_read_operand(flow, operand, scratch);
    return scratch;
}

/* Adds to `value` what all operands at a position depend on. */
void flow_depend_on(const struct flow *flow, const struct ptx_instruction *instruction,
                    unsigned position, struct flow_value *value, struct flow_value *operand_value)
{
    const struct ptx_operand *operands = flow->function->operands + instruction->operand_first;

    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        if (operands[i].position == position) {
            flow_clear(flow, operand_value);
            flow_read_operand(flow, &operands[i], operand_value);
            (void)flow_join_dependence(flow, value, operand_value);
        }
    }
}

/* Instructions. */

static const struct ptx_operand *operand_at(const struct flow_transfer *transfer, unsigned position)
{
    const struct ptx_operand *operands =
        transfer->flow->function->operands + transfer->instruction->operand_first;

    for (uint32_t i = 0; i < transfer->instruction->operand_count; i++) {
        if (operands[i].position == position) {
            return &operands[i];
        }
    }
    return NULL;
}

static unsigned last_position(const struct flow_transfer *transfer)
{
    const struct ptx_instruction *instruction = transfer->instruction;

    return instruction->operand_count == 0
               ? 0
               : transfer->flow->function
                     ->operands[instruction->operand_first + instruction->operand_count - 1]
                     .position;
}

static void depend_from(struct flow_transfer *transfer, unsigned position)
{
    for (; position <= last_position(transfer); position++) {
        flow_depend_on(transfer->flow, transfer->instruction, position, &transfer->value,
                       &transfer->operand);
    }
}

/* One of positions 1 to `last`, whole. Zero is no address, and a null pointer any. */
static void choose_operand(struct flow_transfer *transfer, unsigned last)
{
    const struct ptx_operand *operands =
        transfer->flow->function->operands + transfer->instruction->operand_first;
    const struct ptx_operand *whole = flow_whole_of(transfer->flow, transfer->instruction);

    if (whole != NULL) {
        flow_read_operand(transfer->flow, whole, &transfer->value);
        return;
    }

    for (uint32_t i = 0; i < transfer->instruction->operand_count; i++) {
        bool is_zero = operands[i].kind == OPERAND_NUMBER && operands[i].number == 0;

        if (operands[i].position >= 1 && operands[i].position <= last && !is_zero) {
            flow_read_operand(transfer->flow, &operands[i], &transfer->value);
        }
    }
    depend_from(transfer, last + 1);
}

static bool has_provenance(const struct flow *flow, const struct flow_value *value)
{
    return (value->flags & FLOW_AT) != 0 || !flow_is_empty(flow, value->bases);
}

/* A sum has the provenance of either operand, and lacks one only if both may. */
static void add_up(struct flow_transfer *transfer)
{
    struct flow *flow = transfer->flow;
    bool may_lack = true;
    unsigned with = 0;
    bool has_one;

    for (unsigned position = 1; position <= 2; position++) {
        const struct ptx_operand *operand = operand_at(transfer, position);

        flow_clear(flow, &transfer->operand);
        if (operand != NULL) {
            flow_read_operand(flow, operand, &transfer->operand);
        }
        has_one = has_provenance(flow, &transfer->operand);
        with += has_one;
        /* A zero is no provenance either; a register that no definition has reached may get one. */
        may_lack &= (transfer->operand.flags & FLOW_BASELESS) != 0 ||
                    (!has_one && (transfer->operand.flags & FLOW_DEFINED) != 0);
        (void)flow_join(flow, &transfer->value, &transfer->operand);
    }
    transfer->value.flags &= ~(uint32_t)FLOW_BASELESS;
    transfer->value.flags |= may_lack ? FLOW_BASELESS : 0;
    if (with == 2) {
        transfer->value.flags |= FLOW_SUM;
    }
    depend_from(transfer, 3);
}

/* "and" with a small mask leaves an offset, not an address. */
static bool is_small_mask(const struct flow_transfer *transfer)
{
    const struct ptx_operand *mask = operand_at(transfer, 2);

    return flow_starts_with(transfer->instruction->opcode, "and.") && mask != NULL &&
           mask->kind == OPERAND_NUMBER && mask->number >= 0 && mask->number < 65536;
}

/* What a load from the parameters gives; `element` counts in a vector. */
static void load_parameter(struct flow_transfer *transfer, const struct ptx_operand *address,
                           unsigned element)
{
    struct flow *flow = transfer->flow;
    bool is_wide = ptx_opcode_bits(transfer->instruction->opcode) == 64;
    struct flow_place place = flow_place_of(flow, address);

    if (place.parameter != PTX_NONE && flow_space(transfer->instruction->opcode) == SPACE_PARAM) {
        flow_set_base(flow, &transfer->value, flow_word_of(transfer->instruction, place, element));
    } else {
        flow_clear(flow, &transfer->operand);
        flow_read_operand(flow, address, &transfer->operand);
        (void)flow_join_dependence(flow, &transfer->value, &transfer->operand);
        for (size_t i = 0; i < flow->slot_count; i++) {
            if (flow->slots[i].kind == FLOW_PLACE && flow_has(transfer->operand.bases, i)) {
                flow_set_base(flow, &transfer->value,
                              (struct flow_slot){FLOW_ANY, flow->slots[i].parameter, 0, 8});
            }
        }
        if (flow_is_empty(flow, transfer->operand.bases)) {
            transfer->value.flags |= FLOW_CALL | FLOW_BASELESS;
        }
    }
    if (!is_wide) {
        flow_forget_bases(flow, &transfer->value);
    }
}

/* What a load from shared or local memory gives: anything that was stored there. */
static void load_own(struct flow_transfer *transfer, bool is_shared)
{
    struct flow *flow = transfer->flow;
    bool is_lost = is_shared ? flow->has_lost_shared : flow->has_lost_local;

    if (ptx_opcode_bits(transfer->instruction->opcode) == 64) {
        (void)flow_join(flow, &transfer->value,
                        flow_extra(flow, is_shared ? FLOW_MEMORY_SHARED : FLOW_MEMORY_LOCAL));
        transfer->value.flags |= is_lost ? FLOW_BASELESS : 0;
    } else {
        transfer->value.flags |= FLOW_BASELESS;
    }
    transfer->value.flags |= is_shared ? FLOW_SHARED : FLOW_LOCAL;
}

/* Whether a set has a word's value, and not only places. */
static bool has_pointer(const struct flow *flow, const uint64_t *bases)
{
    for (size_t i = 0; i < flow->slot_count; i++) {
        if (flow->slots[i].kind != FLOW_PLACE && flow_has(bases, i)) {
            return true;
        }
    }
    return false;
}

static bool is_ordered(struct span opcode)
{
    return span_has_part(opcode, "volatile") || span_has_part(opcode, "acquire") ||
           span_has_part(opcode, "relaxed") || span_has_part(opcode, "mmio");
}

static void load_element(struct flow_transfer *transfer, unsigned element)
{
    struct flow *flow = transfer->flow;
    const struct ptx_operand *address = operand_at(transfer, 1);
    enum ptx_space space = flow_space(transfer->instruction->opcode);
    uint32_t flags;
    bool is_parameter_word;

    if (address == NULL) {
        transfer->value.flags |= FLOW_OPCODE | FLOW_BASELESS;
        return;
    }
    flow_clear(flow, &transfer->operand);
    flow_read_operand(flow, address, &transfer->operand);
    flags = transfer->operand.flags;
    is_parameter_word = has_pointer(flow, transfer->operand.bases);
    (void)flow_join_dependence(flow, &transfer->value, &transfer->operand);
    if (space == SPACE_PARAM || (space == SPACE_GENERIC && (flags & FLOW_AT_PARAMETER) != 0)) {
        /* Its address is not what the value depends on, but a place. */
        load_parameter(transfer, address, element);
        if (space == SPACE_PARAM) {
            return;
        }
    }
    if (space == SPACE_SHARED || (space == SPACE_GENERIC && (flags & FLOW_AT_SHARED) != 0)) {
        load_own(transfer, true);
    }
    if (space == SPACE_LOCAL || (space == SPACE_GENERIC && (flags & FLOW_AT_LOCAL) != 0)) {
        load_own(transfer, false);
    }
    if (space == SPACE_CONST || (space != SPACE_SHARED && space != SPACE_LOCAL &&
                                 (flags & (FLOW_AT_VARIABLE | FLOW_AT_CONST)) != 0)) {
        transfer->value.flags |= FLOW_VARIABLE | FLOW_BASELESS;
    }
    if ((space == SPACE_GLOBAL || space == SPACE_GENERIC) &&
        (is_parameter_word || (flags & FLOW_AT) == 0 || (flags & FLOW_BASELESS) != 0)) {
        transfer->value.flags |= FLOW_DATA | FLOW_BASELESS;
    }
    if (is_ordered(transfer->instruction->opcode)) {
        transfer->value.flags |= FLOW_ATOMIC;
    }
}

/* Computes the value of element `element` of the result. */
static void compute_value(struct flow_transfer *transfer, unsigned element)
{
    struct flow_value *value = &transfer->value;

    switch (transfer->instruction->effect) {
    case EFFECT_CHOOSE:
        /* The second operand of mapa is a block, in whose shared memory the address is. */
        choose_operand(transfer, flow_starts_with(transfer->instruction->opcode, "mapa.") ? 1 : 2);
        if (flow_starts_with(transfer->instruction->opcode, "cvta.shared")) {
            /* The source can be 32 bits wide, which are no address otherwise. */
            value->flags = (value->flags & ~(uint32_t)FLOW_BASELESS) | FLOW_AT_SHARED;
        }
        break;
    case EFFECT_CONVERT:
        choose_operand(transfer, 1);
        break;
    case EFFECT_ADD:
        if (!is_small_mask(transfer)) {
            add_up(transfer);
            break;
        }
        depend_from(transfer, 1);
        value->flags |= FLOW_BASELESS;
        break;
    case EFFECT_SUBTRACT:
        choose_operand(transfer, 1);
        break;
    case EFFECT_MULTIPLY_ADD:
        flow_depend_on(transfer->flow, transfer->instruction, 1, value, &transfer->operand);
        flow_depend_on(transfer->flow, transfer->instruction, 2, value, &transfer->operand);
        if (operand_at(transfer, 3) != NULL) {
            flow_read_operand(transfer->flow, operand_at(transfer, 3), value);
        }
        break;
    case EFFECT_COMPUTE:
        depend_from(transfer, 1);
        value->flags |= FLOW_BASELESS;
        break;
    case EFFECT_EXCHANGE:
        depend_from(transfer, 1);
        value->flags |= FLOW_EXCHANGE | FLOW_BASELESS;
        break;
    case EFFECT_LOAD:
        load_element(transfer, element);
        break;
    case EFFECT_ATOMIC:
        value->flags |= FLOW_ATOMIC | FLOW_BASELESS;
        break;
    case EFFECT_LOAD_TILE:
        value->flags |= FLOW_DATA | FLOW_EXCHANGE | FLOW_BASELESS;
        break;
    case EFFECT_SHARED:
        value->flags |= FLOW_SHARED | FLOW_BASELESS;
        break;
    default:
        value->flags |= FLOW_OPCODE | FLOW_BASELESS;
        break;
    }
    if (ptx_opcode_is_inexact(transfer->instruction->opcode)) {
        value->flags |= FLOW_INEXACT;
    }
}

static bool has_carry_out(struct span opcode)
{
    return span_has_part(opcode, "cc");
}

static bool has_carry_in(struct span opcode)
{
    return flow_starts_with(opcode, "addc") || flow_starts_with(opcode, "subc") ||
           flow_starts_with(opcode, "madc");
}

/* Adds what the branch at the end of a block depends on. True: the value grew. */
bool flow_depend_on_branch(const struct flow *flow, uint32_t block, struct flow_value *value)
{
    const struct ptx_instruction *branch =
        &flow->function->instructions[flow->graph.blocks[block].end - 1];
    const struct ptx_operand *first = flow->function->operands + branch->operand_first;

    bool has_grown = false;

    if (branch->predicate != PTX_NONE) {
        has_grown |= flow_join_dependence(flow, value, &flow->values[branch->predicate]);
    }
    if (branch->effect == EFFECT_BRANCH_TABLE && branch->operand_count > 0 &&
        first->kind == OPERAND_REGISTER) {
        has_grown |= flow_join_dependence(flow, value, &flow->values[first->index]);
    }
    return has_grown;
}

/* Adds the value to a register. True: it grew. */
static bool define_register(struct flow_transfer *transfer, uint32_t index)
{
    struct flow *flow = transfer->flow;
    const struct ptx_instruction *instruction = transfer->instruction;
    struct flow_value *value = &transfer->value;
    bool has_grown = false;

    if (flow->function->registers[index].bits != 64) {
        bool is_part = !flow_is_empty(flow, value->bases) || (value->flags & FLOW_PART) != 0;

        flow_forget_bases(flow, value);
        value->flags |= is_part ? FLOW_PART : 0;
    }
    if (instruction->predicate != PTX_NONE) {
        (void)flow_join_dependence(flow, value, &flow->values[instruction->predicate]);
    }
    for (uint32_t i = flow->chooser_first[index]; i < flow->chooser_first[index + 1]; i++) {
        uint32_t number = flow->branch_numbers[flow->choosers[i]];

        if (number == PTX_NONE) {
            (void)flow_depend_on_branch(flow, flow->choosers[i], value);
        } else {
            value->choices[number / 64] |= (uint64_t)1 << number % 64;
        }
    }
    if (has_carry_in(instruction->opcode)) {
        (void)flow_join_dependence(flow, value, flow_extra(flow, FLOW_CARRY));
    }
    if (has_carry_out(instruction->opcode)) {
        has_grown |= flow_join_dependence(flow, flow_extra(flow, FLOW_CARRY), value);
    }
    value->flags |= FLOW_DEFINED;
    return flow_join(flow, &flow->values[index], value) || has_grown;
}

/* A store to shared or local memory, of one element. */
static bool store_own(struct flow_transfer *transfer, const struct ptx_operand *stored,
                      bool is_shared)
{
    struct flow *flow = transfer->flow;
    struct flow_value *memory =
        flow_extra(flow, is_shared ? FLOW_MEMORY_SHARED : FLOW_MEMORY_LOCAL);
    bool *is_lost = is_shared ? &flow->has_lost_shared : &flow->has_lost_local;
    bool was_lost = *is_lost;

    flow_clear(flow, &transfer->value);
    flow_read_operand(flow, stored, &transfer->value);
    if (ptx_opcode_bits(transfer->instruction->opcode) == 64) {
        return flow_join(flow, memory, &transfer->value);
    }
    /* An address could be stored in parts, and loaded whole. */
    *is_lost |= (transfer->value.flags & (FLOW_PART | FLOW_DATA | FLOW_UNKNOWN)) != 0;
    return *is_lost != was_lost;
}

static bool store_value(struct flow_transfer *transfer)
{
    struct flow *flow = transfer->flow;
    const struct ptx_instruction *instruction = transfer->instruction;
    const struct ptx_operand *operands = flow->function->operands + instruction->operand_first;
    enum ptx_space space = flow_space(instruction->opcode);
    bool has_grown = false;
    uint32_t flags;

    if (operand_at(transfer, 0) == NULL) {
        return false;
    }
    flags = flow_operand(flow, operand_at(transfer, 0))->flags;
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        if (operands[i].position == 0) {
            continue;
        }
        if (space == SPACE_SHARED || (space == SPACE_GENERIC && (flags & FLOW_AT_SHARED) != 0)) {
            has_grown |= store_own(transfer, &operands[i], true);
        }
        if (space == SPACE_LOCAL || (space == SPACE_GENERIC && (flags & FLOW_AT_LOCAL) != 0)) {
            has_grown |= store_own(transfer, &operands[i], false);
        }
    }
    return has_grown;
}

/* What gets into the thread's or block's own memory other than by stores could be addresses: copies
   that pass no register, exchanges, and what a called function stores. */
static bool store_unseen(struct flow_transfer *transfer)
{
    struct flow *flow = transfer->flow;
    enum effect effect = transfer->instruction->effect;
    bool is_exchange = (effect == EFFECT_ATOMIC || effect == EFFECT_REDUCE) &&
                       flow_space(transfer->instruction->opcode) != SPACE_GLOBAL;
    bool is_copy = effect == EFFECT_COPY_ASYNC || effect == EFFECT_BULK_LOAD ||
                   effect == EFFECT_SHARED || effect == EFFECT_BULK_COPY ||
                   effect == EFFECT_STORE_TILE;
    unsigned before = flow->has_lost_shared + flow->has_lost_local;

    flow->has_lost_shared |= is_exchange || is_copy || effect == EFFECT_CALL;
    flow->has_lost_local |= is_exchange || effect == EFFECT_CALL;
    return before != (unsigned)flow->has_lost_shared + flow->has_lost_local;
}

bool flow_walk_instruction(struct flow_transfer *transfer)
{
    struct flow *flow = transfer->flow;
    const struct ptx_instruction *instruction = transfer->instruction;
    const struct ptx_operand *operands = flow->function->operands + instruction->operand_first;
    bool has_grown = false;
    unsigned element = 0;

    if (instruction->effect == EFFECT_STORE) {
        return store_value(transfer);
    }
    has_grown = store_unseen(transfer);
    if (!flow_has_result(instruction->effect)) {
        return has_grown;
    }
    for (uint32_t i = 0; i < instruction->operand_count && operands[i].position == 0; i++) {
        if (!operands[i].is_address) {
            if (operands[i].kind == OPERAND_REGISTER) {
                flow_clear(flow, &transfer->value);
                compute_value(transfer, element);
                has_grown |= define_register(transfer, operands[i].index);
            }
            element++;
        }
    }
    return has_grown;
}
