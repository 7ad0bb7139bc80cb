/*
 * After CAPU_CONTENTS_LOST a program makes the contents again and goes on in the same iteration:
 * docs/guided.md, "Going on after a loss".
 */
#include "tests/api/net.h"

enum { BYTES = NET_LAYER_PAGES * 4096, TIGHT = 4 * NET_LAYER_PAGES - 2, ROUNDS = 8, LOSS = 4 };

/* Layers that are made by an update cannot be recomputed. Each is the one before plus 2. */
static void forward(struct net *net)
{
    unsigned char batch[BYTES];

    memset(batch, net->step, sizeof(batch));
    RIG_OK(&net->rig, capu_upload(net->rig.context, net->activations[0], batch, sizeof(batch), 0));
    for (size_t i = 0; i < NET_LAYERS; i++) {
        step_next(&net->rig, "forward", net->activations[i + 1], net->activations[i], BYTES);
        step_bump(&net->rig, "in place", net->activations[i + 1], BYTES);
    }
}

/* Backward does not read the first layers, so that plans discard them. */
static void backward(struct net *net)
{
    for (size_t i = NET_LAYERS; i >= 3; i--) {
        step_next(&net->rig, "backward", net->gradients, net->activations[i], BYTES);
    }
}

/* An op that only one iteration has: it reads what its plan has discarded. */
static capu_status extra(struct net *net)
{
    return step_try_next(&net->rig, "extra", net->gradients, net->activations[1], BYTES);
}

START_TEST(an_iteration_goes_on_after_a_loss)
{
    static const char *const planners[] = {"recompute", "hybrid"};
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){
                       .planner = planners[_i / 2], .budget_pages = TIGHT, .strict = _i % 2 == 1});
    for (size_t round = 0; round < ROUNDS; round++) {
        unsigned char gradient = (unsigned char)(net.step + 1 + 2 * 3 + 1);

        net_begin(&net, "train");
        forward(&net);
        backward(&net);
        if (round == LOSS) {
            STEP_FAILS(&net.rig, extra(&net), CAPU_CONTENTS_LOST, "activation");
            rig_check(&net.rig);
            forward(&net);
            backward(&net);
            RIG_OK(&net.rig, extra(&net));
            gradient = (unsigned char)(net.step + 2 + 1);
        }
        step_expect(&net.rig, net.gradients, BYTES, gradient);
        step_bump(&net.rig, "update", net.weights, BYTES);
        report = net_end(&net);
        ck_assert(round != LOSS || report.diverged == 1);
    }
    net_expect_guided(&net, &report, "train");
    step_expect(&net.rig, net.weights, BYTES, 1 + ROUNDS);
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api resuming");
    TCase *cases = tcase_create("resuming");

    tcase_add_loop_test(cases, an_iteration_goes_on_after_a_loss, 0, 4);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
