/*
 * The eleven traps that real training programs set, found in llm.c, darknet, mnist-cudnn and kann.
 *
 * Each trap has a test with the right declaration, in mode off and in passive mode with a budget
 * that forces evictions, and one with the wrong declaration, which strict mode or an error reveals.
 */
#include "tests/support/rig.h"
#include "tests/support/suite.h"
#include "tests/traps/floats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Pages per tensor, and the budget in passive mode. */
enum { PAGES = FLOATS * 4 / 4096, BUDGET_PAGES = 3 * PAGES + 2 };

static const struct rig_options settings[] = {
    {.mode = CAPU_MODE_OFF, .budget_pages = 512},
    {.mode = CAPU_MODE_PASSIVE, .budget_pages = BUDGET_PAGES},
    {.mode = CAPU_MODE_PASSIVE, .budget_pages = BUDGET_PAGES, .strict = true},
};
enum { SETTINGS = sizeof(settings) / sizeof(settings[0]), STRICT = SETTINGS - 1 };

/* The report of the last iteration; all zeros in mode off, which keeps no records. */
static struct report read_report(struct rig *rig)
{
    struct report report = {0};

    RIG_OK(rig, capu_synchronize(rig->context));
    if (rig->context->settings.is_tracking) {
        report = rig_report(rig);
    }
    return report;
}

static void begin(struct rig *rig)
{
    RIG_OK(rig, capu_iteration_begin(rig->context, NULL));
}

static void end(struct rig *rig)
{
    RIG_OK(rig, capu_iteration_end(rig->context));
}

static void expect_error(struct rig *rig, capu_status status, capu_status expected,
                         const char *names)
{
    ck_assert_msg(status == expected, "%s instead of %s", capu_status_name(status),
                  capu_status_name(expected));
    ck_assert_msg(strstr(capu_last_error(rig->context), names) != NULL, "'%s' does not name %s",
                  capu_last_error(rig->context), names);
}

/* After an op with a wrong declaration: on host, strict mode has named it. Elsewhere it returns OK,
   and only the NaN in its results shows it. */
static void expect_breach(struct rig *rig, capu_status status, const char *text)
{
    if (strcmp(capu_context_device(rig->context), "host") == 0) {
        expect_error(rig, status, CAPU_INVALID, text);
    } else {
        RIG_OK(rig, status);
    }
}

/* 1. One allocation holds many tensors at arbitrary byte offsets. */
START_TEST(a_blob_is_split)
{
    enum { PARTS = 6, PART = FLOATS + 3 };
    struct rig rig;
    float *blob;

    rig_init(&rig, &settings[_i]);
    blob = floats_make(&rig, "blob", CAPU_PARAMETER, PARTS * PART);
    for (size_t i = 0; i < PARTS; i++) {
        RIG_OK(&rig, capu_split(rig.context, blob + i * PART, PART * sizeof(float)));
    }
    for (size_t i = 0; i < PARTS; i++) {
        floats_set(&rig, blob + i * PART, PART, (float)i);
        rig_check(&rig);
    }
    for (size_t i = 0; i < PARTS; i++) {
        floats_expect(&rig, blob + i * PART, PART, (float)i);
    }
    rig_finish(&rig);
}
END_TEST

START_TEST(a_blob_that_is_not_split_does_not_fit)
{
    struct floats_scaling one = {.count = 1};
    struct rig rig;

    rig_init(&rig, &settings[STRICT]);
    one.to = floats_make(&rig, "blob", CAPU_PARAMETER, 6 * FLOATS);
    expect_error(&rig,
                 CAPU_RUN(rig.context, floats_scale, &one,
                          capu_operand_of(one.to, sizeof(float), CAPU_WRITE)),
                 CAPU_OVER_BUDGET, "floats_scale");
    rig_finish(&rig);
}
END_TEST

