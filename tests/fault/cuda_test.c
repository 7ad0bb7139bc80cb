/*
 * Fault sweep over CUDA: a whole training program over the fake runtime, from creating the context
 * to destroying it, runs once for each CUDA call. That call fails alone, together with all later
 * ones, or because the device is lost. Checks that the status is sensible, that the context stays
 * valid, that the program computes the right bytes if it survives, and that nothing leaks except
 * what a failed release call could not release.
 */
#include "tests/fault/program.h"

#include "runtime/context/config.h"
#include "tests/fake_cudart/fake_cudart.h"
#include "tests/support/effort.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

/* Error numbers of CUDA, whose headers tests do not include. */
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, ILLEGAL_ADDRESS = 700 };

static const struct {
    const char *name;
    int error;
    bool is_lasting;
    bool is_sticky;
} kinds[] = {
    {"once", INVALID_VALUE, false, false},
    {"short of memory once", OUT_OF_MEMORY, false, false},
    {"forever", INVALID_VALUE, true, false},
    {"device lost", ILLEGAL_ADDRESS, false, true},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Creates a context as the rig does, but without adaptors, and it may fail. */
static capu_status create(capu_context **context)
{
    const struct device_options options = {.memory_bytes = PROGRAM_BUDGET_PAGES * RIG_PAGE,
                                           .page_bytes = RIG_PAGE};
    capu_config config = CAPU_CONFIG_INIT;
    struct device *device = NULL;
    struct config complete;
    char text[512] = "";
    capu_status status;

    config.budget_bytes = options.memory_bytes;
    config.host_budget_bytes = PROGRAM_HOST_PAGES * RIG_PAGE;
    ck_assert_int_eq(config_resolve(&config, &complete, text, sizeof(text)), CAPU_OK);
    status = rig_device_create(&options, &device, text, sizeof(text));
    if (status == CAPU_OK) {
        status = context_create_on(device, &complete, context, text, sizeof(text));
    }
    if (status != CAPU_OK) {
        device_destroy(device);
        config_finish(&complete);
    }
    return status;
}

static bool is_expected(capu_status status)
{
    return status == CAPU_DEVICE_FAILED || status == CAPU_DEVICE_LOST ||
           status == CAPU_NO_HOST_MEMORY || status == CAPU_SYSTEM_LIMIT ||
           status == CAPU_OVER_BUDGET || status == CAPU_NO_DEVICE || status == CAPU_OP_FAILED;
}

/* Fails the test if more than `most` objects of any kind are left. Each failed release call leaves
   one. */
static void expect_little_left(const char *what, size_t most)
{
    struct fake_cudart_left left = fake_cudart_left();

    ck_assert_msg(left.handles <= most && left.mappings <= most && left.ranges <= most &&
                      left.registered <= most && left.streams <= most && left.events <= most,
                  "%s: left %zu handles, %zu mappings, %zu ranges, %zu registered, %zu streams, "
                  "%zu events",
                  what, left.handles, left.mappings, left.ranges, left.registered, left.streams,
                  left.events);
}

/* One run in which one call fails. False if the program makes fewer calls. Counts the runs that
   failed after the context was created, and those of them that reached the end nevertheless. */
static bool run_with(const struct fake_cudart_fault *fault, const char *kind, unsigned *begun,
                     unsigned *survived)
{
    struct program program = {.retries = fault->is_lasting || fault->is_sticky ? 0 : 1};
    capu_context *context = NULL;
    char what[128];
    bool is_hit;

    snprintf(what, sizeof(what), "call %llu, %s", (unsigned long long)fault->number, kind);
    fake_cudart_arm(fault);
    program.status = create(&context);
    program.context = context;
    if (context != NULL) {
        program_run(&program);
    }
    is_hit = fake_cudart_hits() > 0;
    *begun += context != NULL && is_hit ? 1 : 0;
    ck_assert_msg(!program.is_wrong, "%s: %s", what, program.what);
    ck_assert_msg(program.status == CAPU_OK || is_expected(program.status), "%s: %s: %s", what,
                  capu_status_name(program.status), capu_last_error(context));
    if (program.status == CAPU_OK) {
        *survived += is_hit ? 1 : 0;
        ck_assert_msg(memcmp(program.sums, program_sums, sizeof(program_sums)) == 0,
                      "%s: sums %u %u %u", what, program.sums[0], program.sums[1], program.sums[2]);
    }
    if (program.status == CAPU_DEVICE_LOST && context != NULL) {
        void *address;

        ck_assert_msg(capu_malloc(context, 1, &address) == CAPU_DEVICE_LOST, "%s", what);
        ck_assert_str_ne(capu_last_error(context), "");
    }
    if (fault->is_lasting) {
        fake_cudart_arm(NULL); /* from here on everything can be released */
    }
    capu_context_destroy(context);
    fake_cudart_arm(NULL);
    is_hit = fake_cudart_hits() > 0; /* includes the calls of capu_context_destroy */
    if (!fake_cudart_is_lost() && !fault->is_lasting) {
        expect_little_left(what, is_hit ? 1 : 0);
    }
    return is_hit;
}

START_TEST(every_call_fails)
{
    const struct fake_cudart_machine machine = {.memory_bytes = 1024 * RIG_PAGE,
                                                .granularity_bytes = RIG_PAGE};
    struct fake_cudart_fault fault = {
        .call = FAKE_CUDART_ANY_CALL,
        .error = kinds[_i].error,
        .is_lasting = kinds[_i].is_lasting,
        .is_sticky = kinds[_i].is_sticky,
    };
    bool is_hit = true;
    unsigned survived = 0;
    unsigned begun = 0;
    unsigned runs = 0;

    /* The rig creates its fake machine with the first device. */
    ck_assert(!run_with(&(struct fake_cudart_fault){0}, "no fault", &begun, &survived));
    for (fault.number = 1; is_hit; fault.number = effort_next(fault.number)) {
        fake_cudart_reset(&machine);
        is_hit = run_with(&fault, kinds[_i].name, &begun, &survived);
        runs++;
    }
    ck_assert_uint_gt(fault.number, 300);
    /* A single failure makes one call of the program fail, which it repeats; not so while the
       context is created. */
    if (!fault.is_lasting && !fault.is_sticky) {
        ck_assert_uint_gt(survived, begun / 2);
    }
    printf("%s: %u runs, %u survived\n", kinds[_i].name, runs, survived);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault cuda");
    TCase *cases = tcase_create("cuda");

    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, every_call_fails, 0, KINDS);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
