/* Operands: interior addresses, ranges over several tensors, merging, partial and cleared writes,
   scratch, zeros, and reading undefined tensors. */
#include "tests/api/steps.h"

#include "tests/support/adaptor_count.h"

START_TEST(interior_addresses_and_zero_bytes_mean_the_rest)
{
    struct rig rig;
    unsigned char *tensor;
    void *inside;

    rig_init(&rig, &(struct rig_options){.budget_pages = 8});
    tensor = step_malloc(&rig, PAGES(3));
    step_set(&rig, tensor, PAGES(3), 1);
    step_set(&rig, tensor + 5000, 100, 2);
    step_expect(&rig, tensor, 5000, 1);
    step_expect(&rig, tensor + 5000, 100, 2);
    step_expect(&rig, tensor + 5100, PAGES(3) - 5100, 1);
    inside = tensor + 100;
    RIG_OK(&rig, step_touch(&rig, "rest", CAPU_UPDATE, 1, &inside));
    ck_assert_uint_eq(step_query(&rig, tensor).version, 3);
    rig_finish(&rig);
}
END_TEST

START_TEST(a_range_covers_every_tensor_it_meets)
{
    struct rig rig;
    unsigned char *blob;

    rig_init(&rig, &(struct rig_options){.budget_pages = 16});
    blob = step_malloc(&rig, PAGES(9));
    RIG_OK(&rig, capu_split(rig.context, blob + PAGES(3), PAGES(3)));
    step_set(&rig, blob, PAGES(9), 1);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(step_query(&rig, blob + PAGES(3 * i)).version, 1);
    }
    /* The middle tensor is covered completely, its neighbours partly. */
    step_set(&rig, blob + PAGES(2), PAGES(5), 2);
    step_expect(&rig, blob, PAGES(2), 1);
    step_expect(&rig, blob + PAGES(2), PAGES(5), 2);
    step_expect(&rig, blob + PAGES(7), PAGES(2), 1);
    rig_finish(&rig);
}
END_TEST

START_TEST(naming_a_tensor_twice_merges)
{
    struct rig rig;
    unsigned char *tensor;

    rig_init(&rig, &(struct rig_options){.budget_pages = 4});
    tensor = step_malloc(&rig, PAGES(4));
    step_set(&rig, tensor, PAGES(4), 1);
    /* Reads one half and writes the other: an update, which needs the tensor's pages once. */
    step_next(&rig, "half", tensor + PAGES(2), tensor, PAGES(2));
    ck_assert_uint_eq(step_query(&rig, tensor).version, 2);
    step_expect(&rig, tensor, PAGES(2), 1);
    step_expect(&rig, tensor + PAGES(2), PAGES(2), 2);
    step_next(&rig, "same", tensor, tensor, PAGES(4));
    step_expect(&rig, tensor, PAGES(2), 2);
    rig_finish(&rig);
}
END_TEST

START_TEST(reading_and_writing_an_undefined_tensor_fails)
{
    struct rig rig;
    unsigned char *tensor;

    rig_init(&rig, &(struct rig_options){.budget_pages = 4});
    tensor = step_malloc(&rig, PAGES(2));
    RIG_OK(&rig, CAPU_DESCRIBE(rig.context, tensor, .name = "fresh"));
    STEP_FAILS(&rig, step_try_next(&rig, "both", tensor, tensor, PAGES(2)), CAPU_UNDEFINED_READ,
               "op 'both' reads 'fresh'");
    step_set(&rig, tensor, PAGES(2), 1);
    step_next(&rig, "both", tensor, tensor, PAGES(2));
    step_expect(&rig, tensor, PAGES(2), 2);
    rig_finish(&rig);
}
END_TEST

