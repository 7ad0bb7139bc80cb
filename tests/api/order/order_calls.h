/* The calls of the table of order: each touches one item of the world, and if it succeeds, plain
   memory in the same way. */
#ifndef CAPU_TESTS_API_ORDER_CALLS_H
#define CAPU_TESTS_API_ORDER_CALLS_H

#include "tests/api/order/order_world.h"

struct order_call {
    const char *name;
    capu_status (*make)(struct world *world, size_t item);
};

/* Ends with a zeroed one. */
extern const struct order_call order_calls[];

#endif
