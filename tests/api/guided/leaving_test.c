/* Iterations that leave their plan while memory changes or calls to the device fail. */
#include "tests/api/net.h"

#include "tests/support/adaptor_fault.h"

/* An iteration that overwrites a tensor late ends before that. The tensor is read after iterations,
   so what it held before is recomputed at the end. If that fails, nothing is lost, and
   capu_iteration_end can be called again. */
START_TEST(an_early_end_that_fails_can_be_tried_again)
{
    static const struct adaptor_fault_plan once = {
        .slot = ADAPTOR_RUN, .call = 1, .status = CAPU_DEVICE_FAILED};
    unsigned char *result;
    unsigned char byte;
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .has_faults = true});
    result = step_tensor(&net.rig, "result", CAPU_ACTIVATION, NET_LAYER_PAGES);
    for (size_t round = 0; round < 5; round++) {
        net_begin(&net, "train");
        step_next(&net.rig, "early", result, net.weights, PAGES(NET_LAYER_PAGES));
        net_forward(&net, NET_LAYERS);
        if (round < 4) {
            net_backward(&net, NET_LAYERS);
            step_next(&net.rig, "late", result, net.weights, PAGES(NET_LAYER_PAGES));
            report = net_end(&net);
            step_expect(&net.rig, result, 1, (unsigned char)(net.step + 2));
        }
    }
    net_expect_guided(&net, &report, "train");
    RIG_OK(&net.rig,
           capu_download(net.rig.context, &byte, net.weights, 1, 0)); /* leaves the plan */
    adaptor_fault_arm(net.rig.faults, &once);
    STEP_FAILS(&net.rig, capu_iteration_end(net.rig.context), CAPU_DEVICE_FAILED, "result");
    rig_check(&net.rig);
    report = net_end(&net);
    ck_assert_uint_eq(report.diverged, 1);
    ck_assert_uint_gt(report.replay_count, 0);
    step_expect(&net.rig, result, PAGES(NET_LAYER_PAGES), (unsigned char)(net.step + 1));
    rig_finish(&net.rig);
}
END_TEST

/* A tensor is described as persistent after the plan has dropped it. It is recomputed at once, so
   that overwriting what it was made from does no harm. */
START_TEST(a_late_persistent_tensor_is_recomputed_at_once)
{
    enum { BYTES = PAGES(NET_LAYER_PAGES) };
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    for (size_t i = 0; i < 3; i++) {
        report = net_train(&net, "train");
    }
    net_expect_guided(&net, &report, "train");
    net_begin(&net, "train");
    net_forward(&net, NET_LAYERS);
    RIG_OK(&net.rig, CAPU_DESCRIBE(net.rig.context, net.activations[1], .name = "kept",
                                   .lifetime = CAPU_PERSISTENT));
    for (size_t i = 0; i <= NET_LAYERS; i++) {
        if (i != 1) {
            step_set(&net.rig, net.activations[i], BYTES, 99);
        }
    }
    net_end(&net);
    net_begin(&net, "validate");
    step_expect(&net.rig, net.activations[1], BYTES, (unsigned char)net.step);
    net_end(&net);
    rig_finish(&net.rig);
}
END_TEST

/* Like the test before, but the tensor cannot be recomputed: the call says so, not an op of a later
   iteration. The description applies, so what is written next is kept. Between iterations it may be
   meant for the next one, so only reading the tensor fails. */
