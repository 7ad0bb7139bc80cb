/* Guided mode and the times of ops, on sim: which iterations are timed, and how plans use the
 * times.
 */
#include "tests/api/net.h"

#include <time.h>
#include <unistd.h>

static capu_status nothing(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}

/* One iteration on sim: ops of the given duration, forward and backward, followed by `more` ops. */
static struct report simulate(struct net *net, uint64_t duration_ns, size_t more)
{
    net_begin(net, "train");
    for (size_t i = 0; i <= 2 * NET_LAYERS + more; i++) {
        size_t to = i <= NET_LAYERS ? i : i <= 2 * NET_LAYERS ? 2 * NET_LAYERS - i : 0;
        capu_operand operands[] = {capu_writes(net->activations[to]), capu_reads(net->weights)};
        capu_op op = {.size = sizeof(op),
                      .name = "layer",
                      .run = nothing,
                      .operands = operands,
                      .operand_count = 2,
                      .duration_ns = duration_ns};

        if (i > NET_LAYERS) {
            operands[0] = capu_reads(net->activations[to]);
        }
        RIG_OK(&net->rig, capu_run(net->rig.context, &op));
    }
    return net_end(net);
}

/* If nothing is evicted, an iteration only marks its beginning and end, whatever the number of ops.
   Every 64th iteration, and the one that is traced, times its ops; the reports of the others say
   that their times are not known. */
START_TEST(few_iterations_time_their_ops)
{
    enum { EVERY = 64, TRACED = NET_WARM + 5, LAST = NET_WARM + EVERY + 2 };
    char path[] = "/tmp/capuchin-trace-XXXXXX";
    struct net net;
    unsigned timed = 0;

    ck_assert_int_ge(close(mkstemp(path)), 0);
    net_init(&net, (struct rig_options){.budget_pages = 400,
                                        .is_sim = true,
                                        .trace_path = path,
                                        .trace_iteration = TRACED});
    for (unsigned i = 1; i <= LAST; i++) {
        struct adaptor_counts counts;
        struct report report;

        adaptor_count_reset(net.rig.count);
        report = simulate(&net, 1000, 0);
        adaptor_count_read(net.rig.count, &counts);
        ck_assert_uint_eq(report.evict_count, 0);
        ck_assert_uint_gt(report.time_ns, 0);
        if (report.timed == 0) {
            ck_assert_uint_eq(net_calls(&counts, ADAPTOR_EVENT_RECORD), 2);
            ck_assert(report.compute_ns == CAPU_NOT_TIMED && report.stall_ns == CAPU_NOT_TIMED &&
                      report.recompute_ns == CAPU_NOT_TIMED);
        } else {
            ck_assert_uint_ge(net_calls(&counts, ADAPTOR_EVENT_RECORD), 2 + 2 * report.op_count);
            ck_assert_uint_eq(report.compute_ns, report.time_ns);
            ck_assert_uint_eq(report.stall_ns + report.recompute_ns, 0);
        }
        ck_assert(report.timed == 1 || i > NET_TIMED);
        ck_assert(report.timed == 1 || i != TRACED);
        timed += (unsigned)report.timed;
    }
    ck_assert_uint_eq(timed, NET_TIMED + 2);
    ck_assert_int_eq(unlink(path), 0);
    rig_finish(&net.rig);
}
END_TEST

/* Contents of earlier iterations that an iteration overwrites are copied out until it is known that
   nothing reads them. Those iterations take longer, which must not lead to a new plan. */
