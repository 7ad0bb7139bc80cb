/* What the files of the data flow share. */
#ifndef CAPU_INTERPOSE_FLOW_PARTS_H
#define CAPU_INTERPOSE_FLOW_PARTS_H

#include "interpose/flow/flow.h"

/* Beyond these, an analysis would take minutes; no real kernel comes near. */
#define FLOW_BITS_MOST ((uint64_t)1 << 31)

/* flow_transfer.c */

/* Values: `to` or `value` grows; true: it did. */

bool flow_join_set(const struct flow *flow, uint64_t *to, const uint64_t *from);
bool flow_join(const struct flow *flow, struct flow_value *to, const struct flow_value *from);
/* What `from` depends on, its own provenance included, but not that provenance. */
bool flow_join_dependence(const struct flow *flow, struct flow_value *to,
                          const struct flow_value *from);
void flow_clear(const struct flow *flow, struct flow_value *value);
/* Turns provenance into dependence: the value is no address. */
void flow_forget_bases(const struct flow *flow, struct flow_value *value);
void flow_set_base(const struct flow *flow, struct flow_value *value, struct flow_slot slot);
/* One of FLOW_MEMORY_SHARED and the following. */
struct flow_value *flow_extra(struct flow *flow, size_t which);
bool flow_starts_with(struct span name, const char *text);
void flow_read_operand(const struct flow *flow, const struct ptx_operand *operand,
                       struct flow_value *value);
/* Adds what all operands at a position depend on; `scratch` is overwritten. */
void flow_depend_on(const struct flow *flow, const struct ptx_instruction *instruction,
                    unsigned position, struct flow_value *value, struct flow_value *scratch);

/* Instructions. `value` is the result and starts empty; `operand` is for use within. */
struct flow_transfer {
    struct flow *flow;
    const struct ptx_instruction *instruction;
    struct flow_value value;
    struct flow_value operand;
};

/* True: some value grew. */
bool flow_walk_instruction(struct flow_transfer *transfer);
/* Adds what the branch at the end of a block depends on. */
bool flow_depend_on_branch(const struct flow *flow, uint32_t block, struct flow_value *value);

/* flow_definitions.c */

/* Where an operand points, if it is a parameter or a register that points into one. */
struct flow_place flow_place_of(const struct flow *flow, const struct ptx_operand *operand);
/* The slot that element `element` of a load from a place in the parameters reads. */
struct flow_slot flow_word_of(const struct ptx_instruction *instruction, struct flow_place place,
                              unsigned element);
bool flow_find_slot(const struct flow *flow, const struct flow_slot *wanted, size_t *index);
void flow_find_places(struct flow *flow);
void flow_find_halves(struct flow *flow);
/* The register that an instruction puts together again from its halves; NULL: it does not. */
const struct ptx_operand *flow_whole_of(const struct flow *flow,
                                        const struct ptx_instruction *instruction);
capu_status flow_list_slots(struct flow *flow);

/* The same file; the last needs values. */

bool flow_has_result(enum effect effect);
capu_status flow_count_definitions(struct flow *flow);
capu_status flow_find_choosers(struct flow *flow);
capu_status flow_find_unset(struct flow *flow);

#endif
