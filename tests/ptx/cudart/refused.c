/* The calls that are refused. They look at none of their arguments, so their types do not matter.
 */
#include "tests/ptx/cudart/cudart.h"

#include <stdio.h>

#define REFUSE(name)                                                   \
    CUDART_API cudaError_t name(void);                                 \
    cudaError_t name(void)                                             \
    {                                                                  \
        fprintf(stderr, "test runtime: %s is not supported\n", #name); \
        return cudart_leave(cudaErrorNotSupported);                    \
    }
CUDART_REFUSED_CALLS(REFUSE)