START_TEST(copies_of_older_contents_do_not_change_the_plan)
{
    enum { LARGE = 8, BUDGET = 12, ITERATIONS = 3 * NET_WARM };
    struct rig rig;
    void *early;
    void *late;
    void *small;
    uint64_t evicted = 0;
    struct report report = {0};

    rig_init(&rig, &(struct rig_options){.is_sim = true,
                                         .mode = CAPU_MODE_GUIDED,
                                         .budget_pages = BUDGET,
                                         .wait_for_plan = true,
                                         .planner = "swap"});
    early = step_tensor(&rig, "early", CAPU_ACTIVATION, LARGE);
    late = step_tensor(&rig, "late", CAPU_PARAMETER, LARGE);
    small = step_malloc(&rig, 100);
    for (size_t i = 1; i <= ITERATIONS; i++) {
        RIG_OK(&rig, capu_iteration_begin(rig.context, "train"));
        RIG_OK(&rig, step_touch(&rig, "small", CAPU_WRITE, 1, &small));
        RIG_OK(&rig, step_touch(&rig, "make", CAPU_WRITE, 1, &early));
        RIG_OK(&rig, step_touch(&rig, "use", CAPU_READ, 1, &early));
        RIG_OK(&rig, step_touch(&rig, "late", CAPU_WRITE, 1, &late));
        RIG_OK(&rig, capu_iteration_end(rig.context));
        RIG_OK(&rig, capu_synchronize(rig.context));
        report = rig_report(&rig);
        evicted += i > 1 ? report.evicted_bytes : 0;
    }
    ck_assert_uint_gt(evicted, 0);
    ck_assert_uint_eq(report.evicted_bytes, 0);
    ck_assert_ptr_nonnull(rig.context->guided.active);
    ck_assert_uint_eq(rig.context->guided.active->feedback.round, 0);
    rig_finish(&rig);
}
END_TEST

/* Ops become slower. After a while a new plan, made with the new times, becomes active. */
START_TEST(plans_follow_the_times_of_ops)
{
    struct net net;
    struct report report;
    uint64_t first;

    net_init(&net, (struct rig_options){.is_sim = true});
    for (size_t i = 0; i < (_i == 0 ? 6 : NET_WARM); i++) {
        report = simulate(&net, 1000, 0);
    }
    net_expect_guided(&net, &report, "train");
    ck_assert_uint_eq(report.timed, _i == 0);
    ck_assert_uint_eq(report.time_ns, report.predicted_ns);
    first = report.predicted_ns;
    /* Simulated iterations take no real time, but making a plan does. */
    do {
        struct timespec pause = {.tv_nsec = 1000000};

        nanosleep(&pause, NULL);
        report = simulate(&net, 400000, 0);
    } while (report.iteration < 5000 &&
             (report.predicted_ns <= first || report.time_ns != report.predicted_ns));
    net_expect_guided(&net, &report, "train");
    ck_assert_uint_gt(report.predicted_ns, first);
    ck_assert_uint_eq(report.time_ns, report.predicted_ns);
    rig_finish(&net.rig);
}
END_TEST

/* An iteration that is not timed leaves its plan. Its ops up to there are known from the plan, and
   the ops after that are timed, so there is a good plan for the next such iteration. */
START_TEST(plans_can_be_made_from_untimed_iterations)
{
    struct net net;
    struct report report;

    net_init(&net, (struct rig_options){.is_sim = true});
    for (size_t i = 0; i < NET_WARM; i++) {
        report = simulate(&net, 1000, 0);
    }
    ck_assert_uint_eq(report.timed, 0);
    report = simulate(&net, 1000, 30);
    ck_assert_uint_eq(report.diverged, 1);
    ck_assert_uint_eq(report.timed, 0);
    ck_assert_uint_eq(report.stall_ns, CAPU_NOT_TIMED);
    simulate(&net, 1000, 30); /* mispredicted: the plan for the usual iteration is used */
    for (size_t i = 0; i < 4; i++) {
        report = simulate(&net, 1000, 30);
        net_expect_guided(&net, &report, "train");
    }
    ck_assert_uint_eq(report.time_ns, report.predicted_ns);
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("timing");
    TCase *cases = tcase_create("timing");

    tcase_add_test(cases, few_iterations_time_their_ops);
    tcase_add_loop_test(cases, plans_follow_the_times_of_ops, 0, 2);
    tcase_add_test(cases, plans_can_be_made_from_untimed_iterations);
    tcase_add_test(cases, copies_of_older_contents_do_not_change_the_plan);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
