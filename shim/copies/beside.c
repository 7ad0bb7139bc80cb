/*
 * Calls about memory that is not ours: managed memory, arrays, resources of graphics. They go to
 * the driver, in the place where the program's other work goes: the library's stream, or one that
 * captures.
 */
#include "shim/core/capture.h"
#include "shim/core/core.h"
#include "shim/driver/handlers.h"
#include "shim/driver/real.h"

#define STREAM(stream) (capture_takes(stream) ? (stream) : core_stream(stream))
#define ON_STREAM(name, suffix, takers, parameters, arguments) \
    CUresult on_##name parameters                              \
    {                                                          \
        return real_calls()->name arguments;                   \
    }
DRIVER_BESIDE(ON_STREAM)

/* After the program's work, and done before what follows. */
#define NOW(name, suffix, takers, parameters, arguments)                                    \
    CUresult on_##name parameters                                                           \
    {                                                                                       \
        CUresult result = core_wait();                                                      \
                                                                                            \
        if (result == DRIVER_SUCCESS) {                                                     \
            result = real_calls()->name arguments;                                          \
        }                                                                                   \
        return result == DRIVER_SUCCESS ? real_calls()->cuStreamSynchronize(NULL) : result; \
    }
DRIVER_BESIDE_NOW(NOW)
