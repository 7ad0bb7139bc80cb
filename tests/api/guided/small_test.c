/*
 * Guided mode and always-resident tensors. A plan and its replays identify small tensors, and
 * pieces without a page of their own, by their addresses.
 */
#include "tests/api/net.h"

enum { SMALL_BYTES = 100 };

struct tally {
    unsigned char *to;
    const unsigned char *from;
    unsigned char *counts;
    size_t bytes; /* of the counts */
};

static capu_status tally(capu_stream stream, const void *arguments)
{
    const struct tally *it = arguments;

    (void)stream;
    for (size_t i = 0; i < PAGES(NET_LAYER_PAGES); i++) {
        it->to[i] = (unsigned char)(it->from[i] + 1);
    }
    for (size_t i = 0; i < it->bytes; i++) {
        it->counts[i]++;
    }
    return CAPU_OK;
}

/* One iteration of a net whose first layer also counts into small memory, which is cleared first.
 */
static struct report count(struct net *net, unsigned char *counts, size_t bytes)
{
    struct tally it = {net->activations[1], net->activations[0], counts, bytes};

    net_begin(net, "train");
    step_set(&net->rig, net->activations[0], PAGES(NET_LAYER_PAGES), net->step);
    RIG_OK(&net->rig, CAPU_RUN(net->rig.context, tally, &it, capu_reads(it.from),
                               capu_writes(it.to), capu_writes_rest_zero(counts)));
    for (size_t i = 1; i < NET_LAYERS; i++) {
        step_next(&net->rig, "forward", net->activations[i + 1], net->activations[i],
                  PAGES(NET_LAYER_PAGES));
    }
    net_backward(net, NET_LAYERS);
    step_expect(&net->rig, net->gradients, PAGES(NET_LAYER_PAGES), (unsigned char)(net->step + 1));
    step_expect(&net->rig, counts, bytes, 1);
    return net_end(net);
}

/* Three iterations, the last of which follows a plan that replays the counting op. */
static void count_guided(struct net *net, unsigned char *counts, size_t bytes)
{
    struct report report = {0};

    for (size_t round = 0; round < 3; round++) {
        report = count(net, counts, bytes);
    }
    net_expect_guided(net, &report, "train");
    ck_assert_uint_gt(report.replay_count, 0);
}

/* Between iterations a small tensor is replaced by a larger one at the same address. That needs a
   new plan, whose replays clear the whole tensor. */
START_TEST(a_larger_tensor_at_the_address_needs_another_plan)
{
    unsigned char *counts;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    counts = step_malloc(&net.rig, SMALL_BYTES);
    count_guided(&net, counts, SMALL_BYTES);
    RIG_OK(&net.rig, capu_free(net.rig.context, counts));
    ck_assert_ptr_eq(step_malloc(&net.rig, 2 * SMALL_BYTES), counts);
    count_guided(&net, counts, 2 * SMALL_BYTES);
    rig_finish(&net.rig);
}
END_TEST

/* Between iterations a small tensor is split. Replays must clear only the piece at its address, not
   the one after it. */
START_TEST(a_piece_at_the_address_needs_another_plan)
{
    unsigned char *counts;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    counts = step_malloc(&net.rig, 2 * SMALL_BYTES);
    count_guided(&net, counts, 2 * SMALL_BYTES);
    RIG_OK(&net.rig, capu_split(net.rig.context, counts + SMALL_BYTES, SMALL_BYTES));
    step_set(&net.rig, counts + SMALL_BYTES, SMALL_BYTES, 77);
    count_guided(&net, counts, SMALL_BYTES);
    step_expect(&net.rig, counts + SMALL_BYTES, SMALL_BYTES, 77);
    rig_finish(&net.rig);
}
END_TEST

/* Between iterations a piece without a page of its own is replaced by a tensor that has one, which
   must be brought in like any other. */
START_TEST(a_managed_tensor_at_the_address_needs_another_plan)
{
    unsigned char *counts;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    counts = step_malloc(&net.rig, PAGES(1));
    RIG_OK(&net.rig, capu_split(net.rig.context, counts, SMALL_BYTES));
    count_guided(&net, counts, SMALL_BYTES);
    RIG_OK(&net.rig, capu_free(net.rig.context, counts));
    RIG_OK(&net.rig, capu_synchronize(net.rig.context)); /* its range is free now */
    ck_assert_ptr_eq(step_malloc(&net.rig, PAGES(1)), counts);
    count_guided(&net, counts, PAGES(1));
    rig_finish(&net.rig);
}
END_TEST

struct layer {
    unsigned char *to;
    const unsigned char *from;
    unsigned char *statistic;
};

