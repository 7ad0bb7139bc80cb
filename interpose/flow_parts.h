/* What the files of the data flow share. */
#ifndef CAPU_INTERPOSE_FLOW_PARTS_H
#define CAPU_INTERPOSE_FLOW_PARTS_H

#include "interpose/flow.h"

/* Beyond these, an analysis would take minutes; no real kernel comes near. */
#define FLOW_BITS_MOST ((uint64_t)1 << 31)

/* flow_slots.c */

/* Where an operand points, if it is a parameter or a register that points into one. */
struct flow_place flow_place_of(const struct flow *flow, const struct ptx_operand *operand);
/* The slot that element `element` of a load from a place in the parameters reads. */
struct flow_slot flow_word_of(const struct ptx_instruction *instruction, struct flow_place place,
                              unsigned element);
bool flow_find_slot(const struct flow *flow, const struct flow_slot *wanted, size_t *index);
void flow_find_places(struct flow *flow);
capu_status flow_list_slots(struct flow *flow);

/* flow_definitions.c; the last needs values. */

bool flow_has_result(enum effect effect);
capu_status flow_count_definitions(struct flow *flow);
capu_status flow_find_choosers(struct flow *flow);
capu_status flow_find_unset(struct flow *flow);

#endif
