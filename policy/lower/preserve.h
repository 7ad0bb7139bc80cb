/*
 * Preserving contents that a plan would discard although nothing could bring them back.
 *
 * A plan gives up what the iteration that it was made from does not access again. Another iteration
 * may, and then the contents should be recomputable, still be in their pages, or have a copy in
 * host memory. This adds the copies that the first two do not make unnecessary: a `save` after the
 * op that made a tensor, and an `evict` in place of a `drop`.
 */
#ifndef CAPU_POLICY_PRESERVE_H
#define CAPU_POLICY_PRESERVE_H

#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/model/program.h"

enum preserve {
    PRESERVE_NOTHING,
    /* Transient tensors that no op reads after the last one that writes them: an iteration that
       stops early, or leaves an update out, makes such plans. */
    PRESERVE_UNREAD,
    PRESERVE_ALL
};

/*
 * `program` is of the plan as it comes in. `freed`: per tensor, the op before which the traced
 * program frees it, or TRACE_INDEX_NONE; NULL: it frees none. Contents that are freed before their
 * pages are taken need no copy; without place lines, pages count as taken right after their
 * release. Pre: the plan is valid. The plan stays valid, except that its host copies may exceed a
 * limit.
 *
 * Errors: NO_HOST_MEMORY, TOO_LARGE (too many actions).
 */
capu_status preserve_contents(const struct program *program, const uint32_t *freed,
                              enum preserve what, struct plan *plan);

#endif
