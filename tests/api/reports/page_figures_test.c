/*
 * What reports say a program needs: the same in any page that the program happens to run in, and
 * what it then needs in that budget. On the host device, whose page depends on the budget.
 */
#include "base/random.h"
#include "capuchin/private.h"
#include "policy/model/trace_index.h"
#include "tests/api/steps.h"

#include <stdlib.h>
#include <unistd.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

enum { PIECES = 12, MIDDLES = 6, TINIES = 40 };

/* Tensors of all sorts: pieces of a blob, of a small blob, tensors that are small in any page, ones
   that are small only in large pages, one that no iteration touches, and ones that live only inside
   an iteration. */
struct program {
    struct rig rig;
    unsigned char *blob;
    size_t blob_bytes;
    unsigned char *small_blob;
    unsigned char *middles[MIDDLES];
    size_t middle_bytes[MIDDLES];
    unsigned char *tinies[TINIES];
    size_t tiny_bytes[TINIES];
    unsigned char *untouched;
    bool zeroes; /* one of the middles, at the beginning of an iteration */
};

static size_t draw(uint64_t *state, uint64_t below)
{
    return (size_t)(random_next(state) % below);
}

static void cut(struct program *program, unsigned char *address, size_t bytes, size_t count,
                uint64_t *state)
{
    size_t most = bytes / count;

    for (size_t i = 0; i < count; i++) {
        size_t piece = 1 + draw(state, most);

        RIG_OK(&program->rig, capu_split(program->rig.context, address, piece));
        address += piece;
    }
}

static struct program start(uint64_t budget_bytes, uint64_t page_bytes, const char *trace_path,
                            uint64_t seed)
{
    struct program program = {0};
    capu_config config = CAPU_CONFIG_INIT;
    uint64_t state = seed;
    struct rig *rig = &program.rig;

    config.device = "host";
    config.mode = CAPU_MODE_PASSIVE;
    config.budget_bytes = budget_bytes;
    config.page_bytes = page_bytes;
    config.trace_path = trace_path;
    config.host_budget_bytes = 64 * MIB;
    ck_assert_int_eq(capu_context_create(&config, &rig->context), CAPU_OK);
    program.blob_bytes = MIB + draw(&state, MIB);
    program.blob = step_malloc(rig, program.blob_bytes);
    cut(&program, program.blob, program.blob_bytes, PIECES, &state);
    program.small_blob = step_malloc(rig, 20 * KIB);
    cut(&program, program.small_blob, 20 * KIB, 3, &state);
    for (size_t i = 0; i < MIDDLES; i++) {
        program.middle_bytes[i] = 2 * KIB + draw(&state, 30 * KIB);
        program.middles[i] = step_malloc(rig, program.middle_bytes[i]);
    }
    for (size_t i = 0; i < MIDDLES; i += 2) {
        void *longer;

        step_set(rig, program.middles[i], program.middle_bytes[i], 1);
        program.middle_bytes[i] += 1 + draw(&state, 9 * KIB);
        RIG_OK(rig,
               capu_realloc(rig->context, program.middles[i], program.middle_bytes[i], &longer));
        program.middles[i] = longer;
    }
    for (size_t i = 0; i < TINIES; i++) {
        program.tiny_bytes[i] = 1 + draw(&state, 2 * KIB - 1);
        program.tinies[i] = step_malloc(rig, program.tiny_bytes[i]);
    }
    program.untouched = step_malloc(rig, 77777);
    step_set(rig, program.untouched, 77777, 1);
    return program;
}

static struct report train(struct program *program)
{
    struct rig *rig = &program->rig;

    for (size_t round = 0; round < 2; round++) {
        unsigned char *large;
        unsigned char *tiny;

        RIG_OK(rig, capu_iteration_begin(rig->context, "train"));
        large = step_malloc(rig, 123456);
        tiny = step_malloc(rig, 1000);
        RIG_OK(rig, CAPU_DESCRIBE(rig->context, large, .kind = CAPU_ACTIVATION));
        step_set(rig, large, 123456, 1);
        step_set(rig, tiny, 1000, 1);
        RIG_OK(rig, CAPU_DESCRIBE(rig->context, program->middles[1], .kind = CAPU_GRADIENT));
        if (program->zeroes) {
            RIG_OK(rig, capu_zero(rig->context, program->middles[1], 0));
        }
        step_bump(rig, "again", large, 123456); /* before the zeros need memory */
        step_set(rig, program->small_blob, 20 * KIB, 2);
        for (size_t i = 0; i < MIDDLES; i++) {
            if (i == 1 && program->zeroes) {
                continue; /* as a gradient before the first one */
            }
            step_set(rig, program->middles[i], program->middle_bytes[i], 3);
        }
        for (size_t i = 0; i < TINIES; i++) {
            step_set(rig, program->tinies[i], program->tiny_bytes[i], 4);
        }
        step_bump(rig, "accumulate", program->middles[1], program->middle_bytes[1]);
        RIG_OK(rig, capu_free(rig->context, large));
        RIG_OK(rig, capu_free(rig->context, tiny));
        step_set(rig, program->blob, program->blob_bytes, 5);
        step_bump(rig, "largest", program->blob, program->blob_bytes);
        RIG_OK(rig, capu_iteration_end(rig->context));
    }
    RIG_OK(rig, capu_synchronize(rig->context));
    return rig_report(rig);
}

