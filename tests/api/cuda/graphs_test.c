/*
 * Graphs over the fake CUDA runtime, which refuses during a capture what CUDA refuses and runs
 * nodes beside each other that no edge orders: what launches compute and report, what is refused by
 * name, and what a capture that cannot be continued costs.
 */
#include "tests/api/net.h"

#include "capuchin/graph.h"
#include "tests/fake_cudart/fake_cudart.h"
#include "tests/fake_cudart/include/cuda_runtime_api.h"
#include "tests/support/adaptor_fault.h"

enum { BYTES = NET_LAYER_PAGES * (int)RIG_PAGE, MOST = 600, SMALL = 64 };

/* A small tensor that each iteration makes of its results. It is always resident, so that reading
   it does not touch the plan. */
static unsigned char *loss;

static void set_up(struct net *net, struct rig_options options, capu_graph **graph)
{
    net_init(net, options);
    loss = step_malloc(&net->rig, SMALL);
    RIG_OK(&net->rig, capu_graph_create(net->rig.context, graph));
}

static void upload(struct net *net, unsigned char value)
{
    static unsigned char bytes[BYTES];

    memset(bytes, value, sizeof(bytes));
    RIG_OK(&net->rig, capu_upload(net->rig.context, net->activations[0], bytes, sizeof(bytes), 0));
}

static void finish_work(struct net *net)
{
    net_backward(net, NET_LAYERS);
    step_next(&net->rig, "loss", loss, net->gradients, SMALL / 2);
    step_next(&net->rig, "loss", loss + SMALL / 2, net->weights, SMALL / 2);
}

/* The work of an iteration: everything is made of what it uploads. */
static void work(struct net *net)
{
    upload(net, net->step);
    for (size_t i = 0; i < NET_LAYERS; i++) {
        step_next(&net->rig, "forward", net->activations[i + 1], net->activations[i], BYTES);
    }
    finish_work(net);
}

/* What is left of `count` iterations, the last of which uploaded `step`. */
static void expect_results(struct net *net, size_t count)
{
    step_expect(&net->rig, loss, SMALL / 2, (unsigned char)(net->step + 2));
    step_expect(&net->rig, loss + SMALL / 2, SMALL / 2, (unsigned char)(2 + count));
    rig_check(&net->rig);
}

/* Captures an iteration, or runs it as it is. */
static bool train(struct net *net, capu_graph *graph)
{
    capu_status status = capu_graph_begin(graph, "train");

    net->step++;
    if (status == CAPU_OK) {
        work(net);
        status = capu_graph_end(graph);
        ck_assert(status == CAPU_OK || status == CAPU_NOT_READY);
        return status == CAPU_OK;
    }
    ck_assert_int_eq(status, CAPU_NOT_READY);
    RIG_OK(&net->rig, capu_iteration_begin(net->rig.context, "train"));
    work(net);
    RIG_OK(&net->rig, capu_iteration_end(net->rig.context));
    return false;
}

/* Runs iterations until one could be captured. Returns how many there were. */
static size_t capture(struct net *net, capu_graph *graph)
{
    for (size_t i = 1; i < MOST; i++) {
        if (train(net, graph)) {
            return i;
        }
    }
    ck_abort_msg("no iteration could be captured: %s", capu_last_error(net->rig.context));
    return 0;
}

/* Begins a capture, after as many other iterations as that takes. Returns how many there were. */
static size_t begin(struct net *net, capu_graph *graph)
{
    for (size_t i = 0; i < MOST; i++) {
        net->step++;
        if (capu_graph_begin(graph, "train") == CAPU_OK) {
            return i;
        }
        RIG_OK(&net->rig, capu_iteration_begin(net->rig.context, "train"));
        work(net);
        RIG_OK(&net->rig, capu_iteration_end(net->rig.context));
    }
    ck_abort_msg("no capture could begin: %s", capu_last_error(net->rig.context));
    return 0;
}

