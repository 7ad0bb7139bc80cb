/*
 * Mode guided: plans come into force, steady iterations cost nothing but launches, copies and
 * events, and programs that do something else than planned are right all the same.
 */
#include "tests/api/steps.h"

#include "device/adaptor_count.h"
#include "runtime/planning.h"

#include <time.h>
#include <unistd.h>

enum { LAYERS = 8, LAYER_PAGES = 4 };

/* Forward and backward over layers of activations that do not fit all together. */
struct net {
    struct rig rig;
    unsigned char *weights;
    unsigned char *gradients;
    unsigned char *activations[LAYERS + 1];
    unsigned char step;
};

static void net_init(struct net *net, struct rig_options options)
{
    options.mode = CAPU_MODE_GUIDED;
    options.wait_for_plan = true;
    options.budget_pages = options.budget_pages > 0 ? options.budget_pages : 24;
    *net = (struct net){0};
    rig_init(&net->rig, &options);
    net->weights = step_tensor(&net->rig, "weights", CAPU_PARAMETER, LAYER_PAGES);
    net->gradients = step_tensor(&net->rig, "gradients", CAPU_GRADIENT, LAYER_PAGES);
    for (size_t i = 0; i <= LAYERS; i++) {
        net->activations[i] = step_tensor(&net->rig, "activation", CAPU_ACTIVATION, LAYER_PAGES);
    }
    step_set(&net->rig, net->weights, PAGES(LAYER_PAGES), 1);
}

/* to = from + 1, and weights stay as they are, by an op that reads both. */
static void forward(struct net *net, size_t layers)
{
    step_set(&net->rig, net->activations[0], PAGES(LAYER_PAGES), net->step);
    for (size_t i = 0; i < layers; i++) {
        step_next(&net->rig, "forward", net->activations[i + 1], net->activations[i],
                  PAGES(LAYER_PAGES));
    }
}

static void backward(struct net *net, size_t layers)
{
    for (size_t i = layers; i-- > 0;) {
        step_next(&net->rig, "backward", net->gradients, net->activations[i], PAGES(LAYER_PAGES));
    }
    step_bump(&net->rig, "update", net->weights, PAGES(LAYER_PAGES));
}

static void begin(struct net *net, const char *label)
{
    net->step++;
    RIG_OK(&net->rig, capu_iteration_begin(net->rig.context, label));
}

/* Ends an iteration and gives its report. */
static capu_report end(struct net *net)
{
    capu_report report = CAPU_REPORT_INIT;

    RIG_OK(&net->rig, capu_iteration_end(net->rig.context));
    RIG_OK(&net->rig, capu_synchronize(net->rig.context));
    RIG_OK(&net->rig, capu_report_get(net->rig.context, &report));
    rig_check(&net->rig);
    return report;
}

static capu_report train(struct net *net, const char *label)
{
    begin(net, label);
    forward(net, LAYERS);
    backward(net, LAYERS);
    step_expect(&net->rig, net->gradients, PAGES(LAYER_PAGES), (unsigned char)(net->step + 1));
    return end(net);
}

static void expect_guided(struct net *net, const capu_report *report, const char *label)
{
    ck_assert_msg(report->mode == CAPU_MODE_GUIDED && report->diverged == 0,
                  "iteration %llu: mode %u, left its plan %llu at op %llu: %s",
                  (unsigned long long)report->iteration, report->mode,
                  (unsigned long long)report->diverged, (unsigned long long)report->diverged_at,
                  planning_error(net->rig.context, label));
}

static uint64_t calls(const struct adaptor_counts *counts, enum adaptor_slot slot)
{
    return counts->slots[slot].calls;
}

