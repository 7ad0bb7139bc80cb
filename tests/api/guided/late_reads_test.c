/*
 * Reads that a plan did not expect. If it has discarded what is read, the error says so and what
 * helps; then plans for the label keep more. What no op of the planned iteration reads is kept in
 * any case. tests/idioms has the programs that need this.
 */
#include "tests/api/net.h"

enum { SAMPLE_VALUE = 5 };

struct sampled {
    struct net net;
    unsigned char *sample;
};

static void sampled_init(struct sampled *it, struct rig_options options)
{
    net_init(&it->net, options);
    it->sample = step_tensor(&it->net.rig, "sample", CAPU_ACTIVATION, NET_LAYER_PAGES);
}

/* A sample that cannot be recomputed is made first, and read if `is_used`. Then everything else
   needs its pages. */
static void sampled_forward(struct sampled *it, bool is_used)
{
    struct rig *rig = &it->net.rig;
    void *list[] = {it->sample};

    net_begin(&it->net, "train");
    step_set(rig, it->sample, PAGES(NET_LAYER_PAGES), SAMPLE_VALUE - 1);
    step_bump(rig, "bump", it->sample, PAGES(NET_LAYER_PAGES));
    if (is_used) {
        RIG_OK(rig, step_touch(rig, "use", CAPU_READ, 1, list));
    }
    net_forward(&it->net, NET_LAYERS);
}

static struct report sampled_end(struct sampled *it)
{
    net_backward(&it->net, NET_LAYERS);
    return net_end(&it->net);
}

/* The error says what is read, by which op, under which plan, and what helps. */
START_TEST(a_loss_is_reported_once_per_label)
{
    static const char *const words[] = {"capu_download",     "operand 1 of 1", "sample",
                                        "label 'train'",     "persistent",     "keep_contents",
                                        "label of their own"};
    struct sampled it;
    unsigned char byte;
    struct report report = {0};

    sampled_init(&it, (struct rig_options){.strict = _i == 1});
    for (size_t i = 0; i < 3; i++) {
        sampled_forward(&it, true);
        report = sampled_end(&it);
    }
    net_expect_guided(&it.net, &report, "train");
    sampled_forward(&it, true);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        STEP_FAILS(&it.net.rig, capu_download(it.net.rig.context, &byte, it.sample, 1, 0),
                   CAPU_CONTENTS_LOST, words[i]);
    }
    sampled_end(&it);
    for (size_t i = 0; i < 8; i++) {
        sampled_forward(&it, true);
        if (i % 2 == 1) {
            step_expect(&it.net.rig, it.sample, PAGES(NET_LAYER_PAGES), SAMPLE_VALUE);
        }
        report = sampled_end(&it);
        if (i % 2 == 0 && i > 0) {
            net_expect_guided(&it.net, &report, "train");
        }
    }
    rig_finish(&it.net.rig);
}
END_TEST

/* With keep_contents, plans copy the sample out from the start. So they do, without it, for a
   tensor that nothing reads in the iteration that they were made from. */
START_TEST(contents_are_kept_if_wanted_or_unread)
{
    bool is_used = _i == 0;
    struct sampled it;
    struct report report = {0};

    sampled_init(&it, (struct rig_options){.keep_contents = _i == 0});
    for (size_t i = 0; i < 3; i++) {
        sampled_forward(&it, is_used);
        report = sampled_end(&it);
    }
    net_expect_guided(&it.net, &report, "train");
    sampled_forward(&it, is_used);
    step_expect(&it.net.rig, it.sample, PAGES(NET_LAYER_PAGES), SAMPLE_VALUE);
    report = sampled_end(&it);
    ck_assert_uint_eq(report.diverged, 1);
    rig_finish(&it.net.rig);
}
END_TEST

/* A tensor that is freed in every iteration but the last one, which follows its plan to the end. By
   then other tensors have its pages, but the op that made it can run again. The read that follows
   finds its contents. */
START_TEST(a_tensor_that_is_not_freed_outlives_its_iteration)
{
    unsigned char *batch = NULL;
    struct net net;
    struct report report = {0};

    net_init(&net, (struct rig_options){.keep_contents = _i % 2 == 1, .strict = _i / 2 == 1});
    for (size_t i = 0; i < 5; i++) {
        bool is_last = i == 4;

        net_begin(&net, "train");
        batch = step_malloc(&net.rig, PAGES(NET_LAYER_PAGES));
        step_set(&net.rig, batch, PAGES(NET_LAYER_PAGES), SAMPLE_VALUE);
        step_next(&net.rig, "use", net.gradients, batch, PAGES(NET_LAYER_PAGES));
        if (!is_last) {
            RIG_OK(&net.rig, capu_free(net.rig.context, batch));
        }
        net_forward(&net, NET_LAYERS);
        net_backward(&net, NET_LAYERS);
        report = net_end(&net);
        ck_assert_uint_eq(report.mode == CAPU_MODE_GUIDED, i > 0);
        ck_assert_uint_eq(report.diverged, is_last);
    }
    ck_assert_uint_gt(report.replay_count, 0);
    step_expect(&net.rig, batch, PAGES(NET_LAYER_PAGES), SAMPLE_VALUE);
    rig_finish(&net.rig);
}
END_TEST

/* Tensors that live inside the iteration share pages, each after the one before was freed. An
   iteration that frees the first one late still reads it. All that is allocated fits. */
START_TEST(a_tensor_freed_later_than_planned_is_kept)
{
    struct net net;
    struct report report = {0};

    net_init(&net, (struct rig_options){.budget_pages = 200, .strict = _i == 1});
    for (size_t i = 0; i < 6; i++) {
        bool is_late = i == 4;
        unsigned char *first;
        unsigned char *second;

        net_begin(&net, "train");
        first = step_malloc(&net.rig, PAGES(4));
        step_set(&net.rig, first, PAGES(4), 5);
        step_bump(&net.rig, "bump", first, PAGES(4));
        step_next(&net.rig, "use", net.activations[0], first, PAGES(4));
        if (!is_late) {
            RIG_OK(&net.rig, capu_free(net.rig.context, first));
        }
        second = step_malloc(&net.rig, PAGES(5));
        step_set(&net.rig, second, PAGES(5), 9);
        step_next(&net.rig, "use", net.activations[1], second, PAGES(4));
        if (is_late) {
            step_expect(&net.rig, first, PAGES(4), 6);
            RIG_OK(&net.rig, capu_free(net.rig.context, first));
        }
        RIG_OK(&net.rig, capu_free(net.rig.context, second));
        report = net_end(&net);
        ck_assert_uint_eq(report.mode == CAPU_MODE_GUIDED, i > 0);
        ck_assert_uint_eq(report.diverged, is_late);
        if (i > 0 && !is_late) {
            ck_assert_uint_le(report.peak_bytes, PAGES(3 * NET_LAYER_PAGES + 5));
        }
    }
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("late reads");
    TCase *cases = tcase_create("late reads");

    tcase_add_loop_test(cases, a_loss_is_reported_once_per_label, 0, 2);
    tcase_add_loop_test(cases, a_tensor_that_is_not_freed_outlives_its_iteration, 0, 4);
    tcase_add_loop_test(cases, contents_are_kept_if_wanted_or_unread, 0, 2);
    tcase_add_loop_test(cases, a_tensor_freed_later_than_planned_is_kept, 0, 2);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