START_TEST(a_tensor_that_becomes_persistent_too_late_is_reported)
{
    enum { BYTES = PAGES(NET_LAYER_PAGES) };
    capu_tensor_info info = {.size = sizeof(info), .name = "sample", .lifetime = CAPU_PERSISTENT};
    unsigned char *sample;
    unsigned char byte;
    struct net net;

    net_init(&net, (struct rig_options){.strict = _i / 2 == 1});
    sample = step_tensor(&net.rig, "sample", CAPU_ACTIVATION, NET_LAYER_PAGES);
    for (size_t i = 0; i < 4; i++) {
        net_begin(&net, "train");
        step_set(&net.rig, sample, BYTES, 5);
        step_bump(&net.rig, "bump", sample, BYTES); /* an update: no replay */
        net_forward(&net, NET_LAYERS);
        if (i == 3 && _i % 2 == 0) {
            step_lose(&net.rig, sample);
            STEP_FAILS(&net.rig, capu_tensor_describe(net.rig.context, sample, &info),
                       CAPU_CONTENTS_LOST, "'sample' is described as persistent too late");
            ck_assert(net.rig.context->plans.label->has_lost); /* like any other loss */
        }
        net_backward(&net, NET_LAYERS);
        net_end(&net);
    }
    if (_i % 2 == 1) {
        step_lose(&net.rig, sample);
        RIG_OK(&net.rig, capu_tensor_describe(net.rig.context, sample, &info));
        STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, sample, 1, 0),
                   CAPU_CONTENTS_LOST, "sample");
    }
    step_set(&net.rig, sample, BYTES, 7);
    RIG_OK(&net.rig, capu_tensor_describe(net.rig.context, sample, &info));
    net_train(&net, "train");
    net_train(&net, "train");
    step_expect(&net.rig, sample, BYTES, 7);
    rig_finish(&net.rig);
}
END_TEST

/* A program describes a persistent tensor again and again, also while a plan has dropped it. That
   changes nothing. */
START_TEST(describing_what_is_persistent_does_not_leave_the_plan)
{
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "swap"});
    for (size_t i = 0; i < 4; i++) {
        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
        RIG_OK(&net.rig, CAPU_DESCRIBE(net.rig.context, net.weights, .name = "weights",
                                       .kind = CAPU_PARAMETER));
        net_backward(&net, NET_LAYERS);
        report = net_end(&net);
    }
    net_expect_guided(&net, &report, "train");
    rig_finish(&net.rig);
}
END_TEST

/* A tensor that the plan discarded as dead cannot be recomputed. After the iteration has left the
   plan, splitting the tensor still works, and reading one of its pieces fails by name. */
START_TEST(dead_tensors_can_be_split)
{
    unsigned char byte;
    unsigned char *sample;
    struct net net;

    net_init(&net, (struct rig_options){.strict = _i == 1});
    sample = step_tensor(&net.rig, "sample", CAPU_ACTIVATION, NET_LAYER_PAGES);
    for (size_t i = 0; i < 3; i++) {
        net_begin(&net, "train");
        step_set(&net.rig, sample, PAGES(NET_LAYER_PAGES), 5);
        step_bump(&net.rig, "bump", sample, PAGES(NET_LAYER_PAGES)); /* an update: no replay */
        net_forward(&net, NET_LAYERS);
        if (i == 2) {
            RIG_OK(&net.rig, capu_split(net.rig.context, sample, PAGES(2)));
            step_lose(&net.rig, sample + PAGES(2));
            STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, sample + PAGES(2), 1, 0),
                       CAPU_CONTENTS_LOST, "sample");
        }
        net_backward(&net, NET_LAYERS);
        step_expect(&net.rig, net.gradients, PAGES(NET_LAYER_PAGES), (unsigned char)(net.step + 1));
        net_end(&net);
    }
    rig_finish(&net.rig);
}
END_TEST

struct shift {
    unsigned char *to;
    const unsigned char *from;
    const unsigned char *by;
    unsigned char *note; /* NULL: none */
    size_t note_bytes;
};

static capu_status shift(capu_stream stream, const void *arguments)
{
    const struct shift *it = arguments;

    (void)stream;
    for (size_t i = 0; i < PAGES(NET_LAYER_PAGES); i++) {
        it->to[i] = (unsigned char)(it->from[i] + it->by[0]);
    }
    if (it->note != NULL) {
        memset(it->note, it->from[0], it->note_bytes);
    }
    return CAPU_OK;
}

/* Each layer is the one before plus a byte of the small tensor `by`. */
static void shift_forward(struct net *net, const unsigned char *by, size_t offset)
{
    step_set(&net->rig, net->activations[0], PAGES(NET_LAYER_PAGES), net->step);
    for (size_t i = 0; i < NET_LAYERS; i++) {
        struct shift it = {net->activations[i + 1], net->activations[i], by + offset, NULL, 0};

        RIG_OK(&net->rig, CAPU_RUN(net->rig.context, shift, &it, capu_reads(net->activations[i]),
                                   capu_reads(by), capu_writes(net->activations[i + 1])));
    }
}

