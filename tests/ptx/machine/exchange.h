/* What the lanes of a warp compute together, once all have arrived. */
#ifndef CAPU_TESTS_PTX_MACHINE_EXCHANGE_H
#define CAPU_TESTS_PTX_MACHINE_EXCHANGE_H

#include "tests/ptx/machine/thread.h"

enum { EXCHANGE_LANES = 32 };

struct exchange {
    enum ptx_exchange kind;
    uint32_t lanes; /* that take part: each has words */
    const uint32_t *in[EXCHANGE_LANES];
    uint32_t *out[EXCHANGE_LANES];
};

void exchange_compute(const struct exchange *exchange);

/* exchange_matrix.c; matrix products and tiles need all 32 lanes. */
bool exchange_is_matrix(enum ptx_exchange kind);
void exchange_compute_matrix(const struct exchange *exchange);

#endif