START_TEST(the_second_iteration_is_guided)
{
    struct net net;
    capu_report report;

    net_init(&net, (struct rig_options){.strict = _i == 1});
    report = train(&net, "train");
    ck_assert_uint_eq(report.mode, CAPU_MODE_PASSIVE);
    ck_assert_uint_eq(report.predicted_ns, 0);
    for (size_t i = 0; i < 5; i++) {
        report = train(&net, "train");
        expect_guided(&net, &report, "train");
        ck_assert_uint_gt(report.predicted_ns, 0);
        ck_assert_uint_gt(report.prefetch_count + report.replay_count, 0);
    }
    step_expect(&net.rig, net.weights, PAGES(LAYER_PAGES), 7);
    rig_finish(&net.rig);
}
END_TEST

/* The first TIMED iterations have their ops timed; after WARM all is steady. */
enum { TIMED = 8, WARM = 10, STEADY = 5 };

/* What is promised of a steady iteration: launches, copies, event records and waits; one wait of
   the host, for the iteration before the last. On sim, where times do not move, so that no plan is
   remade meanwhile. */
START_TEST(a_steady_iteration_makes_no_other_calls)
{
    static const enum adaptor_slot never[] = {
        ADAPTOR_PAGE_CREATE,
        ADAPTOR_PAGE_DESTROY,
        ADAPTOR_RANGE_RESERVE,
        ADAPTOR_RANGE_RELEASE,
        ADAPTOR_MAP,
        ADAPTOR_UNMAP,
        ADAPTOR_HOST_ALLOC,
        ADAPTOR_HOST_FREE,
        ADAPTOR_STREAM_CREATE,
        ADAPTOR_STREAM_DESTROY,
        ADAPTOR_STREAM_SYNCHRONIZE,
        ADAPTOR_EVENT_CREATE,
        ADAPTOR_EVENT_DESTROY,
    };
    static const char *const planners[] = {"hybrid", "swap", "recompute"};
    struct adaptor_counts counts;
    capu_report report = CAPU_REPORT_INIT;
    struct net net;
    uint64_t marks;

    net_init(&net, (struct rig_options){.planner = planners[_i], .is_sim = true});
    for (size_t i = 0; i < WARM + STEADY; i++) {
        if (i == WARM) {
            adaptor_count_reset(net.rig.count);
        }
        begin(&net, "train");
        forward(&net, LAYERS);
        backward(&net, LAYERS);
        RIG_OK(&net.rig, capu_iteration_end(net.rig.context));
    }
    adaptor_count_read(net.rig.count, &counts);
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        ck_assert_msg(calls(&counts, never[i]) == 0, "%llu calls of %s",
                      (unsigned long long)calls(&counts, never[i]), adaptor_slot_name(never[i]));
    }
    ck_assert_uint_le(calls(&counts, ADAPTOR_EVENT_WAIT), STEADY);
    ck_assert_uint_ge(calls(&counts, ADAPTOR_RUN), STEADY * (2 * LAYERS + 2));
    RIG_OK(&net.rig, capu_synchronize(net.rig.context));
    RIG_OK(&net.rig, capu_report_get(net.rig.context, &report));
    expect_guided(&net, &report, "train");
    ck_assert_uint_gt(report.prefetch_count + report.replay_count, 0);
    /* Both ends, each copy, what it starts behind, and each replay. */
    marks = 2 + 2 * (report.evict_count + report.prefetch_count) + report.replay_count;
    ck_assert_uint_le(calls(&counts, ADAPTOR_EVENT_RECORD), STEADY * marks);
    rig_finish(&net.rig);
}
END_TEST

/* Training and validation in turn, told apart by their labels. */
START_TEST(each_label_has_its_plan)
{
    struct net net;

    net_init(&net, (struct rig_options){0});
    for (size_t i = 0; i < 4; i++) {
        capu_report report = train(&net, "train");

        if (i > 0) {
            expect_guided(&net, &report, "train");
        }
        begin(&net, "validate");
        forward(&net, LAYERS);
        step_expect(&net.rig, net.activations[LAYERS], PAGES(LAYER_PAGES),
                    (unsigned char)(net.step + LAYERS));
        report = end(&net);
        if (i > 0) {
            expect_guided(&net, &report, "validate");
        }
    }
    rig_finish(&net.rig);
}
END_TEST

