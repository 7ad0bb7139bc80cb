/*
 * What run functions say about themselves: waits for others, which plans leave out, exchanges, and
 * why they fail. The waits are claimed and not slept, so the numbers are exact on any machine.
 */
#include "capuchin/private.h"
#include "tests/api/net.h"

#define HOUR_NS (UINT64_C(3600) * 1000000000)
enum { EXCHANGED = 4096 };

struct claim {
    uint64_t waited_ns;
    uint64_t exchange_ns;
};

static capu_status claim(capu_stream stream, const void *arguments)
{
    const struct claim *claimed = arguments;
    capu_status status = capu_run_waited(claimed->waited_ns / 2);

    (void)stream;
    if (status == CAPU_OK) {
        status = capu_run_waited(claimed->waited_ns - claimed->waited_ns / 2);
    }
    if (status == CAPU_OK && claimed->exchange_ns > 0) {
        status = capuchin_run_exchanged(EXCHANGED, claimed->exchange_ns);
    }
    return status;
}

static void run_claim(struct rig *rig, struct claim claimed)
{
    capu_op op = {.size = sizeof(op),
                  .name = "claim",
                  .run = claim,
                  .arguments = &claimed,
                  .argument_bytes = sizeof(claimed)};

    RIG_OK(rig, capu_run(rig->context, &op));
}

/* An op that claims to have waited longer than it ran has no time of its own. The others have, and
   what an op exchanged is part of it. */
START_TEST(waits_belong_to_no_op)
{
    struct rig rig;
    struct report report = {0};
    const struct record *record;

    rig_init(&rig, &(struct rig_options){.mode = _i == 0 ? CAPU_MODE_PASSIVE : CAPU_MODE_OFF,
                                         .strict = _i != 0});
    run_claim(&rig, (struct claim){.waited_ns = 5}); /* not part of the iteration */
    RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
    run_claim(&rig, (struct claim){.waited_ns = HOUR_NS, .exchange_ns = 7});
    run_claim(&rig, (struct claim){.exchange_ns = 4});
    RIG_OK(&rig, capu_iteration_end(rig.context));
    run_claim(&rig, (struct claim){.waited_ns = 6, .exchange_ns = 6});
    RIG_OK(&rig, capu_synchronize(rig.context));
    report = rig_report(&rig);
    ck_assert_uint_eq(report.waited_ns, HOUR_NS);
    ck_assert_uint_eq(report.exchange_ns, 11);
    ck_assert_uint_eq(report.exchanged_bytes, 2 * EXCHANGED);
    ck_assert_uint_lt(report.time_ns, HOUR_NS);
    record = rig.context->records.tracker.newest;
    ck_assert_uint_eq(record->op_count, 2);
    ck_assert_uint_eq(report.timed, _i == 0); /* the totals are known in any case */
    if (report.timed == 1) {
        ck_assert_uint_eq(record->ops[0].ns, 0);
        ck_assert_uint_eq(report.compute_ns, record->ops[1].ns);
    }
    rig_finish(&rig);
}
END_TEST

/* What plans are made with does not have the waits either. */
START_TEST(plans_leave_waits_out)
{
    struct net net;
    struct report report = {0};

    net_init(&net, (struct rig_options){0});
    for (unsigned i = 0; i < NET_WARM; i++) {
        net_begin(&net, "train");
        run_claim(&net.rig, (struct claim){.waited_ns = HOUR_NS});
        net_forward(&net, NET_LAYERS);
        net_backward(&net, NET_LAYERS);
        report = net_end(&net);
        ck_assert_uint_eq(report.waited_ns, HOUR_NS);
    }
    net_expect_guided(&net, &report, "train");
    ck_assert_uint_eq(net.rig.context->guided.active->feedback.planned_ns[0], 0);
    ck_assert_uint_gt(net.rig.context->guided.active->feedback.planned_ns[1], 0);
    rig_finish(&net.rig);
}
END_TEST

static capu_status fail_and_explain(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return capu_run_explain("rank 7 does not answer") == CAPU_OK ? CAPU_OP_FAILED : CAPU_INVALID;
}

START_TEST(an_explanation_is_the_error)
{
    struct rig rig;
    capu_op op = {.size = sizeof(op), .name = "bomb", .run = fail_and_explain};

    rig_init(&rig, &(struct rig_options){.mode = CAPU_MODE_PASSIVE});
    (void)capu_run(rig.context, &op); /* it may have failed before this returns */
    STEP_FAILS(&rig, capu_synchronize(rig.context), CAPU_OP_FAILED, "bomb");
    STEP_FAILS(&rig, capu_synchronize(rig.context), CAPU_OP_FAILED, "rank 7 does not answer");
    capu_context_destroy(rig.context);
}
END_TEST

START_TEST(only_run_functions_can_say_something)
{
    ck_assert_int_eq(capu_run_waited(1), CAPU_WRONG_ORDER);
    ck_assert_int_eq(capuchin_run_exchanged(1, 1), CAPU_WRONG_ORDER);
    ck_assert_int_eq(capu_run_explain("?"), CAPU_WRONG_ORDER);
    ck_assert_int_eq(capu_run_explain(NULL), CAPU_INVALID);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api waits");
    TCase *cases = tcase_create("waits");

    tcase_add_loop_test(cases, waits_belong_to_no_op, 0, 2);
    tcase_add_test(cases, plans_leave_waits_out);
    tcase_add_test(cases, an_explanation_is_the_error);
    tcase_add_test(cases, only_run_functions_can_say_something);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
