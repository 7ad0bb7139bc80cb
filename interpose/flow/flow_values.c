/* Values of the data flow, see flow.h: sets, their unions, and what operands give. */
#include "interpose/flow/flow_parts.h"

#include <string.h>

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

/* The union. True: `to` grew. */
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

/* Adds what `from` depends on, its own provenance included, but not that provenance. */
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

/* Turns provenance into dependence: the value is no address. */
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