static capu_status layer_again(capu_stream stream, const void *arguments)
{
    const struct layer *layer = arguments;

    (void)stream;
    for (size_t i = 0; i < PAGES(NET_LAYER_PAGES); i++) {
        layer->to[i] = (unsigned char)(layer->from[i] + 1);
    }
    return CAPU_OK;
}

static capu_status layer_first(capu_stream stream, const void *arguments)
{
    const struct layer *layer = arguments;

    layer->statistic[0]++;
    return layer_again(stream, arguments);
}

/* All layers update one small statistic, and their function for replays does not touch it. After
   all of them have run the iteration leaves its plan. Their outputs are still recomputed, without
   updating the statistic again. */
START_TEST(replays_skip_updates_after_the_plan_was_left)
{
    unsigned char *statistic;
    unsigned char byte;
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    statistic = step_malloc(&net.rig, SMALL_BYTES);
    step_set(&net.rig, statistic, SMALL_BYTES, 0);
    for (size_t round = 0; round < 4; round++) {
        net_begin(&net, "train");
        step_set(&net.rig, net.activations[0], PAGES(NET_LAYER_PAGES), net.step);
        for (size_t i = 0; i < NET_LAYERS; i++) {
            struct layer it = {net.activations[i + 1], net.activations[i], statistic};
            capu_operand operands[] = {capu_reads(it.from), capu_writes(it.to),
                                       capu_updates(statistic)};
            capu_op op = {.size = sizeof(op),
                          .name = "layer",
                          .run = layer_first,
                          .replay = layer_again,
                          .arguments = &it,
                          .argument_bytes = sizeof(it),
                          .operands = operands,
                          .operand_count = 3};

            RIG_OK(&net.rig, capu_run(net.rig.context, &op));
        }
        if (round < 3) {
            net_backward(&net, NET_LAYERS);
            net_end(&net);
        }
    }
    RIG_OK(&net.rig, capu_download(net.rig.context, &byte, net.weights, 1, 0)); /* leaves it */
    for (size_t i = 0; i < NET_LAYERS; i++) {
        step_expect(&net.rig, net.activations[i], PAGES(NET_LAYER_PAGES),
                    (unsigned char)(net.step + i));
    }
    step_expect(&net.rig, statistic, 1, 4 * NET_LAYERS);
    report = net_end(&net);
    ck_assert_uint_eq(report.diverged, 1);
    ck_assert_uint_gt(report.replay_count, 0);
    rig_finish(&net.rig);
}
END_TEST

/* One iteration that allocates a tensor and, late, splits it into pieces without pages of their
   own, one of which is read. With `early` the iteration leaves its plan and overwrites the tensor
   before what was computed from it has been recomputed. */
static struct report cut(struct net *net, bool early, bool uploads)
{
    unsigned char fresh[RIG_PAGE];
    unsigned char *whole;
    unsigned char byte;

    net_begin(net, "train");
    whole = step_tensor(&net->rig, "whole", CAPU_ACTIVATION, 1);
    if (uploads) {
        memset(fresh, net->step, sizeof(fresh));
        RIG_OK(&net->rig, capu_upload(net->rig.context, whole, fresh, sizeof(fresh), 0));
    } else {
        step_set(&net->rig, whole, PAGES(1), net->step);
    }
    for (size_t i = 0; i < NET_LAYERS; i++) {
        struct tally it = {net->activations[i + 1], net->activations[i], NULL, 0};

        if (i == 0) {
            step_set(&net->rig, net->activations[0], PAGES(NET_LAYER_PAGES), net->step);
        }
        RIG_OK(&net->rig, CAPU_RUN(net->rig.context, tally, &it, capu_reads(it.from),
                                   capu_reads(whole), capu_writes(it.to)));
    }
    if (early) {
        RIG_OK(&net->rig, capu_download(net->rig.context, &byte, net->weights, 1, 0));
        step_set(&net->rig, whole, PAGES(1), 99);
    }
    for (size_t i = NET_LAYERS; i-- > 0;) {
        step_next(&net->rig, "backward", net->gradients, net->activations[i],
                  PAGES(NET_LAYER_PAGES));
    }
    step_expect(&net->rig, net->gradients, PAGES(NET_LAYER_PAGES), (unsigned char)(net->step + 1));
    RIG_OK(&net->rig, capu_split(net->rig.context, whole, PAGES(1) / 4));
    step_expect(&net->rig, whole, PAGES(1) / 4, early ? 99 : net->step);
    RIG_OK(&net->rig, capu_free(net->rig.context, whole));
    return net_end(net);
}

