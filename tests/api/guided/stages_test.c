/* Plans in stages: training follows the first plan that is found, and changes to a better one when
   that is worth it. */
#include "tests/api/net.h"

#include "runtime/plan/plan_job.h"
#include "runtime/plan/planning.h"

#include <unistd.h>

/* A plan for what the newest finished iteration did. */
static struct plan_entry *plan_again(struct net *net)
{
    capu_context *context = net->rig.context;
    const struct record *newest = NULL;
    const struct record *record;
    struct plan_entry *entry;
    struct plan_job *job;

    for (uint64_t after = 0;
         (record = tracker_finished_after(&context->records.tracker, after)) != NULL;
         after = record->stamp) {
        newest = record;
    }
    ck_assert_ptr_nonnull(newest);
    ck_assert_int_eq(plan_job_start(&context->plans, newest, false, NULL, NULL, &job), CAPU_OK);
    plan_job_wait(job);
    entry = plan_job_take(job);
    ck_assert_ptr_nonnull(entry);
    ck_assert_ptr_null(plan_job_take(job));
    plan_job_destroy(job);
    return entry;
}

/* Gives the active plan a better one, as if a job had found it. */
static void improve(struct net *net, uint64_t gain_ns, uint64_t change_ns)
{
    capu_context *context = net->rig.context;
    struct plan_entry *active = context->guided.active;
    struct plan_entry *better = plan_again(net);

    active->feedback.predicted_ns = 1000000000;
    active->change_ns = change_ns;
    better->feedback.predicted_ns = active->feedback.predicted_ns - gain_ns;
    label_records_add_better(&context->plans.labels,
                             label_records_find(&context->plans.labels, active->guide->label),
                             active, better, UINT64_MAX);
}

static void start(struct net *net, struct rig_options options)
{
    struct report report;

    net_init(net, options);
    report = net_train(net, "train");
    ck_assert_uint_eq(report.mode, CAPU_MODE_PASSIVE);
    ck_assert_uint_eq(report.plan_stage, 0);
    report = net_train(net, "train");
    net_expect_guided(net, &report, "train");
    ck_assert_uint_eq(report.plan_stage, 1);
}

/* Changing costs 250, and the better plan gains 100 per iteration. */
START_TEST(a_better_plan_waits_until_it_pays)
{
    struct net net;

    start(&net, (struct rig_options){0});
    improve(&net, 100, 250);
    for (unsigned i = 1; i <= 4; i++) {
        struct report report = net_train(&net, "train");

        net_expect_guided(&net, &report, "train");
        ck_assert_uint_eq(report.plan_stage, i < 3 ? 1 : 2);
        ck_assert((report.install_ns > 0) == (i == 3));
    }
    rig_finish(&net.rig);
}
END_TEST

/* Predictions do not know what mapping costs: a plan with places takes over from one without at
   once, even if it is predicted to be slower; the reverse never happens. */
START_TEST(places_take_over_at_once)
{
    struct net net;
    struct label_record *label;
    struct plan_entry *placed;
    struct report report;

    start(&net, (struct rig_options){.places_nothing = true});
    label = label_records_find(&net.rig.context->plans.labels,
                               net.rig.context->guided.active->guide->label);
    net.rig.context->plans.places_nothing = false;
    placed = plan_again(&net);
    placed->feedback.predicted_ns = net.rig.context->guided.active->feedback.predicted_ns + 1;
    ck_assert(planning_keep(&net.rig.context->plans, label, placed));
    report = net_train(&net, "train");
    net_expect_guided(&net, &report, "train");
    ck_assert_uint_eq(report.unplaced, 0);
    ck_assert_uint_eq(report.plan_stage, 2);

    net.rig.context->plans.places_nothing = true;
    placed = plan_again(&net);
    placed->feedback.predicted_ns = 1;
    ck_assert(!planning_keep(&net.rig.context->plans, label, placed));
    plan_entry_destroy(placed);
    rig_finish(&net.rig);
}
END_TEST

/* Where plans change anyway, the better one costs nothing. */
START_TEST(another_label_lets_a_better_plan_in)
{
    struct net net;
    struct report report;

    start(&net, (struct rig_options){0});
    improve(&net, 1, UINT64_MAX);
    report = net_train(&net, "train");
    ck_assert_uint_eq(report.plan_stage, 1);
    net_begin(&net, "other");
    net_forward(&net, NET_LAYERS / 2);
    net_end(&net);
    report = net_train(&net, "train");
    net_expect_guided(&net, &report, "train");
    ck_assert_uint_eq(report.plan_stage, 2);
    rig_finish(&net.rig);
}
END_TEST

/* A plan that has become wrong takes the better one with it, inside an iteration and outside. */
START_TEST(a_better_plan_is_forgotten_with_its_tensors)
{
    struct net net;
    struct report report;

    start(&net, (struct rig_options){0});
    improve(&net, 1, UINT64_MAX);
    if (_i == 0) {
        RIG_OK(&net.rig, capu_free(net.rig.context, net.gradients));
    }
    net_begin(&net, "train");
    if (_i == 1) {
        RIG_OK(&net.rig, capu_free(net.rig.context, net.gradients));
    }
    net.gradients = step_tensor(&net.rig, "gradients", CAPU_GRADIENT, 2 * NET_LAYER_PAGES);
    net_forward(&net, NET_LAYERS);
    net_backward(&net, NET_LAYERS);
    report = net_end(&net);
    ck_assert(report.mode == CAPU_MODE_PASSIVE || report.diverged == 1);
    for (size_t i = 0; i < 3; i++) {
        report = net_train(&net, "train");
    }
    net_expect_guided(&net, &report, "train");
    ck_assert_uint_eq(report.plan_stage, 1);
    rig_finish(&net.rig);
}
END_TEST

