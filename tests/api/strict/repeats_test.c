/*
 * Strict mode on the host device runs each replayable op twice: what gives other bytes the second
 * time, or depends on what it was not given, is named. For tensors with pages of their own, small
 * ones, and pieces of one allocation that share a page, in every mode.
 */
#include "tests/api/steps.h"

#include <math.h>

enum { SIZES = 3, CASES = SIZES * CAPU_MODE_GUIDED };

struct setting {
    struct rig rig;
    size_t bytes;
    unsigned char *in;
    unsigned char *out;
    unsigned char *state; /* small: always resident */
};

/* State of the host that an op may use although replays must not. */
static unsigned char host_state;
static unsigned run_count;

static unsigned char *make(struct setting *setting, unsigned char **blob, const char *name)
{
    unsigned char *address = *blob;

    if (address == NULL) {
        address = step_malloc(&setting->rig, setting->bytes);
    } else {
        RIG_OK(&setting->rig, capu_split(setting->rig.context, address, setting->bytes));
        *blob += setting->bytes;
    }
    RIG_OK(&setting->rig,
           CAPU_DESCRIBE(setting->rig.context, address, .name = name, .kind = CAPU_PARAMETER));
    return address;
}

static void start(struct setting *setting, int number)
{
    static const size_t sizes[SIZES] = {PAGES(3), 200, 200};
    unsigned char *blob = NULL;

    rig_init(&setting->rig,
             &(struct rig_options){.budget_pages = 16,
                                   .strict = true,
                                   .mode = (uint32_t)(CAPU_MODE_OFF + number / SIZES)});
    setting->bytes = sizes[number % SIZES];
    if (number % SIZES == 2) {
        blob = step_malloc(&setting->rig, PAGES(2));
    }
    setting->in = make(setting, &blob, "in");
    setting->out = make(setting, &blob, "out");
    setting->state = step_malloc(&setting->rig, 8);
    RIG_OK(&setting->rig,
           CAPU_DESCRIBE(setting->rig.context, setting->state, .name = "state", .kind = 0));
    step_set(&setting->rig, setting->in, setting->bytes, 3);
    step_set(&setting->rig, setting->out, setting->bytes, 0);
    step_set(&setting->rig, setting->state, 8, 1);
    host_state = 0;
    run_count = 0;
}

static void finish(struct setting *setting)
{
    rig_finish(&setting->rig);
}

struct job {
    unsigned char *out;
    const unsigned char *in;
    unsigned char *state;
    size_t bytes;
    size_t skips; /* this byte is not written; past the end: none */
    size_t skipped_bytes;
};

static void fill(const struct job *job, unsigned char value)
{
    for (size_t i = 0; i < job->bytes; i++) {
        if (i < job->skips || i >= job->skips + job->skipped_bytes) {
            job->out[i] = (unsigned char)(job->in[i] + value);
        }
    }
}

static capu_status add_nothing(capu_stream stream, const void *arguments)
{
    (void)stream;
    run_count++;
    fill(arguments, 0);
    return CAPU_OK;
}

static capu_status add_host_state(capu_stream stream, const void *arguments)
{
    (void)stream;
    fill(arguments, host_state++);
    return CAPU_OK;
}

/* Draws from the state and moves it on. */
static capu_status add_state(capu_stream stream, const void *arguments)
{
    const struct job *job = arguments;

    (void)stream;
    fill(job, job->state[0]);
    job->state[0]++;
    return CAPU_OK;
}

/* A replay of that which draws from the state as it is now. */
static capu_status add_state_as_it_is(capu_stream stream, const void *arguments)
{
    const struct job *job = arguments;

    (void)stream;
    fill(job, job->state[0]);
    return CAPU_OK;
}

/* And one that draws what was drawn, but moves the state on as well. */
static capu_status add_state_and_move(capu_stream stream, const void *arguments)
{
    const struct job *job = arguments;

    (void)stream;
    fill(job, (unsigned char)(job->state[0] - 1));
    job->state[0]++;
    return CAPU_OK;
}

static capu_status fail_again(capu_stream stream, const void *arguments)
{
    (void)stream;
    fill(arguments, 0);
    return run_count++ == 0 ? CAPU_OK : CAPU_OP_FAILED;
}

/* The op is called "job", reads `in` and does `role` to `out`. With a role for the state, that is
   the third operand. */
static capu_status run(struct setting *setting, capu_run_function function,
                       capu_run_function replay, capu_role role, capu_role state_role,
                       const struct job *more)
{
    struct job job = {.out = setting->out,
                      .in = setting->in,
                      .state = setting->state,
                      .bytes = setting->bytes,
                      .skips = more != NULL ? more->skips : setting->bytes,
                      .skipped_bytes = more != NULL ? more->skipped_bytes : 0};
    capu_operand operands[] = {capu_reads(job.in),
                               {.address = job.out, .role = role},
                               {.address = job.state, .role = state_role}};

    return capu_run(setting->rig.context, &(capu_op){.size = sizeof(capu_op),
                                                     .name = "job",
                                                     .run = function,
                                                     .replay = replay,
                                                     .arguments = &job,
                                                     .argument_bytes = sizeof(job),
                                                     .operands = operands,
                                                     .operand_count = state_role != 0 ? 3 : 2});
}