/* The contents of a tensor that is split live on in the pieces. If a plan has discarded them, the
   iteration leaves the plan and the tensor is recomputed. */
START_TEST(tensors_that_are_split_later_are_not_dead)
{
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i % 2 == 1});
    for (size_t round = 0; round < 4; round++) {
        report = cut(&net, false, _i / 2 == 1);
    }
    ck_assert_uint_eq(report.diverged, 1); /* by the split */
    ck_assert_uint_gt(report.replay_count, 0);
    rig_finish(&net.rig);
}
END_TEST

/* A plan's entry for a later piece must not be mistaken for the whole tensor, which is still at
   that address. What was computed from the whole is recomputed before it is overwritten. */
START_TEST(later_pieces_are_not_mistaken_for_the_whole)
{
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    for (size_t round = 0; round < 5; round++) {
        report = cut(&net, round == 4, false);
    }
    ck_assert_uint_eq(report.diverged, 1);
    ck_assert_uint_gt(report.replay_count, 0);
    rig_finish(&net.rig);
}
END_TEST

struct marked {
    unsigned char *to;
    const unsigned char *from;
    unsigned char *note;
};

static capu_status mark_again(capu_stream stream, const void *arguments)
{
    const struct marked *it = arguments;

    (void)stream;
    for (size_t i = 0; i < PAGES(NET_LAYER_PAGES); i++) {
        it->to[i] = (unsigned char)(it->from[i] + 1);
    }
    return CAPU_OK;
}

static capu_status mark_first(capu_stream stream, const void *arguments)
{
    const struct marked *it = arguments;

    it->note[0]++;
    return mark_again(stream, arguments);
}

/* Clearing and writing part of a small tensor is an update of the tensor. The function for replays
   does not write it, so a replay must not clear it either. */
START_TEST(replays_do_not_clear_parts_that_they_do_not_write)
{
    unsigned char *notes;
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    notes = step_malloc(&net.rig, SMALL_BYTES);
    step_set(&net.rig, notes, SMALL_BYTES, 7);
    for (size_t round = 0; round < 4; round++) {
        net_begin(&net, "train");
        step_set(&net.rig, net.activations[0], PAGES(NET_LAYER_PAGES), net.step);
        for (size_t i = 0; i < NET_LAYERS; i++) {
            struct marked it = {net.activations[i + 1], net.activations[i], notes + i};
            capu_operand operands[] = {capu_reads(it.from), capu_writes(it.to),
                                       capu_operand_of(it.note, 1, CAPU_WRITE_REST_ZERO)};
            capu_op op = {.size = sizeof(op),
                          .name = "mark",
                          .run = mark_first,
                          .replay = mark_again,
                          .arguments = &it,
                          .argument_bytes = sizeof(it),
                          .operands = operands,
                          .operand_count = 3};

            RIG_OK(&net.rig, capu_run(net.rig.context, &op));
        }
        net_backward(&net, NET_LAYERS);
        step_expect(&net.rig, net.gradients, PAGES(NET_LAYER_PAGES), (unsigned char)(net.step + 1));
        step_expect(&net.rig, notes, NET_LAYERS, 1);
        step_expect(&net.rig, notes + NET_LAYERS, SMALL_BYTES - NET_LAYERS, 7);
        report = net_end(&net);
    }
    net_expect_guided(&net, &report, "train");
    ck_assert_uint_gt(report.replay_count, 0);
    rig_finish(&net.rig);
}
END_TEST

enum { SET_UP = 48 };

/* A quarter of a page each, all freed again. */
static void set_up(struct rig *rig)
{
    unsigned char *list[SET_UP];

    for (size_t i = 0; i < SET_UP; i++) {
        list[i] = step_malloc(rig, PAGES(1) / 4);
        step_set(rig, list[i], PAGES(1) / 4, 1);
    }
    for (size_t i = 0; i < SET_UP; i++) {
        RIG_OK(rig, capu_free(rig->context, list[i]));
    }
}

/* Pages that only the set-up needed are given back before anything is evicted: a budget of the live
   peak evicts nothing. */
