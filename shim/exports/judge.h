/* Which callers are refused which functions, while memory is managed. */
#ifndef CAPU_SHIM_JUDGE_H
#define CAPU_SHIM_JUDGE_H

#include "shim/driver/caller.h"
#include "shim/driver/symbol.h"

/* Whether a caller is refused what a symbol stands for, or of a wrapped one its other variants.
   Thread: any. */
bool judge_refuses(enum caller caller, const struct symbol *symbol);

#endif
