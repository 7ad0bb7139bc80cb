/*
 * Strict mode on the host device names the culprit: six kinds of wrong declaration, each in an op
 * among right ones, for tensors with pages of their own, small ones, and pieces of one allocation
 * that share a page, in every mode. The error has the op, the tensor and the offset.
 */
#include "tests/api/steps.h"

#include "device/device.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>

/* Each test runs for every mode and each of these. */
static const struct {
    size_t bytes;
    size_t
        blob_bytes; /* of the allocation that the tensors are split from; 0: they have their own */
} sizes[] = {{PAGES(3), 0}, {200, 0}, {200, PAGES(2)}, {200, 900}};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), CASES = SIZES * CAPU_MODE_GUIDED };

struct setting {
    struct rig rig;
    size_t bytes;
    size_t count;        /* of floats */
    unsigned char *blob; /* what is left of it; NULL: none */
    float *x;
    float *y;
    float *z;
};

static float *make(struct setting *setting, const char *name)
{
    unsigned char *address = setting->blob;

    if (address == NULL) {
        address = step_malloc(&setting->rig, setting->bytes);
    } else {
        RIG_OK(&setting->rig, capu_split(setting->rig.context, address, setting->bytes));
        setting->blob += setting->bytes;
    }
    RIG_OK(&setting->rig, CAPU_DESCRIBE(setting->rig.context, address, .name = name,
                                        .kind = CAPU_PARAMETER, .hint = 0));
    return (float *)(void *)address;
}

/* Of these cases, the n-th in which each tensor is an allocation. */
static int own_memory(int n)
{
    return n / 2 * SIZES + n % 2;
}

/* x and z are written; y is not. */
static void start(struct setting *setting, int number)
{
    rig_init(&setting->rig,
             &(struct rig_options){.budget_pages = 16,
                                   .strict = true,
                                   .mode = (uint32_t)(CAPU_MODE_OFF + number / SIZES)});
    setting->bytes = sizes[number % SIZES].bytes;
    setting->blob = NULL;
    if (sizes[number % SIZES].blob_bytes > 0) {
        setting->blob = step_malloc(&setting->rig, sizes[number % SIZES].blob_bytes);
    }
    setting->count = setting->bytes / sizeof(float);
    setting->x = make(setting, "x");
    setting->y = make(setting, "y");
    setting->z = make(setting, "z");
    step_set(&setting->rig, setting->x, setting->bytes, 0);
    step_set(&setting->rig, setting->z, setting->bytes, 0);
}

/* to[i] = from[i] + 1 for `count` floats, or to[i] += from[i] + 1. Then `extra`, if there is one,
   is read or written: to[0] += *extra, or *extra = 1. */
struct job {
    float *to;
    const float *from;
    size_t count;
    float *extra;
    bool adds;
    bool writes_extra;
    bool has_thread;     /* does all this on another thread, as OpenMP would */
    bool restores_extra; /* after writing it */
};

static void *work(void *data)
{
    const struct job *job = data;

    for (size_t i = 0; i < job->count; i++) {
        job->to[i] = (job->adds ? job->to[i] : 0.0f) + job->from[i] + 1.0f;
    }
    if (job->extra != NULL && job->writes_extra) {
        float before = *job->extra;

        *(volatile float *)job->extra = 1.0f;
        if (job->restores_extra) {
            *job->extra = before;
        }
    } else if (job->extra != NULL) {
        job->to[0] += *job->extra;
    }
    return NULL;
}

static capu_status run_job(capu_stream stream, const void *arguments)
{
    struct job job = *(const struct job *)arguments;
    pthread_t thread;

    (void)stream;
    if (!job.has_thread) {
        work(&job);
    } else if (pthread_create(&thread, NULL, work, &job) == 0) {
        pthread_join(thread, NULL);
    }
    return CAPU_OK;
}

