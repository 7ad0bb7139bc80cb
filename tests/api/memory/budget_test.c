/*
 * A budget that changes: what is taken from it goes back to the device before the call returns,
 * contents stay, plans that no longer fit are made again, and after a failure the old one holds.
 */
#include "tests/api/net.h"

#include "tests/support/adaptor_fault.h"

enum { TENSORS = 4, TENSOR_PAGES = 4, ALL = TENSORS * TENSOR_PAGES };

static capu_status set_budget(struct rig *rig, size_t page_count)
{
    return capu_budget_set(rig->context, PAGES(page_count));
}

static uint64_t budget_pages(const struct rig *rig)
{
    return capu_context_config(rig->context)->budget_bytes / RIG_PAGE;
}

/* Pages that exist at the device. */
static uint64_t pages_now(const struct rig *rig)
{
    struct adaptor_counts counts;

    adaptor_count_read(rig->count, &counts);
    return counts.pages;
}

/* Tensors that fill the whole budget, each with its number. */
static void fill(struct rig *rig, struct rig_options options, unsigned char *tensors[TENSORS])
{
    options.budget_pages = ALL;
    rig_init(rig, &options);
    for (unsigned char i = 0; i < TENSORS; i++) {
        tensors[i] = step_malloc(rig, PAGES(TENSOR_PAGES));
        step_set(rig, tensors[i], PAGES(TENSOR_PAGES), i);
    }
}

static void expect_all(struct rig *rig, unsigned char *tensors[TENSORS])
{
    for (unsigned char i = 0; i < TENSORS; i++) {
        step_expect(rig, tensors[i], PAGES(TENSOR_PAGES), i);
    }
    rig_check(rig);
}

START_TEST(a_lower_budget_gives_memory_back)
{
    unsigned char *tensors[TENSORS];
    struct rig rig;
    uint64_t held;
    uint64_t peak;

    fill(&rig, (struct rig_options){.strict = _i == 1, .delay_seed = _i == 2 ? 5 : 0}, tensors);
    ck_assert_uint_eq(pages_now(&rig), ALL);
    for (size_t pages = ALL; pages >= TENSOR_PAGES; pages -= 3) {
        RIG_OK(&rig, set_budget(&rig, pages));
        ck_assert_uint_le(pages_now(&rig), pages);
        ck_assert_uint_eq(budget_pages(&rig), pages);
        expect_all(&rig, tensors);
    }
    capu_memory_usage(rig.context, &held, &peak, NULL);
    ck_assert_uint_eq(held, PAGES(TENSOR_PAGES));
    ck_assert_uint_eq(peak, PAGES(ALL));
    RIG_OK(&rig, capu_budget_set(rig.context, 0));
    ck_assert_uint_eq(budget_pages(&rig), ALL);
    for (size_t i = 0; i < TENSORS; i++) {
        RIG_OK(&rig, step_touch(&rig, "touch", CAPU_UPDATE, 1, (void *const *)&tensors[i]));
    }
    ck_assert_uint_eq(pages_now(&rig), ALL);
    expect_all(&rig, tensors);
    rig_finish(&rig);
}
END_TEST

START_TEST(wrong_budgets_change_nothing)
{
    unsigned char *tensors[TENSORS];
    struct rig rig;

    fill(&rig, (struct rig_options){0}, tensors);
    STEP_FAILS(&rig, set_budget(&rig, ALL + 1), CAPU_OVER_BUDGET, "created with");
    STEP_FAILS(&rig, capu_budget_set(rig.context, RIG_PAGE - 1), CAPU_OVER_BUDGET, "one page");
    ck_assert_int_eq(capu_budget_set(NULL, 0), CAPU_INVALID);
    ck_assert_uint_eq(budget_pages(&rig), ALL);
    ck_assert_uint_eq(pages_now(&rig), ALL);
    /* What an op needs at once stays the floor. */
    RIG_OK(&rig, capu_budget_set(rig.context, PAGES(TENSOR_PAGES) - 1));
    STEP_FAILS(&rig, step_touch(&rig, "large", CAPU_READ, 1, (void *const *)&tensors[0]),
               CAPU_OVER_BUDGET, "large");
    RIG_OK(&rig, set_budget(&rig, TENSOR_PAGES));
    expect_all(&rig, tensors);
    rig_finish(&rig);
}
END_TEST

/* Slabs stay while their tensors do. */
START_TEST(always_resident_memory_is_the_least)
{
    unsigned char *small;
    struct rig rig;

    rig_init(&rig, &(struct rig_options){.budget_pages = 8});
    small = step_malloc(&rig, 256);
    step_set(&rig, small, 256, 7);
    step_set(&rig, step_malloc(&rig, PAGES(4)), PAGES(4), 1);
    RIG_OK(&rig, set_budget(&rig, 1));
    ck_assert_uint_eq(pages_now(&rig), 1);
    step_expect(&rig, small, 256, 7);
    STEP_FAILS(&rig, capu_malloc(rig.context, 1500, (void **)&small), CAPU_OVER_BUDGET, "1 of 1");
    rig_finish(&rig);
}
END_TEST

