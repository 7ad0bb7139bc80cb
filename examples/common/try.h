/* Passes a failed status on: examples handle an error in one place, where main reports it. */
#ifndef CAPU_EXAMPLES_COMMON_TRY_H
#define CAPU_EXAMPLES_COMMON_TRY_H

#include "capuchin/status.h"

#define TRY(call_)                  \
    do {                            \
        capu_status try_ = (call_); \
        if (try_ != CAPU_OK) {      \
            return try_;            \
        }                           \
    } while (0)

#endif
