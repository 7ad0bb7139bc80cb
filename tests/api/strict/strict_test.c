/* Strict mode: a wrong declaration shows up as NaN, a fault, or an error. What only the host device
   can find is in culprit_test.c. */
#include "tests/api/steps.h"

#include "device/device.h"

#include <math.h>
#include <signal.h>

static void start(struct rig *rig, uint64_t pages)
{
    rig_init(rig, &(struct rig_options){.budget_pages = pages, .strict = true});
}

static float *read_floats(struct rig *rig, const void *from, size_t bytes)
{
    float *floats = malloc(bytes);

    ck_assert_ptr_nonnull(floats);
    RIG_OK(rig, capu_download(rig->context, floats, from, bytes, 0));
    return floats;
}

/* Declared to write the whole tensor, but writes only half of it, as a causal softmax does. */
static capu_status write_half(capu_stream stream, const void *arguments)
{
    float *const *to = arguments;

    (void)stream;
    for (size_t i = 0; i < PAGES(1) / sizeof(float); i++) {
        (*to)[i] = 1.0f;
    }
    return CAPU_OK;
}

START_TEST(bytes_that_a_write_skips_are_nan)
{
    struct rig rig;
    float *tensor;
    float *read;
    capu_status status;

    start(&rig, 8);
    tensor = (float *)(void *)step_malloc(&rig, PAGES(2));
    step_set(&rig, tensor, PAGES(2), 0);
    status = CAPU_RUN(rig.context, write_half, &tensor, capu_writes(tensor));
    /* Where the host computes, culprit_test.c; elsewhere only the results show it. */
    if (strcmp(capu_context_device(rig.context), "host") != 0) {
        RIG_OK(&rig, status);
    }
    read = read_floats(&rig, tensor, PAGES(2));
    ck_assert(read[0] == 1.0f && isnan(read[PAGES(1) / sizeof(float)]));
    free(read);
    rig_finish(&rig);
}
END_TEST

/* If an undefined tensor is written in part, the rest is poisoned, whatever its pages held before.
 */
START_TEST(a_partial_write_of_an_undefined_tensor_leaves_nan)
{
    struct rig rig;
    unsigned char *tensor;
    float *read;

    start(&rig, 8);
    tensor = step_tensor(&rig, "act", CAPU_ACTIVATION, 2);
    for (size_t i = 0; i < 2; i++) {
        RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
        step_set(&rig, tensor, PAGES(1), 0);
        read = read_floats(&rig, tensor, PAGES(2));
        ck_assert(read[0] == 0.0f && isnan(read[PAGES(1) / sizeof(float)]));
        free(read);
        step_set(&rig, tensor, PAGES(2), 0);
        RIG_OK(&rig, capu_iteration_end(rig.context));
    }
    rig_finish(&rig);
}
END_TEST

START_TEST(fresh_memory_is_nan)
{
    struct rig rig;
    void *tensor;
    capu_operand operand;
    capu_op op = {.size = sizeof(op), .name = "look", .operands = &operand, .operand_count = 1};

    start(&rig, 8);
    tensor = step_malloc(&rig, PAGES(2));
    operand = capu_writes(tensor);
    RIG_OK(&rig, capu_access_begin(rig.context, &op));
    ck_assert(isnan(((float *)tensor)[0]) && isnan(((float *)tensor)[PAGES(1) / sizeof(float)]));
    memset(tensor, 0, PAGES(2));
    RIG_OK(&rig, capu_access_end(rig.context));
    step_expect(&rig, tensor, PAGES(2), 0);
    rig_finish(&rig);
}
END_TEST

START_TEST(scratch_is_poisoned_before_and_after)
{
    struct rig rig;
    float *tensor;
    void *address;

    start(&rig, 8);
    tensor = (float *)(void *)step_malloc(&rig, PAGES(2));
    address = tensor;
    step_set(&rig, tensor, PAGES(2), 0);
    RIG_OK(&rig, step_touch(&rig, "scratch", CAPU_SCRATCH, 1, &address));
    RIG_OK(&rig, capu_synchronize(rig.context));
    /* The tensor is still mapped, so the test can look at it directly. */
    ck_assert(isnan(tensor[0]) && isnan(tensor[PAGES(2) / sizeof(float) - 1]));
    rig_finish(&rig);
}
END_TEST

/* An evicted tensor is unmapped at once, so a read that is not declared faults. */
START_TEST(touching_an_evicted_tensor_faults)
{
    struct rig rig;
    volatile unsigned char *tensor;

    start(&rig, 4);
    tensor = step_malloc(&rig, PAGES(3));
    step_set(&rig, (void *)(uintptr_t)tensor, PAGES(3), 1);
    step_set(&rig, step_malloc(&rig, PAGES(3)), PAGES(3), 1);
    signal(SIGSEGV, SIG_DFL); /* sanitizers install handlers */
    (void)tensor[0];
}
END_TEST