START_TEST(an_op_that_is_right_runs_twice)
{
    struct setting setting;

    start(&setting, _i);
    RIG_OK(&setting.rig, run(&setting, add_nothing, NULL, CAPU_WRITE, 0, NULL));
    ck_assert_uint_eq(run_count, 2);
    step_expect(&setting.rig, setting.out, setting.bytes, 3);
    RIG_OK(&setting.rig, run(&setting, add_nothing, NULL, CAPU_UPDATE, 0, NULL));
    ck_assert_uint_eq(run_count, 3); /* it is not replayable */
    finish(&setting);
}
END_TEST

/* What the first run left is there. */
START_TEST(an_op_that_draws_from_the_host_is_named)
{
    struct setting setting;

    start(&setting, _i);
    host_state = 7;
    STEP_FAILS(&setting.rig, run(&setting, add_host_state, NULL, CAPU_WRITE, 0, NULL), CAPU_INVALID,
               "op 'job' is not replayable: run again with the same operands and arguments, it "
               "gives other bytes in 'out', at offset 0");
    step_expect(&setting.rig, setting.out, setting.bytes, 10);
    finish(&setting);
}
END_TEST

START_TEST(a_replay_that_reads_what_has_moved_on_is_named)
{
    struct setting setting;

    start(&setting, _i);
    RIG_OK(&setting.rig, run(&setting, add_state, NULL, CAPU_WRITE, CAPU_UPDATE, NULL));
    step_expect(&setting.rig, setting.state, 1, 2);
    STEP_FAILS(&setting.rig,
               run(&setting, add_state, add_state_as_it_is, CAPU_WRITE, CAPU_UPDATE, NULL),
               CAPU_INVALID, "op 'job' is not replayable");
    step_expect(&setting.rig, setting.out, setting.bytes, 5);
    step_expect(&setting.rig, setting.state, 1, 3);
    STEP_FAILS(&setting.rig,
               run(&setting, add_state, add_state_and_move, CAPU_WRITE, CAPU_UPDATE, NULL),
               CAPU_INVALID, "op 'job', run again, has changed 'state'");
    step_expect(&setting.rig, setting.state, 1, 4);
    finish(&setting);
}
END_TEST

START_TEST(an_op_that_fails_the_second_time_is_named)
{
    struct setting setting;

    start(&setting, _i);
    STEP_FAILS(&setting.rig, run(&setting, fail_again, NULL, CAPU_WRITE, 0, NULL), CAPU_OP_FAILED,
               "when strict mode ran 'job' again");
    capu_context_destroy(setting.rig.context);
}
END_TEST

/* Fewer than poison alone shows: one word in the middle, and one byte. */
START_TEST(a_few_bytes_that_are_not_written_are_named)
{
    static const struct job jobs[] = {{.skips = 100, .skipped_bytes = 4},
                                      {.skips = 101, .skipped_bytes = 1},
                                      {.skips = 198, .skipped_bytes = 2}};
    struct setting setting;

    start(&setting, _i);
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        char text[100];

        snprintf(text, sizeof(text),
                 "op 'job' leaves %zu bytes of 'out' unwritten, the first at offset %zu",
                 jobs[i].skipped_bytes, jobs[i].skips);
        STEP_FAILS(&setting.rig, run(&setting, add_nothing, NULL, CAPU_WRITE, 0, &jobs[i]),
                   CAPU_INVALID, text);
    }
    RIG_OK(&setting.rig, run(&setting, add_nothing, NULL, CAPU_WRITE_REST_UNDEFINED, 0, &jobs[0]));
    RIG_OK(&setting.rig, run(&setting, add_nothing, NULL, CAPU_WRITE_REST_ZERO, 0, &jobs[0]));
    step_expect(&setting.rig, setting.out + 100, 4, 0);
    finish(&setting);
}
END_TEST

/* Results that depend on what an operand held before, and show no NaN. */
static capu_status add_bytes(capu_stream stream, const void *arguments)
{
    const struct job *job = arguments;

    (void)stream;
    for (size_t i = 0; i < job->bytes; i++) {
        job->out[i] = (unsigned char)(job->out[i] + job->in[i]);
    }
    return CAPU_OK;
}

static capu_status take_larger(capu_stream stream, const void *arguments)
{
    const struct job *job = arguments;
    float *out = (float *)(void *)job->out;

    (void)stream;
    for (size_t i = 0; i < job->bytes / sizeof(float); i++) {
        out[i] = fmaxf(fmaxf(out[i], -out[i]), 1.0f);
    }
    return CAPU_OK;
}

