/*
 * Mode guided over pieces of a blob that share pages: what a piece has in shared pages is always
 * resident, so that no plan keeps it from being overwritten.
 */
#include "tests/api/net.h"

/* A net whose activations are pieces of one blob, none of which begins where a page does. */
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
        RIG_OK(&net->rig,
               CAPU_DESCRIBE(net->rig.context, piece, .name = "piece", .kind = CAPU_ACTIVATION));
        net->activations[i] = piece;
    }
}

/* The iteration leaves its plan, and sources of dropped tensors are zeroed. */
START_TEST(sources_are_not_zeroed_before_their_replays)
{
    struct net net;
    unsigned char byte;
    uint64_t replays = 0;

    pieces_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    net_train(&net, "train");
    for (size_t round = 0; round < 3; round++) {
        capu_report report = net_train(&net, "train");

        net_expect_guided(&net, &report, "train");
        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
        RIG_OK(&net.rig, capu_download(net.rig.context, &byte, net.weights, 1)); /* not planned */
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

int main(void)
{
    Suite *suite = suite_create("api pieces");
    TCase *cases = tcase_create("pieces");

    tcase_add_loop_test(cases, sources_are_not_zeroed_before_their_replays, 0, 2);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
