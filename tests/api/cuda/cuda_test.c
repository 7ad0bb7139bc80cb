/* Contexts on the cuda device over the fake CUDA runtime, used as a program would use them. */
#include "capuchin/capuchin.h"
#include "capuchin/private.h"
#include "tests/fake_cudart/fake_cudart.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 200000 }; /* four pages of the fake device */

#define WORKS(context_, call_)                                                             \
    do {                                                                                   \
        capu_status status_ = (call_);                                                     \
        ck_assert_msg(status_ == CAPU_OK, "%s: %s: %s", #call_, capu_status_name(status_), \
                      capu_last_error(context_));                                          \
    } while (0)

static capu_config config_of(const char *device)
{
    capu_config config = CAPU_CONFIG_INIT;

    config.device = device;
    config.mode = CAPU_MODE_PASSIVE;
    config.budget_bytes = 10 * 65536;
    config.page_bytes = 65536;
    (void)capu_config_set(&config, "d2h", "1000000000");
    (void)capu_config_set(&config, "h2d", "1000000000");
    return config;
}

static capu_context *create(const capu_config *config)
{
    capu_context *context = NULL;

    ck_assert_int_eq(capu_context_create(config, &context), CAPU_OK);
    return context;
}

START_TEST(auto_prefers_cuda)
{
    capu_config config = config_of("auto");
    capu_context *context = NULL;
    char text[300] = "";

    fake_cudart_reset(NULL);
    context = create(&config);
    ck_assert_str_eq(capu_context_device(context), "cuda");
    capu_context_destroy(context);

    /* If there is a cuda device and the config does not suit it, that is an error; another device
       must not be chosen silently. */
    config.page_bytes = 4096;
    config.error = text;
    config.error_bytes = sizeof(text);
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_INVALID);
    ck_assert_ptr_nonnull(strstr(text, "65536"));

    fake_cudart_reset(&(struct fake_cudart_machine){.has_no_driver = true});
    config.page_bytes = 65536;
    context = create(&config);
    ck_assert_str_eq(capu_context_device(context), "host");
    capu_context_destroy(context);
    config.device = "cuda";
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_NO_DEVICE);
    ck_assert_ptr_nonnull(strstr(text, "cudaErrorInsufficientDriver"));
}
END_TEST

START_TEST(a_device_is_named_by_its_number)
{
    capu_config config = config_of("cuda:1");
    capu_context *context = NULL;

    fake_cudart_reset(&(struct fake_cudart_machine){.device_count = 2});
    context = create(&config);
    ck_assert_str_eq(capu_context_device(context), "cuda");
    ck_assert_int_eq(fake_cudart_current(), 1);
    capu_context_destroy(context);
    config.device = "cuda:2";
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_NO_DEVICE);
}
END_TEST

/* The arguments of a kernel. They must live until the kernel has run; the op's arguments do not. */
struct bump {
    unsigned char *to;
    const unsigned char *from; /* NULL: zeros */
};

static struct bump launched[64];
static size_t launched_count;
static capu_stream launched_on;

static capu_status bump_kernel(capu_stream stream, const void *arguments)
{
    const struct bump *bump = arguments;

    (void)stream;
    for (size_t i = 0; i < BYTES; i++) {
        bump->to[i] = (unsigned char)((bump->from != NULL ? bump->from[i] : 0) + 1);
    }
    return CAPU_OK;
}

/* As on a GPU, the run function is called at once and only launches a kernel. */
static capu_status bump(capu_stream stream, const void *arguments)
{
    struct bump *kept = &launched[launched_count++];

    *kept = *(const struct bump *)arguments;
    launched_on = stream;
    return fake_cudart_launch(stream, bump_kernel, kept);
}

static void run_bump(capu_context *context, void *to, const void *from)
{
    const struct bump arguments = {.to = to, .from = from};

    if (from == NULL) {
        WORKS(context, CAPU_RUN(context, bump, &arguments, capu_writes(to)));
    } else {
        WORKS(context, CAPU_RUN(context, bump, &arguments, capu_reads(from), capu_writes(to)));
    }
}