/* A small tensor that the iteration only reads is freed before the replays that read it. Its bytes
   must not be reused before the iteration ends. */
START_TEST(replays_can_read_freed_small_tensors)
{
    unsigned char *by;
    unsigned char byte;
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    by = step_malloc(&net.rig, 100);
    step_set(&net.rig, by, 100, 1);
    for (size_t round = 0; round < 4; round++) {
        net_begin(&net, "train");
        shift_forward(&net, by, 0);
        if (round < 3) {
            net_backward(&net, NET_LAYERS);
            net_end(&net);
        }
    }
    RIG_OK(&net.rig, capu_free(net.rig.context, by));
    RIG_OK(&net.rig,
           capu_download(net.rig.context, &byte, net.weights, 1, 0)); /* leaves the plan */
    for (size_t i = 0; i < NET_LAYERS; i++) {
        step_expect(&net.rig, net.activations[i], PAGES(NET_LAYER_PAGES),
                    (unsigned char)(net.step + i));
    }
    report = net_end(&net);
    ck_assert_uint_eq(report.diverged, 1);
    ck_assert_uint_gt(report.replay_count, 0);
    rig_finish(&net.rig);
}
END_TEST

/* An op also writes a piece of an allocation that shares a page with another piece. The allocation
   is freed, while the plan is active or after it was left, and the op must still be replayable. */
START_TEST(replays_can_write_freed_pieces)
{
    unsigned char *by;
    unsigned char *notes;
    unsigned char byte;
    struct report report;
    struct shift it;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i / 2 == 1});
    by = step_malloc(&net.rig, 100);
    step_set(&net.rig, by, 100, 1);
    notes = step_malloc(&net.rig, PAGES(1));
    RIG_OK(&net.rig, capu_split(net.rig.context, notes, PAGES(1) / 2));
    for (size_t round = 0; round < 4; round++) {
        net_begin(&net, "train");
        it = (struct shift){net.activations[0], net.weights, by, notes, PAGES(1) / 2};
        RIG_OK(&net.rig,
               CAPU_RUN(net.rig.context, shift, &it, capu_reads(net.weights), capu_reads(by),
                        capu_writes(net.activations[0]), capu_writes(notes)));
        for (size_t i = 0; i < NET_LAYERS; i++) {
            step_next(&net.rig, "forward", net.activations[i + 1], net.activations[i],
                      PAGES(NET_LAYER_PAGES));
        }
        if (round < 3) {
            net_backward(&net, NET_LAYERS);
            net_end(&net);
        }
    }
    if (_i % 2 == 0) {
        RIG_OK(&net.rig, capu_download(net.rig.context, &byte, net.weights, 1, 0)); /* leaves it */
    }
    RIG_OK(&net.rig, capu_free(net.rig.context, notes));
    RIG_OK(&net.rig, capu_synchronize(net.rig.context));
    RIG_OK(&net.rig, departures_reap(&net.rig.context->residency)); /* as if pages were needed */
    for (size_t i = 0; i < NET_LAYERS; i++) {
        step_expect(&net.rig, net.activations[i], PAGES(NET_LAYER_PAGES),
                    (unsigned char)(net.step + 1 + i)); /* the weights are net.step */
        rig_check(&net.rig);
    }
    report = net_end(&net);
    ck_assert_uint_eq(report.diverged, 1);
    ck_assert_uint_gt(report.replay_count, 0);
    rig_finish(&net.rig);
}
END_TEST

/* A small tensor that replays read is split, and a piece of it is overwritten. The replays must run
   before that. */
START_TEST(small_sources_are_split_after_their_replays)
{
    unsigned char *by;
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    by = step_malloc(&net.rig, 200);
    step_set(&net.rig, by, 200, 1);
    for (size_t round = 0; round < 4; round++) {
        net_begin(&net, "train");
        shift_forward(&net, by, 150);
        if (round < 3) {
            net_backward(&net, NET_LAYERS);
            net_end(&net);
        }
    }
    RIG_OK(&net.rig, capu_split(net.rig.context, by + 100, 100));
    step_set(&net.rig, by + 100, 100, 77);
    for (size_t i = 0; i < NET_LAYERS; i++) {
        step_expect(&net.rig, net.activations[i], PAGES(NET_LAYER_PAGES),
                    (unsigned char)(net.step + i));
    }
    report = net_end(&net);
    ck_assert_uint_eq(report.diverged, 1);
    ck_assert_uint_gt(report.replay_count, 0);
    rig_finish(&net.rig);
}
END_TEST

