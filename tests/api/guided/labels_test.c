/*
 * Iterations of many shapes in guided mode: plans of many labels are kept, in limited memory, and
 * labels under which nearly every iteration leaves its plan pause.
 */
#include "tests/api/net.h"

enum { LABELS = 24, LAYERS = 2 };

/* An iteration under the n-th of many labels. */
static struct report train_labelled(struct net *net, size_t number)
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
        struct report report = train_labelled(&net, i % LABELS);

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
    struct report report;
    uint64_t limit;
    struct net net;

    net_init(&net, (struct rig_options){.plan_memory_bytes = 1});
    ck_assert_uint_eq(net.rig.context->settings.config.plan_memory_bytes, 1);
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
        ck_assert((strstr(report.plan_error, "than plan_memory") != NULL) == (i >= ROTATING));
        report = train_labelled(&net, i % ROTATING);
        net_expect_guided(&net, &report, report.label);
        ck_assert_str_eq(report.plan_error, "");
        ck_assert_uint_le(report.plan_bytes, limit);
    }
    rig_finish(&net.rig);
}
END_TEST

/* An iteration whose last op is one that no other iteration has. */
static struct report train_unlike_others(struct net *net)
{
    char name[32];

    net_begin(net, "random");
    net_forward(net, LAYERS);
    snprintf(name, sizeof(name), "op of step %u", (unsigned)net->step);
    step_bump(&net->rig, name, net->weights, PAGES(NET_LAYER_PAGES));
    return net_end(net);
}

static struct report train_like_others(struct net *net, const char *label)
{
    net_begin(net, label);
    net_forward(net, LAYERS);
    net_backward(net, LAYERS);
    return net_end(net);
}

/* Iterations of a pause of `length`, and that their reports count how many are left. */
static void expect_pause(struct net *net, uint64_t length, uint64_t count)
{
    for (uint64_t left = length; left > length - count; left--) {
        struct report report = train_unlike_others(net);

        ck_assert_uint_eq(report.mode, CAPU_MODE_PASSIVE);
        ck_assert_uint_eq(report.guided_mode, 1);
        ck_assert_uint_eq(report.retry_in, left);
        ck_assert_ptr_nonnull(strstr(report.plan_error, "pauses under this label"));
    }
}

static void expect_diverged(struct net *net, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct report report = train_unlike_others(net);

        ck_assert_uint_eq(report.mode, CAPU_MODE_GUIDED);
        ck_assert_uint_eq(report.diverged, 1);
        ck_assert_uint_eq(report.retry_in, 0);
    }
}

START_TEST(labels_that_always_diverge_pause)
{
    struct net net;
    struct report report;

    net_init(&net, (struct rig_options){0});
    train_unlike_others(&net);
    expect_diverged(&net, 8);
    expect_pause(&net, 64, 32);
    /* Other labels do not pause. */
    train_like_others(&net, "validate");
    report = train_like_others(&net, "validate");
    net_expect_guided(&net, &report, "validate");
    for (size_t i = 0; i < 32; i++) {
        train_unlike_others(&net);
    }
    expect_diverged(&net, 1);
    for (size_t i = 0; i < 128; i++) {
        report = train_like_others(&net, "random");
        ck_assert_uint_eq(report.mode, CAPU_MODE_PASSIVE);
    }
    /* One iteration that follows its plan resets everything. */
    report = train_like_others(&net, "random");
    net_expect_guided(&net, &report, "random");
    expect_diverged(&net, 8);
    ck_assert_uint_eq(train_unlike_others(&net).retry_in, 64);
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
    tcase_add_test(cases, labels_that_always_diverge_pause);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