/* The next iteration is a launch, where possible: plans are remade when times change. */
static bool try_launch(struct net *net, capu_graph *graph)
{
    static unsigned char bytes[BYTES];

    memset(bytes, net->step + 1, sizeof(bytes));
    if (capu_graph_upload(graph, net->activations[0], bytes, sizeof(bytes)) != CAPU_OK ||
        capu_graph_launch(graph) != CAPU_OK) {
        return false;
    }
    net->step++;
    return true;
}

/* Runs iterations until one is a launch. Returns how many there were. */
static size_t launch(struct net *net, capu_graph *graph)
{
    for (size_t i = 1; i < MOST; i++) {
        if (try_launch(net, graph)) {
            return i;
        }
        train(net, graph);
    }
    ck_abort_msg("nothing could be launched: %s", capu_last_error(net->rig.context));
    return 0;
}

static struct report report_of(struct net *net)
{
    RIG_OK(&net->rig, capu_synchronize(net->rig.context));
    return rig_report(&net->rig);
}

/* Budgets from which some activations are copied or computed again. */
static const struct rig_options kinds[] = {
    {.planner = "swap"},
    {.planner = "recompute"},
    {.planner = "hybrid"},
    {.planner = "hybrid", .delay_seed = 5},
    {.planner = "swap", .delay_seed = 7, .keep_contents = true},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

START_TEST(launches_compute_what_iterations_compute)
{
    struct net net;
    capu_graph *graph;
    struct report captured;
    size_t count;

    set_up(&net, kinds[_i], &graph);
    count = capture(&net, graph);
    captured = report_of(&net);
    expect_results(&net, count);
    net_expect_guided(&net, &captured, "train");
    ck_assert_uint_eq(captured.graph, 1);
    ck_assert_uint_gt(captured.prefetch_count + captured.replay_count, 0);
    for (size_t i = 0; i < 12; i++) {
        count += launch(&net, graph);
        if (i % 4 == 0) {
            expect_results(&net, count);
        }
        if (i % 5 == 4) { /* leaves the plan, unless they are resident */
            step_expect(&net.rig, net.gradients, BYTES, (unsigned char)(net.step + 1));
            step_expect(&net.rig, net.weights, BYTES, (unsigned char)(1 + count));
        }
    }
    expect_results(&net, count);
    /* And on without a graph. */
    net.step++;
    RIG_OK(&net.rig, capu_iteration_begin(net.rig.context, "train"));
    work(&net);
    RIG_OK(&net.rig, capu_iteration_end(net.rig.context));
    expect_results(&net, count + 1);
    captured = report_of(&net);
    net_expect_guided(&net, &captured, "train");
    ck_assert_uint_eq(captured.graph, 0);
    count += 1 + launch(&net, graph);
    expect_results(&net, count);
    step_expect(&net.rig, net.weights, BYTES, (unsigned char)(1 + count));
    capu_graph_destroy(graph);
    rig_finish(&net.rig);
}
END_TEST

START_TEST(a_launch_is_an_iteration_in_reports)
{
    struct net net;
    capu_graph *graph;
    struct report captured;
    struct report launched;
    const char *evicted;
    uint64_t evictions;

    set_up(&net, (struct rig_options){.planner = "swap"}, &graph);
    capture(&net, graph);
    captured = report_of(&net);
    evictions = captured.eviction_count;
    ck_assert_uint_gt(evictions, 0);
    evicted = captured.evictions[evictions - 1].tensor;
    launch(&net, graph);
    launched = report_of(&net);
    ck_assert_uint_eq(launched.iteration, captured.iteration + 1);
    ck_assert_uint_eq(launched.mode, CAPU_MODE_GUIDED);
    ck_assert_uint_eq(launched.graph, 1);
    ck_assert_uint_eq(launched.timed, 0);
    ck_assert_uint_eq(launched.diverged, 0);
    ck_assert_str_eq(launched.label, "train");
    ck_assert_uint_gt(launched.time_ns, 0);
    ck_assert_uint_eq(launched.compute_ns, CAPU_NOT_TIMED);
    ck_assert_uint_eq(launched.op_count, captured.op_count);
    ck_assert_uint_eq(launched.access_count, captured.access_count);
    ck_assert_uint_eq(launched.evicted_bytes, captured.evicted_bytes);
    ck_assert_uint_eq(launched.prefetched_bytes, captured.prefetched_bytes);
    ck_assert_uint_eq(launched.live_peak_bytes, captured.live_peak_bytes);
    ck_assert_uint_eq(launched.floor_bytes, captured.floor_bytes);
    ck_assert_uint_eq(launched.peak_bytes, captured.peak_bytes);
    ck_assert_uint_eq(launched.eviction_count, evictions);
    ck_assert_str_eq(launched.evictions[evictions - 1].tensor, evicted);
    rig_finish(&net.rig);
}
END_TEST

/* A launch needs one call of the device for its work, and no call per op. */
START_TEST(a_launch_makes_few_calls)
{
    struct adaptor_counts counts;
    struct net net;
    capu_graph *graph;
    uint64_t calls = 0;

    set_up(&net, (struct rig_options){.planner = "swap"}, &graph);
    capture(&net, graph);
    launch(&net, graph);
    RIG_OK(&net.rig, capu_synchronize(net.rig.context));
    adaptor_count_reset(net.rig.count);
    for (size_t i = 0; i < 4; i++) {
        RIG_OK(&net.rig, capu_graph_launch(graph));
    }
    adaptor_count_read(net.rig.count, &counts);
    ck_assert_uint_eq(net_calls(&counts, ADAPTOR_GRAPH_LAUNCH), 4);
    for (int slot = 0; slot < ADAPTOR_SLOT_COUNT; slot++) {
        calls += net_calls(&counts, (enum adaptor_slot)slot);
    }
    /* The launch, its two ends, and queries and a wait for earlier ones. */
    ck_assert_uint_le(calls, 4 * 8);
    ck_assert_uint_eq(net_calls(&counts, ADAPTOR_RUN) + net_calls(&counts, ADAPTOR_COPY_IN) +
                          net_calls(&counts, ADAPTOR_COPY_OUT),
                      0);
    rig_finish(&net.rig);
}
END_TEST

/* As programs do that have arguments which change: each iteration is captured, the graph is updated
   in place, and nothing waits in between. */
START_TEST(a_graph_is_captured_again_and_again)
{
    struct net net;
    capu_graph *graph;
    uint64_t instantiated;
    size_t count;

    set_up(&net, kinds[_i], &graph);
    count = capture(&net, graph);
    instantiated = fake_cudart_calls_of(FAKE_cudaGraphInstantiate);
    for (size_t i = 0; i < 8; i++) {
        count += capture(&net, graph);
    }
    expect_results(&net, count);
    /* Random delays are nodes, too, so the shape is another each time. */
    if (kinds[_i].delay_seed == 0) {
        instantiated = fake_cudart_calls_of(FAKE_cudaGraphInstantiate) - instantiated;
        ck_assert_uint_lt(instantiated, 8); /* and not for each: plans are remade */
    }
    /* The nodes still have their names. */
    count += launch(&net, graph);
    expect_results(&net, count);
    rig_finish(&net.rig);
    ck_assert_uint_eq(fake_cudart_left().graphs, 0);
}
END_TEST

/* Inputs that outlive iterations are uploaded as always. */
START_TEST(inputs_are_uploaded_before_a_launch)
{
    struct net net;
    capu_graph *graph;
    unsigned char *input;
    unsigned char bytes[SMALL];
    size_t launches = 0;

    set_up(&net, (struct rig_options){0}, &graph);
    input = step_malloc(&net.rig, sizeof(bytes));
    for (unsigned i = 0; i < MOST; i++) {
        memset(bytes, (int)i, sizeof(bytes));
        RIG_OK(&net.rig, capu_upload(net.rig.context, input, bytes, sizeof(bytes), 0));
        if (launches > 0 && capu_graph_launch(graph) == CAPU_OK) {
            launches++;
        } else {
            bool is_captured = capu_graph_begin(graph, "train") == CAPU_OK;

            if (!is_captured) {
                RIG_OK(&net.rig, capu_iteration_begin(net.rig.context, "train"));
            }
            net.step++;
            net_forward(&net, NET_LAYERS);
            step_next(&net.rig, "last", net.weights, net.activations[0], BYTES);
            step_next(&net.rig, "use", loss, input, sizeof(bytes));
            RIG_OK(&net.rig,
                   is_captured ? capu_graph_end(graph) : capu_iteration_end(net.rig.context));
            launches += is_captured;
        }
        step_expect(&net.rig, loss, sizeof(bytes), (unsigned char)(i + 1));
    }
    ck_assert_uint_gt(launches, 10);
    rig_finish(&net.rig);
}
END_TEST

/* What the program's own kernels have seen. */
static struct {
    unsigned char value;
    size_t count;
} seen;

static capu_status look(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    seen.value = loss[0];
    return CAPU_OK;
}

static capu_status count_run(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    seen.count++;
    return CAPU_OK;
}

/* The iteration, with a launch of the program's own within an access, and one that touches no
   tensor and that the library does not know of. */
static void work_and_look(struct net *net)
{
    capu_operand operand = capu_operand_of(loss, SMALL / 2, CAPU_READ);
    const capu_op op = {
        .size = sizeof(op), .name = "look", .operands = &operand, .operand_count = 1};
    cudaStream_t stream = capu_context_stream(net->rig.context);

    work(net);
    /* As on a GPU, where an access does not wait for earlier work: launches come after it. */
    net->rig.count->capabilities.runs_on_stream = false;
    RIG_OK(&net->rig, capu_access_begin(net->rig.context, &op));
    net->rig.count->capabilities.runs_on_stream = true;
    ck_assert_int_eq(fake_cudart_launch(stream, look, NULL), CAPU_OK);
    RIG_OK(&net->rig, capu_access_end(net->rig.context));
    ck_assert_int_eq(fake_cudart_launch(stream, count_run, NULL), CAPU_OK);
}

/* It is on the stream that is captured, so it becomes part of the graph: it runs at each launch,
   after the ops before it, and not while it is captured. */
START_TEST(launches_of_the_program_are_part_of_the_graph)
{
    struct net net;
    capu_graph *graph;
    size_t launches = 0;

    set_up(&net, (struct rig_options){.planner = "swap", .delay_seed = 3}, &graph);
    for (size_t i = 1; i < MOST && launches < 6; i++) {
        size_t count = seen.count; /* all work is done */
        bool is_captured = false;

        if (try_launch(&net, graph)) {
            launches++;
        } else {
            net.step++;
            is_captured = capu_graph_begin(graph, "train") == CAPU_OK;
            if (!is_captured) {
                RIG_OK(&net.rig, capu_iteration_begin(net.rig.context, "train"));
            }
            work_and_look(&net);
            ck_assert(!is_captured || seen.count == count);
            RIG_OK(&net.rig,
                   is_captured ? capu_graph_end(graph) : capu_iteration_end(net.rig.context));
        }
        RIG_OK(&net.rig, capu_synchronize(net.rig.context));
        ck_assert_uint_eq(seen.count, count + 1);
        ck_assert_uint_eq(seen.value, (unsigned char)(net.step + 2));
    }
    ck_assert_uint_eq(launches, 6);
    rig_finish(&net.rig);
}
END_TEST

START_TEST(calls_that_would_wait_are_refused_during_a_capture)
{
    struct net net;
    capu_graph *graph;
    size_t count = 0;
    unsigned char byte;
    void *other;

    set_up(&net, (struct rig_options){0}, &graph);
    count = capture(&net, graph);
    count += begin(&net, graph);
    upload(&net, net.step);
    STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, net.activations[0], 1, 0),
               CAPU_WRONG_ORDER, "capu_download while an iteration is captured");
    STEP_FAILS(&net.rig, capu_synchronize(net.rig.context), CAPU_WRONG_ORDER, "capu_synchronize");
    STEP_FAILS(&net.rig, capu_malloc(net.rig.context, 64, &other), CAPU_WRONG_ORDER, "capu_malloc");
    STEP_FAILS(&net.rig, capu_free(net.rig.context, net.weights), CAPU_WRONG_ORDER, "capu_free");
    STEP_FAILS(&net.rig, capu_split(net.rig.context, net.weights, RIG_PAGE), CAPU_WRONG_ORDER,
               "capu_split");
    STEP_FAILS(&net.rig, capu_iteration_end(net.rig.context), CAPU_WRONG_ORDER, "capu_graph_end");
    STEP_FAILS(&net.rig, capu_iteration_begin(net.rig.context, "train"), CAPU_WRONG_ORDER,
               "capu_graph_end");
    STEP_FAILS(&net.rig, capu_graph_launch(graph), CAPU_WRONG_ORDER, "nothing is captured");
    for (size_t i = 0; i < NET_LAYERS; i++) {
        step_next(&net.rig, "forward", net.activations[i + 1], net.activations[i], BYTES);
    }
    finish_work(&net);
    RIG_OK(&net.rig, capu_graph_end(graph));
    expect_results(&net, count + 1);
    STEP_FAILS(&net.rig, capu_graph_end(graph), CAPU_WRONG_ORDER, "without capu_graph_begin");
    rig_finish(&net.rig);
}
END_TEST

