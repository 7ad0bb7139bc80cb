/*
 * Guided mode over pieces of a blob that share pages. The shared pages are always resident, so a
 * plan cannot protect what a piece has there from being overwritten.
 */
#include "tests/api/net.h"

/* A net whose activations are pieces of one blob, none of which starts at a page boundary. */
static void pieces_init(struct net *net, struct rig_options options)
{
    unsigned char *blob;

    options.budget_pages = 32;
    net_init(net, options);
    blob = step_malloc(&net->rig, PAGES((NET_LAYERS + 1) * NET_LAYER_PAGES + 1));
    for (size_t i = 0; i <= NET_LAYERS; i++) {
        unsigned char *piece = blob + 100 + i * PAGES(NET_LAYER_PAGES);

        RIG_OK(&net->rig, capu_free(net->rig.context, net->activations[i]));
        RIG_OK(&net->rig, capu_split(net->rig.context, piece, PAGES(NET_LAYER_PAGES)));
        RIG_OK(&net->rig, CAPU_DESCRIBE(net->rig.context, piece, .name = "piece",
                                        .kind = CAPU_ACTIVATION, .hint = CAPU_HINT_RECOMPUTE));
        net->activations[i] = piece;
    }
}

/* The iteration leaves its plan, and then sources of dropped tensors are zeroed. */
START_TEST(sources_are_not_zeroed_before_their_replays)
{
    struct net net;
    unsigned char byte;
    uint64_t replays = 0;

    pieces_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    net_train(&net, "train");
    for (size_t round = 0; round < 3; round++) {
        struct report report = net_train(&net, "train");

        net_expect_guided(&net, &report, "train");
        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
        RIG_OK(&net.rig, capu_download(net.rig.context, &byte, net.weights, 1, 0)); /* leaves it */
        for (size_t i = 0; i + 1 < NET_LAYERS; i++) {
            RIG_OK(&net.rig, capu_zero(net.rig.context, net.activations[i], 0));
            step_expect(&net.rig, net.activations[i + 1], PAGES(NET_LAYER_PAGES),
                        (unsigned char)(net.step + i + 1));
        }
        replays += net_end(&net).replay_count;
    }
    ck_assert_uint_gt(replays, 0);
    rig_finish(&net.rig);
}
END_TEST

struct twins {
    const unsigned char *from;
    unsigned char *to[2];
};

static capu_status make_twins(capu_stream stream, const void *arguments)
{
    const struct twins *twins = arguments;

    (void)stream;
    memcpy(twins->to[0], twins->from, PAGES(NET_LAYER_PAGES));
    memcpy(twins->to[1], twins->from, PAGES(NET_LAYER_PAGES));
    return CAPU_OK;
}

/* One op computes two tensors. The first is zeroed before the second is recomputed; the replay
   writes both, but the first must stay zero. */
START_TEST(zeros_survive_a_replay_of_the_op_that_wrote_the_tensor)
{
    uint64_t replays = 0;
    struct net net;

    pieces_init(&net, (struct rig_options){.planner = "recompute", .strict = _i % 2 == 1});
    for (size_t round = 0; round < 4; round++) {
        unsigned char **pieces = net.activations;
        struct twins twins = {.from = pieces[0], .to = {pieces[1], pieces[2]}};
        struct report report;

        net_begin(&net, "train");
        step_set(&net.rig, pieces[0], PAGES(NET_LAYER_PAGES), net.step);
        RIG_OK(&net.rig, CAPU_RUN(net.rig.context, make_twins, &twins, capu_reads(pieces[0]),
                                  capu_writes(pieces[1]), capu_writes(pieces[2])));
        for (size_t i = 2; i < NET_LAYERS; i++) {
            step_next(&net.rig, "forward", pieces[i + 1], pieces[i], PAGES(NET_LAYER_PAGES));
        }
        RIG_OK(&net.rig, capu_zero(net.rig.context, pieces[1], 0));
        for (size_t i = NET_LAYERS; i-- > 2;) {
            step_next(&net.rig, "backward", net.gradients, pieces[i], PAGES(NET_LAYER_PAGES));
        }
        step_bump(&net.rig, "add", pieces[1], PAGES(NET_LAYER_PAGES));
        step_expect(&net.rig, pieces[1], PAGES(NET_LAYER_PAGES), 1);
        report = net_end(&net);
        replays += report.replay_count;
    }
    ck_assert_uint_gt(replays, 0);
    rig_finish(&net.rig);
}
END_TEST

/* The iteration leaves its plan and overwrites one twin, which a replay for the other twin would
   overwrite in turn, shared pages included. So the other twin is recomputed first. */
START_TEST(a_twin_is_recomputed_before_the_other_changes)
{
    uint64_t replays = 0;
    struct net net;

    pieces_init(&net, (struct rig_options){.planner = "manual", .strict = _i == 1});
    for (size_t round = 0; round < 4; round++) {
        unsigned char **pieces = net.activations;
        struct twins twins = {.from = pieces[0], .to = {pieces[1], pieces[2]}};

        net_begin(&net, "train");
        step_set(&net.rig, pieces[0], PAGES(NET_LAYER_PAGES), net.step);
        RIG_OK(&net.rig, CAPU_RUN(net.rig.context, make_twins, &twins, capu_reads(pieces[0]),
                                  capu_writes(pieces[1]), capu_writes(pieces[2])));
        for (size_t i = 2; i < NET_LAYERS; i++) {
            step_next(&net.rig, "forward", pieces[i + 1], pieces[i], PAGES(NET_LAYER_PAGES));
        }
        if (round == 3) {
            step_set(&net.rig, pieces[1], PAGES(NET_LAYER_PAGES), 200);
        }
        for (size_t i = NET_LAYERS; i-- > 2;) {
            step_next(&net.rig, "backward", net.gradients, pieces[i], PAGES(NET_LAYER_PAGES));
        }
        step_expect(&net.rig, net.gradients, PAGES(NET_LAYER_PAGES), (unsigned char)(net.step + 1));
        step_expect(&net.rig, pieces[1], PAGES(NET_LAYER_PAGES), round == 3 ? 200 : net.step);
        replays += net_end(&net).replay_count;
    }
    ck_assert_uint_gt(replays, 0);
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api pieces");
    TCase *cases = tcase_create("pieces");

    tcase_add_loop_test(cases, sources_are_not_zeroed_before_their_replays, 0, 2);
    tcase_add_loop_test(cases, zeros_survive_a_replay_of_the_op_that_wrote_the_tensor, 0, 2);
    tcase_add_loop_test(cases, a_twin_is_recomputed_before_the_other_changes, 0, 2);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