/* 2. Interior pointers: q, k and v in one buffer, each read and written separately. */
static void scale_parts(struct rig *rig, bool declares_whole)
{
    enum { THIRD = FLOATS / 3 };
    float *others[FLOATS_OTHERS];
    float *qkv = floats_make(rig, "qkv", CAPU_ACTIVATION, FLOATS);
    struct floats_scaling scale = {.to = qkv + THIRD, .from = qkv, .count = THIRD, .scale = 2.0f};

    floats_make_others(rig, others);
    begin(rig);
    floats_set(rig, qkv, FLOATS, 1.0f);
    floats_press(rig, others, FLOATS_OTHERS);
    if (declares_whole) {
        expect_breach(rig,
                      CAPU_RUN(rig->context, floats_scale, &scale,
                               capu_operand_of(others[0], THIRD * sizeof(float), CAPU_READ),
                               capu_writes(qkv)),
                      "op 'floats_scale' reads 'qkv'");
    } else {
        RIG_OK(rig, CAPU_RUN(rig->context, floats_scale, &scale,
                             capu_operand_of(qkv, THIRD * sizeof(float), CAPU_READ),
                             capu_operand_of(qkv + THIRD, THIRD * sizeof(float), CAPU_WRITE)));
    }
    floats_press(rig, others, FLOATS_OTHERS);
    if (declares_whole) {
        ck_assert(isnan(floats_first(rig, qkv)));
    } else {
        floats_expect(rig, qkv, THIRD, 1.0f);
        floats_expect(rig, qkv + THIRD, THIRD, 2.0f);
        floats_expect(rig, qkv + 2 * THIRD, THIRD, 1.0f);
    }
    end(rig);
}

START_TEST(a_partial_write_keeps_the_rest)
{
    struct rig rig;

    rig_init(&rig, &settings[_i]);
    scale_parts(&rig, false);
    rig_finish(&rig);
}
END_TEST

START_TEST(a_part_declared_as_the_whole_reads_as_nan)
{
    struct rig rig;

    rig_init(&rig, &settings[STRICT]);
    scale_parts(&rig, true);
    rig_finish(&rig);
}
END_TEST

/* 3. A causal softmax writes only the lower triangle, and the next op reads the whole matrix. */
static float sum_of_half_written(struct rig *rig, capu_role role)
{
    float *half = floats_make(rig, "half", CAPU_ACTIVATION, FLOATS);
    float *copy = floats_make(rig, "copy", CAPU_ACTIVATION, FLOATS);
    struct floats_scaling write = {.to = half, .count = FLOATS / 2, .offset = 1.0f};
    struct floats_scaling read = {.to = copy, .from = half, .count = FLOATS, .scale = 1.0f};
    static float bytes[FLOATS];
    float sum = 0.0f;
    capu_status status;

    begin(rig);
    status = CAPU_RUN(rig->context, floats_scale, &write, capu_operand_of(half, 0, role));
    if (role == CAPU_WRITE) {
        expect_breach(rig, status, "op 'floats_scale' leaves 8192 bytes of 'half' unwritten");
    } else {
        RIG_OK(rig, status);
    }
    RIG_OK(rig, CAPU_RUN(rig->context, floats_scale, &read, capu_reads(half), capu_writes(copy)));
    RIG_OK(rig, capu_download(rig->context, bytes, copy, sizeof(bytes), 0));
    end(rig);
    for (size_t i = 0; i < FLOATS; i++) {
        sum += bytes[i];
    }
    return sum;
}

START_TEST(a_partial_write_is_cleared)
{
    struct rig rig;

    rig_init(&rig, &settings[_i]);
    ck_assert(sum_of_half_written(&rig, CAPU_WRITE_REST_ZERO) == FLOATS / 2);
    rig_finish(&rig);
}
END_TEST

START_TEST(a_partial_write_declared_whole_reads_as_nan)
{
    struct rig rig;

    rig_init(&rig, &settings[STRICT]);
    ck_assert(isnan(sum_of_half_written(&rig, CAPU_WRITE)));
    rig_finish(&rig);
}
END_TEST

/* 4. Scratch has no contents before or after its op. */
START_TEST(scratch_is_never_copied)
{
    struct rig rig;
    float *others[FLOATS_OTHERS];
    float *scratch;
    struct floats_scaling work = {.count = FLOATS, .offset = 3.0f};
    struct report report;

    rig_init(&rig, &settings[_i]);
    scratch = floats_make(&rig, "scratch", CAPU_WORKSPACE, FLOATS);
    floats_make_others(&rig, others);
    work.to = scratch;
    begin(&rig);
    for (size_t i = 0; i < 3; i++) {
        RIG_OK(&rig, CAPU_RUN(rig.context, floats_scale, &work, capu_scratch(scratch)));
    }
    floats_press(&rig, others, FLOATS_OTHERS);
    RIG_OK(&rig, CAPU_RUN(rig.context, floats_scale, &work, capu_scratch(scratch)));
    end(&rig);
    report = read_report(&rig);
    ck_assert_uint_eq(report.prefetched_bytes, 0);
    rig_finish(&rig);
}
END_TEST