static struct report run(uint64_t budget_bytes, uint64_t page_bytes, uint64_t seed)
{
    struct program program = start(budget_bytes, page_bytes, NULL, seed);
    struct report report;

    program.zeroes = true;
    report = train(&program);

    step_expect(&program.rig, program.blob, program.blob_bytes, 6);
    capu_context_destroy(program.rig.context);
    return report;
}

static void expect_same(const struct report *report, const struct report *wanted)
{
    ck_assert_uint_eq(report->floor_page_bytes, wanted->page_bytes);
    ck_assert_uint_eq(report->floor_operands_bytes, wanted->floor_operands_bytes);
    ck_assert_uint_eq(report->floor_edges_bytes, wanted->floor_edges_bytes);
    ck_assert_uint_eq(report->floor_slabs_bytes, wanted->floor_slabs_bytes);
    ck_assert_uint_eq(report->floor_bytes, wanted->floor_bytes);
    ck_assert_uint_eq(report->next_floor_bytes, wanted->next_floor_bytes);
    ck_assert_uint_eq(report->live_peak_bytes, wanted->live_peak_bytes);
}

/* Whatever the budget, and without one: what is reported is what a run within that needs. */
START_TEST(figures_are_those_of_a_run_that_they_describe)
{
    static const uint64_t budgets[] = {0, 1024 * MIB, 300 * MIB};

    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct report free_run = run(budgets[seed % 3], 0, seed);
        struct report within = run(free_run.live_peak_bytes, 0, seed);
        struct report at_floor = run(free_run.floor_bytes, 0, seed);

        ck_assert_uint_gt(free_run.page_bytes, within.page_bytes);
        ck_assert_uint_eq(within.page_bytes, 4 * KIB);
        ck_assert_uint_eq(within.floor_page_bytes, within.page_bytes);
        ck_assert_uint_eq(within.floor_bytes, within.floor_operands_bytes +
                                                  within.floor_edges_bytes +
                                                  within.floor_slabs_bytes);
        ck_assert_uint_gt(within.floor_edges_bytes, 0);
        ck_assert_uint_gt(within.floor_slabs_bytes, 0);
        ck_assert_uint_le(within.peak_bytes, within.budget_bytes);
        expect_same(&free_run, &within);
        expect_same(&at_floor, &within);
    }
}
END_TEST

/* A trace file has the sizes of the page that the figures of the report are for. */
START_TEST(the_trace_has_the_same_peak_and_floor)
{
    char path[] = "/tmp/capuchin-test-XXXXXX";
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    close(file);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct program program = start(1024 * MIB, 0, path, seed);
        struct report report = train(&program);
        struct error_text error = {0};
        struct trace trace;
        struct trace_index trace_index;

        RIG_OK(&program.rig, capu_flush(program.rig.context));
        capu_context_destroy(program.rig.context);
        ck_assert_uint_lt(report.floor_page_bytes, report.page_bytes);
        ck_assert_msg(trace_load(&trace, path, &error) == CAPU_OK, "%s", error.text);
        ck_assert_msg(trace_index_init(&trace_index, &trace, report.floor_page_bytes, &error) ==
                          CAPU_OK,
                      "%s", error.text);
        ck_assert_uint_eq(trace_index.peak_bytes, report.live_peak_bytes);
        ck_assert_uint_eq(trace_index.floor_bytes, report.floor_bytes);
        trace_index_finish(&trace_index);
        trace_finish(&trace);
    }
    unlink(path);
}
END_TEST

/* A pinned page stays what it is, and so do its figures; the report names a better one. */
START_TEST(a_better_page_is_named_for_a_pinned_one)
{
    struct report chosen = run(64 * MIB, 0, 1);
    struct report pinned = run(64 * MIB, 64 * KIB, 1);
    struct report small = run(64 * MIB, 4 * KIB, 1);

    ck_assert_uint_eq(chosen.page_bytes, 4 * KIB);
    ck_assert_uint_eq(chosen.better_page_bytes, 0);
    ck_assert_uint_eq(small.better_page_bytes, 0);
    ck_assert_uint_eq(pinned.page_bytes, 64 * KIB);
    ck_assert_uint_eq(pinned.floor_page_bytes, 64 * KIB);
    ck_assert_uint_gt(pinned.floor_edges_bytes, chosen.floor_edges_bytes);
    ck_assert_uint_eq(pinned.better_page_bytes, chosen.page_bytes);
    ck_assert_uint_eq(pinned.better_floor_bytes, chosen.floor_bytes);
    ck_assert_uint_lt(pinned.better_floor_bytes, pinned.floor_bytes);
}
END_TEST

