/* Strict mode: a wrong declaration shows as NaN, or as a fault. */
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
    RIG_OK(rig, capu_download(rig->context, floats, from, bytes));
    return floats;
}

/* Says it writes all, and writes half: the trap of the causal softmax. */
static capu_status write_half(capu_stream stream, const void *arguments)
{
    float *const *to = arguments;

    (void)stream;
    for (size_t i = 0; i < PAGES(1) / sizeof(float); i++) {
        (*to)[i] = 1.0f;
    }
    return CAPU_OK;
}

START_TEST(what_a_write_left_out_is_nan)
{
    struct rig rig;
    float *tensor;
    float *read;

    start(&rig, 8);
    tensor = (float *)(void *)step_malloc(&rig, PAGES(2));
    step_set(&rig, tensor, PAGES(2), 0);
    RIG_OK(&rig, CAPU_RUN(rig.context, write_half, &tensor, capu_writes(tensor)));
    read = read_floats(&rig, tensor, PAGES(2));
    ck_assert(read[0] == 1.0f && isnan(read[PAGES(1) / sizeof(float)]));
    free(read);
    rig_finish(&rig);
}
END_TEST

/* The rest of a tensor that held nothing is poisoned too, whatever its pages held before. */
START_TEST(a_part_of_nothing_leaves_nan_around_it)
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
    /* It is still mapped: look behind the library's back. */
    ck_assert(isnan(tensor[0]) && isnan(tensor[PAGES(2) / sizeof(float) - 1]));
    rig_finish(&rig);
}
END_TEST

/* An evicted tensor is unmapped at once, so a read that was not declared faults. */
START_TEST(touching_what_is_out_faults)
{
    struct rig rig;
    volatile unsigned char *tensor;

    start(&rig, 4);
    tensor = step_malloc(&rig, PAGES(3));
    step_set(&rig, (void *)(uintptr_t)tensor, PAGES(3), 1);
    step_set(&rig, step_malloc(&rig, PAGES(3)), PAGES(3), 1);
    signal(SIGSEGV, SIG_DFL); /* sanitizers have handlers of their own */
    (void)tensor[0];
}
END_TEST

START_TEST(clear_fresh_wins_over_poison)
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
    size_t changed; /* of `read`, this byte; none if past its end */
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

/* Found at once, and by name; without strict mode the change would be there or not, by budget.
   Where the host cannot look into memory, it shows in the results only. */
START_TEST(what_changes_although_only_read_is_named)
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

/* The caller's own launches are looked at as well. */
START_TEST(what_an_access_changes_is_named)
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

    tcase_add_test(cases, what_a_write_left_out_is_nan);
    tcase_add_test(cases, a_part_of_nothing_leaves_nan_around_it);
    tcase_add_test(cases, fresh_memory_is_nan);
    tcase_add_test(cases, scratch_is_poisoned_before_and_after);
    tcase_add_test_raise_signal(cases, touching_what_is_out_faults, SIGSEGV);
    tcase_add_loop_test(cases, clear_fresh_wins_over_poison, CAPU_MODE_OFF, CAPU_MODE_GUIDED);
    tcase_add_loop_test(cases, what_changes_although_only_read_is_named, CAPU_MODE_OFF,
                        CAPU_MODE_GUIDED + 1);
    tcase_add_test(cases, what_an_access_changes_is_named);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