START_TEST(scratch_cannot_be_read_after_its_op)
{
    struct rig rig;
    float *scratch;
    float *copy;
    struct floats_scaling work = {.count = FLOATS, .offset = 3.0f};
    struct floats_scaling read = {.count = FLOATS, .scale = 1.0f};

    rig_init(&rig, &settings[STRICT]);
    scratch = floats_make(&rig, "scratch", CAPU_WORKSPACE, FLOATS);
    copy = floats_make(&rig, "copy", CAPU_ACTIVATION, FLOATS);
    work.to = scratch;
    read.to = copy;
    read.from = scratch;
    begin(&rig);
    RIG_OK(&rig, CAPU_RUN(rig.context, floats_scale, &work, capu_scratch(scratch)));
    expect_error(&rig,
                 CAPU_RUN(rig.context, floats_scale, &read, capu_reads(scratch), capu_writes(copy)),
                 CAPU_UNDEFINED_READ, "scratch");
    /* An op that reads scratch in spite of the declared role sees the poison. */
    expect_breach(
        &rig, CAPU_RUN(rig.context, floats_scale, &read, capu_scratch(scratch), capu_writes(copy)),
        "op 'floats_scale' reads 'scratch'");
    ck_assert(isnan(floats_first(&rig, copy)));
    end(&rig);
    rig_finish(&rig);
}
END_TEST

/* 5. A saved tensor is reused as scratch: its old contents are never fetched. */
START_TEST(a_saved_tensor_becomes_scratch)
{
    struct rig rig;
    float *others[FLOATS_OTHERS];
    float *saved;
    struct floats_scaling work = {.count = FLOATS, .offset = 3.0f};
    struct report report;

    rig_init(&rig, &settings[_i]);
    saved = floats_make(&rig, "saved", CAPU_ACTIVATION, FLOATS);
    floats_make_others(&rig, others);
    work.to = saved;
    begin(&rig);
    floats_set(&rig, saved, FLOATS, 1.0f);
    floats_press(&rig, others, FLOATS_OTHERS);
    RIG_OK(&rig, CAPU_RUN(rig.context, floats_scale, &work, capu_scratch(saved)));
    expect_error(&rig, capu_download(rig.context, &work, saved, sizeof(work), 0),
                 rig.context->settings.is_tracking ? CAPU_UNDEFINED_READ : CAPU_OK,
                 rig.context->settings.is_tracking ? "saved" : "");
    end(&rig);
    report = read_report(&rig);
    ck_assert_uint_eq(report.prefetched_bytes, 0);
    rig_finish(&rig);
}
END_TEST

/* 6. All gradients are cleared at once. They need no memory and no copies before their first
 * update.
 */
START_TEST(gradients_are_cleared_at_once)
{
    enum { GRADIENTS = 8 };
    struct rig rig;
    float *gradients;
    struct floats_scaling add = {.count = FLOATS, .offset = 1.0f, .adds = true};

    rig_init(&rig, &settings[_i]);
    gradients = floats_make(&rig, "gradients", CAPU_GRADIENT, GRADIENTS * FLOATS);
    for (size_t i = 0; i < GRADIENTS; i++) {
        RIG_OK(&rig, capu_split(rig.context, gradients + i * FLOATS, FLOATS * sizeof(float)));
        RIG_OK(&rig, CAPU_DESCRIBE(rig.context, gradients + i * FLOATS, .name = "gradient",
                                   .kind = CAPU_GRADIENT));
    }
    for (size_t step = 0; step < 2; step++) {
        uint64_t held;

        begin(&rig);
        RIG_OK(&rig, capu_synchronize(rig.context));
        capu_memory_usage(rig.context, &held, NULL, NULL);
        RIG_OK(&rig, capu_zero(rig.context, gradients, GRADIENTS * FLOATS * sizeof(float)));
        if (step == 0 && rig.context->settings.is_paging) {
            uint64_t now;

            capu_memory_usage(rig.context, &now, NULL, NULL);
            ck_assert_uint_eq(now, held);
        }
        for (size_t i = 0; i < 2 * GRADIENTS; i++) {
            add.to = gradients + (i % GRADIENTS) * FLOATS;
            RIG_OK(&rig, CAPU_RUN(rig.context, floats_scale, &add, capu_updates(add.to)));
        }
        floats_expect(&rig, gradients + FLOATS, FLOATS, 2.0f);
        end(&rig);
    }
    rig_finish(&rig);
}
END_TEST

