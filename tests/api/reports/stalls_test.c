/*
 * The stalls that reports list, on sim. Their times sum up to stall_ns: in passive mode, with plans
 * that replay, and in an iteration that leaves its plan and recomputes without it. And what reports
 * count sums up to the totals of the context, which are the same without iterations.
 */
#include "tests/api/steps.h"

enum { LAYERS = 8, LAYER_PAGES = 4, OP_NS = 1000 };

/* The link is slower than an op, so that compute waits wherever it can. */
#define LINK (PAGES(LAYER_PAGES) * UINT64_C(1000000000) / (4 * OP_NS))

/* A chain of activations. The op that computes the first one is not replayable. */
struct net {
    struct rig rig;
    void *outputs[LAYERS + 1];
    void *gradient;
    void *beside;
    void *weights;
    capu_traffic sums; /* of the reports */
};

static capu_traffic traffic(struct net *net)
{
    capu_traffic traffic = {.size = sizeof(traffic)};

    RIG_OK(&net->rig, capu_traffic_get(net->rig.context, &traffic));
    return traffic;
}

static void net_init(struct net *net, const char *planner, uint64_t budget_pages)
{
    struct rig_options options = {.is_sim = true,
                                  .mode = planner != NULL ? CAPU_MODE_GUIDED : CAPU_MODE_PASSIVE,
                                  .planner = planner,
                                  .wait_for_plan = true,
                                  .budget_pages = budget_pages,
                                  .link_bytes_per_s = LINK};

    net->sums = (capu_traffic){0};
    rig_init(&net->rig, &options);
    for (size_t i = 0; i <= LAYERS; i++) {
        net->outputs[i] = step_tensor(&net->rig, "output", CAPU_ACTIVATION, LAYER_PAGES);
    }
    net->gradient = step_tensor(&net->rig, "gradient", CAPU_GRADIENT, LAYER_PAGES);
    net->beside = step_tensor(&net->rig, "beside", CAPU_ACTIVATION, LAYER_PAGES);
    net->weights = step_tensor(&net->rig, "weights", CAPU_PARAMETER, LAYER_PAGES);
    RIG_OK(&net->rig, capu_zero(net->rig.context, net->weights, 0));
}

static void run(struct net *net, const char *name, uint32_t flags, const capu_operand *operands,
                size_t count)
{
    capu_op op = {.size = sizeof(op),
                  .name = name,
                  .run = (capu_run_function)(uintptr_t)1, /* the sim device calls nothing */
                  .operands = operands,
                  .operand_count = count,
                  .flags = flags,
                  .duration_ns = OP_NS};

    RIG_OK(&net->rig, capu_run(net->rig.context, &op));
}

static void forward(struct net *net)
{
    RIG_OK(&net->rig, capu_iteration_begin(net->rig.context, "train"));
    run(net, "input", CAPU_OP_NOT_REPLAYABLE, (capu_operand[]){capu_writes(net->outputs[0])}, 1);
    for (size_t i = 0; i < LAYERS; i++) {
        run(net, "forward", 0,
            (capu_operand[]){capu_reads(net->outputs[i]), capu_writes(net->outputs[i + 1])}, 2);
    }
}

static void backward(struct net *net)
{
    for (size_t i = LAYERS + 1; i-- > 0;) {
        run(net, "backward", 0,
            (capu_operand[]){capu_reads(net->outputs[i]), capu_writes(net->gradient)}, 2);
    }
    run(net, "update", 0, (capu_operand[]){capu_updates(net->weights)}, 1);
}

/* Ends an iteration and returns its report. Checks that the stalls are in order and sum up. */
static struct report end(struct net *net)
{
    struct report report = {0};
    uint64_t sum_ns = 0;
    uint64_t at = 0;

