/*
 * What an iteration that left its guide owes: tensors that the plan dropped and would have
 * recomputed, and the sources that replays of them will read.
 */
#ifndef CAPU_RUNTIME_OWED_H
#define CAPU_RUNTIME_OWED_H

#include "runtime/guide.h"

/* The iteration has left its guide, which is out of force, after so many ops. */
void owed_start(capu_context *context, struct guide *guide, uint32_t executed);

/* The guide's entry of a tensor, NULL: it knows none at this address. */
struct guide_tensor *owed_entry(const capu_context *context, const struct tensor *tensor);

/* Whether the tensor of an entry is lost. */
bool owed_is_lost(const struct guide_tensor *planned);

/* The tensor behind an entry: always-resident ones come and go, so they are looked up. Where the
   entry is of a piece, what is to be split yet may stand there. */
struct tensor *owed_tensor(capu_context *context, const struct guide_tensor *planned);

/* Marks the sources of what is owed, after something has become owed. */
void owed_mark(struct guide *guide);

#endif
