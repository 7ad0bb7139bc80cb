/*
 * Guided mode: plans become active, steady iterations make no calls but launches, copies and
 * events, and programs that leave their plan still compute the right result.
 */
#include "tests/api/net.h"

#include "runtime/plan/planning.h"

START_TEST(the_second_iteration_is_guided)
{
    struct net net;
    struct report report;

    net_init(&net, (struct rig_options){.strict = _i == 1});
    report = net_train(&net, "train");
    ck_assert_uint_eq(report.mode, CAPU_MODE_PASSIVE);
    ck_assert_uint_eq(report.predicted_ns, 0);
    for (size_t i = 0; i < 5; i++) {
        report = net_train(&net, "train");
        net_expect_guided(&net, &report, "train");
        ck_assert_uint_gt(report.predicted_ns, 0);
        ck_assert_uint_gt(report.prefetch_count + report.replay_count, 0);
    }
    step_expect(&net.rig, net.weights, PAGES(NET_LAYER_PAGES), 7);
    rig_finish(&net.rig);
}
END_TEST

enum { STEADY = 5 };

/* A steady iteration promises to make only launches, copies, event records and event waits, and one
   wait of the host, for the iteration before the last. Tested on sim, where times are constant, so
   that no new plan is made during the test. */
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
    struct report report = {0};
    struct net net;
    uint64_t marks;

    net_init(&net, (struct rig_options){.planner = planners[_i], .is_sim = true});
    for (size_t i = 0; i < NET_WARM + STEADY; i++) {
        if (i == NET_WARM) {
            adaptor_count_reset(net.rig.count);
        }
        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
        net_backward(&net, NET_LAYERS);
        RIG_OK(&net.rig, capu_iteration_end(net.rig.context));
    }
    adaptor_count_read(net.rig.count, &counts);
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        ck_assert_msg(net_calls(&counts, never[i]) == 0, "%llu calls of %s",
                      (unsigned long long)net_calls(&counts, never[i]),
                      adaptor_slot_name(never[i]));
    }
    ck_assert_uint_le(net_calls(&counts, ADAPTOR_EVENT_WAIT), STEADY);
    ck_assert_uint_ge(net_calls(&counts, ADAPTOR_RUN), STEADY * (2 * NET_LAYERS + 2));
    RIG_OK(&net.rig, capu_synchronize(net.rig.context));
    report = rig_report(&net.rig);
    net_expect_guided(&net, &report, "train");
    ck_assert_uint_gt(report.prefetch_count + report.replay_count, 0);
    /* Begin and end, each copy and the op it starts after, and each replay. */
    marks = 2 + 2 * (report.evict_count + report.prefetch_count) + report.replay_count;
    ck_assert_uint_le(net_calls(&counts, ADAPTOR_EVENT_RECORD), STEADY * marks);
    rig_finish(&net.rig);
}
END_TEST

/* Training and validation alternate, distinguished by their labels. */
START_TEST(each_label_has_its_plan)
{
    struct net net;

    net_init(&net, (struct rig_options){0});
    for (size_t i = 0; i < 4; i++) {
        struct report report = net_train(&net, "train");

        if (i > 0) {
            net_expect_guided(&net, &report, "train");
        }
        net_begin(&net, "validate");
        net_forward(&net, NET_LAYERS);
        step_expect(&net.rig, net.activations[NET_LAYERS], PAGES(NET_LAYER_PAGES),
                    (unsigned char)(net.step + NET_LAYERS));
        report = net_end(&net);
        if (i > 0) {
            net_expect_guided(&net, &report, "validate");
        }
    }
    rig_finish(&net.rig);
}
END_TEST

/* Without labels the next iteration is predicted: two lengths that alternate, and one iteration in
   three that differs. */
START_TEST(patterns_without_labels_are_learnt)
{
    size_t period = (size_t)_i;
    struct net net;

    net_init(&net, (struct rig_options){0});
    for (size_t i = 0; i < 7 * period; i++) {
        size_t layers = i % period == 0 ? NET_LAYERS / 2 : NET_LAYERS;
        struct report report;

        net_begin(&net, NULL);
        net_forward(&net, layers);
        net_backward(&net, layers);
        step_expect(&net.rig, net.gradients, PAGES(NET_LAYER_PAGES), (unsigned char)(net.step + 1));
        report = net_end(&net);
        if (i >= 4 * period) {
            net_expect_guided(&net, &report, NULL);
        }
    }
    rig_finish(&net.rig);
}
END_TEST

