/*
 * Plans without places: where no placement is found, guided iterations map and unmap memory, and
 * compute the same bytes. The tests run with and without strict mode and with random delays in the
 * streams: on host, memory that is unmapped too early faults.
 */
#include "tests/api/net.h"

/* The largest op needs two layers, and ops that follow each other share one. */
enum { BUDGET = 2 * NET_LAYER_PAGES };

static struct rig_options options_of(int number)
{
    return (struct rig_options){
        .budget_pages = BUDGET,
        .strict = number == 1,
        .delay_seed = number == 2 ? 7 : 0,
        .planner = number == 3 ? "lru" : "hybrid",
    };
}

enum { KINDS = 4 }; /* of options */

static void expect_unplaced(struct net *net, const struct report *report, const char *label)
{
    net_expect_guided(net, report, label);
    ck_assert_uint_eq(report->unplaced, 1);
    ck_assert_uint_gt(report->map_count, 0);
    ck_assert_uint_gt(report->unmap_count, 0);
    ck_assert_uint_le(report->peak_bytes, report->budget_bytes);
}

START_TEST(the_smallest_budget_is_guided)
{
    struct net net;
    struct report report;

    net_init(&net, options_of(_i));
    report = net_train(&net, "train");
    ck_assert_uint_eq(report.mode, CAPU_MODE_PASSIVE);
    ck_assert_uint_eq(report.unplaced, 0);
    for (size_t i = 0; i < 6; i++) {
        report = net_train(&net, "train");
        expect_unplaced(&net, &report, "train");
        ck_assert_uint_gt(report.predicted_ns, 0);
        ck_assert_uint_gt(report.prefetch_count + report.replay_count, 0);
    }
    step_expect(&net.rig, net.weights, PAGES(NET_LAYER_PAGES), 8);
    rig_finish(&net.rig);
}
END_TEST

/* The counters are those of the device's calls. On sim, where times are constant, so that no new
   plan is installed meanwhile. */
START_TEST(each_call_is_counted)
{
    struct adaptor_counts counts;
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.budget_pages = BUDGET, .is_sim = true});
    for (size_t i = 0; i <= NET_WARM; i++) {
        adaptor_count_reset(net.rig.count);
        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
        net_backward(&net, NET_LAYERS);
        report = net_end(&net);
        adaptor_count_read(net.rig.count, &counts);
    }
    expect_unplaced(&net, &report, "train");
    ck_assert_uint_eq(net_calls(&counts, ADAPTOR_MAP), report.map_count);
    ck_assert_uint_eq(net_calls(&counts, ADAPTOR_UNMAP), report.unmap_count);
    ck_assert_uint_eq(net_calls(&counts, ADAPTOR_PAGE_CREATE), 0);
    rig_finish(&net.rig);
}
END_TEST

/* A plan with places has none of that, in a budget that has room for one. */
START_TEST(plans_with_places_come_first)
{
    struct net net;
    struct report report;

    net_init(&net, (struct rig_options){0});
    net_train(&net, "train");
    for (size_t i = 0; i < 3; i++) {
        report = net_train(&net, "train");
        net_expect_guided(&net, &report, "train");
        ck_assert_uint_eq(report.unplaced, 0);
        ck_assert_uint_eq(report.map_count + report.unmap_count, 0);
    }
    rig_finish(&net.rig);
}
END_TEST

/* Pieces of memory that its tensors have. */
static size_t run_count(const struct net *net)
{
    size_t runs = 0;

    for (size_t i = 0; i <= NET_LAYERS; i++) {
        const struct tensor *tensor =
            tensors_find(&net->rig.context->memory.tensors, net->activations[i]);

        for (size_t p = 0; tensor_is_mapped(tensor) && p < tensor->page_count; p++) {
            runs += p == 0 || tensor->pages[p] != tensor->pages[p - 1] + 1;
        }
    }
    return runs;
}

/* Tensors of other sizes, which take each other's pages in turn. */
static void make_uneven(struct net *net)
{
    static const size_t pages[NET_LAYERS + 1] = {9, 31, 14, 40, 5, 22, 35, 11, 27};

    for (size_t i = 0; i <= NET_LAYERS; i++) {
        RIG_OK(&net->rig, capu_free(net->rig.context, net->activations[i]));
        net->activations[i] = step_tensor(&net->rig, "activation", CAPU_ACTIVATION, pages[i]);
    }
}

/* However long training goes on, a tensor's pages stay neighbours for the most part: each piece of
   memory is a call to the kernel on host. */