/* A transient tensor is read after each iteration, and most iterations overwrite it late, so the
   plan discards it in between. If an iteration leaves the plan there, the tensor is recomputed for
   the read that follows. */
START_TEST(tensors_read_after_iterations_are_recomputed_without_the_plan)
{
    unsigned char *result;
    unsigned char byte;
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i % 2 == 1});
    result = step_tensor(&net.rig, "result", CAPU_ACTIVATION, NET_LAYER_PAGES);
    for (size_t round = 0; round < 5; round++) {
        net_begin(&net, "train");
        step_next(&net.rig, "early", result, net.weights, PAGES(NET_LAYER_PAGES));
        net_forward(&net, NET_LAYERS);
        if (round < 4) {
            net_backward(&net, NET_LAYERS);
            step_next(&net.rig, "late", result, net.weights, PAGES(NET_LAYER_PAGES));
        } else {
            RIG_OK(&net.rig, capu_download(net.rig.context, &byte, net.weights, 1, 0));
            if (_i / 2 == 1) {
                RIG_OK(&net.rig, capu_split(net.rig.context, net.activations[0], PAGES(2)));
            }
        }
        report = net_end(&net);
        step_expect(&net.rig, result, PAGES(NET_LAYER_PAGES),
                    (unsigned char)(round < 4 ? net.step + 2 : net.step + 1));
    }
    ck_assert_uint_eq(report.diverged, 1);
    ck_assert_uint_gt(report.replay_count, 0);
    rig_finish(&net.rig);
}
END_TEST

/* An op fails after its output was cleared, or poisoned in strict mode. The output has then been
   overwritten, so no replay may read it. */
START_TEST(outputs_of_a_failed_op_are_not_replayed_from)
{
    static const struct adaptor_fault_plan once = {
        .slot = ADAPTOR_RUN, .call = 1, .status = CAPU_DEVICE_FAILED};
    enum { BYTES = PAGES(NET_LAYER_PAGES) };
    unsigned char by = 1;
    unsigned char byte;
    struct net net;

    net_init(&net, (struct rig_options){.has_faults = true, .strict = _i == 1});
    for (size_t round = 0; round < 4; round++) {
        struct shift it = {net.activations[0], net.weights, &by, NULL, 0};
        capu_operand output =
            capu_operand_of(net.activations[0], 0, _i == 0 ? CAPU_WRITE_REST_ZERO : CAPU_WRITE);

        net_begin(&net, "train");
        net_forward(&net, 2);
        if (round == 3) {
            ck_assert_ptr_nonnull(net.rig.context->guided.active);
            adaptor_fault_arm(net.rig.faults, &once);
            STEP_FAILS(&net.rig,
                       CAPU_RUN(net.rig.context, shift, &it, capu_reads(net.weights), output),
                       CAPU_DEVICE_FAILED, "");
            step_lose(&net.rig, net.activations[1]);
            STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, net.activations[1], 1, 0),
                       CAPU_CONTENTS_LOST, "");
        }
        RIG_OK(&net.rig, CAPU_RUN(net.rig.context, shift, &it, capu_reads(net.weights), output));
        step_bump(&net.rig, "update", net.weights, BYTES);
        net_end(&net);
    }
    step_expect(&net.rig, net.weights, BYTES, (unsigned char)(net.step + 1));
    rig_finish(&net.rig);
}
END_TEST

/* A replay that the device refuses has computed nothing. The other output of its op must still be
   intact, or be recomputed if it was cleared for the replay. A small tensor that was cleared
   becomes undefined, so that its zeros cannot be read. */