START_TEST(a_gradient_that_was_not_cleared_is_undefined)
{
    struct rig rig;
    struct floats_scaling add = {.count = FLOATS, .offset = 1.0f, .adds = true};

    rig_init(&rig, &settings[STRICT]);
    add.to = floats_make(&rig, "gradient", CAPU_GRADIENT, FLOATS);
    begin(&rig);
    RIG_OK(&rig, capu_zero(rig.context, add.to, 0));
    RIG_OK(&rig, CAPU_RUN(rig.context, floats_scale, &add, capu_updates(add.to)));
    end(&rig);
    begin(&rig);
    expect_error(&rig, CAPU_RUN(rig.context, floats_scale, &add, capu_updates(add.to)),
                 CAPU_UNDEFINED_READ, "gradient");
    end(&rig);
    rig_finish(&rig);
}
END_TEST

/* 7. Sums are accumulated in place over several iterations. */
static void accumulate(struct rig *rig, capu_role role, float expected)
{
    float *others[FLOATS_OTHERS];
    float *total = floats_make(rig, "total", CAPU_OPTIMIZER, FLOATS);
    struct floats_scaling add = {.to = total, .count = FLOATS, .offset = 1.0f, .adds = true};

    floats_make_others(rig, others);
    RIG_OK(rig, capu_zero(rig->context, total, 0));
    for (size_t step = 0; step < 4; step++) {
        capu_status status;

        begin(rig);
        status = CAPU_RUN(rig->context, floats_scale, &add, capu_operand_of(total, 0, role));
        if (isnan(expected)) {
            expect_breach(rig, status, "op 'floats_scale' reads 'total'");
        } else {
            RIG_OK(rig, status);
        }
        floats_press(rig, others, FLOATS_OTHERS);
        end(rig);
    }
    if (isnan(expected)) {
        ck_assert(isnan(floats_first(rig, total)));
    } else {
        floats_expect(rig, total, FLOATS, expected);
    }
}

START_TEST(sums_survive_iterations)
{
    struct rig rig;

    rig_init(&rig, &settings[_i]);
    accumulate(&rig, CAPU_UPDATE, 4.0f);
    rig_finish(&rig);
}
END_TEST

START_TEST(a_sum_declared_as_a_write_reads_as_nan)
{
    struct rig rig;

    rig_init(&rig, &settings[STRICT]);
    accumulate(&rig, CAPU_WRITE, NAN);
    rig_finish(&rig);
}
END_TEST

/* 8. The data loader overwrites its buffer at once, and statistics must survive from step to step.
 */
START_TEST(uploads_copy_their_source)
{
    struct rig rig;
    float *others[FLOATS_OTHERS];
    float *input;
    float *statistics;
    static float batch[FLOATS];
    struct floats_scaling move = {.count = FLOATS, .scale = 0.5f, .adds = true};

    rig_init(&rig, &settings[_i]);
    input = floats_make(&rig, "input", CAPU_INPUT, FLOATS);
    statistics = floats_make(&rig, "statistics", CAPU_OPTIMIZER, FLOATS);
    floats_make_others(&rig, others);
    move.to = statistics;
    move.from = input;
    RIG_OK(&rig, capu_zero(rig.context, statistics, 0));
    for (size_t step = 1; step <= 3; step++) {
        begin(&rig);
        for (size_t i = 0; i < FLOATS; i++) {
            batch[i] = (float)step;
        }
        RIG_OK(&rig, capu_upload(rig.context, input, batch, sizeof(batch), 0));
        memset(batch, 0xff, sizeof(batch));
        RIG_OK(&rig, CAPU_RUN(rig.context, floats_scale, &move, capu_reads(input),
                              capu_updates(statistics)));
        floats_press(&rig, others, FLOATS_OTHERS);
        end(&rig);
    }
    floats_expect(&rig, statistics, FLOATS, 3.0f);
    rig_finish(&rig);
}
END_TEST