/* What was recorded is launched, and the rest of the iteration runs as always. */
START_TEST(an_iteration_that_leaves_its_plan_runs_all_the_same)
{
    struct net net;
    capu_graph *graph;
    size_t count;

    set_up(&net, kinds[_i], &graph);
    count = capture(&net, graph);
    count += begin(&net, graph);
    upload(&net, net.step);
    for (size_t i = 0; i < NET_LAYERS; i++) {
        step_next(&net.rig, i == 5 ? "other" : "forward", net.activations[i + 1],
                  net.activations[i], BYTES);
    }
    finish_work(&net);
    STEP_FAILS(&net.rig, capu_graph_end(graph), CAPU_NOT_READY, "has left its plan");
    ck_assert_uint_eq(report_of(&net).diverged, 1);
    ck_assert_uint_eq(report_of(&net).graph, 0);
    expect_results(&net, ++count);
    STEP_FAILS(&net.rig, capu_graph_launch(graph), CAPU_WRONG_ORDER, "nothing is captured");
    count += capture(&net, graph);
    count += launch(&net, graph);
    expect_results(&net, count);
    rig_finish(&net.rig);
}
END_TEST

START_TEST(an_op_that_fails_ends_the_capture)
{
    struct net net;
    capu_graph *graph;
    size_t count;
    const struct adaptor_fault_plan fault = {
        .slot = ADAPTOR_RUN, .call = 4, .status = CAPU_DEVICE_FAILED};

    set_up(&net, (struct rig_options){.has_faults = true}, &graph);
    count = capture(&net, graph);
    count += begin(&net, graph);
    adaptor_fault_arm(net.rig.faults, &fault);
    upload(&net, net.step);
    for (size_t i = 0; i < NET_LAYERS; i++) {
        capu_status status =
            step_try_next(&net.rig, "forward", net.activations[i + 1], net.activations[i], BYTES);

        ck_assert_int_eq(status, i == 3 ? CAPU_DEVICE_FAILED : CAPU_OK);
        if (i == 3) {
            step_next(&net.rig, "forward", net.activations[i + 1], net.activations[i], BYTES);
        }
    }
    finish_work(&net);
    STEP_FAILS(&net.rig, capu_graph_end(graph), CAPU_NOT_READY, "an op failed");
    expect_results(&net, count + 1);
    rig_finish(&net.rig);
}
END_TEST