/* Tensors allocated and freed inside each iteration get the same addresses each time, so that a
   plan can include them. */
START_TEST(allocations_inside_iterations_are_planned)
{
    unsigned char *first[NET_LAYERS + 1] = {0};
    struct net net;

    net_init(&net, (struct rig_options){.budget_pages = 60});
    for (size_t round = 0; round < 6; round++) {
        unsigned char *tensors[NET_LAYERS + 1];
        struct report report;

        net_begin(&net, "train");
        for (size_t i = 0; i <= NET_LAYERS; i++) {
            tensors[i] = step_tensor(&net.rig, "own", CAPU_ACTIVATION, 2 * NET_LAYER_PAGES);
            ck_assert(round == 0 || tensors[i] == first[i]);
            first[i] = tensors[i];
            if (i == 0) {
                step_set(&net.rig, tensors[0], PAGES(2 * NET_LAYER_PAGES), net.step);
            } else {
                step_next(&net.rig, "forward", tensors[i], tensors[i - 1],
                          PAGES(2 * NET_LAYER_PAGES));
            }
        }
        for (size_t i = NET_LAYERS + 1; i-- > 0;) {
            step_expect(&net.rig, tensors[i], PAGES(2 * NET_LAYER_PAGES),
                        (unsigned char)(net.step + i));
            RIG_OK(&net.rig, capu_free(net.rig.context, tensors[i]));
        }
        report = net_end(&net);
        if (round > 0) {
            net_expect_guided(&net, &report, "train");
            ck_assert_uint_eq(report.map_count + report.unmap_count, 0);
        }
    }
    rig_finish(&net.rig);
}
END_TEST

/* An iteration that allocates tensors of these sizes, and writes, reads and frees them. */
static struct report allocate_in_turn(struct net *net, const size_t *page_counts, size_t count)
{
    unsigned char *tensors[3] = {0};

    net_begin(net, "train");
    net_forward(net, NET_LAYERS);
    for (size_t i = 0; i < count; i++) {
        tensors[i] = step_tensor(&net->rig, "own", CAPU_ACTIVATION, page_counts[i]);
        ck_assert_uint_eq(step_query(&net->rig, tensors[i]).bytes, PAGES(page_counts[i]));
        ck_assert_uint_eq(step_query(&net->rig, tensors[i]).bytes, PAGES(page_counts[i]));
    }
    for (size_t i = 0; i < count; i++) {
        step_set(&net->rig, tensors[i], PAGES(page_counts[i]), (unsigned char)i);
        step_expect(&net->rig, tensors[i], PAGES(page_counts[i]), (unsigned char)i);
        RIG_OK(&net->rig, capu_free(net->rig.context, tensors[i]));
    }
    return net_end(net);
}

/* A plan keeps the range of a freed allocation mapped. A new allocation of another size must not
   get it, even if an earlier iteration had an allocation of that size at the same address. */
START_TEST(a_parked_allocation_is_reused_only_for_its_size)
{
    static const size_t first[] = {4, 2, 8}; /* the third starts where the second of 6 pages will */
    void *tensors[3];
    struct net net;
    struct report report;

    net_init(&net, (struct rig_options){.budget_pages = 30});
    net_begin(&net, "train"); /* nothing to plan for */
    for (size_t i = 0; i < 3; i++) {
        tensors[i] = step_malloc(&net.rig, PAGES(first[i]));
    }
    for (size_t i = 0; i < 3; i++) {
        RIG_OK(&net.rig, capu_free(net.rig.context, tensors[i]));
    }
    net_end(&net);
    for (size_t i = 0; i < 3; i++) {
        report = allocate_in_turn(&net, (size_t[]){6, 6}, 2);
    }
    net_expect_guided(&net, &report, "train");
    report = allocate_in_turn(&net, (size_t[]){6, 3, 8}, 3);
    ck_assert_uint_eq(report.diverged, 1);
    rig_finish(&net.rig);
}
END_TEST