START_TEST(a_transient_is_undefined_in_the_next_iteration)
{
    struct rig rig;
    unsigned char *tensor;
    void *address;

    rig_init(&rig, &(struct rig_options){.budget_pages = 4});
    tensor = step_tensor(&rig, "act", CAPU_ACTIVATION, 2);
    address = tensor;
    RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
    step_set(&rig, tensor, PAGES(2), 1);
    RIG_OK(&rig, capu_iteration_end(rig.context));
    step_expect(&rig, tensor, PAGES(2), 1);
    RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
    STEP_FAILS(&rig, step_touch(&rig, "backward", CAPU_READ, 1, &address), CAPU_UNDEFINED_READ,
               "'act', which has not been written in this iteration");
    STEP_FAILS(&rig, step_touch(&rig, "update", CAPU_UPDATE, 1, &address), CAPU_UNDEFINED_READ,
               "act");
    step_set(&rig, tensor, PAGES(2), 3);
    step_expect(&rig, tensor, PAGES(2), 3);
    rig_finish(&rig);
}
END_TEST

static capu_status write_first_half(capu_stream stream, const void *arguments)
{
    unsigned char *const *tensor = arguments;

    (void)stream;
    memset(*tensor, 9, PAGES(1));
    return CAPU_OK;
}

START_TEST(write_cleared_zeroes_what_the_op_does_not_write)
{
    struct rig rig;
    unsigned char *tensor;

    rig_init(&rig, &(struct rig_options){.budget_pages = 4, .mode = (uint32_t)_i});
    tensor = step_malloc(&rig, PAGES(2));
    step_set(&rig, tensor, PAGES(2), 1);
    RIG_OK(&rig, CAPU_RUN(rig.context, write_first_half, &tensor, capu_writes_rest_zero(tensor)));
    step_expect(&rig, tensor, PAGES(1), 9);
    step_expect(&rig, tensor + PAGES(1), PAGES(1), 0);
    rig_finish(&rig);
}
END_TEST

START_TEST(scratch_is_undefined_after_the_op)
{
    struct rig rig;
    void *tensor;

    rig_init(&rig, &(struct rig_options){.budget_pages = 4});
    tensor = step_tensor(&rig, "workspace", CAPU_WORKSPACE, 2);
    RIG_OK(&rig, step_touch(&rig, "conv", CAPU_SCRATCH, 1, &tensor));
    ck_assert_uint_eq(step_query(&rig, tensor).is_defined, 0);
    STEP_FAILS(&rig, step_touch(&rig, "peek", CAPU_READ, 1, &tensor), CAPU_UNDEFINED_READ,
               "workspace");
    rig_finish(&rig);
}
END_TEST

/* Trap 5: a write ends the old version, so its contents are not fetched. */
START_TEST(a_saved_tensor_can_be_scratch_later)
{
    struct rig rig;
    struct adaptor_counts counts;
    void *tensor;

    rig_init(&rig, &(struct rig_options){.budget_pages = 4});
    tensor = step_tensor(&rig, "saved", CAPU_ACTIVATION, 3);
    step_set(&rig, tensor, PAGES(3), 1);
    step_set(&rig, step_malloc(&rig, PAGES(4)), PAGES(4), 2);
    ck_assert_uint_eq(step_query(&rig, tensor).has_host_copy, 1);
    /* A write never fetches the old contents. */
    RIG_OK(&rig, step_touch(&rig, "reuse", CAPU_SCRATCH, 1, &tensor));
    step_set(&rig, tensor, PAGES(3), 4);
    adaptor_count_read(rig.count, &counts);
    ck_assert_uint_eq(counts.slots[ADAPTOR_COPY_IN].calls, 0);
    step_expect(&rig, tensor, PAGES(3), 4);
    rig_finish(&rig);
}
END_TEST