START_TEST(transient_statistics_are_lost_and_named)
{
    struct rig rig;
    struct floats_scaling move = {.count = FLOATS, .offset = 1.0f, .adds = true};

    rig_init(&rig, &settings[STRICT]);
    move.to = floats_make(&rig, "statistics", CAPU_ACTIVATION, FLOATS);
    RIG_OK(&rig, capu_zero(rig.context, move.to, 0));
    begin(&rig);
    expect_error(&rig, CAPU_RUN(rig.context, floats_scale, &move, capu_updates(move.to)),
                 CAPU_UNDEFINED_READ, "statistics");
    end(&rig);
    rig_finish(&rig);
}
END_TEST

/* 9. One op over all parameters sets the floor of the budget. Split into several ops, it does not.
 */
START_TEST(an_op_over_everything_is_named)
{
    enum { PARAMETERS = 4 };
    struct rig rig;
    float *parameters[PARAMETERS];
    capu_operand operands[PARAMETERS];
    struct floats_scaling none = {.count = 0};
    capu_op adam = {.size = sizeof(adam), .name = "adam_everything", .run = floats_scale};
    struct report report;

    adam.arguments = &none;
    adam.argument_bytes = sizeof(none);
    adam.operands = operands;
    adam.operand_count = PARAMETERS;
    rig_init(&rig, &settings[_i]);
    for (size_t i = 0; i < PARAMETERS; i++) {
        parameters[i] = floats_make(&rig, "parameter", CAPU_PARAMETER, FLOATS);
        floats_set(&rig, parameters[i], FLOATS, (float)i);
        operands[i] = capu_updates(parameters[i]);
    }
    begin(&rig);
    if (rig.context->settings.is_paging) {
        expect_error(&rig, capu_run(rig.context, &adam), CAPU_OVER_BUDGET, "adam_everything");
    } else {
        RIG_OK(&rig, capu_run(rig.context, &adam));
    }
    adam.operand_count = 1;
    for (size_t i = 0; i < PARAMETERS; i++) {
        adam.operands = &operands[i];
        RIG_OK(&rig, capu_run(rig.context, &adam));
    }
    end(&rig);
    report = read_report(&rig);
    if (rig.context->settings.is_paging) {
        ck_assert_uint_eq(report.floor_bytes, report.fixed_bytes + PAGES * RIG_PAGE);
        ck_assert_str_eq(report.floor_op, "adam_everything");
    }
    rig_finish(&rig);
}
END_TEST

/* 10. The host reads losses, samples and checkpoints inside iterations and between them. */
START_TEST(the_host_can_read_evicted_tensors)
{
    struct rig rig;
    float *others[FLOATS_OTHERS];
    float *parameter;

    rig_init(&rig, &settings[_i]);
    parameter = floats_make(&rig, "parameter", CAPU_PARAMETER, FLOATS);
    floats_make_others(&rig, others);
    begin(&rig);
    floats_set(&rig, parameter, FLOATS, 7.0f);
    floats_press(&rig, others, FLOATS_OTHERS);
    floats_press(&rig, others, FLOATS_OTHERS);
    end(&rig);
    floats_expect(&rig, parameter, FLOATS, 7.0f);
    if (rig.context->settings.is_paging) {
        capu_tensor_state state = {.size = sizeof(state)};

        RIG_OK(&rig, capu_tensor_query(rig.context, parameter, &state));
        ck_assert_uint_eq(state.is_resident, 0);
        ck_assert_uint_eq(state.has_host_copy, 1);
    }
    rig_finish(&rig);
}
END_TEST

START_TEST(transients_of_an_earlier_iteration_cannot_be_read)
{
    struct rig rig;
    float *loss;
    float value;

    rig_init(&rig, &settings[STRICT]);
    loss = floats_make(&rig, "loss", CAPU_ACTIVATION, FLOATS);
    begin(&rig);
    floats_set(&rig, loss, FLOATS, 1.0f);
    end(&rig);
    ck_assert(floats_first(&rig, loss) == 1.0f);
    begin(&rig);
    expect_error(&rig, capu_download(rig.context, &value, loss, sizeof(value), 0),
                 CAPU_UNDEFINED_READ, "loss");
    end(&rig);
    rig_finish(&rig);
}
END_TEST