/* Without labels what comes next is predicted: two lengths in turn, and one in three. */
START_TEST(patterns_without_labels_are_learnt)
{
    size_t period = (size_t)_i;
    struct net net;

    net_init(&net, (struct rig_options){0});
    for (size_t i = 0; i < 7 * period; i++) {
        size_t layers = i % period == 0 ? LAYERS / 2 : LAYERS;
        capu_report report;

        begin(&net, NULL);
        forward(&net, layers);
        backward(&net, layers);
        step_expect(&net.rig, net.gradients, PAGES(LAYER_PAGES), (unsigned char)(net.step + 1));
        report = end(&net);
        if (i >= 4 * period) {
            expect_guided(&net, &report, NULL);
        }
    }
    rig_finish(&net.rig);
}
END_TEST

/* Allocated and freed inside each iteration: the same addresses each time, and a plan all the same.
 */
START_TEST(allocations_inside_iterations_are_planned)
{
    unsigned char *first[LAYERS + 1] = {0};
    struct net net;

    net_init(&net, (struct rig_options){.budget_pages = 60});
    for (size_t round = 0; round < 6; round++) {
        unsigned char *tensors[LAYERS + 1];
        capu_report report;

        begin(&net, "train");
        for (size_t i = 0; i <= LAYERS; i++) {
            tensors[i] = step_tensor(&net.rig, "own", CAPU_ACTIVATION, 2 * LAYER_PAGES);
            ck_assert(round == 0 || tensors[i] == first[i]);
            first[i] = tensors[i];
            if (i == 0) {
                step_set(&net.rig, tensors[0], PAGES(2 * LAYER_PAGES), net.step);
            } else {
                step_next(&net.rig, "forward", tensors[i], tensors[i - 1], PAGES(2 * LAYER_PAGES));
            }
        }
        for (size_t i = LAYERS + 1; i-- > 0;) {
            step_expect(&net.rig, tensors[i], PAGES(2 * LAYER_PAGES),
                        (unsigned char)(net.step + i));
            RIG_OK(&net.rig, capu_free(net.rig.context, tensors[i]));
        }
        report = end(&net);
        if (round > 0) {
            expect_guided(&net, &report, "train");
            ck_assert_uint_eq(report.map_count + report.unmap_count, 0);
        }
    }
    rig_finish(&net.rig);
}
END_TEST

/* Shorter, longer, another op, an extra read, an allocation that was not there: right bytes, and
   the plan is back in the next iteration. */
START_TEST(an_iteration_may_leave_its_plan)
{
    struct net net;
    capu_report report;
    unsigned char *extra;

    net_init(&net, (struct rig_options){.strict = _i % 2 == 1,
                                        .planner = _i < 2 ? "hybrid" : "recompute"});
    train(&net, "train");
    for (size_t kind = 0; kind < 5; kind++) {
        report = train(&net, "train");
        expect_guided(&net, &report, "train");
        begin(&net, "train");
        forward(&net, LAYERS);
        if (kind == 1) {
            step_expect(&net.rig, net.activations[3], PAGES(LAYER_PAGES),
                        (unsigned char)(net.step + 3));
        }
        if (kind == 2) {
            step_set(&net.rig, net.activations[LAYERS], PAGES(LAYER_PAGES), 99);
        }
        if (kind == 3) {
            extra = step_malloc(&net.rig, PAGES(LAYER_PAGES));
            step_next(&net.rig, "extra", extra, net.activations[2], PAGES(LAYER_PAGES));
            step_expect(&net.rig, extra, PAGES(LAYER_PAGES), (unsigned char)(net.step + 3));
            RIG_OK(&net.rig, capu_free(net.rig.context, extra));
        }
        if (kind > 0) {
            backward(&net, LAYERS);
            step_expect(&net.rig, net.gradients, PAGES(LAYER_PAGES), (unsigned char)(net.step + 1));
        }
        if (kind == 4) {
            step_bump(&net.rig, "update", net.weights, PAGES(LAYER_PAGES));
        }
        report = end(&net);
        ck_assert_uint_eq(report.diverged, 1);
    }
    /* 1, and one of each iteration that trained: 6 of the usual ones, 4 others, 1 twice */
    step_expect(&net.rig, net.weights, PAGES(LAYER_PAGES), 1 + 6 + 4 + 1);
    rig_finish(&net.rig);
}
END_TEST