/* The page holds two tensors of the size up to which they are small. */
START_TEST(the_page_is_as_large_as_the_slab_threshold_needs)
{
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context = NULL;

    config.device = "host";
    config.budget_bytes = 64 * MIB;
    (void)capu_config_set(&config, "slab_threshold", "10000");
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_OK);
    ck_assert_uint_eq(capu_context_config(context)->page_bytes, 32 * KIB);
    capu_context_destroy(context);
    config_set_number(&config, "slab_threshold", 64 * MIB);
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_INVALID);
}
END_TEST

enum { SET_UP = 3000, STATES = 4, STATE_BYTES = 240000 };

/* Four tensors, after as many small ones as fill most of the budget have come and gone. With _i in
   the page in use, which is pinned, and otherwise in a smaller one. */
START_TEST(slabs_that_hold_nothing_are_not_counted)
{
    static unsigned char *small[SET_UP];
    char path[] = "/tmp/capuchin-test-XXXXXX";
    int file = mkstemp(path);
    unsigned char *states[STATES];
    capu_config config = CAPU_CONFIG_INIT;
    struct report report = {0};
    struct error_text error = {0};
    struct trace trace;
    struct trace_index trace_index;
    struct rig rig = {0};

    ck_assert_int_ge(file, 0);
    close(file);
    config.device = "host";
    config.budget_bytes = _i == 0 ? 0 : 4 * MIB;
    config.page_bytes = _i == 0 ? 0 : 4 * KIB;
    config.trace_path = path;
    ck_assert_int_eq(capu_context_create(&config, &rig.context), CAPU_OK);
    for (size_t i = 0; i < SET_UP; i++) {
        small[i] = step_malloc(&rig, 1000);
        step_set(&rig, small[i], 1000, 1);
    }
    for (size_t i = 0; i < SET_UP; i++) {
        RIG_OK(&rig, capu_free(rig.context, small[i]));
    }
    for (size_t i = 0; i < STATES; i++) {
        states[i] = step_malloc(&rig, STATE_BYTES);
        step_set(&rig, states[i], STATE_BYTES, 1);
    }
    for (size_t round = 0; round < 4; round++) {
        RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
        for (size_t i = 0; i < STATES; i++) {
            step_bump(&rig, "touch", states[i], STATE_BYTES);
        }
        RIG_OK(&rig, capu_iteration_end(rig.context));
        RIG_OK(&rig, capu_synchronize(rig.context));
        report = rig_report(&rig);
        ck_assert_uint_eq(report.floor_page_bytes, 4 * KIB);
        ck_assert_uint_eq(report.floor_bytes, 59 * 4 * KIB);
        ck_assert_uint_eq(report.floor_slabs_bytes, 0);
        ck_assert_uint_eq(report.fixed_bytes, report.page_bytes > 4 * KIB ? report.page_bytes : 0);
        ck_assert_uint_eq(report.live_peak_bytes, STATES * 59 * 4 * KIB);
        if (round == 1 && _i == 1) {
            RIG_OK(&rig, capu_budget_set(rig.context, report.floor_bytes));
        }
    }
    RIG_OK(&rig, capu_flush(rig.context));
    for (size_t i = 0; i < STATES; i++) {
        step_expect(&rig, states[i], STATE_BYTES, 5);
    }
    capu_context_destroy(rig.context);
    ck_assert_msg(trace_load(&trace, path, &error) == CAPU_OK, "%s", error.text);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 4 * KIB, &error), CAPU_OK);
    ck_assert_uint_eq(trace_index.peak_bytes, report.live_peak_bytes);
    ck_assert_uint_eq(trace_index.floor_bytes, report.floor_bytes);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
    unlink(path);
}
END_TEST

/* A set-up that fills a whole blob before it is split, iterations over its pieces, and an upload of
   another tensor between them. Returns the status of the first call that fails. */
