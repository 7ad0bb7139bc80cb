/* Making the operands of the current op resident when no guide does. */
#ifndef CAPU_RUNTIME_RESIDENT_H
#define CAPU_RUNTIME_RESIDENT_H

#include "capuchin/context.h"
#include "runtime/op/op.h"

struct residency;

/* Makes every access of the op resident, and makes compute wait for its copies (order.h).
   Errors as of pager_make_room; OVER_BUDGET also if the op alone is too large. */
capu_status resident_make_ready(struct residency *residency, const struct op *op);

#endif