/* The calls with which a capture begins and ends. */
START_TEST(a_device_that_refuses_a_graph_is_reported)
{
    static const enum adaptor_slot slots[] = {ADAPTOR_CAPTURE_BEGIN, ADAPTOR_CAPTURE_END,
                                              ADAPTOR_GRAPH_LAUNCH};
    const struct adaptor_fault_plan fault = {
        .slot = slots[_i % 3], .call = 1, .status = CAPU_DEVICE_FAILED};
    struct net net;
    capu_graph *graph;
    size_t count;

    set_up(&net, (struct rig_options){.has_faults = true}, &graph);
    count = capture(&net, graph);
    if (_i == 3) { /* a launch that fails has no effect */
        const struct adaptor_fault_plan launch_fault = {
            .slot = ADAPTOR_GRAPH_LAUNCH, .call = 1, .status = CAPU_DEVICE_FAILED};

        adaptor_fault_arm(net.rig.faults, &launch_fault);
        STEP_FAILS(&net.rig, capu_graph_launch(graph), CAPU_DEVICE_FAILED, "launching a graph");
        expect_results(&net, count);
        count += launch(&net, graph);
        expect_results(&net, count);
        rig_finish(&net.rig);
        return;
    }
    adaptor_fault_arm(net.rig.faults, &fault);
    count += begin(&net, graph) + 1;
    work(&net);
    if (_i == 0) {
        STEP_FAILS(&net.rig, capu_graph_end(graph), CAPU_NOT_READY, "does not begin a capture");
        expect_results(&net, count);
        rig_finish(&net.rig);
        return;
    }
    STEP_FAILS(&net.rig, capu_graph_end(graph), CAPU_OP_FAILED, "is lost");
    capu_context_destroy(net.rig.context);
}
END_TEST

