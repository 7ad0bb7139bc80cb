/* The fake machine for examples. Its pages are small, so that the tensors of a small model have
   many pages. FAKE_GPU=old: its driver has no virtual memory; FAKE_GPU=small: it has little
   memory. */
#include "tests/fake_cudart/fake_cudart.h"

#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void make_machine(void)
{
    const char *fault = getenv("FAKE_GPU");
    struct fake_cudart_machine machine = {
        .memory_bytes = UINT64_C(256) << 20,
        .granularity_bytes = UINT64_C(16) << 10,
    };

    if (fault != NULL && strcmp(fault, "old") == 0) {
        machine.missing = "cuMemMap";
    }
    if (fault != NULL && strcmp(fault, "small") == 0) {
        machine.memory_bytes = UINT64_C(256) << 10;
    }
    fake_cudart_reset(&machine);
}
