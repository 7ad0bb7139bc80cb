/*
 * The state of a tensor: where its pages are, and what it contains. The enums are in tensor.h, the
 * table of legal states in tensor_state.c.
 *
 * This module is the only one that writes `tensor->state`; tests/rules checks it. All others use
 * the named transitions, each of which asserts that it begins and ends in a legal state. They
 * change the state and nothing else: mapping, copying and the lists are done by the callers, which
 * note here what they have done once it has succeeded.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_TENSOR_STATE_H
#define CAPU_RUNTIME_TENSOR_STATE_H

#include "runtime/tensor/tensor.h"

/* It has contents, wherever they are. */
static inline bool tensor_is_defined(const struct tensor *tensor)
{
    return tensor->state.contents != CONTENTS_UNDEFINED;
}

/* It is known to contain zeros, which are nowhere yet. */
static inline bool tensor_is_zero(const struct tensor *tensor)
{
    return tensor->state.contents == CONTENTS_ZERO;
}

/* Its span is valid on the device. */
static inline bool tensor_on_device(const struct tensor *tensor)
{
    return tensor->state.contents == CONTENTS_DEVICE || tensor->state.contents == CONTENTS_BOTH;
}

/* Its host block holds a valid copy of its span. */
static inline bool tensor_on_host(const struct tensor *tensor)
{
    return tensor->state.contents == CONTENTS_HOST || tensor->state.contents == CONTENTS_BOTH;
}

/* Its contents were given up by a plan. */
static inline bool tensor_is_lost(const struct tensor *tensor)
{
    return tensor->state.contents == CONTENTS_LOST || tensor->state.contents == CONTENTS_OWED;
}

/* They were, and the plan would have recomputed them. */
static inline bool tensor_is_owed(const struct tensor *tensor)
{
    return tensor->state.contents == CONTENTS_OWED;
}

/* Its span contains nothing that a copy could keep. */
static inline bool tensor_is_empty(const struct tensor *tensor)
{
    return !tensor_on_device(tensor) && !tensor_on_host(tensor);
}

/* It holds its pages. */
static inline bool tensor_is_mapped(const struct tensor *tensor)
{
    return tensor->state.pages == PAGES_OWN || tensor->state.pages == PAGES_PLACED ||
           tensor->state.pages == PAGES_LEAVING;
}

/* A guide is installed that has pages for it, whether it holds them or not. */
static inline bool tensor_is_placed(const struct tensor *tensor)
{
    return tensor->state.pages == PAGES_PLACED || tensor->state.pages == PAGES_PLACED_OUT;
}

/* Pages: mapped to pages of its own, and unmapped again, which gives up what only those held. */
void tensor_state_mapped(struct tensor *tensor);
void tensor_state_unmapped(struct tensor *tensor);

/* Pages: its departure begins, and is cancelled. */
void tensor_state_leaves(struct tensor *tensor, struct departure *departure);
void tensor_state_stays(struct tensor *tensor);

/* Pages: a guide is installed that has pages for it, which it holds or not; and uninstalled: pages
   that it holds become its own. The latter does nothing to a tensor that is not placed. */
void tensor_state_placed(struct tensor *tensor, bool holds);
void tensor_state_unplaced(struct tensor *tensor);

/* Pages: a placed tensor takes its pages, and gives them up, with what only they held: that is
   lost, or owed. */
void tensor_state_takes(struct tensor *tensor);
void tensor_state_gives(struct tensor *tensor, bool is_owed);

/* Pages and contents: the guide is left, and the pages that it gave up still have what was lost or
   owed since. It holds them again. */
void tensor_state_regains(struct tensor *tensor);

/* Contents: written by an op. The host copy is none any more. Pre: it holds its pages. */
void tensor_state_written(struct tensor *tensor);

/* Contents: known zeros take the place of any others; then they are filled into its pages. */
void tensor_state_zeroed(struct tensor *tensor);
void tensor_state_filled(struct tensor *tensor);

/* Contents: given up by the program. */
void tensor_state_undefined(struct tensor *tensor);

/* Contents: a copy to the host has begun, and a copy back. Those that follow wait for it. */
void tensor_state_copied_out(struct tensor *tensor);
void tensor_state_copied_in(struct tensor *tensor);

/* Contents: the host copy is given up. */
void tensor_state_copy_dropped(struct tensor *tensor);

/* The host copy was made for the eviction that a plan has next; and that eviction is reported. */
void tensor_state_saved(struct tensor *tensor);
void tensor_state_save_used(struct tensor *tensor);

/* Contents: an op that made them has run again. `is_current`: what it wrote are the tensor's
   present contents; otherwise older ones, and those on the device are gone. */
void tensor_state_replayed(struct tensor *tensor, bool is_current);

/* Contents: a replay that failed may have written to the device. What only that held is owed. */
void tensor_state_spoiled(struct tensor *tensor);

/* Contents: no plan will recompute it any more. */
void tensor_state_not_owed(struct tensor *tensor);

/* Pages and contents: a graph was launched that left them so. Pre: it is placed as before, or
   always resident. */
void tensor_state_restored(struct tensor *tensor, const struct tensor_state *state);

/* The state of a part that was split from `old`, whose pages it keeps. Its contents are those of
   `old` on the device, or none that is anywhere. */
void tensor_state_split(struct tensor *part, const struct tensor *old);

/* Whether the state is legal and agrees with the rest of the tensor; if not, *what says why. */
bool tensor_validate(const struct tensor *tensor, const char **what);

#endif