/* The op is called "job". It reads x and does this to y. */
static capu_status run(struct setting *setting, struct job job, capu_role role)
{
    job.to = setting->y;
    job.from = setting->x;
    job.count = job.count == 0 ? setting->count : job.count;
    return capu_run(
        setting->rig.context,
        &(capu_op){.size = sizeof(capu_op),
                   .name = "job",
                   .run = run_job,
                   .arguments = &job,
                   .argument_bytes = sizeof(job),
                   .operands = (const capu_operand[]){capu_reads(setting->x),
                                                      capu_operand_of(setting->y, 0, role)},
                   .operand_count = 2});
}

/* After an error that leaves the context usable, the right declaration works. */
static void finish_usable(struct setting *setting)
{
    rig_check(&setting->rig);
    RIG_OK(&setting->rig, run(setting, (struct job){0}, CAPU_WRITE));
    rig_finish(&setting->rig);
}

START_TEST(a_write_that_leaves_bytes_unwritten)
{
    struct setting setting;
    size_t floats[] = {1, 2, 20}; /* that are left out at the end */
    char text[128];

    start(&setting, _i);
    for (size_t i = 0; i < 3; i++) {
        size_t count = setting.count - floats[i];

        snprintf(text, sizeof(text),
                 "op 'job' leaves %zu bytes of 'y' unwritten, the first at offset %zu,",
                 floats[i] * sizeof(float), count * sizeof(float));
        STEP_FAILS(&setting.rig, run(&setting, (struct job){.count = count}, CAPU_WRITE),
                   CAPU_INVALID, text);
    }
    /* Unless it says that the rest is not needed. */
    RIG_OK(&setting.rig, run(&setting, (struct job){.count = 1}, CAPU_WRITE_REST_UNDEFINED));
    /* What it writes are NaN of its own, infinities and -1: no reason for an error. */
    RIG_OK(&setting.rig, run(&setting, (struct job){0}, CAPU_WRITE));
    step_set(&setting.rig, setting.x, setting.bytes, 0xff);
    RIG_OK(&setting.rig, run(&setting, (struct job){0}, CAPU_WRITE));
    finish_usable(&setting);
}
END_TEST

START_TEST(a_write_that_is_accumulated_into)
{
    struct setting setting;

    start(&setting, _i);
    STEP_FAILS(&setting.rig, run(&setting, (struct job){.adds = true}, CAPU_WRITE), CAPU_INVALID,
               "op 'job' reads 'y' before it has written it, which it declares as only written");
    STEP_FAILS(&setting.rig, run(&setting, (struct job){.adds = true}, CAPU_WRITE_REST_UNDEFINED),
               CAPU_INVALID,
               "op 'job' reads 'y' before it has written it, which it declares as only written");
    /* Read first and then overwritten: the result shows it elsewhere. */
    STEP_FAILS(&setting.rig,
               CAPU_RUN(setting.rig.context, run_job,
                        (&(struct job){.to = setting.z,
                                       .from = setting.y,
                                       .count = setting.count,
                                       .extra = setting.y,
                                       .writes_extra = true}),
                        capu_writes(setting.y), capu_updates(setting.z)),
               CAPU_INVALID, "op 'run_job' reads 'y' before it has written it");
    ck_assert_ptr_nonnull(strstr(capu_last_error(setting.rig.context), "result 'z' at offset 0"));
    finish_usable(&setting);
}
END_TEST

/* It expects to find in it what it left there. */
START_TEST(a_scratch_that_is_accumulated_into)
{
    struct setting setting;

    start(&setting, _i);
    RIG_OK(&setting.rig, run(&setting, (struct job){0}, CAPU_SCRATCH));
    STEP_FAILS(&setting.rig, run(&setting, (struct job){.adds = true}, CAPU_SCRATCH), CAPU_INVALID,
               "op 'job' reads 'y' before it has written it, which it declares as scratch");
    /* Scratch need not be written. */
    RIG_OK(&setting.rig, run(&setting, (struct job){.count = 1}, CAPU_SCRATCH));
    finish_usable(&setting);
}
END_TEST