enum change { FREES, FREES_SMALL, SPLITS, DESCRIBES, CHANGES_PLAN, WRITES, LEAVES_PLAN, CHANGES };

/* What has changed since the capture is noticed before anything runs. */
START_TEST(a_stale_graph_is_refused_by_name)
{
    static const char *const words[CHANGES] = {
        [FREES] = "memory was freed",
        [FREES_SMALL] = "'gone' last",
        [SPLITS] = "memory was freed, split",
        [DESCRIBES] = "'weights' last",
        [CHANGES_PLAN] = "another plan has become active",
        [WRITES] = "'weights' was written",
        [LEAVES_PLAN] = "was captured",
    };
    struct report before;
    struct net net;
    capu_graph *graph;
    unsigned char *other;
    unsigned char *small;
    size_t count;

    set_up(&net, (struct rig_options){.planner = "swap"}, &graph);
    other = step_tensor(&net.rig, "other", CAPU_INPUT, 2);
    small = step_malloc(&net.rig, 64);
    RIG_OK(&net.rig, CAPU_DESCRIBE(net.rig.context, small, .name = "gone"));
    count = capture(&net, graph);
    count += launch(&net, graph);
    before = report_of(&net);
    switch (_i) {
    case FREES:
        RIG_OK(&net.rig, capu_free(net.rig.context, other));
        break;
    case FREES_SMALL:
        RIG_OK(&net.rig, capu_free(net.rig.context, small));
        break;
    case SPLITS:
        RIG_OK(&net.rig, capu_split(net.rig.context, other, RIG_PAGE));
        break;
    case DESCRIBES:
        RIG_OK(&net.rig, CAPU_DESCRIBE(net.rig.context, net.weights, .name = "weights",
                                       .kind = CAPU_PARAMETER));
        break;
    case CHANGES_PLAN:
        for (size_t i = 0; i < 3; i++) {
            net.step++;
            RIG_OK(&net.rig, capu_iteration_begin(net.rig.context, "other"));
            net_forward(&net, NET_LAYERS);
            RIG_OK(&net.rig, capu_iteration_end(net.rig.context));
        }
        break;
    case WRITES:
        /* Zeros that are known, and nowhere. */
        RIG_OK(&net.rig, capu_zero(net.rig.context, net.weights, BYTES));
        count = (size_t)-1;
        break;
    default:
        step_set(&net.rig, other, PAGES(2), 1); /* is not part of the plan: room is made for it */
        for (size_t i = 0; i <= NET_LAYERS; i++) {
            step_set(&net.rig, net.activations[i], BYTES, 9);
        }
        break;
    }
    STEP_FAILS(&net.rig, capu_graph_launch(graph), CAPU_WRONG_ORDER, words[_i]);
    ck_assert_uint_eq(report_of(&net).iteration, before.iteration + (_i == CHANGES_PLAN ? 3 : 0));
    /* Captured again, it can be launched again. */
    count += capture(&net, graph);
    count += launch(&net, graph);
    expect_results(&net, count);
    rig_finish(&net.rig);
}
END_TEST