/* Before the source of a dropped tensor is overwritten, the tensor is recomputed. */
START_TEST(sources_are_not_overwritten_before_their_replays)
{
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    train(&net, "train");
    for (size_t round = 0; round < 4; round++) {
        capu_report report = train(&net, "train");

        expect_guided(&net, &report, "train");
        begin(&net, "train");
        forward(&net, LAYERS);
        for (size_t i = 0; i + 1 < LAYERS; i++) {
            step_set(&net.rig, net.activations[i], PAGES(LAYER_PAGES), 77);
            step_expect(&net.rig, net.activations[i + 1], PAGES(LAYER_PAGES),
                        (unsigned char)(net.step + i + 1));
        }
        report = end(&net);
        ck_assert(report.diverged == 1 || round > 0); /* later it has a plan of its own */
    }
    rig_finish(&net.rig);
}
END_TEST

/* A tensor that the plan took for dead and that cannot be made again. */
START_TEST(what_is_gone_is_told_by_name)
{
    struct net net;
    unsigned char bytes[16];
    void *list[1];

    net_init(&net, (struct rig_options){0});
    list[0] = step_tensor(&net.rig, "sample", CAPU_ACTIVATION, LAYER_PAGES);
    for (size_t i = 0; i < 3; i++) {
        begin(&net, "train");
        step_set(&net.rig, list[0], PAGES(LAYER_PAGES), 5);
        step_bump(&net.rig, "bump", list[0], PAGES(LAYER_PAGES)); /* an update: no replay */
        forward(&net, LAYERS);
        if (i == 2) {
            STEP_FAILS(&net.rig, capu_download(net.rig.context, bytes, list[0], sizeof(bytes)),
                       CAPU_CONTENTS_LOST, "sample");
        }
        backward(&net, LAYERS);
        step_expect(&net.rig, net.gradients, PAGES(LAYER_PAGES), (unsigned char)(net.step + 1));
        end(&net);
    }
    rig_finish(&net.rig);
}
END_TEST

/* Reading a transient tensor between iterations makes later plans keep it. */
START_TEST(tensors_read_between_iterations_are_kept)
{
    struct net net;

    net_init(&net, (struct rig_options){0});
    for (size_t i = 0; i < 4; i++) {
        capu_report report = train(&net, "train");

        step_expect(&net.rig, net.gradients, PAGES(LAYER_PAGES), (unsigned char)(net.step + 1));
        if (i > 0) {
            expect_guided(&net, &report, "train");
        }
    }
    rig_finish(&net.rig);
}
END_TEST

/* Parameters are read and set, split and freed between guided iterations. */
START_TEST(memory_may_change_between_iterations)
{
    struct net net;
    capu_report report;

    net_init(&net, (struct rig_options){0});
    train(&net, "train");
    report = train(&net, "train");
    expect_guided(&net, &report, "train");
    step_set(&net.rig, net.weights, PAGES(LAYER_PAGES), 40);
    report = train(&net, "train");
    expect_guided(&net, &report, "train");
    step_expect(&net.rig, net.weights, PAGES(LAYER_PAGES), 41);
    RIG_OK(&net.rig, capu_split(net.rig.context, net.weights + 10, PAGES(1)));
    rig_check(&net.rig);
    train(&net, "train");
    step_expect(&net.rig, net.weights, PAGES(LAYER_PAGES), 42);
    report = train(&net, "train");
    expect_guided(&net, &report, "train");
    RIG_OK(&net.rig, capu_free(net.rig.context, net.activations[2]));
    rig_check(&net.rig);
    net.activations[2] = step_tensor(&net.rig, "activation", CAPU_ACTIVATION, LAYER_PAGES);
    train(&net, "train");
    step_expect(&net.rig, net.weights, PAGES(LAYER_PAGES), 44);
    rig_finish(&net.rig);
}
END_TEST

