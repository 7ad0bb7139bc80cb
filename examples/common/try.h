/* Passing a status on: examples do nothing about a failure but say what it was, once, in main. */
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