    RIG_OK(&net->rig, capu_iteration_end(net->rig.context));
    RIG_OK(&net->rig, capu_synchronize(net->rig.context));
    report = rig_report(&net->rig);
    rig_check(&net->rig);
    ck_assert_uint_eq(report.timed, 1);
    for (size_t i = 0; i < report.stall_count; i++) {
        const capu_stall *stall = &report.stalls[i];

        ck_assert_uint_gt(stall->wait_ns, 0);
        ck_assert_uint_ge(stall->access, at);
        ck_assert(stall->access < report.op_count || stall->access == UINT64_MAX);
        ck_assert_int_eq(stall->access == UINT64_MAX, stall->op[0] == '\0');
        ck_assert(stall->replay[0] == '\0' || strcmp(stall->replay, "forward") == 0);
        sum_ns += stall->wait_ns;
        at = stall->access;
    }
    ck_assert_uint_eq(sum_ns, report.stall_ns);
    net->sums.stall_ns += report.stall_ns;
    net->sums.out_bytes += report.evicted_bytes;
    net->sums.back_bytes += report.prefetched_bytes;
    net->sums.back_count += report.prefetch_count;
    net->sums.empty_bytes += report.dropped_bytes;
    net->sums.host_wait_ns += report.host_wait_ns;
    ck_assert_uint_eq(traffic(net).stall_ns, net->sums.stall_ns);
    /* On sim the calling thread is never late, so the rest of the time is ops and replays. */
    ck_assert_uint_eq(report.compute_ns + report.stall_ns + report.recompute_ns, report.time_ns);
    return report;
}

/* How many stalls belong to replays: after the last op, or before another op. */
static size_t stalled_replays(const struct report *report, bool after)
{
    size_t count = 0;

    for (size_t i = 0; i < report->stall_count; i++) {
        count += report->stalls[i].replay[0] != '\0' &&
                 (report->stalls[i].access == UINT64_MAX) == after;
    }
    return count;
}

START_TEST(passive_stalls_sum_up)
{
    struct net net;
    struct report report;
    capu_traffic totals;

    net_init(&net, NULL, (uint64_t)_i * LAYER_PAGES);
    for (size_t i = 0; i < 4; i++) {
        forward(&net);
        backward(&net);
        report = end(&net);
        ck_assert_uint_gt(report.stall_ns, 0);
    }
    totals = traffic(&net);
    ck_assert_uint_eq(totals.out_bytes, net.sums.out_bytes);
    ck_assert_uint_eq(totals.back_bytes, net.sums.back_bytes);
    ck_assert_uint_eq(totals.back_count, net.sums.back_count);
    ck_assert_uint_eq(totals.clean_bytes + totals.empty_bytes + totals.discarded_bytes,
                      net.sums.empty_bytes);
    ck_assert_uint_eq(totals.host_wait_ns, net.sums.host_wait_ns);
    rig_finish(&net.rig);
}
END_TEST

/* Updates and reads more tensors than fit, in turn, and waits in the middle. The first round is not
   compared. */
static capu_traffic turns(bool has_iterations)
{
    struct net net;
    capu_traffic first;
    capu_traffic last;

    net_init(&net, NULL, 3 * LAYER_PAGES);
    for (size_t i = 0; i <= LAYERS; i++) {
        RIG_OK(&net.rig, CAPU_DESCRIBE(net.rig.context, net.outputs[i], .kind = CAPU_PARAMETER));
        run(&net, "first", 0, (capu_operand[]){capu_writes(net.outputs[i])}, 1);
    }
    RIG_OK(&net.rig, capu_synchronize(net.rig.context));
    first = traffic(&net);
    for (size_t round = 0; round < 2; round++) {
        if (has_iterations) {
            RIG_OK(&net.rig, capu_iteration_begin(net.rig.context, "turns"));
        }
        for (size_t i = 0; i < LAYERS; i++) {
            run(&net, "turn", 0,
                (capu_operand[]){capu_reads(net.outputs[i]), capu_updates(net.outputs[i + 1])}, 2);
        }
        if (has_iterations) {
            RIG_OK(&net.rig, capu_iteration_end(net.rig.context));
        }
        RIG_OK(&net.rig, capu_synchronize(net.rig.context));
    }
    last = traffic(&net);
    last.stall_ns -= first.stall_ns;
    rig_finish(&net.rig);
    return last;
}