static capu_status compare(capu_stream stream, const void *arguments)
{
    const struct job *job = arguments;
    float *out = (float *)(void *)job->out;

    (void)stream;
    for (size_t i = 0; i < job->bytes / sizeof(float); i++) {
        out[i] = out[i] == out[i] ? 1.0f : 0.0f;
    }
    return CAPU_OK;
}

/* The upper half of a float, as a bfloat16 is. */
static capu_status halve(capu_stream stream, const void *arguments)
{
    const struct job *job = arguments;
    uint16_t *out = (uint16_t *)(void *)job->out;

    (void)stream;
    for (size_t i = 0; i < job->bytes / sizeof(*out); i++) {
        uint32_t word = (uint32_t)out[i] << 16;
        float value;

        memcpy(&value, &word, sizeof(value));
        value *= 0.5f;
        memcpy(&word, &value, sizeof(value));
        out[i] = isnan(value) ? 0x7fff : (uint16_t)(word >> 16);
    }
    return CAPU_OK;
}

/* The scratch is the state, and the result depends on it. */
static capu_status use_scratch(capu_stream stream, const void *arguments)
{
    const struct job *job = arguments;

    (void)stream;
    fill(job, job->state[0] > 0x80 ? 1 : 2);
    return CAPU_OK;
}

START_TEST(results_that_depend_on_what_was_there_are_named)
{
    static const capu_run_function functions[] = {add_bytes, take_larger, compare, halve};
    struct setting setting;
    size_t found = 0;

    start(&setting, _i);
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        STEP_FAILS(&setting.rig, run(&setting, functions[i], NULL, CAPU_WRITE, 0, NULL),
                   CAPU_INVALID, "op 'job' reads ");
        STEP_FAILS(&setting.rig, run(&setting, functions[i], NULL, CAPU_WRITE, 0, NULL),
                   CAPU_INVALID, "before it has written it, which it declares as only written");
    }
    /* The first byte of a pattern says little: a few ops see it change. */
    for (size_t i = 0; i < 64; i++) {
        found += run(&setting, use_scratch, NULL, CAPU_WRITE, CAPU_SCRATCH, NULL) == CAPU_INVALID;
    }
    ck_assert_uint_gt(found, 0);
    finish(&setting);
}
END_TEST

/* Reads the byte after the end of `out`, or where the next small tensor is: `skips` is its offset.
 */
static capu_status add_beyond(capu_stream stream, const void *arguments)
{
    const struct job *job = arguments;

    (void)stream;
    for (size_t i = 0; i < job->bytes; i++) {
        job->out[i] = (unsigned char)(job->in[i] + job->out[job->skips]);
    }
    return CAPU_OK;
}

START_TEST(bytes_of_neighbours_that_are_read_are_found)
{
    bool is_piece = _i % 2 == 1;
    struct setting setting;
    struct job job;

    start(&setting, _i / 2 * SIZES + 1 + is_piece);
    job = (struct job){.skips = is_piece ? setting.bytes : 256};
    step_set(&setting.rig, setting.out + setting.bytes * is_piece, 8, 9);
    STEP_FAILS(&setting.rig, run(&setting, add_beyond, NULL, CAPU_WRITE, 0, &job), CAPU_OP_FAILED,
               "op 'job' reads memory that it does not name, in a page of one of its operands");
    capu_context_destroy(setting.rig.context);
}
END_TEST

enum { LAYERS = 6, LAYER_PAGES = 4 };

/* The arguments point to host memory that changes before the backward pass: a replay of the plan is
   the first to see it. */
struct layer {
    unsigned char *to;
    const unsigned char *from;
    const unsigned char *step;
};

static capu_status add_step(capu_stream stream, const void *arguments)
{
    const struct layer *layer = arguments;

    (void)stream;
    for (size_t i = 0; i < PAGES(LAYER_PAGES); i++) {
        layer->to[i] = (unsigned char)(layer->from[i] + *layer->step);
    }
    return CAPU_OK;
}

static capu_status add_step_to_piece(capu_stream stream, const void *arguments)
{
    const struct layer *layer = arguments;

    (void)stream;
    for (size_t i = 0; i < PAGES(LAYER_PAGES) + 37; i++) {
        layer->to[i] = (unsigned char)(layer->from[i] + *layer->step);
    }
    return CAPU_OK;
}