/* An iteration that is shorter or longer, or has another op, an extra read or an extra allocation,
   still computes the right bytes, and the next iteration follows the plan again. */
START_TEST(an_iteration_may_leave_its_plan)
{
    struct net net;
    struct report report;
    unsigned char *extra;

    net_init(&net, (struct rig_options){.strict = _i % 2 == 1,
                                        .planner = _i < 2 ? "hybrid" : "recompute"});
    net_train(&net, "train");
    for (size_t kind = 0; kind < 5; kind++) {
        report = net_train(&net, "train");
        net_expect_guided(&net, &report, "train");
        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
        if (kind == 1) {
            step_expect(&net.rig, net.activations[3], PAGES(NET_LAYER_PAGES),
                        (unsigned char)(net.step + 3));
        }
        if (kind == 2) {
            step_set(&net.rig, net.activations[NET_LAYERS], PAGES(NET_LAYER_PAGES), 99);
        }
        if (kind == 3) {
            extra = step_malloc(&net.rig, PAGES(NET_LAYER_PAGES));
            step_next(&net.rig, "extra", extra, net.activations[2], PAGES(NET_LAYER_PAGES));
            step_expect(&net.rig, extra, PAGES(NET_LAYER_PAGES), (unsigned char)(net.step + 3));
            RIG_OK(&net.rig, capu_free(net.rig.context, extra));
        }
        if (kind > 0) {
            net_backward(&net, NET_LAYERS);
            step_expect(&net.rig, net.gradients, PAGES(NET_LAYER_PAGES),
                        (unsigned char)(net.step + 1));
        }
        if (kind == 4) {
            step_bump(&net.rig, "update", net.weights, PAGES(NET_LAYER_PAGES));
        }
        report = net_end(&net);
        ck_assert_uint_eq(report.diverged, 1);
    }
    /* 1 at first, and 1 more per update: 6 normal iterations, 4 others, one of which updates twice
     */
    step_expect(&net.rig, net.weights, PAGES(NET_LAYER_PAGES), 1 + 6 + 4 + 1);
    rig_finish(&net.rig);
}
END_TEST

/* A dropped tensor is recomputed before its source is overwritten. */
START_TEST(sources_are_not_overwritten_before_their_replays)
{
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    net_train(&net, "train");
    for (size_t round = 0; round < 4; round++) {
        struct report report = net_train(&net, "train");

        net_expect_guided(&net, &report, "train");
        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
        for (size_t i = 0; i + 1 < NET_LAYERS; i++) {
            step_set(&net.rig, net.activations[i], PAGES(NET_LAYER_PAGES), 77);
            step_expect(&net.rig, net.activations[i + 1], PAGES(NET_LAYER_PAGES),
                        (unsigned char)(net.step + i + 1));
        }
        report = net_end(&net);
        ck_assert(report.diverged == 1 || round > 0); /* later there is a plan for it */
    }
    rig_finish(&net.rig);
}
END_TEST

/* The same for capu_zero, which is not an op, so that the iteration has not left its plan before.
 */
START_TEST(sources_are_not_zeroed_before_their_replays)
{
    struct net net;
    uint64_t replays = 0;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    net_train(&net, "train");
    for (size_t round = 0; round < 4; round++) {
        struct report report = net_train(&net, "train");

        net_expect_guided(&net, &report, "train");
        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
        RIG_OK(&net.rig, capu_zero(net.rig.context, net.activations[round], 0));
        for (size_t i = NET_LAYERS; i-- > round + 1;) {
            step_next(&net.rig, "backward", net.gradients, net.activations[i],
                      PAGES(NET_LAYER_PAGES));
            step_expect(&net.rig, net.gradients, PAGES(NET_LAYER_PAGES),
                        (unsigned char)(net.step + i + 1));
        }
        step_expect(&net.rig, net.activations[round], PAGES(NET_LAYER_PAGES), 0);
        report = net_end(&net);
        ck_assert_uint_eq(report.diverged, 1);
        replays += report.replay_count;
    }
    ck_assert_uint_gt(replays, 0);
    rig_finish(&net.rig);
}
END_TEST

/* Reading a tensor that the plan discarded as dead, and that cannot be recomputed, fails by name.
 */