START_TEST(what_cannot_be_captured_is_refused)
{
    struct net net;
    capu_graph *graph = NULL;

    set_up(&net, (struct rig_options){.sample_every = 3}, &graph);
    STEP_FAILS(&net.rig, capu_graph_create(net.rig.context, NULL), CAPU_INVALID, "no place");
    ck_assert_int_eq(capu_graph_begin(NULL, "train"), CAPU_INVALID);
    STEP_FAILS(&net.rig, capu_graph_launch(graph), CAPU_WRONG_ORDER, "nothing is captured");
    STEP_FAILS(&net.rig, capu_graph_upload(graph, net.weights, &net, 1), CAPU_WRONG_ORDER,
               "nothing is captured");
    STEP_FAILS(&net.rig, capu_graph_begin(graph, "train"), CAPU_NOT_READY, "no plan is active");
    RIG_OK(&net.rig, capu_iteration_begin(net.rig.context, "train"));
    STEP_FAILS(&net.rig, capu_graph_begin(graph, "train"), CAPU_WRONG_ORDER, "is open");
    work(&net);
    RIG_OK(&net.rig, capu_iteration_end(net.rig.context));
    STEP_FAILS(&net.rig, capu_graph_begin(graph, "train"), CAPU_NOT_READY, "its ops are timed");
    capture(&net, graph);
    STEP_FAILS(&net.rig, capu_graph_upload(graph, net.weights, net.rig.context, 1),
               CAPU_WRONG_ADDRESS, "does not upload 1 bytes");
    STEP_FAILS(&net.rig, capu_graph_upload(graph, NULL, &net, 1), CAPU_INVALID, "no address");
    rig_finish(&net.rig);

    set_up(&net, (struct rig_options){.places_nothing = true}, &graph);
    net.step++;
    RIG_OK(&net.rig, capu_iteration_begin(net.rig.context, "train"));
    work(&net);
    RIG_OK(&net.rig, capu_iteration_end(net.rig.context));
    STEP_FAILS(&net.rig, capu_graph_begin(graph, "train"), CAPU_NOT_READY, "no places");
    rig_finish(&net.rig);
}
END_TEST