/* At both ends, and in pages of its own also if what is written was there before. */
START_TEST(a_read_that_is_written)
{
    struct setting setting;
    char text[128];

    start(&setting, _i);
    for (size_t i = 0; i < (sizes[_i % SIZES].blob_bytes == 0 ? 4 : 2); i++) {
        size_t at = i % 2 == 0 ? 0 : setting.count - 1;
        struct job job = {.extra = setting.x + at, .writes_extra = true, .has_thread = i >= 2};

        snprintf(text, sizeof(text),
                 sizes[_i % SIZES].blob_bytes == 0
                     ? "op 'job' has changed 'x', which it says it only reads, at offset %zu:"
                     : "op 'job' has changed 'x', which it says it only reads:",
                 at * sizeof(float));
        STEP_FAILS(&setting.rig, run(&setting, job, CAPU_WRITE), CAPU_INVALID, text);
    }
    finish_usable(&setting);
}
END_TEST

/* It is as wrong, since the tensor may be copied out meanwhile; but where a page is shared, what
   has been restored leaves no trace. */
START_TEST(a_read_that_is_written_and_restored)
{
    struct setting setting;
    struct job job = {.writes_extra = true, .restores_extra = true};

    start(&setting, _i);
    job.extra = setting.x;
    if (sizes[_i % SIZES].blob_bytes == 0) {
        STEP_FAILS(&setting.rig, run(&setting, job, CAPU_WRITE), CAPU_INVALID,
                   "op 'job' has changed 'x', which it says it only reads, at offset 0:");
    } else {
        RIG_OK(&setting.rig, run(&setting, job, CAPU_WRITE));
    }
    finish_usable(&setting);
}
END_TEST

/* Where a page is shared, only a write shows the offset. */
static void expect_missing(int number, struct job job)
{
    bool has_offset = sizes[number % SIZES].blob_bytes == 0 || job.writes_extra;
    struct setting setting;
    void *address;

    start(&setting, number);
    job.extra = setting.z + 5;
    STEP_FAILS(&setting.rig, run(&setting, job, CAPU_WRITE), CAPU_OP_FAILED,
               has_offset ? "op 'job' touched tensor 'z', offset 20, which it does not name"
                          : "op 'job' touched tensor 'z', which it does not name");
    ck_assert_int_eq(capu_malloc(setting.rig.context, 1, &address), CAPU_OP_FAILED);
    ck_assert_ptr_nonnull(strstr(capu_last_error(setting.rig.context), "tensor 'z'"));
    capu_context_destroy(setting.rig.context);
}

START_TEST(a_missing_operand_that_is_read)
{
    expect_missing(_i, (struct job){.has_thread = false});
    expect_missing(_i, (struct job){.has_thread = true});
}
END_TEST

START_TEST(a_missing_operand_that_is_written)
{
    expect_missing(_i, (struct job){.writes_extra = true});
    expect_missing(_i, (struct job){.writes_extra = true, .has_thread = true});
}
END_TEST

/* Small tensors share a page: past the end of y comes z, at other addresses. It is not changed. */
START_TEST(a_small_tensor_that_is_overrun)
{
    struct setting setting;
    uintptr_t mask = RIG_PAGE - 1;
    bool writes = _i % 2 == 1;

    start(&setting, _i / 2 * SIZES + 1);
    ck_assert_uint_eq(((uintptr_t)setting.y & mask) + 256, (uintptr_t)setting.z & mask);
    STEP_FAILS(&setting.rig,
               run(&setting,
                   (struct job){.extra = setting.y + 256 / sizeof(float), .writes_extra = writes},
                   CAPU_WRITE),
               CAPU_OP_FAILED,
               writes ? "op 'job' touched tensor 'z', offset 0, which it does not name"
                      : "op 'job' touched tensor 'z', which it does not name");
    ck_assert_msg(setting.z[0] == 0.0f, "%g", (double)setting.z[0]);
    capu_context_destroy(setting.rig.context);
}
END_TEST

