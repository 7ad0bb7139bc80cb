/* Iterations that leave their plan while the device refuses calls. */
#include "tests/api/net.h"

#include "device/adaptor_fault.h"

/* What is to outlive an iteration that ends early is recomputed at its end. A failure then costs
   nothing: the end can be tried again. */
START_TEST(an_early_end_that_fails_can_be_tried_again)
{
    static const struct adaptor_fault_plan once = {
        .slot = ADAPTOR_RUN, .call = 1, .status = CAPU_DEVICE_FAILED};
    capu_report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .has_faults = true});
    for (size_t i = 0; i < 3; i++) {
        report = net_train(&net, "train");
    }
    net_expect_guided(&net, &report, "train");
    net_begin(&net, "train");
    net_forward(&net, NET_LAYERS);
    RIG_OK(&net.rig, CAPU_DESCRIBE(net.rig.context, net.activations[1], .name = "kept",
                                   .lifetime = CAPU_PERSISTENT));
    adaptor_fault_arm(net.rig.faults, &once);
    STEP_FAILS(&net.rig, capu_iteration_end(net.rig.context), CAPU_DEVICE_FAILED, "");
    rig_check(&net.rig);
    report = net_end(&net);
    ck_assert_uint_eq(report.diverged, 1);
    ck_assert_uint_gt(report.replay_count, 0);
    step_expect(&net.rig, net.activations[1], PAGES(NET_LAYER_PAGES),
                (unsigned char)(net.step + 1));
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api leaving");
    TCase *cases = tcase_create("leaving");

    tcase_add_test(cases, an_early_end_that_fails_can_be_tried_again);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