START_TEST(mode_off_evicts_nothing)
{
    struct rig rig;

    rig_init(&rig, &(struct rig_options){.budget_pages = 8, .mode = CAPU_MODE_OFF});
    step_malloc(&rig, PAGES(5));
    STEP_FAILS(&rig, set_budget(&rig, 4), CAPU_OVER_BUDGET, "");
    ck_assert_uint_eq(budget_pages(&rig), 8);
    RIG_OK(&rig, set_budget(&rig, 5));
    ck_assert_int_ne(capu_malloc(rig.context, PAGES(1), &(void *){NULL}), CAPU_OK);
    RIG_OK(&rig, set_budget(&rig, 6));
    step_malloc(&rig, PAGES(1));
    rig_finish(&rig);
}
END_TEST

START_TEST(full_host_memory_keeps_the_budget)
{
    unsigned char *tensors[TENSORS];
    struct rig rig;

    fill(&rig, (struct rig_options){.host_budget_bytes = PAGES(TENSOR_PAGES)}, tensors);
    RIG_OK(&rig, set_budget(&rig, ALL - TENSOR_PAGES));
    STEP_FAILS(&rig, set_budget(&rig, TENSOR_PAGES), CAPU_HOST_OVER_BUDGET, "");
    ck_assert_uint_eq(budget_pages(&rig), ALL - TENSOR_PAGES);
    rig_check(&rig);
    rig_finish(&rig);
}
END_TEST

/* Operands of the access stay, and others make room. */
START_TEST(it_changes_inside_an_access)
{
    unsigned char *tensors[TENSORS];
    struct rig rig;
    capu_op op = {.size = sizeof(op), .name = "own", .operand_count = 1};
    capu_operand operand;

    fill(&rig, (struct rig_options){0}, tensors);
    operand = capu_operand_of(tensors[0], PAGES(TENSOR_PAGES), CAPU_UPDATE);
    op.operands = &operand;
    RIG_OK(&rig, capu_access_begin(rig.context, &op));
    RIG_OK(&rig, set_budget(&rig, TENSOR_PAGES + 1));
    ck_assert_uint_le(pages_now(&rig), TENSOR_PAGES + 1);
    STEP_FAILS(&rig, set_budget(&rig, TENSOR_PAGES - 1), CAPU_OVER_BUDGET, "nothing is left");
    ck_assert_uint_eq(budget_pages(&rig), TENSOR_PAGES + 1);
    RIG_OK(&rig, capu_access_end(rig.context));
    ck_assert_uint_eq(step_query(&rig, tensors[0]).is_resident, 1);
    expect_all(&rig, tensors);
    rig_finish(&rig);
}
END_TEST

/* Plans are made again in a lower budget, and better ones in a higher one. */
START_TEST(plans_follow_the_budget)
{
    static const size_t budgets[] = {24, 16, 13, 20, 24};
    struct net net;

    net_init(&net, (struct rig_options){.is_sim = _i == 1, .strict = _i == 2});
    for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
        uint64_t swapped = 0;

        RIG_OK(&net.rig, set_budget(&net.rig, budgets[i]));
        ck_assert_uint_le(pages_now(&net.rig), budgets[i]);
        for (size_t round = 0; round < NET_TIMED; round++) {
            net_begin(&net, "train");
            net_forward(&net, NET_LAYERS);
            net_backward(&net, NET_LAYERS);
            if (_i != 1) {
                step_expect(&net.rig, net.gradients, PAGES(NET_LAYER_PAGES),
                            (unsigned char)(net.step + 1));
            }
            struct report report = net_end(&net);

            ck_assert_uint_eq(report.budget_bytes, PAGES(budgets[i]));
            ck_assert_uint_le(report.peak_bytes, report.budget_bytes);
            if (round > 0) {
                net_expect_guided(&net, &report, "train");
            }
            swapped = report.evicted_bytes + report.dropped_bytes;
        }
        ck_assert_uint_gt(swapped, 0);
    }
    rig_finish(&net.rig);
}
END_TEST

/* On sim times are constant: with more memory an iteration takes less time. */
START_TEST(a_higher_budget_is_used)
{
    struct report report = {0};
    uint64_t times[2];
    struct net net;

    net_init(&net, (struct rig_options){.is_sim = true, .link_bytes_per_s = 1000000});
    for (size_t i = 0; i < 2; i++) {
        RIG_OK(&net.rig, set_budget(&net.rig, i == 0 ? 12 : 24));
        for (size_t round = 0; round < 3 * NET_WARM || report.planning_ns > 0; round++) {
            net_begin(&net, "train");
            net_forward(&net, NET_LAYERS);
            net_backward(&net, NET_LAYERS);
            report = net_end(&net);
            times[i] = report.time_ns;
        }
    }
    ck_assert_uint_lt(times[1], times[0]);
    rig_finish(&net.rig);
}
END_TEST