/* 11. The first pass is not the typical one, and each step allocates and frees. */
START_TEST(passes_of_different_shapes)
{
    struct rig rig;
    float *parameter;
    struct floats_scaling forward = {.scale = 1.0f};
    static const char *const labels[] = {"validate", "train", "sample", "train", "validate"};

    rig_init(&rig, &settings[_i]);
    parameter = floats_make(&rig, "parameter", CAPU_PARAMETER, FLOATS);
    floats_set(&rig, parameter, FLOATS, 2.0f);
    for (size_t pass = 0; pass < sizeof(labels) / sizeof(labels[0]); pass++) {
        float *hidden[FLOATS_OTHERS];
        size_t floats = pass == 4 ? FLOATS / 2 : FLOATS;

        RIG_OK(&rig, capu_iteration_begin(rig.context, labels[pass]));
        forward.count = floats;
        forward.from = parameter;
        for (size_t i = 0; i < FLOATS_OTHERS; i++) {
            hidden[i] = floats_make(&rig, "hidden", CAPU_ACTIVATION, floats);
            forward.to = hidden[i];
            RIG_OK(&rig, CAPU_RUN(rig.context, floats_scale, &forward, capu_reads(forward.from),
                                  capu_writes(hidden[i])));
            forward.from = hidden[i];
        }
        floats_expect(&rig, hidden[0], floats, 2.0f);
        for (size_t i = 0; i < FLOATS_OTHERS; i++) {
            RIG_OK(&rig, capu_free(rig.context, hidden[i]));
        }
        end(&rig);
    }
    rig_finish(&rig);
}
END_TEST

START_TEST(a_freed_tensor_cannot_be_used)
{
    struct rig rig;
    struct floats_scaling work = {.count = FLOATS};

    rig_init(&rig, &settings[STRICT]);
    work.to = floats_make(&rig, "hidden", CAPU_ACTIVATION, FLOATS);
    RIG_OK(&rig, capu_free(rig.context, work.to));
    expect_error(&rig, CAPU_RUN(rig.context, floats_scale, &work, capu_writes(work.to)),
                 CAPU_WRONG_ADDRESS, "floats_scale");
    rig_finish(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("traps");
    TCase *right = tcase_create("the right declaration");
    TCase *wrong = tcase_create("the wrong declaration");

    tcase_add_loop_test(right, a_blob_is_split, 0, SETTINGS);
    tcase_add_loop_test(right, a_partial_write_keeps_the_rest, 0, SETTINGS);
    tcase_add_loop_test(right, a_partial_write_is_cleared, 0, SETTINGS);
    tcase_add_loop_test(right, scratch_is_never_copied, 0, SETTINGS);
    tcase_add_loop_test(right, a_saved_tensor_becomes_scratch, 0, SETTINGS);
    tcase_add_loop_test(right, gradients_are_cleared_at_once, 0, SETTINGS);
    tcase_add_loop_test(right, sums_survive_iterations, 0, SETTINGS);
    tcase_add_loop_test(right, uploads_copy_their_source, 0, SETTINGS);
    tcase_add_loop_test(right, an_op_over_everything_is_named, 0, SETTINGS);
    tcase_add_loop_test(right, the_host_can_read_evicted_tensors, 0, SETTINGS);
    tcase_add_loop_test(right, passes_of_different_shapes, 0, SETTINGS);
    tcase_add_test(wrong, a_blob_that_is_not_split_does_not_fit);
    tcase_add_test(wrong, a_part_declared_as_the_whole_reads_as_nan);
    tcase_add_test(wrong, a_partial_write_declared_whole_reads_as_nan);
    tcase_add_test(wrong, scratch_cannot_be_read_after_its_op);
    tcase_add_test(wrong, a_gradient_that_was_not_cleared_is_undefined);
    tcase_add_test(wrong, a_sum_declared_as_a_write_reads_as_nan);
    tcase_add_test(wrong, transient_statistics_are_lost_and_named);
    tcase_add_test(wrong, transients_of_an_earlier_iteration_cannot_be_read);
    tcase_add_test(wrong, a_freed_tensor_cannot_be_used);
    suite_add_tcase(suite, right);
    suite_add_tcase(suite, wrong);
    return suite_run(suite);
}