static capu_status set_up_and_train(uint64_t budget_bytes, struct report *report)
{
    enum { PIECE = 100001, BLOB = 6 * PIECE + 3 };
    static unsigned char bytes[BLOB];
    capu_config config = CAPU_CONFIG_INIT;
    struct rig rig = {0};
    unsigned char *blob;
    unsigned char *input;
    capu_status status;

    config.device = "host";
    config.budget_bytes = budget_bytes;
    ck_assert_int_eq(capu_context_create(&config, &rig.context), CAPU_OK);
    blob = step_malloc(&rig, BLOB);
    input = step_malloc(&rig, BLOB - 1);
    for (size_t i = 0; i < 50; i++) {
        step_malloc(&rig, 500);
    }
    status = step_try_set(&rig, blob, BLOB, 1);
    for (size_t i = 1; i < 6 && status == CAPU_OK; i++) {
        status = capu_split(rig.context, blob + i * PIECE, PIECE);
    }
    for (size_t round = 0; round < 3 && status == CAPU_OK; round++) {
        status = capu_upload(rig.context, input, bytes, BLOB - 1, 0);
        RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
        for (size_t i = 1; i < 6; i++) {
            step_bump(&rig, "touch", blob + i * PIECE, PIECE);
        }
        RIG_OK(&rig, capu_iteration_end(rig.context));
    }
    if (status == CAPU_OK) {
        RIG_OK(&rig, capu_synchronize(rig.context));
        *report = rig_report(&rig);
        step_expect(&rig, blob + PIECE, PIECE, 4);
    }
    capu_context_destroy(rig.context);
    return status;
}

/* A set-up with a large op, and then with many small tensors that are freed again. */
static capu_status set_up_small(uint64_t budget_bytes, struct report *report)
{
    enum { COUNT = 1000, LARGE = 400000 };
    static unsigned char *small[COUNT];
    capu_config config = CAPU_CONFIG_INIT;
    struct rig rig = {0};
    unsigned char *large;
    capu_status status = CAPU_OK;

    config.device = "host";
    config.budget_bytes = budget_bytes;
    ck_assert_int_eq(capu_context_create(&config, &rig.context), CAPU_OK);
    large = step_malloc(&rig, LARGE);
    step_set(&rig, large, LARGE, 1);
    for (size_t i = 0; i < COUNT && status == CAPU_OK; i++) {
        void *address = NULL;

        status = capu_malloc(rig.context, 1000, &address);
        small[i] = address;
        status = status == CAPU_OK ? step_try_set(&rig, small[i], 1000, 1) : status;
    }
    for (size_t i = 0; i < COUNT && status == CAPU_OK; i++) {
        RIG_OK(&rig, capu_free(rig.context, small[i]));
    }
    if (status == CAPU_OK) {
        RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
        step_bump(&rig, "touch", large, LARGE);
        RIG_OK(&rig, capu_iteration_end(rig.context));
        RIG_OK(&rig, capu_synchronize(rig.context));
        *report = rig_report(&rig);
    }
    capu_context_destroy(rig.context);
    return status;
}

START_TEST(the_floor_of_a_program_includes_small_tensors_of_its_set_up)
{
    struct report report = {0};
    uint64_t floor_bytes;

    ck_assert_int_eq(set_up_small(0, &report), CAPU_OK);
    floor_bytes = report.program_floor_bytes;
    ck_assert_uint_eq(floor_bytes, 250 * 4 * KIB);
    ck_assert_int_eq(set_up_small(floor_bytes, &report), CAPU_OK);
    ck_assert_uint_eq(report.floor_bytes, 98 * 4 * KIB);
    ck_assert_int_eq(set_up_small(floor_bytes - 4 * KIB, &report), CAPU_OVER_BUDGET);
}
END_TEST

/* Also without a limit, where pages are larger. */
START_TEST(the_floor_of_a_program_includes_its_set_up)
{
    struct report free_run = {0};
    struct report at_floor = {0};

    ck_assert_int_eq(set_up_and_train(0, &free_run), CAPU_OK);
    ck_assert_uint_gt(free_run.page_bytes, free_run.floor_page_bytes);
    ck_assert_uint_gt(free_run.program_floor_bytes, 3 * free_run.floor_bytes);
    ck_assert_int_eq(set_up_and_train(free_run.program_floor_bytes, &at_floor), CAPU_OK);
    ck_assert_uint_eq(at_floor.program_floor_bytes, free_run.program_floor_bytes);
    ck_assert_uint_eq(at_floor.floor_bytes, free_run.floor_bytes);
    ck_assert_int_eq(
        set_up_and_train(free_run.program_floor_bytes - free_run.floor_page_bytes, &at_floor),
        CAPU_OVER_BUDGET);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api page figures");
    TCase *cases = tcase_create("page figures");

    tcase_add_test(cases, figures_are_those_of_a_run_that_they_describe);
    tcase_add_test(cases, the_trace_has_the_same_peak_and_floor);
    tcase_add_test(cases, a_better_page_is_named_for_a_pinned_one);
    tcase_add_test(cases, the_floor_of_a_program_includes_its_set_up);
    tcase_add_test(cases, the_floor_of_a_program_includes_small_tensors_of_its_set_up);
    tcase_add_loop_test(cases, slabs_that_hold_nothing_are_not_counted, 0, 2);
    tcase_add_test(cases, the_page_is_as_large_as_the_slab_threshold_needs);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
