/*
 * The free list of an unplaced guide: those of its pages that no tensor has.
 *
 * Close to the floor there may be no placement although there is a plan. Its guide takes as many
 * pages from the budget as the plan ever holds at once, and any of its tensors may take any of
 * them: the free list is put aside in the pool, where a take finds neighbours, which are quick to
 * map. A page can be mapped for one tensor only after all work that uses it for another has
 * completed, and only the host can wait for that. Two queues keep these waits rare:
 *
 * - leaving: tensors that have given their pages up are still mapped to them, until the pages are
 *   needed and their last work has completed. One that takes pages before that gets its own back.
 * - expected: tensors that a plan prefetches, and for which there are no free pages yet. Their
 *   copies start as soon as there are. Only an op that needs such a tensor waits.
 *
 * In strict mode nothing is left mapped: the host waits when a tensor gives its pages up.
 *
 * Pre of all functions: the active guide is unplaced (free_list_is_used), and a tensor is bound to
 * it. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_FREE_LIST_H
#define CAPU_RUNTIME_FREE_LIST_H

#include "runtime/residency/residency.h"

struct residency;

static inline bool free_list_is_used(const struct residency *residency)
{
    return residency->guided->active != NULL && residency->guided->active->guide->is_unplaced;
}

/* Whether there are pages for a tensor without waiting: `*has_room`. Fails if unmapping does. */
capu_status free_list_check(struct residency *residency, const struct tensor *tensor,
                            bool *has_room);

/* Maps pages for a tensor, and waits for them where it must. It is not expected any more.
   NOT_READY: the guide has too few. */
capu_status free_list_take(struct residency *residency, struct tensor *tensor);

/* A tensor gives its pages up. One that is only expected is not expected any more. */
capu_status free_list_give(struct residency *residency, struct tensor *tensor);

/* Expects a tensor, after all others; and the one that has been expected longest, NULL: none is. */
void free_list_expect(struct residency *residency, const struct tensor *tensor);
struct tensor *free_list_expected(const struct residency *residency);
bool free_list_is_expected(const struct residency *residency, const struct tensor *tensor);

/* Installing: takes the pages that the guide's tensors do not hold yet. */
void free_list_fill(struct residency *residency, const device_page *pages, size_t count);

/* The guide has been left: its pages go back to the pool. */
void free_list_empty(struct residency *residency);

/* Leaving the guide, after all work has completed: whether the tensor of this number is still
   mapped to the pages that it gave up; it keeps them, or they are unmapped. The latter may be
   tried again. */
bool free_list_has_left(const struct residency *residency, uint32_t index);
void free_list_keep(struct residency *residency, uint32_t index);
capu_status free_list_unmap(struct residency *residency, uint32_t index);

#endif