START_TEST(clear_fresh_overrides_poison)
{
    struct rig rig;

    rig_init(&rig,
             &(struct rig_options){
                 .budget_pages = 8, .strict = true, .clear_fresh = true, .mode = (uint32_t)_i});
    step_expect(&rig, step_malloc(&rig, PAGES(2)), PAGES(2), 0);
    step_expect(&rig, step_malloc(&rig, 100), 100, 0);
    rig_finish(&rig);
}
END_TEST

struct pair {
    unsigned char *read;
    unsigned char *written;
    size_t changed; /* the byte of `read` to change; past its end: none */
};

static capu_status write_one(capu_stream stream, const void *arguments)
{
    const struct pair *pair = arguments;

    (void)stream;
    memset(pair->written, 7, PAGES(2));
    if (pair->changed < PAGES(2)) {
        pair->read[pair->changed] ^= 1;
    }
    return CAPU_OK;
}

/* The change is found at once and reported by name. Without strict mode it would survive or not,
   depending on the budget. Where the host cannot read device memory, it shows only in the results.
 */
START_TEST(an_op_that_changes_a_read_operand_is_named)
{
    static const size_t changed[] = {0, 12345 % PAGES(2), PAGES(2) - 1};
    struct rig rig;
    struct pair pair;
    bool is_host;

    rig_init(&rig, &(struct rig_options){.budget_pages = 8, .strict = true, .mode = (uint32_t)_i});
    is_host = strcmp(capu_context_device(rig.context), "host") == 0;
    pair.read = step_tensor(&rig, "x", CAPU_PARAMETER, 2);
    pair.written = step_tensor(&rig, "y", CAPU_PARAMETER, 2);
    step_set(&rig, pair.read, PAGES(2), 1);
    for (size_t i = 0; i < 3 && is_host; i++) {
        pair.changed = changed[i];
        STEP_FAILS(&rig,
                   CAPU_RUN(rig.context, write_one, &pair, capu_writes(pair.written),
                            capu_reads(pair.read)),
                   CAPU_INVALID, "op 'write_one' has changed 'x', which it says it only reads");
        rig_check(&rig);
        RIG_OK(&rig, CAPU_RUN(rig.context, write_one, &pair, capu_writes(pair.written),
                              capu_updates(pair.read)));
    }
    pair.changed = PAGES(2);
    RIG_OK(&rig, CAPU_RUN(rig.context, write_one, &pair, capu_writes(pair.written),
                          capu_reads(pair.read)));
    step_expect(&rig, pair.read, PAGES(2), 1);
    rig_finish(&rig);
}
END_TEST

/* The program's own launches are checked too. */
START_TEST(an_access_that_changes_a_read_operand_is_named)
{
    struct rig rig;
    unsigned char *tensor;
    capu_operand operand;
    const capu_op op = {
        .size = sizeof(op), .name = "peek", .operands = &operand, .operand_count = 1};

    start(&rig, 8);
    tensor = step_tensor(&rig, "x", CAPU_PARAMETER, 2);
    step_set(&rig, tensor, PAGES(2), 1);
    operand = capu_reads(tensor);
    RIG_OK(&rig, capu_access_begin(rig.context, &op));
    RIG_OK(&rig, capu_access_end(rig.context));
    if (strcmp(capu_context_device(rig.context), "host") == 0) {
        RIG_OK(&rig, capu_access_begin(rig.context, &op));
        tensor[100] = 2;
        STEP_FAILS(&rig, capu_access_end(rig.context), CAPU_INVALID, "op 'peek' has changed 'x'");
        RIG_OK(&rig, capu_access_begin(rig.context, &op));
        RIG_OK(&rig, capu_access_end(rig.context));
    }
    rig_finish(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api strict");
    TCase *cases = tcase_create("strict");

    tcase_add_test(cases, bytes_that_a_write_skips_are_nan);
    tcase_add_test(cases, a_partial_write_of_an_undefined_tensor_leaves_nan);
    tcase_add_test(cases, fresh_memory_is_nan);
    tcase_add_test(cases, scratch_is_poisoned_before_and_after);
    tcase_add_test_raise_signal(cases, touching_an_evicted_tensor_faults, SIGSEGV);
    tcase_add_loop_test(cases, clear_fresh_overrides_poison, CAPU_MODE_OFF, CAPU_MODE_GUIDED);
    tcase_add_loop_test(cases, an_op_that_changes_a_read_operand_is_named, CAPU_MODE_OFF,
                        CAPU_MODE_GUIDED + 1);
    tcase_add_test(cases, an_access_that_changes_a_read_operand_is_named);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
