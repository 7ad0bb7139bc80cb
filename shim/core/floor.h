/*
 * The floor: the least budget that the program's work would have fitted in so far. An access needs
 * the tensors that it touches as a whole; small tensors and the pages that cuts have made shared
 * are always there. It is found only for a report. For the thread that has entered the core.
 */
#ifndef CAPU_SHIM_FLOOR_H
#define CAPU_SHIM_FLOOR_H

#include "capuchin/capuchin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Notes the operands of an access, whether or not they fit. */
void floor_note(capu_context *context, const capu_operand *operands, size_t count);

/* Notes that an allocation was made, or is about to be freed. */
void floor_note_allocation(capu_context *context, uint64_t address, bool is_freed);

/* At least the floor: how small tensors are packed into pages is the library's matter, and taken to
   be at its worst here. `edge_bytes`: in pages that cuts have made shared. */
uint64_t floor_bytes(const capu_context *context, uint64_t edge_bytes);

#endif
