/*
 * Argument blocks that point to host memory. What they point to is not copied: an op, and each
 * replay of it, sees what is there when it runs.
 */
#include "tests/api/steps.h"

enum { LAYERS = 6, LAYER_PAGES = 4, BUDGET_PAGES = 22, ITERATIONS = 5 };

/* Host memory of the program. */
struct setting {
    unsigned char step; /* what a layer adds */
    unsigned runs;      /* counted on the stream's thread, read after capu_synchronize */
};

struct layer {
    unsigned char *to;
    const unsigned char *from;
    struct setting *setting;
};

static capu_status add(capu_stream stream, const void *arguments)
{
    const struct layer *layer = arguments;

    (void)stream;
    for (size_t i = 0; i < PAGES(LAYER_PAGES); i++) {
        layer->to[i] = (unsigned char)(layer->from[i] + layer->setting->step);
    }
    layer->setting->runs++;
    return CAPU_OK;
}

struct net {
    struct rig rig;
    struct setting setting;
    unsigned char *activations[LAYERS + 1];
    unsigned char *gradient;
    uint32_t flags;
    unsigned wrong; /* activations that were not what their layer wrote */
};

static void net_init(struct net *net, bool is_strict)
{
    struct rig_options options = {
        .mode = CAPU_MODE_GUIDED,
        .wait_for_plan = true,
        .planner = "recompute",
        .strict = is_strict,
        .budget_pages = BUDGET_PAGES,
    };

    rig_init(&net->rig, &options);
    for (size_t i = 0; i <= LAYERS; i++) {
        net->activations[i] = step_tensor(&net->rig, "activation", CAPU_ACTIVATION, LAYER_PAGES);
    }
    net->gradient = step_tensor(&net->rig, "gradient", CAPU_GRADIENT, LAYER_PAGES);
}

static void run_layer(struct net *net, size_t i)
{
    struct layer layer = {net->activations[i + 1], net->activations[i], &net->setting};
    capu_operand operands[] = {capu_reads(layer.from), capu_writes(layer.to)};
    capu_op op = {.size = sizeof(op),
                  .name = "add",
                  .run = add,
                  .arguments = &layer,
                  .argument_bytes = sizeof(layer),
                  .operands = operands,
                  .operand_count = 2,
                  .flags = net->flags};

    RIG_OK(&net->rig, capu_run(net->rig.context, &op));
}

/* One iteration whose layers add `step`; between forward and backward the setting changes to
   `later`, once the layers have run. Counts what the backward pass finds wrong. */
static void train(struct net *net, unsigned char step, unsigned char later)
{
    struct rig *rig = &net->rig;
    unsigned char found;

    net->setting.step = step;
    RIG_OK(rig, capu_iteration_begin(rig->context, NULL));
    step_set(rig, net->activations[0], PAGES(LAYER_PAGES), 1);
    for (size_t i = 0; i < LAYERS; i++) {
        run_layer(net, i);
    }
    RIG_OK(rig, capu_synchronize(rig->context));
    net->setting.step = later;
    for (size_t i = LAYERS + 1; i-- > 0;) {
        step_next(rig, "backward", net->gradient, net->activations[i], PAGES(LAYER_PAGES));
        RIG_OK(rig, capu_download(rig->context, &found, net->gradient, 1, 0));
        net->wrong += found != (unsigned char)(2 + step * i);
    }
    RIG_OK(rig, capu_iteration_end(rig->context));
    RIG_OK(rig, capu_synchronize(rig->context));
    rig_check(rig);
}

/* Runs all iterations, each with another step, and returns how often layers were replayed. */
static unsigned train_all(struct net *net, bool changes_within)
{
    for (unsigned char i = 1; i <= ITERATIONS; i++) {
        train(net, i, changes_within ? 100 : i);
    }
    rig_finish(&net->rig);
    return net->setting.runs - ITERATIONS * LAYERS;
}

START_TEST(they_may_change_once_the_work_of_an_iteration_is_done)
{
    struct net net = {.flags = 0};

    net_init(&net, _i == 1);
    ck_assert_uint_gt(train_all(&net, false), 0);
    ck_assert_uint_eq(net.wrong, 0);
}
END_TEST

START_TEST(those_of_ops_that_are_not_replayable_may_change_once_the_op_has_run)
{
    struct net net = {.flags = CAPU_OP_NOT_REPLAYABLE};

    net_init(&net, _i == 1);
    ck_assert_uint_eq(train_all(&net, true), 0);
    ck_assert_uint_eq(net.wrong, 0);
}
END_TEST

/* What the documents warn of. Where the host computes, strict mode finds it: repeats_test.c. */
START_TEST(a_replay_sees_what_they_are_by_then)
{
    struct net net = {.flags = 0};

    net_init(&net, false);
    ck_assert_uint_gt(train_all(&net, true), 0);
    ck_assert_uint_gt(net.wrong, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arguments");
    TCase *cases = tcase_create("host memory");

    tcase_add_loop_test(cases, they_may_change_once_the_work_of_an_iteration_is_done, 0, 2);
    tcase_add_loop_test(cases, those_of_ops_that_are_not_replayable_may_change_once_the_op_has_run,
                        0, 2);
    tcase_add_test(cases, a_replay_sees_what_they_are_by_then);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