START_TEST(reading_lost_contents_names_the_tensor)
{
    struct net net;
    unsigned char bytes[16];
    void *list[1];

    net_init(&net, (struct rig_options){0});
    list[0] = step_tensor(&net.rig, "sample", CAPU_ACTIVATION, NET_LAYER_PAGES);
    for (size_t i = 0; i < 3; i++) {
        net_begin(&net, "train");
        step_set(&net.rig, list[0], PAGES(NET_LAYER_PAGES), 5);
        step_bump(&net.rig, "bump", list[0], PAGES(NET_LAYER_PAGES)); /* an update: no replay */
        net_forward(&net, NET_LAYERS);
        if (i == 2) {
            step_lose(&net.rig, list[0]);
            STEP_FAILS(&net.rig, capu_download(net.rig.context, bytes, list[0], sizeof(bytes), 0),
                       CAPU_CONTENTS_LOST, "sample");
        }
        net_backward(&net, NET_LAYERS);
        step_expect(&net.rig, net.gradients, PAGES(NET_LAYER_PAGES), (unsigned char)(net.step + 1));
        net_end(&net);
    }
    rig_finish(&net.rig);
}
END_TEST

/* Each iteration changes a parameter and later overwrites it, so the plan discards its contents in
   between. An iteration that ends there has lost them, and splitting the tensor must not make them
   look valid. */
START_TEST(lost_contents_stay_lost_after_a_split)
{
    unsigned char *middle;
    unsigned char byte;
    void *list[1];
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute"}); /* no host copies */
    list[0] = step_tensor(&net.rig, "table", CAPU_PARAMETER, NET_LAYER_PAGES);
    step_set(&net.rig, list[0], PAGES(NET_LAYER_PAGES), 1);
    for (size_t i = 0; i < 4; i++) {
        net_begin(&net, "train");
        step_bump(&net.rig, "bump", list[0], PAGES(NET_LAYER_PAGES));
        net_forward(&net, NET_LAYERS);
        if (i == 3) {
            break;
        }
        step_set(&net.rig, list[0], PAGES(NET_LAYER_PAGES), net.step);
        net_backward(&net, NET_LAYERS);
        net_end(&net);
    }
    net_end(&net);
    STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, list[0], 1, 0), CAPU_CONTENTS_LOST,
               "table");
    middle = (unsigned char *)list[0] + PAGES(2);
    RIG_OK(&net.rig, capu_split(net.rig.context, middle - 10, 20));
    rig_check(&net.rig);
    STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, list[0], 1, 0), CAPU_CONTENTS_LOST,
               "table");
    STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, middle, 1, 0), CAPU_UNDEFINED_READ,
               "");
    STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, middle + 10, 1, 0),
               CAPU_CONTENTS_LOST, "table");
    step_set(&net.rig, list[0], PAGES(NET_LAYER_PAGES), 7);
    step_expect(&net.rig, list[0], PAGES(NET_LAYER_PAGES), 7);
    rig_finish(&net.rig);
}
END_TEST

/* Reading a transient tensor between iterations makes later plans keep it. */
START_TEST(tensors_read_between_iterations_are_kept)
{
    struct net net;

    net_init(&net, (struct rig_options){0});
    for (size_t i = 0; i < 4; i++) {
        struct report report = net_train(&net, "train");

        step_expect(&net.rig, net.gradients, PAGES(NET_LAYER_PAGES), (unsigned char)(net.step + 1));
        if (i > 0) {
            net_expect_guided(&net, &report, "train");
        }
    }
    rig_finish(&net.rig);
}
END_TEST

/* A tensor is described as persistent although the active plan drops it after its last access. */
START_TEST(a_later_description_overrides_the_plan)
{
    struct net net;
    struct report report;

    net_init(&net, (struct rig_options){0});
    for (size_t i = 0; i < 3; i++) {
        report = net_train(&net, "train");
    }
    net_expect_guided(&net, &report, "train");
    if (_i == 1) {
        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
    }
    RIG_OK(&net.rig, CAPU_DESCRIBE(net.rig.context, net.activations[NET_LAYERS], .name = "kept",
                                   .kind = CAPU_ACTIVATION, .lifetime = CAPU_PERSISTENT));
    if (_i == 1) {
        net_backward(&net, NET_LAYERS);
        net_end(&net);
        step_expect(&net.rig, net.activations[NET_LAYERS], PAGES(NET_LAYER_PAGES),
                    (unsigned char)(net.step + NET_LAYERS));
    }
    for (size_t i = 0; i < 3; i++) {
        report = net_train(&net, "train");
        step_expect(&net.rig, net.activations[NET_LAYERS], PAGES(NET_LAYER_PAGES),
                    (unsigned char)(net.step + NET_LAYERS));
    }
    net_expect_guided(&net, &report, "train");
    rig_finish(&net.rig);
}
END_TEST