/* Also where the tensor has been evicted, or freed. */
START_TEST(a_missing_operand_without_memory)
{
    struct setting setting;

    start(&setting, own_memory(_i));
    if (_i % 2 == 0 && setting.rig.context->settings.is_paging) {
        for (size_t i = 0; i < 4; i++) {
            step_set(&setting.rig, step_malloc(&setting.rig, PAGES(4)), PAGES(4), 1);
        }
        ck_assert_uint_eq(step_query(&setting.rig, setting.z).is_resident, 0);
        STEP_FAILS(&setting.rig, run(&setting, (struct job){.extra = setting.z}, CAPU_WRITE),
                   CAPU_OP_FAILED, "op 'job' touched tensor 'z', offset 0,");
    } else {
        RIG_OK(&setting.rig, capu_free(setting.rig.context, setting.z));
        STEP_FAILS(&setting.rig, run(&setting, (struct job){.extra = setting.z}, CAPU_WRITE),
                   CAPU_OP_FAILED, "which is in no tensor");
    }
    capu_context_destroy(setting.rig.context);
}
END_TEST

/* The program's own work is watched between begin and end. */
START_TEST(an_access_that_touches_another_tensor)
{
    struct setting setting;
    capu_operand operand;
    const capu_op op = {
        .size = sizeof(op), .name = "peek", .operands = &operand, .operand_count = 1};

    start(&setting, _i);
    operand = capu_reads(setting.x);
    RIG_OK(&setting.rig, capu_access_begin(setting.rig.context, &op));
    setting.z[3] = setting.x[3];
    STEP_FAILS(&setting.rig, capu_access_end(setting.rig.context), CAPU_OP_FAILED,
               "op 'peek' touched tensor 'z', offset 12, which it does not name");
    capu_context_destroy(setting.rig.context);
}
END_TEST

/* A replay has a function of its own, which may be wrong alone. It is found when the op runs twice;
   with _i, it is wrong only later, when the plan for half of the memory recomputes. */
static float *replay_touches;

static capu_status replay_job(capu_stream stream, const void *arguments)
{
    struct job job = *(const struct job *)arguments;

    job.extra = replay_touches;
    return run_job(stream, &job);
}

START_TEST(a_replay_that_touches_another_tensor)
{
    enum { LAYERS = 6, LAYER_PAGES = 3, ROUNDS = 6 };
    struct rig rig;
    float *layers[LAYERS + 1];
    capu_status status = CAPU_OK;

    rig_init(&rig, &(struct rig_options){.budget_pages = 14,
                                         .strict = true,
                                         .mode = CAPU_MODE_GUIDED,
                                         .planner = "recompute",
                                         .wait_for_plan = true});
    layers[0] = (float *)(void *)step_tensor(&rig, "x", CAPU_PARAMETER, LAYER_PAGES);
    step_set(&rig, layers[0], PAGES(LAYER_PAGES), 0);
    for (size_t i = 1; i <= LAYERS; i++) {
        layers[i] = (float *)(void *)step_tensor(&rig, "layer", CAPU_ACTIVATION, LAYER_PAGES);
    }
    for (size_t round = 0; round < ROUNDS && status == CAPU_OK; round++) {
        replay_touches = _i == 0 ? layers[0] : NULL;
        RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
        for (size_t i = 1; i <= LAYERS && status == CAPU_OK; i++) {
            const struct job job = {.to = layers[i],
                                    .from = layers[i == 1 ? 0 : i - 1],
                                    .count = PAGES(LAYER_PAGES) / sizeof(float)};

            status = capu_run(rig.context,
                              &(capu_op){.size = sizeof(capu_op),
                                         .name = "layer",
                                         .run = run_job,
                                         .replay = i > 1 ? replay_job : NULL,
                                         .arguments = &job,
                                         .argument_bytes = sizeof(job),
                                         .operands = (const capu_operand[]){capu_reads(job.from),
                                                                            capu_writes(job.to)},
                                         .operand_count = 2});
        }
        replay_touches = layers[0];
        for (size_t i = LAYERS; i >= 1 && status == CAPU_OK; i--) {
            status = step_touch(&rig, "backward", CAPU_READ, 1, (void *[]){layers[i]});
        }
        if (status == CAPU_OK) {
            status = capu_iteration_end(rig.context);
        }
    }
    STEP_FAILS(&rig, status, CAPU_OP_FAILED,
               "op 'layer', run again, touched tensor 'x', offset 0, which it does not name");
    capu_context_destroy(rig.context);
}
END_TEST