/* Parameters that are zeros at first are filled in once: no reason to wait for a third iteration.
 */
START_TEST(first_zeros_are_no_part_of_the_plan)
{
    struct net net;
    unsigned char *moments;

    net_init(&net, (struct rig_options){0});
    moments = step_tensor(&net.rig, "moments", CAPU_OPTIMIZER, LAYER_PAGES);
    RIG_OK(&net.rig, capu_zero(net.rig.context, moments, 0));
    for (size_t i = 0; i < 4; i++) {
        capu_report report;

        begin(&net, "train");
        RIG_OK(&net.rig, capu_zero(net.rig.context, net.gradients, 0));
        step_bump(&net.rig, "accumulate", net.gradients, PAGES(LAYER_PAGES));
        forward(&net, LAYERS);
        step_expect(&net.rig, net.gradients, PAGES(LAYER_PAGES), 1);
        backward(&net, LAYERS);
        step_bump(&net.rig, "moments", moments, PAGES(LAYER_PAGES));
        report = end(&net);
        if (i > 0) {
            expect_guided(&net, &report, "train");
        }
    }
    step_expect(&net.rig, moments, PAGES(LAYER_PAGES), 4);
    rig_finish(&net.rig);
}
END_TEST

/* No plan fits: passive mode goes on, and the reason can be asked for. */
START_TEST(without_a_plan_training_goes_on)
{
    struct net net;

    /* Enough for the largest op, two layers; but those before and behind it share one. */
    net_init(&net, (struct rig_options){.budget_pages = 2 * LAYER_PAGES});
    for (size_t i = 0; i < 3; i++) {
        capu_report report = train(&net, "train");

        ck_assert_uint_eq(report.mode, CAPU_MODE_PASSIVE);
        ck_assert_msg(i == 0 || strstr(report.plan_error, "hybrid") != NULL, "'%s'",
                      report.plan_error);
    }
    rig_finish(&net.rig);
}
END_TEST

static capu_status nothing(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}

/* One iteration of layers on sim, each op of so many nanoseconds, and then so many more. */
static capu_report simulate(struct net *net, uint64_t duration_ns, size_t more)
{
    begin(net, "train");
    for (size_t i = 0; i <= 2 * LAYERS + more; i++) {
        size_t to = i <= LAYERS ? i : i <= 2 * LAYERS ? 2 * LAYERS - i : 0;
        capu_operand operands[] = {capu_writes(net->activations[to]), capu_reads(net->weights)};
        capu_op op = {.size = sizeof(op),
                      .name = "layer",
                      .run = nothing,
                      .operands = operands,
                      .operand_count = 2,
                      .duration_ns = duration_ns};

        if (i > LAYERS) {
            operands[0] = capu_reads(net->activations[to]);
        }
        RIG_OK(&net->rig, capu_run(net->rig.context, &op));
    }
    return end(net);
}

/* With nothing to evict an iteration marks where it begins and ends, whatever the number of ops;
   every 64th, and any that is traced, knows its ops' times, and the others say that they do not. */
START_TEST(few_iterations_time_their_ops)
{
    enum { EVERY = 64, TRACED = WARM + 5, LAST = WARM + EVERY + 2 };
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
        capu_report report;

        adaptor_count_reset(net.rig.count);
        report = simulate(&net, 1000, 0);
        adaptor_count_read(net.rig.count, &counts);
        ck_assert_uint_eq(report.evict_count, 0);
        ck_assert_uint_gt(report.time_ns, 0);
        if (report.timed == 0) {
            ck_assert_uint_eq(calls(&counts, ADAPTOR_EVENT_RECORD), 2);
            ck_assert(report.compute_ns == CAPU_NOT_TIMED && report.stall_ns == CAPU_NOT_TIMED &&
                      report.recompute_ns == CAPU_NOT_TIMED);
        } else {
            ck_assert_uint_ge(calls(&counts, ADAPTOR_EVENT_RECORD), 2 + 2 * report.op_count);
            ck_assert_uint_eq(report.compute_ns, report.time_ns);
            ck_assert_uint_eq(report.stall_ns + report.recompute_ns, 0);
        }
        ck_assert(report.timed == 1 || i > TIMED);
        ck_assert(report.timed == 1 || i != TRACED);
        timed += (unsigned)report.timed;
    }
    ck_assert_uint_eq(timed, TIMED + 2);
    ck_assert_int_eq(unlink(path), 0);
    rig_finish(&net.rig);
}
END_TEST