/* An iteration on sim, where nothing is computed. */
static struct report simulate(struct net *net)
{
    net_begin(net, "train");
    net_forward(net, NET_LAYERS);
    net_backward(net, NET_LAYERS);
    return net_end(net);
}

/* Trains without waiting for plans until one is active and none is in the making. */
static struct report train_freely(struct net *net)
{
    enum { PATIENCE = 20000 };
    struct report report;

    for (size_t i = 0; i < PATIENCE; i++) {
        report = simulate(net);
        if (report.mode == CAPU_MODE_GUIDED && report.planning_ns == 0) {
            return report;
        }
        ck_assert_str_eq(report.plan_error, "");
        ck_assert(report.planning_ns > 0 || report.mode == CAPU_MODE_GUIDED || i == 0);
        ck_assert((report.plan_stage > 0) == (report.mode == CAPU_MODE_GUIDED));
        usleep(1000);
    }
    ck_abort_msg("no plan after %d iterations", PATIENCE);
    return report;
}

/* On sim all times are exact and changing plans takes no time: training that does not wait ends
   with a plan that is as good as that of training that does. */
START_TEST(the_last_stage_is_the_plan_that_can_be_waited_for)
{
    struct net net;
    struct report waited;
    struct report report;

    net_init(&net, (struct rig_options){.is_sim = true, .link_bytes_per_s = 1000000000});
    simulate(&net);
    waited = simulate(&net);
    net_expect_guided(&net, &waited, "train");
    ck_assert_uint_gt(waited.evict_count, 0);
    rig_finish(&net.rig);

    net_init(&net, (struct rig_options){.is_sim = true, .link_bytes_per_s = 1000000000});
    net.rig.context->settings.config.wait_for_plan = 0;
    train_freely(&net);
    report = simulate(&net);
    net_expect_guided(&net, &report, "train");
    ck_assert_uint_le(report.predicted_ns, waited.predicted_ns);
    rig_finish(&net.rig);
}
END_TEST

static capu_status sleep_long(capu_stream stream, const void *arguments)
{
    const uint64_t *microseconds = arguments;

    (void)stream;
    usleep((useconds_t)*microseconds);
    return CAPU_OK;
}

/* An iteration that is not waited for. On the device its last op takes a while longer. */
static void run_ahead(struct net *net, uint64_t microseconds)
{
    capu_operand operand = capu_writes(net->activations[0]);
    capu_op op = {.size = sizeof(op),
                  .name = "sleep",
                  .run = sleep_long,
                  .arguments = &microseconds,
                  .argument_bytes = sizeof(microseconds),
                  .operands = &operand,
                  .operand_count = 1};

    net_begin(net, "train");
    net_forward(net, NET_LAYERS);
    net_backward(net, NET_LAYERS);
    RIG_OK(&net->rig, capu_run(net->rig.context, &op));
    RIG_OK(&net->rig, capu_iteration_end(net->rig.context));
}

/* When the third iteration begins, the first has ended and is planned for, and the device is busy
   with the second: the plan is waited for. */
START_TEST(a_busy_device_gives_planning_time)
{
    struct net net;
    struct report report = {0};

    net_init(&net, (struct rig_options){0});
    net.rig.context->settings.config.wait_for_plan = 0;
    run_ahead(&net, 0);
    run_ahead(&net, 5 * PLAN_JOB_PATIENCE_NS / 1000);
    run_ahead(&net, 0);
    RIG_OK(&net.rig, capu_synchronize(net.rig.context));
    report = rig_report(&net.rig);
    ck_assert_uint_eq(report.iteration, 3);
    ck_assert_msg(report.mode == CAPU_MODE_GUIDED || report.planning_ns >= PLAN_JOB_PATIENCE_NS,
                  "mode %u, planning for %ju ns: %s", report.mode, (uintmax_t)report.planning_ns,
                  report.plan_error);
    rig_finish(&net.rig);
}
END_TEST

/* The first iteration ends while the second is open. It is planned for at once: when the third
   begins, the device may have nothing left to do meanwhile. */
START_TEST(planning_begins_inside_the_next_iteration)
{
    struct net net;
    struct report report = {0};
    capu_context *context;

    net_init(&net, (struct rig_options){0});
    context = net.rig.context;
    context->settings.config.wait_for_plan = 0;
    run_ahead(&net, 100000);
    RIG_OK(&net.rig, capu_iteration_begin(context, "train"));
    net_forward(&net, 1);
    planning_report(&context->plans, context->plans.label, &report);
    ck_assert((report.planning_ns > 0) ==
              (tracker_finished_after(&context->records.tracker, 0) != NULL));
    RIG_OK(&net.rig, lane_synchronize(&context->lanes.compute));
    net_forward(&net, 1);
    planning_report(&context->plans, context->plans.label, &report);
    ck_assert_uint_gt(report.planning_ns, 0);
    RIG_OK(&net.rig, capu_iteration_end(context));
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api stages");
    TCase *cases = tcase_create("stages");

    tcase_add_test(cases, a_better_plan_waits_until_it_pays);
    tcase_add_test(cases, places_take_over_at_once);
    tcase_add_test(cases, another_label_lets_a_better_plan_in);
    tcase_add_loop_test(cases, a_better_plan_is_forgotten_with_its_tensors, 0, 2);
    tcase_add_test(cases, the_last_stage_is_the_plan_that_can_be_waited_for);
    tcase_add_test(cases, a_busy_device_gives_planning_time);
    tcase_add_test(cases, planning_begins_inside_the_next_iteration);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