/* The signal handler is there while a strict context is, and only then. Two contexts share it. */
START_TEST(the_signal_handler_is_restored)
{
    struct sigaction before;
    struct sigaction now;
    struct rig rigs[2];

    ck_assert_int_eq(sigaction(SIGSEGV, NULL, &before), 0);
    rig_init(&rigs[0], &(struct rig_options){.budget_pages = 8});
    step_set(&rigs[0], step_malloc(&rigs[0], PAGES(1)), PAGES(1), 1);
    ck_assert_int_eq(sigaction(SIGSEGV, NULL, &now), 0);
    ck_assert(now.sa_sigaction == before.sa_sigaction);
    rig_finish(&rigs[0]);
    for (size_t i = 0; i < 2; i++) {
        rig_init(&rigs[i], &(struct rig_options){.budget_pages = 8, .strict = true});
        step_set(&rigs[i], step_malloc(&rigs[i], PAGES(1)), PAGES(1), 1);
    }
    rig_finish(&rigs[0]);
    ck_assert_int_eq(sigaction(SIGSEGV, NULL, &now), 0);
    ck_assert(now.sa_sigaction != before.sa_sigaction);
    rig_finish(&rigs[1]);
    ck_assert_int_eq(sigaction(SIGSEGV, NULL, &now), 0);
    ck_assert(now.sa_sigaction == before.sa_sigaction);
}
END_TEST

/* Contexts in several threads are watched at the same time, and each error is its own context's. */
static void *culprit(void *data)
{
    const int *number = data;
    struct setting setting;

    start(&setting, *number);
    for (size_t i = 0; i < 20; i++) {
        RIG_OK(&setting.rig, run(&setting, (struct job){0}, CAPU_WRITE));
        STEP_FAILS(
            &setting.rig,
            run(&setting, (struct job){.extra = setting.x + 1, .writes_extra = true}, CAPU_WRITE),
            CAPU_INVALID, "op 'job' has changed 'x', which it says it only reads, at offset 4");
    }
    STEP_FAILS(&setting.rig, run(&setting, (struct job){.extra = setting.z}, CAPU_WRITE),
               CAPU_OP_FAILED, "op 'job' touched tensor 'z', offset 0,");
    capu_context_destroy(setting.rig.context);
    return NULL;
}

START_TEST(contexts_of_several_threads_do_not_interfere)
{
    enum { THREADS = 4 };
    static int numbers[THREADS];
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        numbers[i] = own_memory(i);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, culprit, &numbers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api culprit");
    TCase *cases = tcase_create("culprit");

    tcase_add_loop_test(cases, a_write_that_leaves_bytes_unwritten, 0, CASES);
    tcase_add_loop_test(cases, a_write_that_is_accumulated_into, 0, CASES);
    tcase_add_loop_test(cases, a_scratch_that_is_accumulated_into, 0, CASES);
    tcase_add_loop_test(cases, a_read_that_is_written, 0, CASES);
    tcase_add_loop_test(cases, a_read_that_is_written_and_restored, 0, CASES);
    tcase_add_loop_test(cases, a_missing_operand_that_is_read, 0, CASES);
    tcase_add_loop_test(cases, a_missing_operand_that_is_written, 0, CASES);
    tcase_add_loop_test(cases, a_small_tensor_that_is_overrun, 0, 2 * CAPU_MODE_GUIDED);
    tcase_add_loop_test(cases, a_missing_operand_without_memory, 0, 2 * CAPU_MODE_GUIDED);
    tcase_add_loop_test(cases, an_access_that_touches_another_tensor, 0, CASES);
    tcase_add_loop_test(cases, a_replay_that_touches_another_tensor, 0, 2);
    tcase_add_test(cases, the_signal_handler_is_restored);
    tcase_add_test(cases, contexts_of_several_threads_do_not_interfere);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