START_TEST(memory_does_not_fall_to_pieces)
{
    enum { STEPS = 60 };
    struct net net;
    struct report report;
    size_t pieces = 0;
    size_t tensors = 0;

    net_init(&net, (struct rig_options){.budget_pages = 80, .places_nothing = true});
    make_uneven(&net);
    for (size_t i = 0; i < STEPS; i++) {
        net_begin(&net, "train");
        for (size_t layer = 0; layer <= NET_LAYERS; layer++) {
            step_set(&net.rig, net.activations[layer],
                     step_query(&net.rig, net.activations[layer]).bytes, (unsigned char)layer);
        }
        for (size_t layer = NET_LAYERS + 1; layer-- > 0;) {
            step_expect(&net.rig, net.activations[layer],
                        step_query(&net.rig, net.activations[layer]).bytes, (unsigned char)layer);
            if (i >= STEPS / 2) {
                pieces += run_count(&net);
                tensors += 3;
            }
        }
        report = net_end(&net);
    }
    expect_unplaced(&net, &report, "train");
    ck_assert_msg(pieces <= 3 * tensors, "%zu pieces", pieces);
    rig_finish(&net.rig);
}
END_TEST

/* Without waiting for plans, whatever stages there are have no places. */
START_TEST(stages_have_no_places_either)
{
    enum { PATIENCE = 1000000 };
    struct report report = {0};
    struct net net;

    net_init(&net, (struct rig_options){.budget_pages = BUDGET});
    net.rig.context->settings.config.wait_for_plan = 0;
    for (size_t i = 0; i < PATIENCE && (report.mode != CAPU_MODE_GUIDED || report.planning_ns > 0);
         i++) {
        report = net_train(&net, "train");
        ck_assert_str_eq(report.plan_error, "");
        ck_assert(report.mode != CAPU_MODE_GUIDED || report.unplaced == 1);
    }
    expect_unplaced(&net, &report, "train");
    rig_finish(&net.rig);
}
END_TEST

/* An iteration that stops early, writes or reads something else, or goes on for longer. */
START_TEST(an_iteration_may_leave_its_plan)
{
    struct net net;
    unsigned char weights = 2;

    net_init(&net, options_of(_i));
    net_train(&net, "train");
    for (size_t kind = 0; kind < 4; kind++) {
        struct report report = net_train(&net, "train");

        expect_unplaced(&net, &report, "train");
        weights++;
        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
        if (kind == 1) {
            step_expect(&net.rig, net.activations[3], PAGES(NET_LAYER_PAGES),
                        (unsigned char)(net.step + 3));
        }
        if (kind == 2) {
            step_set(&net.rig, net.activations[NET_LAYERS], PAGES(NET_LAYER_PAGES), 99);
        }
        if (kind > 0) {
            net_backward(&net, NET_LAYERS);
            weights++;
            step_expect(&net.rig, net.gradients, PAGES(NET_LAYER_PAGES),
                        (unsigned char)(net.step + 1));
        }
        if (kind == 3) {
            step_bump(&net.rig, "update", net.weights, PAGES(NET_LAYER_PAGES));
            weights++;
        }
        report = net_end(&net);
        ck_assert_uint_eq(report.diverged, 1);
        step_expect(&net.rig, net.weights, PAGES(NET_LAYER_PAGES), weights);
    }
    rig_finish(&net.rig);
}
END_TEST

/* Two plans over the same tensors, and reads in between. */
START_TEST(each_label_has_its_plan)
{
    struct net net;

    net_init(&net, options_of(_i));
    for (size_t i = 0; i < 4; i++) {
        struct report report = net_train(&net, "train");

        if (i > 0) {
            expect_unplaced(&net, &report, "train");
        }
        step_expect(&net.rig, net.weights, PAGES(NET_LAYER_PAGES), (unsigned char)(2 + i));
        net_begin(&net, "validate");
        net_forward(&net, NET_LAYERS);
        step_expect(&net.rig, net.activations[NET_LAYERS], PAGES(NET_LAYER_PAGES),
                    (unsigned char)(net.step + NET_LAYERS));
        report = net_end(&net);
        if (i > 0) {
            net_expect_guided(&net, &report, "validate");
        }
    }
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unplaced");
    TCase *cases = tcase_create("unplaced");

    tcase_add_loop_test(cases, the_smallest_budget_is_guided, 0, KINDS);
    tcase_add_test(cases, each_call_is_counted);
    tcase_add_test(cases, plans_with_places_come_first);
    tcase_add_test(cases, memory_does_not_fall_to_pieces);
    tcase_add_test(cases, stages_have_no_places_either);
    tcase_add_loop_test(cases, an_iteration_may_leave_its_plan, 0, KINDS);
    tcase_add_loop_test(cases, each_label_has_its_plan, 0, KINDS);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