/* A tensor was freed in the iteration for which the plan was made, but is not freed this time. It
   is kept if it was transient then and is persistent now, and else if it can be recomputed.
   Otherwise reading it after the iteration fails. */
START_TEST(a_tensor_not_freed_this_time_is_kept_or_reported)
{
    bool is_described = _i == 1 || _i == 2;
    bool is_updated = _i == 3;
    unsigned char bytes[16];
    struct report report;
    struct net net;
    void *own = NULL;

    net_init(&net, (struct rig_options){0});
    for (size_t i = 0; i < 4; i++) {
        net_begin(&net, "train");
        own = step_malloc(&net.rig, PAGES(NET_LAYER_PAGES));
        if (is_described && (_i == 2 || i < 3)) {
            RIG_OK(&net.rig, CAPU_DESCRIBE(net.rig.context, own, .name = "own",
                                           .lifetime = i < 3 ? CAPU_TRANSIENT : CAPU_PERSISTENT));
        }
        step_set(&net.rig, own, PAGES(NET_LAYER_PAGES), 7);
        if (is_updated) {
            step_bump(&net.rig, "bump", own, PAGES(NET_LAYER_PAGES));
            RIG_OK(&net.rig, step_touch(&net.rig, "use", CAPU_READ, 1, &own));
        }
        net_forward(&net, NET_LAYERS);
        net_backward(&net, NET_LAYERS);
        if (i < 3) {
            RIG_OK(&net.rig, capu_free(net.rig.context, own));
        }
        report = net_end(&net);
    }
    ck_assert_uint_eq(report.diverged, 1);
    if (is_updated) {
        STEP_FAILS(&net.rig, capu_download(net.rig.context, bytes, own, sizeof(bytes), 0),
                   CAPU_CONTENTS_LOST, "");
    } else {
        step_expect(&net.rig, own, PAGES(NET_LAYER_PAGES), 7);
    }
    step_set(&net.rig, own, PAGES(NET_LAYER_PAGES), 8);
    net_train(&net, "train");
    step_expect(&net.rig, own, PAGES(NET_LAYER_PAGES), 8);
    rig_finish(&net.rig);
}
END_TEST

/* After a free and an allocation, the same address is another tensor, and this one is persistent.
 */
START_TEST(a_persistent_tensor_at_a_freed_address_is_kept)
{
    struct net net;
    struct report report;
    void *again;

    net_init(&net, (struct rig_options){0});
    for (size_t i = 0; i < 3; i++) {
        report = net_train(&net, "train");
    }
    net_expect_guided(&net, &report, "train");
    RIG_OK(&net.rig, capu_free(net.rig.context, net.activations[NET_LAYERS]));
    RIG_OK(&net.rig, capu_synchronize(net.rig.context));
    RIG_OK(&net.rig, capu_malloc(net.rig.context, PAGES(NET_LAYER_PAGES), &again));
    ck_assert_ptr_eq(again, net.activations[NET_LAYERS]);
    if (_i == 1) {
        RIG_OK(&net.rig,
               CAPU_DESCRIBE(net.rig.context, again, .name = "table", .kind = CAPU_PARAMETER));
    }
    for (size_t i = 0; i < 3; i++) {
        report = net_train(&net, "train");
        step_expect(&net.rig, again, PAGES(NET_LAYER_PAGES),
                    (unsigned char)(net.step + NET_LAYERS));
    }
    net_expect_guided(&net, &report, "train");
    rig_finish(&net.rig);
}
END_TEST