/* Ops become slower: after a while a new plan is in force that knows it. */
START_TEST(plans_follow_the_times_of_ops)
{
    struct net net;
    capu_report report;
    uint64_t first;

    net_init(&net, (struct rig_options){.is_sim = true});
    for (size_t i = 0; i < (_i == 0 ? 6 : WARM); i++) {
        report = simulate(&net, 1000, 0);
    }
    expect_guided(&net, &report, "train");
    ck_assert_uint_eq(report.timed, _i == 0);
    ck_assert_uint_eq(report.time_ns, report.predicted_ns);
    first = report.predicted_ns;
    /* Simulated iterations take no time, making a plan does. */
    do {
        struct timespec pause = {.tv_nsec = 1000000};

        nanosleep(&pause, NULL);
        report = simulate(&net, 400000, 0);
    } while (report.iteration < 5000 &&
             (report.predicted_ns <= first || report.time_ns != report.predicted_ns));
    expect_guided(&net, &report, "train");
    ck_assert_uint_gt(report.predicted_ns, first);
    ck_assert_uint_eq(report.time_ns, report.predicted_ns);
    rig_finish(&net.rig);
}
END_TEST

/* An iteration that was not timed and leaves its plan: what ran as planned is known to take what it
   took, what came after was timed, and so there is a good plan for the next one. */
START_TEST(plans_are_made_of_iterations_that_were_not_timed)
{
    struct net net;
    capu_report report;

    net_init(&net, (struct rig_options){.is_sim = true});
    for (size_t i = 0; i < WARM; i++) {
        report = simulate(&net, 1000, 0);
    }
    ck_assert_uint_eq(report.timed, 0);
    report = simulate(&net, 1000, 30);
    ck_assert_uint_eq(report.diverged, 1);
    ck_assert_uint_eq(report.timed, 0);
    ck_assert_uint_eq(report.stall_ns, CAPU_NOT_TIMED);
    simulate(&net, 1000, 30); /* taken for a usual one, since there is a plan for those */
    for (size_t i = 0; i < 4; i++) {
        report = simulate(&net, 1000, 30);
        expect_guided(&net, &report, "train");
    }
    ck_assert_uint_eq(report.time_ns, report.predicted_ns);
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guided");
    TCase *cases = tcase_create("guided");

    tcase_add_loop_test(cases, the_second_iteration_is_guided, 0, 2);
    tcase_add_loop_test(cases, a_steady_iteration_makes_no_other_calls, 0, 3);
    tcase_add_test(cases, few_iterations_time_their_ops);
    tcase_add_test(cases, each_label_has_its_plan);
    tcase_add_loop_test(cases, patterns_without_labels_are_learnt, 2, 4);
    tcase_add_test(cases, allocations_inside_iterations_are_planned);
    tcase_add_loop_test(cases, an_iteration_may_leave_its_plan, 0, 4);
    tcase_add_loop_test(cases, sources_are_not_overwritten_before_their_replays, 0, 2);
    tcase_add_test(cases, what_is_gone_is_told_by_name);
    tcase_add_test(cases, tensors_read_between_iterations_are_kept);
    tcase_add_test(cases, memory_may_change_between_iterations);
    tcase_add_test(cases, first_zeros_are_no_part_of_the_plan);
    tcase_add_test(cases, without_a_plan_training_goes_on);
    tcase_add_loop_test(cases, plans_follow_the_times_of_ops, 0, 2);
    tcase_add_test(cases, plans_are_made_of_iterations_that_were_not_timed);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
