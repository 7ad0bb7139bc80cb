/*
 * Cutting large allocations into tensors. A program that keeps everything in a few allocations
 * shows by its calls how it has divided them. A tensor is cut at the borders of a range that a
 * call touches, so that each part can come and go by itself.
 *
 * A tensor that is still zero is cut by the first call that touches a part of it. Tensors with
 * contents are cut in guided mode only. There a cut ends the use of a plan. So it is only noted
 * inside an iteration, and made at the end of the iteration, also where there are contents by then;
 * or at once, if the operands of a call do not fit otherwise.
 *
 * For the thread that has entered the core.
 */
#ifndef CAPU_SHIM_CUT_H
#define CAPU_SHIM_CUT_H

#include "capuchin/capuchin.h"

#include <stdbool.h>
#include <stdint.h>

/* Cuts the tensors that a range touches a part of, where that pays, or notes the range. A failure
   leaves them whole, which is slower at most. */
void cut_range(capu_context *context, uint64_t address, uint64_t bytes);

/* The same for a kernel's range, which is needed at once, however large it is. */
void cut_part(capu_context *context, uint64_t address, uint64_t bytes);

/* From now on ranges are noted, or not. */
void cut_defer(bool is_deferred);

/* Notes the operands of an access, if ranges are noted. When iterations have ended without cuts for
   a while, it does nothing. */
void cut_note(capu_context *context, const capu_operand *operands, size_t count);

/* Makes the cuts that were noted, and forgets them. False: nothing was cut. */
bool cut_noted(capu_context *context);

/* The same for an access, whose operands are noted in any case. */
bool cut_operands(capu_context *context, const capu_operand *operands, size_t count);

/* Makes the cuts that were noted, between iterations. After some such changes no more are made:
   each one needs new plans. */
void cut_between(capu_context *context);

/* Bytes of pages that cuts have made shared, which are always resident. */
uint64_t cut_edge_bytes(void);

/* A number that changes when something is cut. */
uint64_t cut_generation(void);

/* Names a new allocation, for reports and errors: `allocation 3`. A part that is cut from it is
   named `allocation 3+81920`, with the byte at which it begins. The number is one more than the
   allocation's ordinal, so it does not depend on addresses. A name says nothing else of a tensor.
   Where one cannot be given, the old one stays. */
void cut_name_whole(capu_context *context, void *block, uint64_t ordinal);

#endif