START_TEST(pages_of_the_set_up_serve_tensors_in_passive_mode)
{
    struct report report = {0};
    unsigned char *tensors[2];
    struct rig rig;

    rig_init(&rig, &(struct rig_options){.budget_pages = 24});
    tensors[0] = step_tensor(&rig, "first", CAPU_PARAMETER, 12);
    tensors[1] = step_tensor(&rig, "second", CAPU_PARAMETER, 12);
    step_set(&rig, tensors[0], PAGES(12), 1);
    set_up(&rig);
    step_set(&rig, tensors[1], PAGES(12), 1);
    for (size_t round = 0; round < 3; round++) {
        RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
        step_bump(&rig, "touch", tensors[0], PAGES(12));
        step_bump(&rig, "touch", tensors[1], PAGES(12));
        RIG_OK(&rig, capu_iteration_end(rig.context));
    }
    RIG_OK(&rig, capu_synchronize(rig.context));
    report = rig_report(&rig);
    ck_assert_uint_eq(report.live_peak_bytes, PAGES(24));
    ck_assert_uint_eq(report.evict_count, 0);
    rig_finish(&rig);
}
END_TEST

/* One in four small tensors is kept, and with it its page. The error says what keeps the memory. */
START_TEST(pages_that_few_small_tensors_keep_are_explained)
{
    enum { COUNT = 200, KEPT = 4 };
    unsigned char *list[COUNT];
    unsigned char *large;
    struct rig rig;

    rig_init(&rig, &(struct rig_options){.budget_pages = 64});
    for (size_t i = 0; i < COUNT; i++) {
        list[i] = step_malloc(&rig, PAGES(1) / KEPT);
        step_set(&rig, list[i], PAGES(1) / KEPT, 1);
    }
    for (size_t i = 0; i < COUNT; i++) {
        if (i % KEPT != 0) {
            RIG_OK(&rig, capu_free(rig.context, list[i]));
        }
    }
    large = step_malloc(&rig, PAGES(20));
    STEP_FAILS(
        &rig, step_try_set(&rig, large, PAGES(20), 1), CAPU_OVER_BUDGET,
        "204800 bytes always resident, of which small tensors keep 204800 bytes as slabs and "
        "take 51200 bytes");
    for (size_t i = 0; i < COUNT; i += KEPT) {
        RIG_OK(&rig, capu_free(rig.context, list[i]));
    }
    step_set(&rig, large, PAGES(20), 1);
    rig_finish(&rig);
}
END_TEST

/* A plan has them, too. */
START_TEST(pages_of_the_set_up_serve_plans)
{
    struct report report = {0};
    struct net net;

    net_init(&net, (struct rig_options){.budget_pages = (NET_LAYERS + 3) * NET_LAYER_PAGES});
    set_up(&net.rig);
    for (size_t round = 0; round < 4; round++) {
        report = net_train(&net, "train");
    }
    net_expect_guided(&net, &report, "train");
    ck_assert_uint_eq(report.evict_count, 0);
    rig_finish(&net.rig);
}
END_TEST

/* A small tensor that lives between iterations has a page that no plan takes; with _i, it does not
   live before the first iteration. */
START_TEST(plans_leave_a_page_for_what_is_small_between_iterations)
{
    struct report report = {0};
    struct net net;

    net_init(&net, (struct rig_options){.budget_pages = 24});
    for (size_t round = 0; round < 8; round++) {
        if (round > 0 || _i == 0) {
            unsigned char *small = step_malloc(&net.rig, SMALL_BYTES);

            step_set(&net.rig, small, SMALL_BYTES, 1);
            RIG_OK(&net.rig, capu_free(net.rig.context, small));
        }
        report = net_train(&net, "train");
        if (round >= 5) {
            net_expect_guided(&net, &report, "train");
            ck_assert_uint_eq(report.install_ns, 0);
        }
    }
    ck_assert_uint_gt(report.evict_count, 0);
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api small");
    TCase *cases = tcase_create("small");

    tcase_add_loop_test(cases, a_larger_tensor_at_the_address_needs_another_plan, 0, 2);
    tcase_add_loop_test(cases, a_piece_at_the_address_needs_another_plan, 0, 2);
    tcase_add_loop_test(cases, a_managed_tensor_at_the_address_needs_another_plan, 0, 2);
    tcase_add_loop_test(cases, replays_skip_updates_after_the_plan_was_left, 0, 2);
    tcase_add_loop_test(cases, tensors_that_are_split_later_are_not_dead, 0, 4);
    tcase_add_loop_test(cases, later_pieces_are_not_mistaken_for_the_whole, 0, 2);
    tcase_add_loop_test(cases, replays_do_not_clear_parts_that_they_do_not_write, 0, 2);
    tcase_add_test(cases, pages_of_the_set_up_serve_tensors_in_passive_mode);
    tcase_add_test(cases, pages_of_the_set_up_serve_plans);
    tcase_add_test(cases, pages_that_few_small_tensors_keep_are_explained);
    tcase_add_loop_test(cases, plans_leave_a_page_for_what_is_small_between_iterations, 0, 2);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
