/*
 * Bystanders: tensors that share a page with an operand of the op at hand, but are none of them.
 *
 * Pieces that were split from one allocation can be smaller than a page, and access is granted by
 * pages. So strict mode hides the contents of bystanders while an op runs, by poison. If it is
 * changed after the op, the op has written there; if results of it are in an output, the op has
 * read there. Only the part of a bystander that lies in a shared page is hidden; the rest is not
 * open.
 *
 * Small allocations share pages, too. They have addresses of their own (slabs_spread), but after
 * the end of one lies the next one of its page. Only the one before and the one after are hidden.
 *
 * Shared pages are always resident, and only the compute lane touches them.
 *
 * Owned by the context's thread. All but destroy need a device that can guard, and no work running.
 */
#ifndef CAPU_RUNTIME_STRICT_BYSTANDERS_H
#define CAPU_RUNTIME_STRICT_BYSTANDERS_H

#include "runtime/strict/strict.h"

/* NULL is fine. */
void strict_bystanders_destroy(struct bystanders *bystanders);

/* Whether the op at hand has any. */
bool strict_bystanders_any(const struct strict *strict);

/* Saves what the bystanders of the op at hand hold, and poisons them. NO_HOST_MEMORY: nothing is
   hidden. */
capu_status strict_bystanders_hide(struct strict *strict, const struct op *op);

/* The first byte of a bystander that has changed since, or NULL. */
const void *strict_bystanders_written(const struct strict *strict);

/* Puts their contents back. They are still remembered for the next function. */
void strict_bystanders_show(struct strict *strict);

/* A bystander of which something is in an output of the op, or NULL. */
struct tensor *strict_bystanders_read(const struct strict *strict, const struct op *op);

#endif