/* In the middle of a guided iteration, after each number of layers. */
START_TEST(it_changes_inside_an_iteration)
{
    struct net net;
    struct report report;

    net_init(&net, (struct rig_options){.strict = _i == 1,
                                        .keep_contents = _i == 2,
                                        .delay_seed = _i >= 3 ? (uint64_t)_i : 0});
    for (size_t layers = 0; layers <= NET_LAYERS; layers++) {
        RIG_OK(&net.rig, capu_budget_set(net.rig.context, 0));
        for (size_t i = 0; i < 3; i++) {
            report = net_train(&net, "train");
        }
        net_expect_guided(&net, &report, "train");
        net_begin(&net, "train");
        net_forward(&net, layers);
        RIG_OK(&net.rig, set_budget(&net.rig, 13));
        ck_assert_uint_le(pages_now(&net.rig), 13);
        for (size_t i = layers; i < NET_LAYERS; i++) {
            step_next(&net.rig, "forward", net.activations[i + 1],
                      i == 0 ? net.activations[0] : net.activations[i], PAGES(NET_LAYER_PAGES));
        }
        net_backward(&net, NET_LAYERS);
        step_expect(&net.rig, net.gradients, PAGES(NET_LAYER_PAGES), (unsigned char)(net.step + 1));
        ck_assert_uint_le(pages_now(&net.rig), 13);
        report = net_end(&net);
        ck_assert_uint_eq(report.budget_bytes, PAGES(24));
        step_expect(&net.rig, net.weights, PAGES(NET_LAYER_PAGES), (unsigned char)(1 + net.step));
    }
    rig_finish(&net.rig);
}
END_TEST

/* An access of a plan cannot be left, so there the call fails and changes nothing. */
START_TEST(a_plan_is_not_left_inside_an_access)
{
    struct net net;
    capu_operand operand;
    capu_op op = {.size = sizeof(op), .name = "own", .operands = &operand, .operand_count = 1};
    struct report report;

    net_init(&net, (struct rig_options){0});
    operand = capu_operand_of(net.weights, PAGES(NET_LAYER_PAGES), CAPU_UPDATE);
    for (size_t i = 0; i < 4; i++) {
        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
        RIG_OK(&net.rig, capu_access_begin(net.rig.context, &op));
        if (i == 3) {
            STEP_FAILS(&net.rig, set_budget(&net.rig, 13), CAPU_WRONG_ORDER, "a plan");
        }
        RIG_OK(&net.rig, capu_access_end(net.rig.context));
        net_backward(&net, NET_LAYERS);
        report = net_end(&net);
    }
    net_expect_guided(&net, &report, "train");
    ck_assert_uint_eq(budget_pages(&net.rig), 24);
    rig_finish(&net.rig);
}
END_TEST

/* The calls of the device that a lower budget makes fail one after the other. */
START_TEST(every_call_can_fail)
{
    static const enum adaptor_slot slots[] = {ADAPTOR_COPY_OUT, ADAPTOR_EVENT_RECORD,
                                              ADAPTOR_EVENT_WAIT, ADAPTOR_HOST_ALLOC,
                                              ADAPTOR_UNMAP};
    uint64_t hits = 1;

    for (uint64_t call = 1; hits > 0; call++) {
        const struct adaptor_fault_plan plan = {
            .slot = slots[_i], .call = call, .status = CAPU_DEVICE_FAILED};
        unsigned char *tensors[TENSORS];
        struct rig rig;
        capu_status status;

        fill(&rig, (struct rig_options){.has_faults = true}, tensors);
        adaptor_fault_arm(rig.faults, &plan);
        status = set_budget(&rig, TENSOR_PAGES);
        hits = adaptor_fault_hits(rig.faults);
        adaptor_fault_arm(rig.faults, NULL);
        ck_assert_int_eq(status, hits > 0 ? CAPU_DEVICE_FAILED : CAPU_OK);
        ck_assert_uint_eq(budget_pages(&rig), hits > 0 ? ALL : TENSOR_PAGES);
        expect_all(&rig, tensors);
        RIG_OK(&rig, set_budget(&rig, TENSOR_PAGES));
        expect_all(&rig, tensors);
        rig_finish(&rig);
        /* Whether anything is waited for depends on the copies' speed. */
        ck_assert(hits > 0 || call > 1 || slots[_i] == ADAPTOR_EVENT_WAIT);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api budget");
    TCase *cases = tcase_create("budget");

    tcase_add_loop_test(cases, a_lower_budget_gives_memory_back, 0, 3);
    tcase_add_test(cases, wrong_budgets_change_nothing);
    tcase_add_test(cases, always_resident_memory_is_the_least);
    tcase_add_test(cases, mode_off_evicts_nothing);
    tcase_add_test(cases, full_host_memory_keeps_the_budget);
    tcase_add_test(cases, it_changes_inside_an_access);
    tcase_add_loop_test(cases, plans_follow_the_budget, 0, 3);
    tcase_add_test(cases, a_higher_budget_is_used);
    tcase_add_loop_test(cases, it_changes_inside_an_iteration, 0, 5);
    tcase_add_test(cases, a_plan_is_not_left_inside_an_access);
    tcase_add_loop_test(cases, every_call_can_fail, 0, 5);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