/* Between guided iterations parameters are read and written, and tensors are split and freed. */
START_TEST(memory_may_change_between_iterations)
{
    struct net net;
    struct report report;

    net_init(&net, (struct rig_options){0});
    net_train(&net, "train");
    report = net_train(&net, "train");
    net_expect_guided(&net, &report, "train");
    step_set(&net.rig, net.weights, PAGES(NET_LAYER_PAGES), 40);
    report = net_train(&net, "train");
    net_expect_guided(&net, &report, "train");
    step_expect(&net.rig, net.weights, PAGES(NET_LAYER_PAGES), 41);
    RIG_OK(&net.rig, capu_split(net.rig.context, net.weights + 10, PAGES(1)));
    rig_check(&net.rig);
    net_train(&net, "train");
    step_expect(&net.rig, net.weights, PAGES(NET_LAYER_PAGES), 42);
    report = net_train(&net, "train");
    net_expect_guided(&net, &report, "train");
    RIG_OK(&net.rig, capu_free(net.rig.context, net.activations[2]));
    rig_check(&net.rig);
    net.activations[2] = step_tensor(&net.rig, "activation", CAPU_ACTIVATION, NET_LAYER_PAGES);
    net_train(&net, "train");
    step_expect(&net.rig, net.weights, PAGES(NET_LAYER_PAGES), 44);
    rig_finish(&net.rig);
}
END_TEST

/* Uploads between iterations use a bounded amount of staging memory, with and without an active
   plan. Tested on sim, where the copies take no time. */
START_TEST(uploads_between_iterations_are_bounded)
{
    enum { BYTES = PAGES(512), UPLOADS = 40 };
    static unsigned char source[BYTES];
    struct adaptor_counts before;
    struct adaptor_counts after;
    unsigned char *table;
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.budget_pages = 100 + 512, .is_sim = true});
    table = step_malloc(&net.rig, BYTES);
    for (size_t i = 0; i < 5; i++) {
        if (i == 4) {
            adaptor_count_read(net.rig.count, &before);
            for (size_t k = 0; k < UPLOADS; k++) {
                RIG_OK(&net.rig, capu_upload(net.rig.context, table, source, sizeof(source), 0));
            }
            adaptor_count_read(net.rig.count, &after);
        }
        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
        net_backward(&net, NET_LAYERS);
        report = net_end(&net);
        if (i >= 3) {
            net_expect_guided(&net, &report, "train");
        }
    }
    ck_assert_uint_gt(UPLOADS * (uint64_t)BYTES, STAGING_LIMIT + (UINT64_C(8) << 20));
    ck_assert_uint_le(after.host_bytes, before.host_bytes + STAGING_LIMIT);
    rig_finish(&net.rig);
}
END_TEST

/* Parameters that start as zeros are filled in once, in the first iteration. That fill is not part
   of the plan, so the second iteration is guided already. */
START_TEST(initial_zeros_are_not_part_of_the_plan)
{
    struct net net;
    unsigned char *moments;

    net_init(&net, (struct rig_options){0});
    moments = step_tensor(&net.rig, "moments", CAPU_OPTIMIZER, NET_LAYER_PAGES);
    RIG_OK(&net.rig, capu_zero(net.rig.context, moments, 0));
    for (size_t i = 0; i < 4; i++) {
        struct report report;

        net_begin(&net, "train");
        RIG_OK(&net.rig, capu_zero(net.rig.context, net.gradients, 0));
        step_bump(&net.rig, "accumulate", net.gradients, PAGES(NET_LAYER_PAGES));
        net_forward(&net, NET_LAYERS);
        step_expect(&net.rig, net.gradients, PAGES(NET_LAYER_PAGES), 1);
        net_backward(&net, NET_LAYERS);
        step_bump(&net.rig, "moments", moments, PAGES(NET_LAYER_PAGES));
        report = net_end(&net);
        if (i > 0) {
            net_expect_guided(&net, &report, "train");
        }
    }
    step_expect(&net.rig, moments, PAGES(NET_LAYER_PAGES), 4);
    rig_finish(&net.rig);
}
END_TEST

enum { PHASE_TENSORS = 4 };