START_TEST(a_refused_replay_spoils_nothing)
{
    static const struct adaptor_fault_plan once = {
        .slot = ADAPTOR_RUN, .call = 1, .status = CAPU_DEVICE_FAILED};
    bool is_cleared = _i > 0;
    bool is_small = _i == 2;
    unsigned char *note;
    unsigned char *by;
    unsigned char byte;
    struct net net;

    net_init(&net, (struct rig_options){.has_faults = true});
    by = step_malloc(&net.rig, 100);
    step_set(&net.rig, by, 100, 1);
    note = step_malloc(&net.rig, is_small ? 100 : PAGES(1));
    for (size_t round = 0; round < 4; round++) {
        struct shift it = {net.activations[1], net.weights, by, note, 1};

        net_begin(&net, "train");
        step_set(&net.rig, net.weights, PAGES(NET_LAYER_PAGES), net.step);
        RIG_OK(&net.rig, CAPU_RUN(net.rig.context, shift, &it, capu_reads(net.weights),
                                  capu_reads(by), capu_writes(net.activations[1]),
                                  is_cleared ? capu_writes_rest_zero(note) : capu_writes(note)));
        step_next(&net.rig, "forward", net.activations[2], net.activations[1],
                  PAGES(NET_LAYER_PAGES));
        if (round == 3) {
            ck_assert_ptr_nonnull(net.rig.context->guided.active);
            step_lose(&net.rig, net.activations[1]);
            adaptor_fault_arm(net.rig.faults, &once);
            STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, net.activations[1], 1, 0),
                       CAPU_DEVICE_FAILED, "");
            rig_check(&net.rig);
            step_set(&net.rig, net.weights, PAGES(NET_LAYER_PAGES), 99);
        }
        net_end(&net);
    }
    if (is_small) {
        STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, note, 1, 0), CAPU_UNDEFINED_READ,
                   "");
    } else {
        step_expect(&net.rig, note, 1, net.step);
    }
    rig_finish(&net.rig);
}
END_TEST

/* capu_zero fails after it has cleared only one of the two always-resident ends of a tensor. The
   tensor has then changed, so no replay may read it. */
START_TEST(half_zeroed_tensors_are_not_replayed_from)
{
    static const struct adaptor_fault_plan second = {
        .slot = ADAPTOR_FILL, .call = 2, .status = CAPU_DEVICE_FAILED};
    enum { BYTES = PAGES(NET_LAYER_PAGES) };
    unsigned char *source;
    unsigned char *by;
    unsigned char byte;
    struct net net;

    net_init(&net, (struct rig_options){.has_faults = true});
    by = step_malloc(&net.rig, 100);
    step_set(&net.rig, by, 100, 1);
    source = step_malloc(&net.rig, BYTES + PAGES(1));
    RIG_OK(&net.rig, capu_split(net.rig.context, source + 100, BYTES));
    source += 100;
    for (size_t round = 0; round < 4; round++) {
        struct shift it = {net.activations[1], source, by, NULL, 0};

        net_begin(&net, "train");
        step_set(&net.rig, source, BYTES, net.step);
        RIG_OK(&net.rig, CAPU_RUN(net.rig.context, shift, &it, capu_reads(source), capu_reads(by),
                                  capu_writes(net.activations[1])));
        step_next(&net.rig, "forward", net.activations[2], net.activations[1], BYTES);
        if (round == 3) {
            ck_assert_ptr_nonnull(net.rig.context->guided.active);
            adaptor_fault_arm(net.rig.faults, &second);
            STEP_FAILS(&net.rig, capu_zero(net.rig.context, source, 0), CAPU_DEVICE_FAILED, "");
            step_lose(&net.rig, net.activations[1]);
            STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, net.activations[1], 1, 0),
                       CAPU_CONTENTS_LOST, "overwritten");
            RIG_OK(&net.rig, capu_zero(net.rig.context, source, 0));
        }
        net_end(&net);
    }
    step_expect(&net.rig, source, BYTES, 0);
    rig_finish(&net.rig);
}
END_TEST

/* A tensor that the plan discarded as dead cannot be recomputed after its source was overwritten,
   nor after that source was freed as well. */
