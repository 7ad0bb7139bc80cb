/* Rules of CUDA's driver that do not depend on how a fake keeps its streams and captures. */
#ifndef CAPU_TESTS_PTX_DRIVER_RULES_H
#define CAPU_TESTS_PTX_DRIVER_RULES_H

#include "tests/ptx/include/driver_types.h"

#include <stdbool.h>

/* Whether a wait of cuStreamWaitValue32 is over when the memory holds `now`. */
static inline bool driver_is_waited_for(uint32_t now, uint32_t value, unsigned flags)
{
    switch (flags) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
        return ~(now | value) != 0;
    default:
        return (int32_t)(now - value) >= 0;
    }
}

/* Whether a capture of one mode forbids potentially unsafe calls in a thread of another; `is_own`:
   the thread that began the capture. */
static inline bool driver_capture_forbids(CUstreamCaptureMode capture, CUstreamCaptureMode thread,
                                          bool is_own)
{
    if (thread == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return false;
    }
    return is_own ? capture != CU_STREAM_CAPTURE_MODE_RELAXED
                  : thread == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                        capture == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

#endif
