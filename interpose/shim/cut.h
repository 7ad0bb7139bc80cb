/*
 * Cutting large allocations into tensors. A program that keeps everything in a few allocations
 * shows by its first calls how it has divided them. A tensor that nothing has written yet is cut at
 * the borders of the first copy, memset or library call that touches a part of it, so that each
 * part can come and go by itself. For the thread that has entered the core.
 */
#ifndef CAPU_INTERPOSE_SHIM_CUT_H
#define CAPU_INTERPOSE_SHIM_CUT_H

#include <stdint.h>

/* Cuts the tensors that a range touches a part of, where that pays. A failure leaves them whole,
   which is slower at most. */
void cut_range(uint64_t address, uint64_t bytes);

/* The same for a kernel's range, which is needed at once, however large it is. */
void cut_part(uint64_t address, uint64_t bytes);

/* Bytes of pages that cuts have made shared, which are always resident. */
uint64_t cut_edge_bytes(void);

#endif