/* Before anything that would invalidate the program's capture. */
START_TEST(captures_of_the_program_are_left_alone)
{
    struct net net;
    capu_graph *graph;
    cudaGraph_t captured = NULL;
    cudaStream_t stream;
    unsigned char byte;
    size_t count = 0;

    set_up(&net, (struct rig_options){0}, &graph);
    stream = capu_context_stream(net.rig.context);
    for (size_t i = 0; i < 2; i++) {
        const char *word = i == 0 ? "no plan is active" : "neither the end of that capture";

        ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), 0);
        STEP_FAILS(&net.rig, capu_iteration_begin(net.rig.context, "train"), CAPU_WRONG_ORDER,
                   word);
        STEP_FAILS(&net.rig, capu_graph_begin(graph, "train"), CAPU_WRONG_ORDER, word);
        STEP_FAILS(&net.rig, step_try_set(&net.rig, net.weights, BYTES, 3), CAPU_WRONG_ORDER, word);
        STEP_FAILS(&net.rig, capu_zero(net.rig.context, net.weights, BYTES), CAPU_WRONG_ORDER,
                   word);
        STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, loss, 1, 0), CAPU_WRONG_ORDER,
                   word);
        STEP_FAILS(&net.rig, capu_synchronize(net.rig.context), CAPU_WRONG_ORDER, word);
        ck_assert_int_eq(cudaStreamEndCapture(stream, &captured), 0);
        ck_assert_int_eq(cudaGraphDestroy(captured), 0);
        count = i == 0 ? capture(&net, graph) : count;
    }
    count += launch(&net, graph);
    expect_results(&net, count);
    rig_finish(&net.rig);
}
END_TEST

