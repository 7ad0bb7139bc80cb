/* The largest flow against the smallest cut, over all cuts of small networks. */
#include "policy/bound/max_flow.h"

#include "tests/support/random_trace.h"
#include "tests/support/suite.h"

#define NODES 7
#define EDGES 14
#define NETWORKS 3000

struct network {
    int64_t enters[NODES];
    int64_t leaves[NODES];
    uint32_t from[EDGES];
    uint32_t to[EDGES];
    int64_t limit[EDGES];
};

static void draw_limits(struct network *network, uint64_t *state)
{
    for (uint32_t i = 0; i < NODES; i++) {
        network->enters[i] = random_below(state, 3) == 0 ? (int64_t)random_below(state, 50) : 0;
        network->leaves[i] = random_below(state, 3) == 0 ? (int64_t)random_below(state, 50) : 0;
    }
    for (uint32_t i = 0; i < EDGES; i++) {
        network->limit[i] =
            random_below(state, 5) == 0 ? MAX_FLOW_UNLIMITED : (int64_t)random_below(state, 40);
    }
}

/* What crosses from the nodes of a set. */
static int64_t crossing(const struct network *network, uint32_t near)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < NODES; i++) {
        sum += (near >> i & 1) != 0 ? network->leaves[i] : network->enters[i];
    }
    for (uint32_t i = 0; i < EDGES; i++) {
        if ((near >> network->from[i] & 1) != 0 && (near >> network->to[i] & 1) == 0) {
            sum = network->limit[i] == MAX_FLOW_UNLIMITED || sum == MAX_FLOW_UNLIMITED
                      ? MAX_FLOW_UNLIMITED
                      : sum + network->limit[i];
        }
    }
    return sum;
}

static void compare(struct max_flow *flow, const struct network *network)
{
    int64_t least = INT64_MAX;
    uint32_t near = 0;

    for (uint32_t i = 0; i < NODES; i++) {
        flow->enters[i] = network->enters[i];
        flow->leaves[i] = network->leaves[i];
    }
    for (uint32_t i = 0; i < EDGES; i++) {
        max_flow_set_limit(flow, 2 * i, network->limit[i]);
    }
    for (uint32_t set = 0; set < (uint32_t)1 << NODES; set++) {
        int64_t sum = crossing(network, set);

        least = sum < least ? sum : least;
    }
    ck_assert_int_eq(max_flow_solve(flow), least);
    for (uint32_t i = 0; i < NODES; i++) {
        near |= (uint32_t)max_flow_is_near(flow, i) << i;
    }
    ck_assert_int_eq(crossing(network, near), least);
}

START_TEST(the_largest_flow_is_the_smallest_cut)
{
    uint64_t state = 4711;

    for (uint32_t n = 0; n < NETWORKS; n++) {
        struct network network;
        struct max_flow flow;

        ck_assert_int_eq(max_flow_init(&flow, NODES, EDGES), CAPU_OK);
        for (uint32_t i = 0; i < EDGES; i++) {
            network.from[i] = (uint32_t)random_below(&state, NODES);
            network.to[i] =
                (network.from[i] + 1 + (uint32_t)random_below(&state, NODES - 1)) % NODES;
            ck_assert_uint_eq(max_flow_add_edge(&flow, network.from[i], network.to[i]), 2 * i);
        }
        /* Solved twice: limits can be set again. */
        draw_limits(&network, &state);
        compare(&flow, &network);
        draw_limits(&network, &state);
        compare(&flow, &network);
        max_flow_finish(&flow);
    }
}
END_TEST

START_TEST(networks_without_nodes_or_edges_have_a_flow)
{
    struct max_flow flow;

    ck_assert_int_eq(max_flow_init(&flow, 0, 0), CAPU_OK);
    ck_assert_int_eq(max_flow_solve(&flow), 0);
    max_flow_finish(&flow);
    ck_assert_int_eq(max_flow_init(&flow, 1, 0), CAPU_OK);
    flow.enters[0] = 5;
    flow.leaves[0] = 3;
    ck_assert_int_eq(max_flow_solve(&flow), 3);
    ck_assert(max_flow_is_near(&flow, 0));
    max_flow_finish(&flow);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/max_flow");
    TCase *tests = tcase_create("max_flow");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_largest_flow_is_the_smallest_cut);
    tcase_add_test(tests, networks_without_nodes_or_edges_have_a_flow);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
