/*
 * Plans in which tensors share pages only after they have been freed (policy/place/place_apart.h).
 *
 * Freeing is not an op, so an op of such a plan can be the planned one although the tensor whose
 * pages it takes has not been freed this time, and may still be read. So these tensors are counted:
 * an op is the planned one only if as many have been freed before it as when the plan was made.
 */
#ifndef CAPU_RUNTIME_GUIDE_FREES_H
#define CAPU_RUNTIME_GUIDE_FREES_H

#include "runtime/guide/guide.h"

/* Finds the tensors that pass pages on, and counts them per op. Does nothing if tensors share pages
   before they are freed. Pre: the guide has its places, and its plan no actions. NO_HOST_MEMORY. */
capu_status guide_frees_note(struct guide *guide);

#endif
