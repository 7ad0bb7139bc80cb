/*
 * Replays of ops with updates. An op that provides a function for replays, and updates only
 * always-resident tensors, is replayed without updating twice. Any other op with updates is never
 * replayed.
 */
#include "tests/api/steps.h"

enum { LAYERS = 6, LAYER_PAGES = 4, BUDGET_PAGES = 22, ITERATIONS = 6 };

/* All pointers are to device memory, except the count of replays, which the stream's thread writes
   and the test reads after capu_synchronize. */
struct layer {
    unsigned char *to;
    const unsigned char *from;
    unsigned char *statistic;
    unsigned *replays;
};

static capu_status again(capu_stream stream, const void *arguments)
{
    const struct layer *layer = arguments;

    (void)stream;
    for (size_t i = 0; i < PAGES(LAYER_PAGES); i++) {
        layer->to[i] = (unsigned char)(layer->from[i] + 1);
    }
    (*layer->replays)++;
    return CAPU_OK;
}

static capu_status first(capu_stream stream, const void *arguments)
{
    const struct layer *layer = arguments;

    again(stream, arguments);
    (*layer->replays)--;
    layer->statistic[0]++;
    return CAPU_OK;
}

static capu_status look(capu_stream stream, const void *arguments)
{
    const struct layer *layer = arguments;

    (void)stream;
    memset(layer->to, layer->from[0], PAGES(LAYER_PAGES));
    return CAPU_OK;
}

struct net {
    struct rig rig;
    unsigned char *statistics[LAYERS];
    unsigned char *activations[LAYERS + 1];
    unsigned char *gradient;
    unsigned replays;
    bool has_replay;
    unsigned char *looked; /* filled with the first statistic as it was before this iteration */
    size_t statistic_bytes;
};

static void net_init(struct net *net, bool is_strict)
{
    struct rig_options options = {
        .mode = CAPU_MODE_GUIDED,
        .wait_for_plan = true,
        .planner = "recompute",
        .strict = is_strict,
        .budget_pages = BUDGET_PAGES + (net->statistic_bytes > RIG_PAGE ? LAYERS * 2 : 0),
    };

    rig_init(&net->rig, &options);
    for (size_t i = 0; i <= LAYERS; i++) {
        net->activations[i] = step_tensor(&net->rig, "activation", CAPU_ACTIVATION, LAYER_PAGES);
    }
    net->gradient = step_tensor(&net->rig, "gradient", CAPU_GRADIENT, LAYER_PAGES);
    net->looked = step_tensor(&net->rig, "looked", CAPU_ACTIVATION, LAYER_PAGES);
    for (size_t i = 0; i < LAYERS; i++) {
        net->statistics[i] = step_malloc(&net->rig, net->statistic_bytes);
        RIG_OK(&net->rig, CAPU_DESCRIBE(net->rig.context, net->statistics[i], .name = "statistic",
                                        .kind = CAPU_PARAMETER));
        step_set(&net->rig, net->statistics[i], net->statistic_bytes, 0);
    }
}

static void run_layer(struct net *net, size_t i)
{
    struct layer layer = {net->activations[i + 1], net->activations[i], net->statistics[i],
                          &net->replays};
    capu_operand operands[] = {capu_reads(layer.from), capu_writes(layer.to),
                               capu_updates(layer.statistic)};
    capu_op op = {.size = sizeof(op),
                  .name = "normalise",
                  .run = first,
                  .replay = net->has_replay ? again : NULL,
                  .arguments = &layer,
                  .argument_bytes = sizeof(layer),
                  .operands = operands,
                  .operand_count = 3};

    RIG_OK(&net->rig, capu_run(net->rig.context, &op));
}

/* Reads a statistic before it is updated. A replay after the update would give another result, and
   nothing in the op itself says so. */
static void run_look(struct net *net)
{
    struct layer layer = {.to = net->looked, .from = net->statistics[0]};

    RIG_OK(&net->rig,
           CAPU_RUN(net->rig.context, look, &layer, capu_reads(layer.from), capu_writes(layer.to)));
}

/* Runs one iteration and returns its report. */
static capu_report train(struct net *net, unsigned char step)
{
    capu_report report = CAPU_REPORT_INIT;
    struct rig *rig = &net->rig;

    RIG_OK(rig, capu_iteration_begin(rig->context, "train"));
    step_set(rig, net->activations[0], PAGES(LAYER_PAGES), step);
    run_look(net);
    for (size_t i = 0; i < LAYERS; i++) {
        run_layer(net, i);
    }
    for (size_t i = LAYERS + 1; i-- > 0;) {
        step_next(rig, "backward", net->gradient, net->activations[i], PAGES(LAYER_PAGES));
    }
    step_expect(rig, net->gradient, PAGES(LAYER_PAGES), (unsigned char)(step + 1));
    step_next(rig, "backward", net->gradient, net->looked, PAGES(LAYER_PAGES));
    step_expect(rig, net->gradient, PAGES(LAYER_PAGES), step);
    RIG_OK(rig, capu_iteration_end(rig->context));
    RIG_OK(rig, capu_synchronize(rig->context));
    RIG_OK(rig, capu_report_get(rig->context, &report));
    rig_check(rig);
    return report;
}

/* Runs all iterations. Returns the number of replays of the last one, counted by the program, which
   must be consistent with the report. */
static uint64_t train_all(struct net *net)
{
    capu_report report = CAPU_REPORT_INIT;
    unsigned before = 0;
    unsigned again = 0; /* strict mode runs such ops twice where it can watch them */

    if (net->rig.context->settings.config.strict != 0 && net->has_replay &&
        net->rig.context->lanes.device->capabilities.can_guard) {
        again = LAYERS;
    }
    for (unsigned char i = 1; i <= ITERATIONS; i++) {
        before = net->replays;
        report = train(net, i);
        ck_assert_uint_eq(report.mode, i == 1 ? CAPU_MODE_PASSIVE : CAPU_MODE_GUIDED);
    }
    for (size_t i = 0; i < LAYERS; i++) {
        step_expect(&net->rig, net->statistics[i], 1, ITERATIONS);
    }
    ck_assert_uint_le(net->replays - before, report.replay_count + again);
    return net->replays - before - again;
}

START_TEST(small_updates_are_made_once)
{
    struct net net = {.has_replay = true, .statistic_bytes = 16};

    net_init(&net, _i == 1);
    ck_assert_uint_gt(train_all(&net), 0);
    rig_finish(&net.rig);
}
END_TEST

START_TEST(no_replays_without_a_function_for_them)
{
    struct net net = {.statistic_bytes = 16};

    net_init(&net, false);
    ck_assert_uint_eq(train_all(&net), 0);
    rig_finish(&net.rig);
}
END_TEST

START_TEST(no_replays_if_large_tensors_are_updated)
{
    struct net net = {.has_replay = true, .statistic_bytes = PAGES(2)};

    net_init(&net, false);
    ck_assert_uint_eq(train_all(&net), 0);
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replay");
    TCase *cases = tcase_create("replay");

    tcase_add_loop_test(cases, small_updates_are_made_once, 0, 2);
    tcase_add_test(cases, no_replays_without_a_function_for_them);
    tcase_add_test(cases, no_replays_if_large_tensors_are_updated);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