/* Computes more tensors than the budget holds; each is the one before plus 1. */
static void train(capu_context *context)
{
    static unsigned char bytes[BYTES];
    void *chain[8];

    launched_count = 0;
    for (size_t i = 0; i < 8; i++) {
        WORKS(context, capu_malloc(context, BYTES, &chain[i]));
        run_bump(context, chain[i], i == 0 ? NULL : chain[i - 1]);
    }
    for (size_t i = 0; i < 8; i++) {
        WORKS(context, capu_download(context, bytes, chain[i], BYTES, 0));
        for (size_t at = 0; at < BYTES; at++) {
            if (bytes[at] != i + 1) {
                ck_abort_msg("tensor %zu, byte %zu: %u", i, at, bytes[at]);
            }
        }
        WORKS(context, capu_free(context, chain[i]));
    }
}

START_TEST(a_program_trains_past_its_budget)
{
    const struct fake_cudart_machine machine = {.delay_seed = (uint64_t)_i};
    capu_config config = config_of("cuda");
    capu_context *context;

    fake_cudart_reset(&machine);
    context = create(&config);
    train(context);
    ck_assert_ptr_eq(launched_on, capu_context_stream(context));
    capu_context_destroy(context);
    ck_assert_uint_eq(fake_cudart_left().handles, 0);
    ck_assert_uint_eq(fake_cudart_left().streams, 0);
    ck_assert_uint_eq(fake_cudart_left().events, 0);
    ck_assert_uint_eq(fake_cudart_left().registered, 0);
}
END_TEST

/* The program's own stream; here it belongs to another context. */
START_TEST(a_program_can_bring_its_own_stream)
{
    capu_config config = config_of("cuda");
    capu_context *owner;
    capu_context *context;

    fake_cudart_reset(NULL);
    owner = create(&config);
    config.stream = capu_context_stream(owner);
    context = create(&config);
    ck_assert_ptr_eq(capu_context_stream(context), config.stream);
    train(context);
    ck_assert_ptr_eq(launched_on, config.stream);
    capu_context_destroy(context);
    /* Destroying the context has not destroyed the stream. */
    train(owner);
    capu_context_destroy(owner);
}
END_TEST

static capu_status refuse(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return capu_run_waited(1); /* here nothing has waited yet */
}

START_TEST(an_op_that_cannot_be_enqueued_is_named)
{
    capu_config config = config_of("cuda");
    capu_operand operand;
    capu_op op = {.size = sizeof(op),
                  .name = "the bad op",
                  .run = refuse,
                  .operands = &operand,
                  .operand_count = 1};
    capu_context *context;
    void *tensor;

    fake_cudart_reset(NULL);
    launched_count = 0;
    context = create(&config);
    WORKS(context, capu_malloc(context, BYTES, &tensor));
    operand = capu_writes(tensor);
    ck_assert_int_eq(capu_run(context, &op), CAPU_DEVICE_FAILED);
    ck_assert_ptr_nonnull(strstr(capu_last_error(context), "'the bad op'"));
    ck_assert_ptr_nonnull(strstr(capu_last_error(context), "returned CAPU_UNSUPPORTED"));
    run_bump(context, tensor, NULL);
    WORKS(context, capu_synchronize(context));
    capu_context_destroy(context);
}
END_TEST

static capu_status slow_kernel(capu_stream stream, const void *arguments)
{
    usleep(20000);
    return bump_kernel(stream, arguments);
}

/* Launches one kernel, and refuses the next. */
static capu_status launch_half(capu_stream stream, const void *arguments)
{
    capu_status status = fake_cudart_launch(stream, slow_kernel, arguments);

    return status == CAPU_OK ? capu_run_waited(1) : status;
}

/* The library waits for what a failed op has launched: the program may free what it touches, and
   another tensor may get its pages. */