static capu_status wait_for_stream(capu_stream stream, const void *arguments)
{
    (void)arguments;
    (void)cudaStreamSynchronize(stream);
    return CAPU_OK;
}

/* What a run function must not do. The program learns that the work is lost. */
START_TEST(a_run_function_that_waits_ends_the_context)
{
    struct net net;
    capu_graph *graph;
    capu_operand operand;
    capu_op op = {.size = sizeof(op),
                  .name = "waits",
                  .run = wait_for_stream,
                  .operands = &operand,
                  .operand_count = 1};

    set_up(&net, (struct rig_options){0}, &graph);
    capture(&net, graph);
    begin(&net, graph);
    work(&net);
    operand = capu_updates(net.weights);
    (void)wait_for_stream(capu_context_stream(net.rig.context), NULL);
    ck_assert_int_ne(capu_graph_end(graph), CAPU_OK);
    ck_assert_ptr_nonnull(strstr(capu_last_error(net.rig.context), "is lost"));
    ck_assert_int_eq(capu_run(net.rig.context, &op), CAPU_OP_FAILED);
    capu_context_destroy(net.rig.context);
}
END_TEST

START_TEST(some_contexts_have_no_graphs)
{
    static const struct {
        struct rig_options options;
        const char *word;
    } contexts[] = {
        {{.mode = CAPU_MODE_PASSIVE}, "not guided"},
        {{.mode = CAPU_MODE_OFF}, "not guided"},
        {{.mode = CAPU_MODE_GUIDED, .strict = true}, "strict mode"},
        {{.mode = CAPU_MODE_GUIDED, .timeline = true, .report_path = "/dev/null"}, "timelines"},
        {{.mode = CAPU_MODE_GUIDED, .is_sim = true}, "CUDA graphs"},
    };

    for (size_t i = 0; i < sizeof(contexts) / sizeof(contexts[0]); i++) {
        capu_graph *graph = NULL;
        struct rig rig;

        rig_init(&rig, &contexts[i].options);
        STEP_FAILS(&rig, capu_graph_create(rig.context, &graph), CAPU_UNSUPPORTED,
                   contexts[i].word);
        ck_assert_ptr_null(graph);
        rig_finish(&rig);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api graphs");
    TCase *cases = tcase_create("graphs");

    tcase_set_timeout(cases, 120); /* some run until times are steady */
    tcase_add_loop_test(cases, launches_compute_what_iterations_compute, 0, KINDS);
    tcase_add_test(cases, a_launch_is_an_iteration_in_reports);
    tcase_add_test(cases, a_launch_makes_few_calls);
    tcase_add_loop_test(cases, a_graph_is_captured_again_and_again, 0, KINDS);
    tcase_add_test(cases, inputs_are_uploaded_before_a_launch);
    tcase_add_test(cases, launches_of_the_program_are_part_of_the_graph);
    tcase_add_test(cases, calls_that_would_wait_are_refused_during_a_capture);
    tcase_add_loop_test(cases, an_iteration_that_leaves_its_plan_runs_all_the_same, 0, KINDS);
    tcase_add_test(cases, an_op_that_fails_ends_the_capture);
    tcase_add_loop_test(cases, a_device_that_refuses_a_graph_is_reported, 0, 4);
    tcase_add_loop_test(cases, a_stale_graph_is_refused_by_name, 0, CHANGES);
    tcase_add_test(cases, what_cannot_be_captured_is_refused);
    tcase_add_test(cases, captures_of_the_program_are_left_alone);
    tcase_add_test(cases, a_run_function_that_waits_ends_the_context);
    tcase_add_test(cases, some_contexts_have_no_graphs);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