/* Tensors that do not fit the device together, and that nothing recomputes. */
static void run_phase(struct net *net, size_t page_count)
{
    unsigned char *tensors[PHASE_TENSORS];

    for (size_t i = 0; i < PHASE_TENSORS; i++) {
        tensors[i] = step_tensor(&net->rig, "phase", CAPU_ACTIVATION, page_count);
        step_set(&net->rig, tensors[i], PAGES(page_count), (unsigned char)i);
        step_bump(&net->rig, "bump", tensors[i], PAGES(page_count));
    }
    for (size_t i = 0; i < PHASE_TENSORS; i++) {
        step_expect(&net->rig, tensors[i], PAGES(page_count), (unsigned char)(i + 1));
        RIG_OK(&net->rig, capu_free(net->rig.context, tensors[i]));
    }
}

/* If there is no plan, training continues in passive mode, and the report gives the reason. A plan
   keeps the host memory of all that it copies out, and here there is only enough for each half of
   the iteration in turn. */
START_TEST(without_a_plan_training_continues)
{
    struct net net;

    net_init(&net, (struct rig_options){.budget_pages = 12, .host_budget_bytes = PAGES(44)});
    for (size_t i = 0; i < 3; i++) {
        struct report report;

        net_begin(&net, "train");
        run_phase(&net, 8);
        run_phase(&net, 7);
        report = net_end(&net);
        ck_assert_uint_eq(report.mode, CAPU_MODE_PASSIVE);
        ck_assert_msg(i == 0 || strstr(report.plan_error, "host") != NULL, "'%s'",
                      report.plan_error);
    }
    rig_finish(&net.rig);
}
END_TEST

/* The smallest budget with a placed plan is the same in whatever budget it is found, and has one.
 */
START_TEST(the_smallest_budget_with_a_plan_is_reported)
{
    static const uint64_t budgets[] = {24, 64, 0};
    uint64_t least = 0;

    for (size_t i = 0; i < 3; i++) {
        uint64_t pages = budgets[i] > 0 ? budgets[i] : least / RIG_PAGE;
        struct report report;
        struct net net;

        net_init(&net, (struct rig_options){.budget_pages = pages});
        report = net_train(&net, "train");
        ck_assert_uint_eq(report.guided_floor_bytes, 0);
        net_train(&net, "train");
        report = net_train(&net, "train");
        net_expect_guided(&net, &report, "train");
        ck_assert_uint_ge(report.guided_floor_bytes, report.floor_bytes);
        ck_assert_uint_le(report.guided_floor_bytes, PAGES(pages));
        ck_assert(i == 0 || report.guided_floor_bytes == least);
        least = report.guided_floor_bytes;
        rig_finish(&net.rig);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guided");
    TCase *cases = tcase_create("guided");

    tcase_add_loop_test(cases, the_second_iteration_is_guided, 0, 2);
    tcase_add_loop_test(cases, a_steady_iteration_makes_no_other_calls, 0, 3);
    tcase_add_test(cases, each_label_has_its_plan);
    tcase_add_loop_test(cases, patterns_without_labels_are_learnt, 2, 4);
    tcase_add_test(cases, allocations_inside_iterations_are_planned);
    tcase_add_test(cases, a_parked_allocation_is_reused_only_for_its_size);
    tcase_add_loop_test(cases, an_iteration_may_leave_its_plan, 0, 4);
    tcase_add_loop_test(cases, sources_are_not_overwritten_before_their_replays, 0, 2);
    tcase_add_loop_test(cases, sources_are_not_zeroed_before_their_replays, 0, 2);
    tcase_add_test(cases, reading_lost_contents_names_the_tensor);
    tcase_add_test(cases, lost_contents_stay_lost_after_a_split);
    tcase_add_test(cases, tensors_read_between_iterations_are_kept);
    tcase_add_loop_test(cases, a_later_description_overrides_the_plan, 0, 2);
    tcase_add_loop_test(cases, a_tensor_not_freed_this_time_is_kept_or_reported, 0, 4);
    tcase_add_loop_test(cases, a_persistent_tensor_at_a_freed_address_is_kept, 0, 2);
    tcase_add_test(cases, memory_may_change_between_iterations);
    tcase_add_test(cases, uploads_between_iterations_are_bounded);
    tcase_add_test(cases, initial_zeros_are_not_part_of_the_plan);
    tcase_add_test(cases, without_a_plan_training_continues);
    tcase_add_test(cases, the_smallest_budget_with_a_plan_is_reported);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