START_TEST(totals_need_no_iterations)
{
    capu_traffic with = turns(true);
    capu_traffic without = turns(false);

    ck_assert_uint_gt(with.stall_ns, 0);
    ck_assert_mem_eq(&with, &without, sizeof(with));
}
END_TEST

/* With plans that only replay, that only swap, and that do both. */
START_TEST(guided_stalls_sum_up)
{
    static const char *const planners[] = {"recompute", "swap", "hybrid", "lru"};
    const char *planner = planners[_i % 4];
    struct net net;
    struct report report;

    net_init(&net, planner, (uint64_t)(6 + _i / 4) * LAYER_PAGES);
    for (size_t i = 0; i < 5; i++) {
        forward(&net);
        backward(&net);
        report = end(&net);
        ck_assert_msg(
            report.mode == (i == 0 ? CAPU_MODE_PASSIVE : CAPU_MODE_GUIDED) && report.diverged == 0,
            "%s: iteration %zu has mode %u: %s", planner, i, report.mode, report.plan_error);
    }
    if (strcmp(planner, "recompute") == 0) {
        ck_assert_uint_gt(report.replay_count, 0);
    }
    rig_finish(&net.rig);
}
END_TEST

/* Runs one iteration in passive mode, one with a plan that recomputes, and forward once more. */
static void drop_outputs(struct net *net)
{
    struct report report;

    net_init(net, "recompute", 8 * LAYER_PAGES);
    for (size_t i = 0; i < 2; i++) {
        forward(net);
        backward(net);
        report = end(net);
    }
    ck_assert_uint_eq(report.mode, CAPU_MODE_GUIDED);
    ck_assert_uint_gt(report.replay_count, 0);
    forward(net);
}

/* An op that is not in the plan reads a dropped tensor. From there on tensors are recomputed in
   passive mode, and replays wait for room and for what they read. */
START_TEST(replays_without_a_plan_are_named)
{
    struct net net;
    struct report report;

    drop_outputs(&net);
    run(&net, "detour", 0, (capu_operand[]){capu_reads(net.outputs[2]), capu_writes(net.beside)},
        2);
    backward(&net);
    report = end(&net);
    ck_assert_uint_eq(report.diverged, 1);
    ck_assert_uint_gt(report.replay_count, 0);
    ck_assert_uint_gt(stalled_replays(&report, false), 0);
    ck_assert_uint_eq(stalled_replays(&report, true), 0);
    rig_finish(&net.rig);
}
END_TEST

/* All dropped tensors become persistent, and the iteration ends. They are recomputed after the last
   op. */
START_TEST(replays_after_the_last_op_are_named)
{
    struct net net;
    struct report report;

    drop_outputs(&net);
    for (size_t i = 1; i <= LAYERS; i++) {
        RIG_OK(&net.rig, CAPU_DESCRIBE(net.rig.context, net.outputs[i], .kind = CAPU_PARAMETER));
    }
    report = end(&net);
    ck_assert_uint_eq(report.diverged, 1);
    ck_assert_uint_gt(report.replay_count, 0);
    ck_assert_uint_gt(report.recompute_ns, 0);
    ck_assert_uint_gt(stalled_replays(&report, true), 0);
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api stalls");
    TCase *cases = tcase_create("stalls");

    tcase_add_loop_test(cases, passive_stalls_sum_up, 3, 8);
    tcase_add_test(cases, totals_need_no_iterations);
    tcase_add_loop_test(cases, guided_stalls_sum_up, 0, 12);
    tcase_add_test(cases, replays_without_a_plan_are_named);
    tcase_add_test(cases, replays_after_the_last_op_are_named);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