START_TEST(an_op_that_fails_may_have_launched)
{
    static unsigned char bytes[BYTES];
    static struct bump own;
    capu_config config = config_of("cuda");
    capu_operand operand;
    capu_op op = {.size = sizeof(op),
                  .name = "half",
                  .run = launch_half,
                  .arguments = &own,
                  .argument_bytes = sizeof(own),
                  .operands = &operand,
                  .operand_count = 1};
    capu_context *context;
    void *tensors[3];

    fake_cudart_reset(NULL);
    launched_count = 0;
    context = create(&config);
    WORKS(context, capu_malloc(context, BYTES, &tensors[0]));
    operand = capu_writes(tensors[0]);
    own = (struct bump){.to = tensors[0]};
    ck_assert_int_eq(capu_run(context, &op), CAPU_DEVICE_FAILED);
    WORKS(context, capu_free(context, tensors[0]));
    for (size_t i = 0; i < 3; i++) { /* one of them gets the pages */
        WORKS(context, capu_malloc(context, BYTES, &tensors[i]));
        memset(bytes, 50 + (int)i, BYTES);
        WORKS(context, capu_upload(context, tensors[i], bytes, BYTES, 0));
    }
    usleep(40000);
    for (size_t i = 0; i < 3; i++) {
        WORKS(context, capu_download(context, bytes, tensors[i], BYTES, 0));
        ck_assert_uint_eq(bytes[0], 50 + i);
        ck_assert_uint_eq(bytes[BYTES - 1], 50 + i);
    }
    capu_context_destroy(context);
}
END_TEST

START_TEST(the_program_can_launch_inside_an_access)
{
    static unsigned char bytes[BYTES];
    static struct bump own;
    capu_config config = config_of("cuda");
    capu_operand operand;
    capu_op op = {.size = sizeof(op), .name = "own", .operands = &operand, .operand_count = 1};
    capu_context *context;
    void *tensor;

    fake_cudart_reset(NULL);
    launched_count = 0;
    context = create(&config);
    WORKS(context, capu_malloc(context, BYTES, &tensor));
    run_bump(context, tensor, NULL);
    operand = capu_updates(tensor);
    own = (struct bump){.to = tensor, .from = tensor};
    WORKS(context, capu_access_begin(context, &op));
    WORKS(context, fake_cudart_launch(capu_context_stream(context), bump_kernel, &own));
    WORKS(context, capu_access_end(context));
    WORKS(context, capu_download(context, bytes, tensor, BYTES, 0));
    ck_assert_uint_eq(bytes[0], 2);
    ck_assert_uint_eq(bytes[BYTES - 1], 2);
    capu_context_destroy(context);
}
END_TEST

START_TEST(a_trace_has_the_rates_of_the_link)
{
    char path[] = "/tmp/capuchin-trace-XXXXXX";
    char line[4096] = "";
    capu_config config = config_of("cuda");
    capu_context *context;
    bool has_machine = false;
    FILE *file;
    void *tensor;

    close(mkstemp(path));
    fake_cudart_reset(NULL);
    launched_count = 0;
    (void)capu_config_set(&config, "d2h", NULL); /* measured */
    (void)capu_config_set(&config, "h2d", "2000000000");
    config.trace_path = path;
    (void)capu_config_set(&config, "trace_iteration", "1");
    context = create(&config);
    WORKS(context, capu_malloc(context, BYTES, &tensor));
    WORKS(context, capu_iteration_begin(context, NULL));
    run_bump(context, tensor, NULL);
    WORKS(context, capu_iteration_end(context));
    WORKS(context, capu_synchronize(context));
    WORKS(context, capu_flush(context));
    capu_context_destroy(context);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strstr(line, "\"machine\"") != NULL) {
            has_machine = true;
            ck_assert_ptr_nonnull(strstr(line, "\"cuda\""));
            ck_assert_ptr_nonnull(strstr(line, "2000000000"));
        }
    }
    ck_assert(has_machine);
    fclose(file);
    unlink(path);
}
END_TEST

/* Runs one iteration of a network whose activations do not fit, in two ops for each of them, and
   returns its report. */
static capu_report iterate(capu_context *context, void *const *chain, size_t count, void *output)
{
    capu_report report = CAPU_REPORT_INIT;

    launched_count = 0;
    WORKS(context, capu_iteration_begin(context, "train"));
    for (size_t i = 0; i < count; i++) {
        run_bump(context, chain[i], i == 0 ? NULL : chain[i - 1]);
    }
    for (size_t i = count; i-- > 0;) {
        run_bump(context, output, chain[i]);
    }
    WORKS(context, capu_iteration_end(context));
    WORKS(context, capu_synchronize(context));
    WORKS(context, capu_report_get(context, &report));
    return report;
}

