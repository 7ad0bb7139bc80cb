/* Iterations of many shapes in guided mode: plans of many labels are kept, in limited memory. */
#include "tests/api/net.h"

enum { LABELS = 24, LAYERS = 2 };

/* An iteration under the n-th of many labels. */
static capu_report train_labelled(struct net *net, size_t number)
{
    char label[16];

    snprintf(label, sizeof(label), "shape %zu", number);
    net_begin(net, label);
    net_forward(net, LAYERS);
    net_backward(net, LAYERS);
    return net_end(net);
}

START_TEST(each_of_many_labels_has_its_plan)
{
    struct net net;
    uint64_t plan_bytes = 0;

    net_init(&net, (struct rig_options){0});
    for (size_t i = 0; i < 3 * LABELS; i++) {
        capu_report report = train_labelled(&net, i % LABELS);

        ck_assert_uint_eq(report.guided_mode, 1);
        ck_assert_uint_ge(report.plan_bytes, plan_bytes);
        plan_bytes = report.plan_bytes;
        if (i >= LABELS) {
            net_expect_guided(&net, &report, report.label);
        }
    }
    ck_assert_uint_gt(plan_bytes, 0);
    ck_assert_uint_le(plan_bytes, 64 << 20);
    rig_finish(&net.rig);
}
END_TEST

/* Room for three of six plans: a plan is discarded before its label returns, and the report says
   so. With one label, its plan is kept whatever it takes. */
START_TEST(plans_take_limited_memory)
{
    enum { ROTATING = 6 };
    capu_report report;
    uint64_t limit;
    struct net net;

    net_init(&net, (struct rig_options){.plan_memory_bytes = 1});
    ck_assert_uint_eq(capu_context_config(net.rig.context)->plan_memory_bytes, 1);
    train_labelled(&net, 0);
    report = train_labelled(&net, 0);
    net_expect_guided(&net, &report, report.label);
    limit = 3 * report.plan_bytes;
    rig_finish(&net.rig);

    net_init(&net, (struct rig_options){.plan_memory_bytes = limit});
    for (size_t i = 0; i < 3 * ROTATING; i++) {
        report = train_labelled(&net, i % ROTATING);
        ck_assert_uint_eq(report.mode, CAPU_MODE_PASSIVE);
        ck_assert_uint_eq(report.guided_mode, 1);
        ck_assert((strstr(report.plan_error, "than plan_memory_bytes") != NULL) == (i >= ROTATING));
        report = train_labelled(&net, i % ROTATING);
        net_expect_guided(&net, &report, report.label);
        ck_assert_str_eq(report.plan_error, "");
        ck_assert_uint_le(report.plan_bytes, limit);
    }
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api labels");
    TCase *cases = tcase_create("labels");

    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, each_of_many_labels_has_its_plan);
    tcase_add_test(cases, plans_take_limited_memory);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
