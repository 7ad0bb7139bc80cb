/* Making the operands of an op resident, without a plan. */
#ifndef CAPU_RUNTIME_RESIDENT_H
#define CAPU_RUNTIME_RESIDENT_H

#include "capuchin/context.h"

/* Makes the accesses at hand resident, and compute wait for copies that read what they write: the
   passive part of operands_begin. */
capu_status resident_make_ready(capu_context *context);

#endif