/* Under a steady plan the only events with timing mark the beginning and the end of an iteration.
 */
START_TEST(steady_iterations_record_two_events_with_timing)
{
    enum { CHAIN = 8, MOST = 2000 };
    capu_config config = config_of("cuda");
    capu_context *context;
    void *chain[CHAIN];
    void *output;
    bool is_seen = false;

    fake_cudart_reset(NULL);
    config.mode = CAPU_MODE_GUIDED;
    config.budget_bytes = 24 * 65536;
    config.wait_for_plan = 1;
    context = create(&config);
    WORKS(context, capu_malloc(context, BYTES, &output));
    for (size_t i = 0; i < CHAIN; i++) {
        WORKS(context, capu_malloc(context, BYTES, &chain[i]));
        WORKS(context, CAPU_DESCRIBE(context, chain[i], .kind = CAPU_ACTIVATION));
    }
    for (unsigned i = 0; i < MOST && !is_seen; i++) {
        uint64_t before = fake_cudart_timed_records();
        capu_report report = iterate(context, chain, CHAIN, output);
        uint64_t records = fake_cudart_timed_records() - before;

        if (report.timed == 0) {
            ck_assert_uint_eq(report.mode, CAPU_MODE_GUIDED);
            ck_assert_uint_gt(report.prefetched_bytes + report.replay_count, 0);
            ck_assert_uint_eq(records, 2);
            is_seen = true;
        } else {
            ck_assert_uint_ge(records, 2 + 2 * 2 * CHAIN);
        }
    }
    ck_assert(is_seen);
    capu_context_destroy(context);
}
END_TEST

/* Runs in mode off are what others are compared with: the ops of one iteration only are timed, for
   the trace, and of all with sample_every 1. */
START_TEST(mode_off_records_two_events_with_timing)
{
    enum { ITERATIONS = 4, TRACED = 3 };
    char path[] = "/tmp/capuchin-trace-XXXXXX";
    capu_config config = config_of("cuda");
    capu_context *context;
    void *chain[2];

    fake_cudart_reset(NULL);
    ck_assert_int_ge(close(mkstemp(path)), 0);
    config.mode = CAPU_MODE_OFF;
    config.budget_bytes = 24 * 65536;
    config.trace_path = path;
    config_set_number(&config, "trace_iteration", TRACED);
    (void)capu_config_set(&config, "sample_every", _i == 0 ? NULL : "1");
    config.report_path = "/dev/null";
    context = create(&config);
    WORKS(context, capu_malloc(context, BYTES, &chain[0]));
    WORKS(context, capu_malloc(context, BYTES, &chain[1]));
    for (unsigned i = 1; i <= ITERATIONS; i++) {
        uint64_t before = fake_cudart_timed_records();
        capu_report report = iterate(context, chain, 1, chain[1]);
        uint64_t records = fake_cudart_timed_records() - before;

        ck_assert_uint_eq(report.timed, i == TRACED || _i == 1);
        ck_assert((report.compute_ns == CAPU_NOT_TIMED) == (report.timed == 0));
        ck_assert_uint_eq(records, report.timed == 0 ? 2 : 2 + 2 * 2);
        ck_assert_uint_gt(report.time_ns, 0);
    }
    capu_context_destroy(context);
    unlink(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api cuda");
    TCase *cases = tcase_create("cuda");

    tcase_add_test(cases, auto_prefers_cuda);
    tcase_add_test(cases, a_device_is_named_by_its_number);
    tcase_add_loop_test(cases, a_program_trains_past_its_budget, 0, 4);
    tcase_add_test(cases, a_program_can_bring_its_own_stream);
    tcase_add_test(cases, an_op_that_cannot_be_enqueued_is_named);
    tcase_add_test(cases, an_op_that_fails_may_have_launched);
    tcase_add_test(cases, the_program_can_launch_inside_an_access);
    tcase_add_test(cases, steady_iterations_record_two_events_with_timing);
    tcase_add_loop_test(cases, mode_off_records_two_events_with_timing, 0, 2);
    tcase_add_test(cases, a_trace_has_the_rates_of_the_link);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
