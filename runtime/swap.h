/* The host copies of tensors: the blocks they lie in, and the copies out and back. */
#ifndef CAPU_RUNTIME_SWAP_H
#define CAPU_RUNTIME_SWAP_H

#include "runtime/tensors.h"

/* Takes a host block that stays with the tensor whether there is a copy in it or not, so that a
   plan need not wait for host memory. */
capu_status swap_reserve_block(capu_context *context, struct tensor *tensor);

/* Ends that, once all work has passed: a block with a copy in it stays until the copy is dropped.
   Pre: it is reserved. */
void swap_unreserve_block(capu_context *context, struct tensor *tensor);

/* Starts a copy of a resident tensor to its host block, which is taken if it has none; behind its
   last use, or where others may go on reading, behind its last write. On failure the tensor is as
   before. */
capu_status swap_out(capu_context *context, struct tensor *tensor, bool behind_reads);

/* Starts the copy back into its pages, behind what the h2d lane was told to follow. */
capu_status swap_in(capu_context *context, struct tensor *tensor);

/* Gives up the host copy, if there is one, and its block. */
void swap_drop(capu_context *context, struct tensor *tensor);

/* Gives back the host block of a tensor that has no copy in it any more, if it has one and no plan
   has reserved it: once the last copy has passed. */
void swap_give_block(capu_context *context, struct tensor *tensor);

#endif