START_TEST(known_zeros_take_no_memory_and_no_transfer)
{
    struct rig rig;
    struct adaptor_counts counts;
    unsigned char *gradients;

    rig_init(&rig, &(struct rig_options){.budget_pages = 4});
    gradients = step_malloc(&rig, PAGES(12));
    for (size_t i = 0; i < 4; i++) {
        RIG_OK(&rig, capu_split(rig.context, gradients + PAGES(3 * i), PAGES(3)));
    }
    RIG_OK(&rig, capu_zero(rig.context, gradients, PAGES(12)));
    ck_assert_uint_eq(pages_out(rig.context->memory.pages), 0);
    step_expect(&rig, gradients, PAGES(12), 0);
    ck_assert_uint_eq(pages_out(rig.context->memory.pages), 0);
    step_bump(&rig, "accumulate", gradients + PAGES(3), PAGES(3));
    ck_assert_uint_eq(pages_out(rig.context->memory.pages), 3);
    step_expect(&rig, gradients, PAGES(3), 0);
    step_expect(&rig, gradients + PAGES(3), PAGES(3), 1);
    /* A tensor that held other values and is zeroed again leaves without a copy. */
    RIG_OK(&rig, capu_zero(rig.context, gradients, PAGES(12)));
    step_bump(&rig, "accumulate", gradients + PAGES(6), PAGES(3));
    adaptor_count_read(rig.count, &counts);
    ck_assert_uint_eq(counts.slots[ADAPTOR_COPY_OUT].calls, 1); /* the download of the ones */
    ck_assert_uint_eq(counts.slots[ADAPTOR_COPY_IN].calls, 0);
    step_expect(&rig, gradients + PAGES(3), PAGES(3), 0);
    rig_finish(&rig);
}
END_TEST

START_TEST(zeroing_part_of_a_tensor_writes_it)
{
    struct rig rig;
    unsigned char *tensor;

    rig_init(&rig, &(struct rig_options){.budget_pages = 4});
    tensor = step_malloc(&rig, PAGES(3));
    step_set(&rig, tensor, PAGES(3), 7);
    RIG_OK(&rig, capu_zero(rig.context, tensor + 100, 200));
    step_expect(&rig, tensor, 100, 7);
    step_expect(&rig, tensor + 100, 200, 0);
    step_expect(&rig, tensor + 300, PAGES(3) - 300, 7);
    RIG_OK(&rig, capu_zero(rig.context, tensor + PAGES(1), 0));
    step_expect(&rig, tensor + PAGES(1), PAGES(2), 0);
    step_expect(&rig, tensor + 300, PAGES(1) - 300, 7);
    rig_finish(&rig);
}
END_TEST

START_TEST(the_callers_own_launches_touch_memory_directly)
{
    struct rig rig;
    unsigned char *tensor;
    capu_operand operand;
    capu_op op = {.size = sizeof(op), .name = "own", .operands = &operand, .operand_count = 1};

    rig_init(&rig, &(struct rig_options){.budget_pages = 4, .delay_seed = 5});
    tensor = step_malloc(&rig, PAGES(3));
    operand = capu_updates(tensor);
    step_set(&rig, tensor, PAGES(3), 7);
    step_set(&rig, step_malloc(&rig, PAGES(3)), PAGES(3), 1);
    RIG_OK(&rig, capu_access_begin(rig.context, &op));
    ck_assert_ptr_nonnull(capu_context_stream(rig.context));
    for (size_t i = 0; i < PAGES(3); i++) {
        ck_assert_uint_eq(tensor[i], 7);
        tensor[i] = 8;
    }
    RIG_OK(&rig, capu_access_end(rig.context));
    step_set(&rig, step_malloc(&rig, PAGES(3)), PAGES(3), 1);
    step_expect(&rig, tensor, PAGES(3), 8);
    rig_finish(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api operands");
    TCase *cases = tcase_create("operands");

    tcase_add_test(cases, interior_addresses_and_zero_bytes_mean_the_rest);
    tcase_add_test(cases, a_range_covers_every_tensor_it_meets);
    tcase_add_test(cases, naming_a_tensor_twice_merges);
    tcase_add_test(cases, reading_and_writing_an_undefined_tensor_fails);
    tcase_add_test(cases, a_transient_is_undefined_in_the_next_iteration);
    tcase_add_loop_test(cases, write_cleared_zeroes_what_the_op_does_not_write, CAPU_MODE_OFF,
                        CAPU_MODE_GUIDED);
    tcase_add_test(cases, scratch_is_undefined_after_the_op);
    tcase_add_test(cases, a_saved_tensor_can_be_scratch_later);
    tcase_add_test(cases, known_zeros_take_no_memory_and_no_transfer);
    tcase_add_test(cases, zeroing_part_of_a_tensor_writes_it);
    tcase_add_test(cases, the_callers_own_launches_touch_memory_directly);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
