/*
 * Swapping: the host copies of tensors, the blocks that they are in, and the copies out and back.
 *
 * A tensor has a host block if it has a host copy, or if a plan has reserved the block for it. The
 * copy stays when the tensor is back on the device, until the tensor is written or the memory is
 * needed: evicting the tensor again then costs no copy.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_SWAP_H
#define CAPU_RUNTIME_SWAP_H

#include "runtime/tensor/tensors.h"

struct residency;

/* Takes a host block that stays with the tensor whether there is a copy in it or not, so that a
   plan need not wait for host memory. */
capu_status swap_reserve_block(struct residency *residency, struct tensor *tensor);

/* Ends that, once all work has passed: a block with a copy in it stays until the copy is dropped.
   Pre: it is reserved. */
void swap_unreserve_block(struct residency *residency, struct tensor *tensor);

/* Starts a copy of a resident tensor to its host block, and takes a block if it has none. The copy
   starts after the tensor's last use or, if `after_reads` is false, after its last write, since
   reads do not disturb it. On failure the tensor is as before. */
capu_status swap_out(struct residency *residency, struct tensor *tensor, bool after_reads);

/* Starts the copy back into its pages. The caller has made the h2d lane follow what it must. */
capu_status swap_in(struct residency *residency, struct tensor *tensor);

/* Gives up the host copy, if there is one, and its block. */
void swap_drop(struct residency *residency, struct tensor *tensor);

/* Gives back the host block of a tensor that has no copy in it any more, if it has one and no plan
   has reserved it: once the last copy has passed. */
void swap_give_block(struct residency *residency, struct tensor *tensor);

/*
 * The tensors with contents, in two lists: those of transient tensors are given up when an
 * iteration begins, those of persistent ones are counted.
 */

/* Puts a tensor into the list it belongs to. Pre: it has contents. */
void contents_define(struct residency *residency, struct tensor *tensor);

/* Gives up the contents of a tensor, and its host copy with them. */
void contents_forget(struct residency *residency, struct tensor *tensor);

#endif