START_TEST(freed_small_tensors_are_remembered_as_overwritten)
{
    unsigned char *result;
    unsigned char *by;
    unsigned char byte;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    result = step_tensor(&net.rig, "result", CAPU_ACTIVATION, NET_LAYER_PAGES);
    by = step_malloc(&net.rig, 100);
    step_set(&net.rig, by, 100, 1);
    for (size_t round = 0; round < 3; round++) {
        struct shift it = {result, net.weights, by, NULL, 0};

        net_begin(&net, "train");
        RIG_OK(&net.rig, CAPU_RUN(net.rig.context, shift, &it, capu_reads(net.weights),
                                  capu_reads(by), capu_writes(result)));
        step_expect(&net.rig, result, PAGES(NET_LAYER_PAGES), (unsigned char)(net.step + 1));
        net_forward(&net, NET_LAYERS);
        if (round == 2) {
            step_set(&net.rig, by, 100, 9); /* leaves the plan */
            RIG_OK(&net.rig, capu_free(net.rig.context, by));
            step_lose(&net.rig, result);
            STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, result, 1, 0),
                       CAPU_CONTENTS_LOST, "overwritten");
        }
        net_backward(&net, NET_LAYERS);
        step_expect(&net.rig, net.gradients, PAGES(NET_LAYER_PAGES), (unsigned char)(net.step + 1));
        net_end(&net);
    }
    rig_finish(&net.rig);
}
END_TEST

/* A replay writes the first contents of a freed small tensor again. After that, a tensor that was
   computed from its later contents cannot be recomputed. */
START_TEST(freed_small_tensors_hold_what_replays_wrote)
{
    unsigned char *results[2];
    unsigned char *notes;
    unsigned char *by;
    unsigned char byte;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    for (size_t i = 0; i < 2; i++) {
        results[i] = step_tensor(&net.rig, "result", CAPU_ACTIVATION, NET_LAYER_PAGES);
    }
    by = step_malloc(&net.rig, 100);
    notes = step_malloc(&net.rig, 100);
    step_set(&net.rig, by, 100, 1);
    for (size_t round = 0; round < 3; round++) {
        struct shift first = {results[0], net.weights, by, notes, 100};
        struct shift second = {results[1], net.weights, notes, NULL, 0};

        net_begin(&net, "train");
        RIG_OK(&net.rig, CAPU_RUN(net.rig.context, shift, &first, capu_reads(net.weights),
                                  capu_reads(by), capu_writes(results[0]), capu_writes(notes)));
        step_set(&net.rig, notes, 100, 5);
        RIG_OK(&net.rig, CAPU_RUN(net.rig.context, shift, &second, capu_reads(net.weights),
                                  capu_reads(notes), capu_writes(results[1])));
        net_forward(&net, NET_LAYERS);
        if (round == 2) {
            RIG_OK(&net.rig, capu_download(net.rig.context, &byte, net.weights, 1, 0));
            RIG_OK(&net.rig, capu_free(net.rig.context, notes));
            step_lose(&net.rig, results[0]);
            step_expect(&net.rig, results[0], PAGES(NET_LAYER_PAGES),
                        (unsigned char)(net.step + 1));
            step_lose(&net.rig, results[1]);
            STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, results[1], 1, 0),
                       CAPU_CONTENTS_LOST, "overwritten");
        }
        net_backward(&net, NET_LAYERS);
        net_end(&net);
    }
    rig_finish(&net.rig);
}
END_TEST

/* An op fails after the small tensor that it writes was cleared. The tensor is undefined, and what
   was computed from its old contents cannot be recomputed. */
START_TEST(tensors_cleared_by_a_failed_op_are_not_replayed_from)
{
    static const struct adaptor_fault_plan once = {
        .slot = ADAPTOR_RUN, .call = 1, .status = CAPU_DEVICE_FAILED};
    unsigned char *result;
    unsigned char *by;
    unsigned char byte;
    struct net net;

    net_init(&net,
             (struct rig_options){.planner = "recompute", .has_faults = true, .strict = _i == 1});
    result = step_tensor(&net.rig, "result", CAPU_ACTIVATION, NET_LAYER_PAGES);
    by = step_malloc(&net.rig, 100);
    step_set(&net.rig, by, 100, 1);
    for (size_t round = 0; round < 3; round++) {
        struct shift it = {result, net.weights, by, NULL, 0};

        net_begin(&net, "train");
        RIG_OK(&net.rig, CAPU_RUN(net.rig.context, shift, &it, capu_reads(net.weights),
                                  capu_reads(by), capu_writes(result)));
        net_forward(&net, NET_LAYERS);
        if (round == 2) {
            void *const cleared[] = {by};

            adaptor_fault_arm(net.rig.faults, &once);
            STEP_FAILS(&net.rig, step_touch(&net.rig, "fails", CAPU_WRITE_REST_ZERO, 1, cleared),
                       CAPU_DEVICE_FAILED, "fails");
            step_lose(&net.rig, result);
            STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, result, 1, 0),
                       CAPU_CONTENTS_LOST, "overwritten");
        }
        net_backward(&net, NET_LAYERS);
        net_end(&net);
    }
    rig_finish(&net.rig);
}
END_TEST

