/* The fake machine for examples. Its pages are small, so that the tensors of a small model have
   many pages. */
#include "tests/fake_cudart/fake_cudart.h"

__attribute__((constructor)) static void make_machine(void)
{
    const struct fake_cudart_machine machine = {
        .memory_bytes = UINT64_C(256) << 20,
        .granularity_bytes = UINT64_C(16) << 10,
    };

    fake_cudart_reset(&machine);
}