static capu_status train(struct rig *rig, unsigned char *const *layers, unsigned char *step)
{
    capu_status status;

    RIG_OK(rig, capu_iteration_begin(rig->context, NULL));
    step_set(rig, layers[0], PAGES(LAYER_PAGES), 1);
    for (size_t i = 0; i < LAYERS; i++) {
        struct layer layer = {layers[i + 1], layers[i], step};

        RIG_OK(rig, CAPU_RUN(rig->context, add_step, &layer, capu_reads(layer.from),
                             capu_writes(layer.to)));
    }
    RIG_OK(rig, capu_synchronize(rig->context));
    (*step)++;
    for (size_t i = LAYERS + 1; i-- > 0;) {
        status = step_touch(rig, "backward", CAPU_READ, 1, (void *[]){layers[i]});
        if (status != CAPU_OK) {
            return status;
        }
    }
    return capu_iteration_end(rig->context);
}

START_TEST(a_replay_of_a_plan_that_gives_other_bytes_is_named)
{
    unsigned char *layers[LAYERS + 1];
    unsigned char step = 1;
    capu_status status = CAPU_OK;
    struct rig rig;

    rig_init(&rig, &(struct rig_options){.mode = CAPU_MODE_GUIDED,
                                         .wait_for_plan = true,
                                         .planner = "recompute",
                                         .strict = true,
                                         .budget_pages = 18});
    for (size_t i = 0; i <= LAYERS; i++) {
        layers[i] = step_tensor(&rig, "layer", CAPU_ACTIVATION, LAYER_PAGES);
    }
    RIG_OK(&rig, train(&rig, layers, &step));
    for (size_t round = 0; round < 3 && status == CAPU_OK; round++) {
        status = train(&rig, layers, &step);
    }
    STEP_FAILS(&rig, status, CAPU_OP_FAILED,
               "op 'add_step', run again by the plan, gives other bytes in 'layer'");
    capu_context_destroy(rig.context);
}
END_TEST

/* Pieces that begin at odd addresses, and whose pages are others at each residency. The first one
   of them reads bytes that are undefined, which may be others when it runs again. */
START_TEST(replays_that_are_right_are_not_reported)
{
    enum { PIECE = PAGES(LAYER_PAGES) + 37 };
    capu_report report = CAPU_REPORT_INIT;
    unsigned char *layers[LAYERS + 1];
    unsigned char *blob;
    unsigned char step = 1;
    struct rig rig;

    rig_init(&rig, &(struct rig_options){.mode = CAPU_MODE_GUIDED,
                                         .wait_for_plan = true,
                                         .planner = "recompute",
                                         .places_nothing = true,
                                         .strict = true,
                                         .budget_pages = 25});
    blob = step_malloc(&rig, (LAYERS + 1) * PIECE);
    for (size_t i = 0; i <= LAYERS; i++) {
        layers[i] = blob + i * PIECE;
        RIG_OK(&rig, capu_split(rig.context, layers[i], PIECE));
        RIG_OK(&rig,
               CAPU_DESCRIBE(rig.context, layers[i], .name = "layer", .kind = CAPU_ACTIVATION));
    }
    for (size_t round = 0; round < 5; round++) {
        RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
        RIG_OK(&rig, capu_upload(rig.context, layers[0], &step, 1, CAPU_TRANSFER_REST_UNDEFINED));
        for (size_t i = 0; i < LAYERS; i++) {
            struct layer layer = {layers[i + 1], layers[i], &step};

            RIG_OK(&rig, CAPU_RUN(rig.context, add_step_to_piece, &layer, capu_reads(layer.from),
                                  capu_writes(layer.to)));
        }
        for (size_t i = LAYERS + 1; i-- > 0;) {
            RIG_OK(&rig, step_touch(&rig, "backward", CAPU_READ, 1, (void *[]){layers[i]}));
        }
        RIG_OK(&rig, capu_iteration_end(rig.context));
        RIG_OK(&rig, capu_synchronize(rig.context));
        RIG_OK(&rig, capu_report_get(rig.context, &report));
    }
    ck_assert_uint_gt(report.replay_count, 0);
    rig_finish(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api repeats");
    TCase *cases = tcase_create("repeats");

    tcase_add_loop_test(cases, an_op_that_is_right_runs_twice, 0, CASES);
    tcase_add_loop_test(cases, an_op_that_draws_from_the_host_is_named, 0, CASES);
    tcase_add_loop_test(cases, a_replay_that_reads_what_has_moved_on_is_named, 0, CASES);
    tcase_add_loop_test(cases, an_op_that_fails_the_second_time_is_named, 0, CASES);
    tcase_add_loop_test(cases, a_few_bytes_that_are_not_written_are_named, 0, CASES);
    tcase_add_loop_test(cases, results_that_depend_on_what_was_there_are_named, 0, CASES);
    tcase_add_loop_test(cases, bytes_of_neighbours_that_are_read_are_found, 0,
                        2 * CAPU_MODE_GUIDED);
    tcase_add_test(cases, replays_that_are_right_are_not_reported);
    tcase_add_test(cases, a_replay_of_a_plan_that_gives_other_bytes_is_named);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