/* Makes so many pages always resident: slabs of small tensors, or edges of split ones. */
static void fill_with_fixed_pages(struct net *net, size_t count, bool is_split)
{
    while (memory_fixed_pages(&net->rig.context->memory) < count) {
        unsigned char *memory = step_malloc(&net->rig, is_split ? PAGES(1) : PAGES(1) / 2 - 1);

        if (is_split) {
            RIG_OK(&net->rig, capu_split(net->rig.context, memory, PAGES(1) / 2));
        }
        rig_check(&net->rig);
    }
}

/* After an iteration has left its plan, so many pages become always resident that the ops of the
   plan no longer fit beside them. What they would have recomputed can still be read, and the
   iteration can be ended. */
START_TEST(always_resident_pages_leave_room_for_what_is_owed)
{
    enum { BYTES = PAGES(NET_LAYER_PAGES), BUDGET = 24 };
    bool is_read = _i / 2 == 1;
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .budget_pages = BUDGET});
    for (size_t i = 0; i < 3; i++) {
        report = net_train(&net, "train");
    }
    net_expect_guided(&net, &report, "train");
    net_begin(&net, "train");
    net_forward(&net, NET_LAYERS);
    if (!is_read) {
        RIG_OK(&net.rig, CAPU_DESCRIBE(net.rig.context, net.activations[1], .name = "kept",
                                       .lifetime = CAPU_PERSISTENT));
    }
    fill_with_fixed_pages(&net, BUDGET - 2 * NET_LAYER_PAGES + 1, _i % 2 == 1);
    for (size_t i = 0; is_read && i <= NET_LAYERS; i++) {
        step_expect(&net.rig, net.activations[i], BYTES, (unsigned char)(net.step + i));
    }
    report = net_end(&net);
    ck_assert_uint_eq(report.diverged, 1);
    ck_assert_uint_gt(report.replay_count, 0);
    step_expect(&net.rig, net.activations[1], BYTES, (unsigned char)(net.step + 1));
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api leaving");
    TCase *cases = tcase_create("leaving");

    tcase_add_test(cases, an_early_end_that_fails_can_be_tried_again);
    tcase_add_loop_test(cases, replays_can_read_freed_small_tensors, 0, 2);
    tcase_add_loop_test(cases, replays_can_write_freed_pieces, 0, 4);
    tcase_add_loop_test(cases, small_sources_are_split_after_their_replays, 0, 2);
    tcase_add_loop_test(cases, outputs_of_a_failed_op_are_not_replayed_from, 0, 2);
    tcase_add_loop_test(cases, a_refused_replay_spoils_nothing, 0, 3);
    tcase_add_test(cases, half_zeroed_tensors_are_not_replayed_from);
    tcase_add_loop_test(cases, dead_tensors_can_be_split, 0, 2);
    tcase_add_loop_test(cases, tensors_read_after_iterations_are_recomputed_without_the_plan, 0, 4);
    tcase_add_loop_test(cases, freed_small_tensors_are_remembered_as_overwritten, 0, 2);
    tcase_add_loop_test(cases, freed_small_tensors_hold_what_replays_wrote, 0, 2);
    tcase_add_loop_test(cases, tensors_cleared_by_a_failed_op_are_not_replayed_from, 0, 2);
    tcase_add_loop_test(cases, a_late_persistent_tensor_is_recomputed_at_once, 0, 2);
    tcase_add_loop_test(cases, a_tensor_that_becomes_persistent_too_late_is_reported, 0, 4);
    tcase_add_test(cases, describing_what_is_persistent_does_not_leave_the_plan);
    tcase_add_loop_test(cases, always_resident_pages_leave_room_for_what_is_owed, 0, 4);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
