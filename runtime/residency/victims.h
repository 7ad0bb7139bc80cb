/*
 * Victims: the tensors that may be evicted, in the order in which they are.
 *
 * These are the tensors with pages of their own (PAGES_OWN), unless the mode is off, in which
 * nothing is evicted. Each is in one of three lists, least recently used first. Victims are taken
 * from `empty` before `clean` before `dirty`: evicting an empty tensor costs nothing, a clean one
 * at most a copy back later, and a dirty one also a copy out now.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_VICTIMS_H
#define CAPU_RUNTIME_VICTIMS_H

#include "runtime/tensor/tensors.h"

struct residency;

struct victims {
    struct tensor_list empty; /* nothing in them that a copy could keep */
    struct tensor_list clean; /* with a valid host copy */
    struct tensor_list dirty;
    uint64_t spared; /* of tensor.in_op.stamp: these are not taken */
};

/* Spares the tensors whose in_op gets this stamp, until the next call: the operands of an op, or
   those of nothing. */
static inline uint64_t victims_spare(struct victims *victims)
{
    return ++victims->spared;
}

/* Puts a mapped tensor into the list it belongs to now, as the most recently used. */
void victims_touch(struct residency *residency, struct tensor *tensor);

/* The tensor to evict next, none that is spared; NULL: there is none. Least recently used first;
   what costs no copy before what does. */
struct tensor *victims_choose(const struct residency *residency);

#endif
