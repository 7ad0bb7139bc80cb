/* Compiled where NVIDIA's headers are installed: the functions of cuRAND that the shim wraps, and
   those of the library for tests, have the parameters that they have there, or the declarations
   conflict. */
#include <curand.h>

#define curandStatus_t own_status
#define curandGenerator_t own_generator
#include "shim/libraries/library_calls.h"
#undef curandStatus_t
#undef curandGenerator_t
#include "tests/ptx/include/curand_calls.h"

#define DECLARE(name, parameters) curandStatus_t name parameters;
#define DECLARE_PLAIN(name, parameters, arguments) DECLARE(name, parameters)
#define DECLARE_FILLING(name, type, parameters, arguments) DECLARE(name, parameters)
RAND_OTHER(DECLARE)
RAND_PLAIN(DECLARE_PLAIN)
RAND_FILLING(DECLARE_FILLING)
CURAND_CALLS(DECLARE)

#define SAME(own, theirs) _Static_assert((int)(own) == (int)(theirs), #own)
SAME(RAND_SUCCESS, CURAND_STATUS_SUCCESS);
SAME(RAND_NOT_INITIALIZED, CURAND_STATUS_NOT_INITIALIZED);
SAME(RAND_ALLOCATION_FAILED, CURAND_STATUS_ALLOCATION_FAILED);
SAME(RAND_LAUNCH_FAILURE, CURAND_STATUS_LAUNCH_FAILURE);
