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
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
