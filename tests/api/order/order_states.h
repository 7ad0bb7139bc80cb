/* The states of the table of order: how a fresh tensor comes into each, through public calls. */
#ifndef CAPU_TESTS_API_ORDER_STATES_H
#define CAPU_TESTS_API_ORDER_STATES_H

#include "tests/api/order/order_world.h"

/* What is more than pages and contents. */
enum order_more {
    ORDER_PLAIN,
    ORDER_ARRIVING, /* installing a plan brings it back */
    ORDER_EXPECTED, /* its copy back waits for pages */
    ORDER_LEFT      /* it gave its pages up, and is still mapped */
};

/* Instead of a number of steps: no iteration begins. With so many steps on top: it is captured. */
enum { ORDER_BETWEEN = -1, ORDER_CAPTURED = 100 };

struct order_state {
    const char *column;            /* its heading in the table */
    void (*reach)(struct world *); /* makes a world, between iterations */
    int steps; /* then begins an iteration and takes so many, or one of the above */
    void (*then)(struct world *); /* then does this; NULL: nothing */
    size_t item;
    enum tensor_pages pages;
    enum tensor_contents contents;
    bool comes; /* its copy back is under way, and compute does not wait for it yet */
    bool goes;  /* its copy out is under way */
    enum order_more more;
};

/* Which devices a table holds for. Only cuda has graphs, and in strict mode host waits more often,
   since it can guard memory. */
enum order_needs { ORDER_ANY_DEVICE, ORDER_HOST, ORDER_CUDA };

/* One table of the document. */
struct order_table {
    const char *title;
    const struct order_state *states; /* ends with a zeroed one */
    enum order_needs needs;
};

extern const struct order_table order_tables[]; /* ends with a zeroed one */

/* Makes a world whose item is in the state, or fails the test. */
void order_state_reach(struct world *world, const struct order_state *state);

/* Fails the test if a tensor is in a state that no call can find it in. */
void order_states_check(const struct world *world);

#endif
