/* capu_split: works at any offset, keeps contents wherever they are, and changes nothing if it
   fails. */
#include "tests/api/steps.h"

#include "runtime/api/describe.h"
#include "tests/support/adaptor_fault.h"

/* A tensor in which each byte depends on its position. */
static unsigned char *numbered(struct rig *rig, unsigned char *numbers, size_t bytes)
{
    unsigned char *tensor = step_malloc(rig, bytes);

    for (size_t i = 0; i < bytes; i++) {
        numbers[i] = (unsigned char)(i * 7 + i / 251);
    }
    RIG_OK(rig, capu_upload(rig->context, tensor, numbers, bytes, 0));
    return tensor;
}

static void expect_numbers(struct rig *rig, const unsigned char *tensor,
                           const unsigned char *numbers, size_t bytes)
{
    static unsigned char copy[PAGES(16)];

    RIG_OK(rig, capu_download(rig->context, copy, tensor, bytes, 0));
    ck_assert_mem_eq(copy, numbers, bytes);
}

/* Runs an op that needs this many pages, which evicts other tensors. */
static void push_out(struct rig *rig, size_t page_count)
{
    unsigned char *large = step_malloc(rig, PAGES(page_count));

    step_set(rig, large, PAGES(page_count), 1);
    RIG_OK(rig, capu_free(rig->context, large));
}

enum state { RESIDENT, OUT, CLEAN, LEAVING, ZERO, ZERO_RESIDENT, STATES };

static void bring_into(struct rig *rig, unsigned char *tensor, size_t bytes, enum state state,
                       size_t budget)
{
    void *touched = tensor;

    if (state == OUT || state == CLEAN) {
        push_out(rig, budget);
    }
    if (state == LEAVING) {
        push_out(rig, budget - 4);
    }
    if (state == CLEAN) {
        RIG_OK(rig, step_touch(rig, "read", CAPU_READ, 1, &touched));
    }
    if (state == ZERO || state == ZERO_RESIDENT) {
        if (state == ZERO) {
            push_out(rig, budget);
        }
        RIG_OK(rig, capu_zero(rig->context, tensor, bytes));
    }
}

START_TEST(contents_are_kept_in_every_state)
{
    enum { BYTES = PAGES(10) - 100, BUDGET = 12 };
    static const size_t cuts[][2] = {{0, 1},
                                     {1, 1},
                                     {0, 4096},
                                     {4096, 4096},
                                     {4095, 2},
                                     {100, 20000},
                                     {8192, 20000},
                                     {20000, 300},
                                     {20480, 1},
                                     {BYTES - 1, 1},
                                     {36864, BYTES - 36864}};
    static unsigned char numbers[PAGES(16)];

    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        struct rig rig;
        unsigned char *tensor;

        rig_init(&rig, &(struct rig_options){.budget_pages = BUDGET, .delay_seed = 1 + i});
        tensor = numbered(&rig, numbers, BYTES);
        bring_into(&rig, tensor, BYTES, (enum state)_i, BUDGET);
        if (_i == ZERO || _i == ZERO_RESIDENT) {
            memset(numbers, 0, BYTES);
        }
        RIG_OK(&rig, capu_split(rig.context, tensor + cuts[i][0], cuts[i][1]));
        rig_check(&rig);
        ck_assert_uint_eq(step_query(&rig, tensor + cuts[i][0]).bytes, cuts[i][1]);
        expect_numbers(&rig, tensor, numbers, BYTES);
        push_out(&rig, BUDGET - memory_fixed_pages(&rig.context->memory));
        rig_check(&rig);
        expect_numbers(&rig, tensor, numbers, BYTES);
        /* Writing one piece leaves its neighbours as they are. */
        step_set(&rig, tensor + cuts[i][0], cuts[i][1], 77);
        memset(numbers + cuts[i][0], 77, cuts[i][1]);
        push_out(&rig, BUDGET - memory_fixed_pages(&rig.context->memory));
        expect_numbers(&rig, tensor, numbers, BYTES);
        RIG_OK(&rig, capu_free(rig.context, tensor));
        RIG_OK(&rig, capu_synchronize(rig.context));
        ck_assert_uint_eq(pages_out(rig.context->memory.pages), 0);
        rig_finish(&rig);
    }
}
END_TEST

START_TEST(a_blob_can_be_split_into_many_tensors)
{
    static unsigned char numbers[PAGES(16)];
    struct rig rig;
    unsigned char *blob;
    size_t offset = 0;
    size_t count = 0;

    rig_init(&rig, &(struct rig_options){.budget_pages = 40});
    blob = numbered(&rig, numbers, PAGES(16));
    while (offset < PAGES(16)) {
        size_t bytes = 1 + (offset * 31 + 17) % 9000;

        bytes = bytes < PAGES(16) - offset ? bytes : PAGES(16) - offset;
        RIG_OK(&rig, capu_split(rig.context, blob + offset, bytes));
        rig_check(&rig);
        offset += bytes;
        count++;
    }
    ck_assert_uint_gt(count, 10);
    expect_numbers(&rig, blob, numbers, PAGES(16));
    step_bump(&rig, "all", blob, PAGES(16));
    for (size_t i = 0; i < PAGES(16); i++) {
        numbers[i]++;
    }
    expect_numbers(&rig, blob, numbers, PAGES(16));
    RIG_OK(&rig, capu_free(rig.context, blob));
    rig_finish(&rig);
}
END_TEST

START_TEST(edge_pages_are_fixed_and_whole_pages_are_not)
{
    struct rig rig;
    unsigned char *blob;

    rig_init(&rig, &(struct rig_options){.budget_pages = 40});
    blob = step_malloc(&rig, PAGES(10));
    RIG_OK(&rig, capu_split(rig.context, blob + 1000, PAGES(5)));
    ck_assert_uint_eq(step_query(&rig, blob).fixed_bytes, 1000);
    ck_assert_uint_eq(step_query(&rig, blob + 1000).fixed_bytes, PAGES(1));
    ck_assert_uint_eq(step_query(&rig, blob + 1000 + PAGES(5)).fixed_bytes, RIG_PAGE - 1000);
    ck_assert_uint_eq(memory_fixed_pages(&rig.context->memory), 2);
    RIG_OK(&rig, capu_split(rig.context, blob + PAGES(8), PAGES(2)));
    ck_assert_uint_eq(step_query(&rig, blob + PAGES(8)).fixed_bytes, 0);
    ck_assert_uint_eq(memory_fixed_pages(&rig.context->memory), 2);
    rig_finish(&rig);
}
END_TEST

START_TEST(the_rest_keeps_its_description)
{
    struct rig rig;
    unsigned char *blob;

    rig_init(&rig, &(struct rig_options){.budget_pages = 40});
    blob = step_tensor(&rig, "blob", CAPU_GRADIENT, 9);
    RIG_OK(&rig, capu_split(rig.context, blob + PAGES(3), PAGES(3)));
    ck_assert_str_eq(step_query(&rig, blob).name, "blob");
    ck_assert_uint_eq(step_query(&rig, blob + PAGES(6)).kind, CAPU_GRADIENT);
    ck_assert_uint_eq(step_query(&rig, blob + PAGES(3)).kind, CAPU_KIND_UNKNOWN);
    ck_assert_uint_eq(step_query(&rig, blob + PAGES(3)).is_persistent, 1);
    RIG_OK(&rig, capu_split(rig.context, blob + PAGES(6), PAGES(3)));
    ck_assert_str_eq(step_query(&rig, blob + PAGES(6)).name, "blob");
    rig_finish(&rig);
}
END_TEST

/* The tensors of an allocation, checked against their sizes. */
static void expect_tensors(struct rig *rig, unsigned char *blob, const size_t *sizes, size_t count)
{
    unsigned char *at = blob;

    for (size_t i = 0; i < count; i++) {
        ck_assert_ptr_eq(step_query(rig, at).address, at);
        ck_assert_uint_eq(step_query(rig, at).bytes, sizes[i]);
        ck_assert_ptr_eq(capu_tensor_next(rig->context, at + sizes[i] / 2),
                         i + 1 < count ? at + sizes[i] : NULL);
        at += sizes[i];
    }
}

static void expect_next(struct rig *rig, struct describe_range *range, const unsigned char *address,
                        size_t bytes)
{
    capu_tensor_state state;

    ck_assert(describe_next(rig->context, range, &state));
    ck_assert_ptr_eq(state.address, address);
    ck_assert_uint_eq(state.bytes, bytes);
    ck_assert_str_eq(state.name, step_query(rig, (void *)address).name);
    ck_assert_uint_eq(range->address, (uintptr_t)address + bytes);
}

/* What the library that stands in for the CUDA driver asks. */
START_TEST(a_range_meets_tensors_in_order)
{
    capu_tensor_state state = {.version = 17};
    struct describe_range range;
    unsigned char *blob;
    struct rig rig;

    rig_init(&rig, &(struct rig_options){.budget_pages = 12});
    blob = step_malloc(&rig, PAGES(8));
    RIG_OK(&rig, capu_split(rig.context, blob + PAGES(2), PAGES(3)));

    range = (struct describe_range){(uintptr_t)blob + PAGES(1), (uintptr_t)blob + PAGES(2) + 1};
    expect_next(&rig, &range, blob, PAGES(2));
    expect_next(&rig, &range, blob + PAGES(2), PAGES(3));
    ck_assert(!describe_next(rig.context, &range, &state));

    /* Where a range leaves the allocation it ends; splits on the way count. */
    range = (struct describe_range){(uintptr_t)blob + PAGES(5), (uintptr_t)blob + PAGES(9)};
    RIG_OK(&rig, capu_split(rig.context, blob + PAGES(6), PAGES(1)));
    expect_next(&rig, &range, blob + PAGES(5), PAGES(1));
    RIG_OK(&rig, capu_split(rig.context, blob + PAGES(6), 128));
    expect_next(&rig, &range, blob + PAGES(6), 128);
    expect_next(&rig, &range, blob + PAGES(6) + 128, PAGES(1) - 128);
    expect_next(&rig, &range, blob + PAGES(7), PAGES(1));
    ck_assert(!describe_next(rig.context, &range, &state));
    ck_assert_uint_eq(range.address, (uintptr_t)blob + PAGES(8));

    range = (struct describe_range){(uintptr_t)blob, (uintptr_t)blob};
    ck_assert(!describe_next(rig.context, &range, &state));
    ck_assert_uint_eq(state.version, 17);
    rig_finish(&rig);
}
END_TEST

/* One call makes the pieces that a call for each would make, wherever the contents are. */
START_TEST(a_list_splits_as_single_calls_do)
{
    enum { BYTES = PAGES(10) - 100, BUDGET = 12, COUNT = 6 };
    static const size_t sizes[COUNT] = {PAGES(2), 100, 28, PAGES(3) + 7, 1, PAGES(1)};
    static const size_t all[COUNT + 2] = {50,           PAGES(2), 100,      28,
                                          PAGES(3) + 7, 1,        PAGES(1), BYTES - PAGES(6) - 186};
    static unsigned char numbers[PAGES(16)];
    struct rig single;
    struct rig rig;
    unsigned char *blob;
    unsigned char *other;
    size_t offset = 50;

    rig_init(&rig, &(struct rig_options){.budget_pages = BUDGET});
    rig_init(&single, &(struct rig_options){.budget_pages = BUDGET});
    blob = numbered(&rig, numbers, BYTES);
    other = numbered(&single, numbers, BYTES);
    bring_into(&rig, blob, BYTES, (enum state)_i, BUDGET);
    bring_into(&single, other, BYTES, (enum state)_i, BUDGET);
    if (_i == ZERO || _i == ZERO_RESIDENT) {
        memset(numbers, 0, BYTES);
    }
    RIG_OK(&rig, CAPU_DESCRIBE(rig.context, blob, .name = "blob", .kind = CAPU_GRADIENT,
                               .lifetime = CAPU_PERSISTENT));
    RIG_OK(&rig, capu_split_list(rig.context, blob + 50, sizes, COUNT));
    rig_check(&rig);
    for (size_t i = 0; i < COUNT; i++) {
        RIG_OK(&single, capu_split(single.context, other + offset, sizes[i]));
        offset += sizes[i];
    }
    expect_tensors(&rig, blob, all, COUNT + 2);
    expect_tensors(&single, other, all, COUNT + 2);
    ck_assert_uint_eq(memory_fixed_pages(&rig.context->memory),
                      memory_fixed_pages(&single.context->memory));
    ck_assert_str_eq(step_query(&rig, blob).name, "blob");
    ck_assert_uint_eq(step_query(&rig, blob + 50).kind, CAPU_KIND_UNKNOWN);
    ck_assert_uint_eq(step_query(&rig, blob + BYTES - 1).kind, CAPU_GRADIENT);
    expect_numbers(&rig, blob, numbers, BYTES);
    push_out(&rig, BUDGET - memory_fixed_pages(&rig.context->memory));
    expect_numbers(&rig, blob, numbers, BYTES);
    RIG_OK(&rig, capu_free(rig.context, blob));
    RIG_OK(&rig, capu_synchronize(rig.context));
    ck_assert_uint_eq(pages_out(rig.context->memory.pages), 0);
    rig_finish(&single);
    rig_finish(&rig);
}
END_TEST

/* The same list again changes nothing; a finer one splits the pieces further. */
START_TEST(a_list_can_be_repeated_and_refined)
{
    const size_t sizes[] = {PAGES(2), PAGES(3), PAGES(1)};
    const size_t finer[] = {PAGES(1), PAGES(1), PAGES(2), PAGES(1)};
    const size_t all[] = {PAGES(1), PAGES(1), PAGES(2), PAGES(1), PAGES(1)};
    struct rig rig;
    unsigned char *blob;
    uint64_t version;

    rig_init(&rig, &(struct rig_options){.budget_pages = 12});
    blob = step_malloc(&rig, PAGES(6));
    RIG_OK(&rig, capu_split_list(rig.context, blob, sizes, 3));
    step_set(&rig, blob, PAGES(6), 3);
    version = step_query(&rig, blob).version;
    RIG_OK(&rig, CAPU_DESCRIBE(rig.context, blob, .name = "first"));
    RIG_OK(&rig, capu_split_list(rig.context, blob, sizes, 3));
    expect_tensors(&rig, blob, sizes, 3);
    ck_assert_str_eq(step_query(&rig, blob).name, "first");
    ck_assert_uint_eq(step_query(&rig, blob).version, version);
    RIG_OK(&rig, capu_split_list(rig.context, blob, finer, 4));
    expect_tensors(&rig, blob, all, 5);
    step_expect(&rig, blob, PAGES(6), 3);
    rig_finish(&rig);
}
END_TEST

START_TEST(wrong_lists_change_nothing)
{
    const size_t crossing[] = {PAGES(1), PAGES(2), PAGES(2)};
    const size_t beyond[] = {PAGES(2), PAGES(3), PAGES(2)};
    const size_t zero[] = {PAGES(1), 0, PAGES(1)};
    const size_t huge[] = {PAGES(1), SIZE_MAX};
    const size_t now[] = {PAGES(2), PAGES(4)};
    struct rig rig;
    unsigned char *blob;

    rig_init(&rig, &(struct rig_options){.budget_pages = 12});
    blob = step_malloc(&rig, PAGES(6));
    RIG_OK(&rig, capu_split(rig.context, blob, PAGES(2)));
    STEP_FAILS(&rig, capu_split_list(rig.context, blob, crossing, 3), CAPU_WRONG_ADDRESS,
               "capu_split_list: 8192 bytes");
    STEP_FAILS(&rig, capu_split_list(rig.context, blob, beyond, 3), CAPU_WRONG_ADDRESS,
               "cross the end");
    STEP_FAILS(&rig, capu_split_list(rig.context, blob, zero, 3), CAPU_INVALID, "2 of 3");
    STEP_FAILS(&rig, capu_split_list(rig.context, blob, huge, 2), CAPU_WRONG_ADDRESS,
               "cross the end");
    STEP_FAILS(&rig, capu_split_list(rig.context, blob, now, 0), CAPU_INVALID, "no sizes");
    STEP_FAILS(&rig, capu_split_list(rig.context, blob, NULL, 1), CAPU_INVALID, "no sizes");
    STEP_FAILS(&rig, capu_split_list(rig.context, &rig, now, 2), CAPU_WRONG_ADDRESS,
               "capu_split_list");
    expect_tensors(&rig, blob, now, 2);
    ck_assert_ptr_null(capu_tensor_next(rig.context, &rig));
    ck_assert_ptr_nonnull(strstr(capu_last_error(rig.context), "capu_tensor_next"));
    ck_assert_ptr_null(capu_tensor_next(NULL, blob));
    rig_finish(&rig);
}
END_TEST

/* The edge pages of a tensor that is known to be zero do not fit the budget. */
START_TEST(a_split_over_budget_changes_nothing)
{
    enum { BUDGET = 4 };
    struct rig rig;
    unsigned char *fixed;
    unsigned char *zero;

    rig_init(&rig, &(struct rig_options){.budget_pages = BUDGET});
    fixed = step_malloc(&rig, PAGES(6));
    for (size_t i = 1; i <= 3; i++) {
        RIG_OK(&rig, capu_split(rig.context, fixed + PAGES(i) - 100, 200));
    }
    zero = step_malloc(&rig, PAGES(3));
    RIG_OK(&rig, capu_zero(rig.context, zero, 0));
    ck_assert_uint_eq(memory_fixed_pages(&rig.context->memory), BUDGET);
    STEP_FAILS(&rig, capu_split(rig.context, zero + 100, PAGES(1)), CAPU_OVER_BUDGET,
               "always resident");
    rig_check(&rig);
    ck_assert_uint_eq(step_query(&rig, zero + 100).bytes, PAGES(3));
    step_expect(&rig, zero, PAGES(3), 0);
    RIG_OK(&rig, capu_free(rig.context, fixed));
    RIG_OK(&rig, capu_split(rig.context, zero + 100, PAGES(1)));
    step_expect(&rig, zero, PAGES(3), 0);
    rig_finish(&rig);
}
END_TEST

/* An evicted tensor must return to the device to be split. If there is no room, it keeps its host
   copy. */
START_TEST(a_failed_split_keeps_the_host_copy)
{
    struct rig rig;
    unsigned char *tensor;
    unsigned char *blob;

    rig_init(&rig, &(struct rig_options){.budget_pages = 6});
    tensor = step_malloc(&rig, PAGES(5));
    step_set(&rig, tensor, PAGES(5), 42);
    push_out(&rig, 6);
    blob = step_malloc(&rig, PAGES(6));
    RIG_OK(&rig, capu_split(rig.context, blob + 100, 200));
    RIG_OK(&rig, capu_split(rig.context, blob + PAGES(2) + 100, 200));
    STEP_FAILS(&rig, capu_split(rig.context, tensor + 100, PAGES(2)), CAPU_OVER_BUDGET, "pages");
    rig_check(&rig);
    step_expect(&rig, tensor, PAGES(5), 42);
    RIG_OK(&rig, capu_free(rig.context, blob));
    RIG_OK(&rig, capu_split(rig.context, tensor + 100, PAGES(2)));
    step_expect(&rig, tensor, PAGES(5), 42);
    rig_finish(&rig);
}
END_TEST

/* An allocation is freed while several of its pieces are still leaving. None of them may be
   unmapped before its copy has finished. */
START_TEST(freeing_waits_for_every_piece_that_is_leaving)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct rig rig;
        unsigned char *blob;

        rig_init(&rig, &(struct rig_options){.budget_pages = 12, .delay_seed = seed});
        blob = step_malloc(&rig, PAGES(12));
        for (size_t i = 0; i < 3; i++) {
            RIG_OK(&rig, capu_split(rig.context, blob + PAGES(4 * i), PAGES(4)));
        }
        /* The last piece of the allocation leaves first. */
        for (size_t i = 3; i-- > 0;) {
            step_set(&rig, blob + PAGES(4 * i), PAGES(4), (unsigned char)i);
        }
        push_out(&rig, 7);
        RIG_OK(&rig, capu_free(rig.context, blob));
        push_out(&rig, 12);
        rig_finish(&rig);
    }
}
END_TEST

/* Zeros of a resident tensor are filled in before the split. The record counts this as an op and
   must have room for it, even if it is the first op of the iteration. */
START_TEST(resident_zeros_are_split_inside_an_iteration)
{
    enum { TENSORS = 100 };
    static unsigned char *tensors[TENSORS];
    struct report report = {0};
    struct rig rig;

    rig_init(&rig, &(struct rig_options){0});
    for (size_t i = 0; i < TENSORS; i++) {
        tensors[i] = step_tensor(&rig, "parameter", CAPU_PARAMETER, 3);
        step_set(&rig, tensors[i], PAGES(3), 9);
    }
    RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
    for (size_t i = 0; i < TENSORS; i++) {
        RIG_OK(&rig, capu_zero(rig.context, tensors[i], 0));
        RIG_OK(&rig, capu_split(rig.context, tensors[i], PAGES(1) + 100));
    }
    RIG_OK(&rig, capu_iteration_end(rig.context));
    RIG_OK(&rig, capu_synchronize(rig.context));
    report = rig_report(&rig);
    ck_assert_uint_eq(report.op_count, TENSORS);
    step_expect(&rig, tensors[TENSORS - 1], PAGES(3), 0);
    rig_finish(&rig);
}
END_TEST

START_TEST(small_tensors_can_be_split)
{
    struct rig rig;
    unsigned char *small;

    rig_init(&rig, &(struct rig_options){.budget_pages = 4});
    small = step_malloc(&rig, 1000);
    step_set(&rig, small, 1000, 5);
    RIG_OK(&rig, capu_split(rig.context, small + 100, 300));
    step_set(&rig, small + 100, 300, 6);
    step_expect(&rig, small, 100, 5);
    step_expect(&rig, small + 100, 300, 6);
    step_expect(&rig, small + 400, 600, 5);
    RIG_OK(&rig, capu_free(rig.context, small));
    rig_finish(&rig);
}
END_TEST

/* Unmapping the second piece of a freed allocation fails at first. Its pages stay in use until the
   next attempt, while those of the first piece are free. */
START_TEST(pieces_of_a_freed_allocation_leave_one_by_one)
{
    static const struct adaptor_fault_plan second = {
        .slot = ADAPTOR_UNMAP, .call = 2, .status = CAPU_DEVICE_FAILED};
    unsigned char *blob;
    struct rig rig;

    rig_init(&rig, &(struct rig_options){.has_faults = true});
    blob = step_malloc(&rig, PAGES(8));
    RIG_OK(&rig, capu_split(rig.context, blob, PAGES(5)));
    step_set(&rig, blob, PAGES(5), 1);
    step_set(&rig, blob + PAGES(5), PAGES(3), 2);
    RIG_OK(&rig, capu_free(rig.context, blob));
    adaptor_fault_arm(rig.faults, &second);
    STEP_FAILS(&rig, capu_synchronize(rig.context), CAPU_DEVICE_FAILED, "unmapping");
    ck_assert_uint_eq(pages_out(rig.context->memory.pages), 3);
    rig_check(&rig);
    RIG_OK(&rig, capu_synchronize(rig.context));
    ck_assert_uint_eq(pages_out(rig.context->memory.pages), 0);
    rig_finish(&rig);
}
END_TEST

/* A split fails, and the tensor, which is still whole, is freed inside the iteration. Its pages
   must become free like those of any other tensor. */
START_TEST(a_tensor_can_be_freed_after_a_failed_split)
{
    static const struct adaptor_fault_plan first = {
        .slot = ADAPTOR_UNMAP, .call = 1, .status = CAPU_DEVICE_FAILED};
    unsigned char *blob;
    struct rig rig;

    rig_init(&rig, &(struct rig_options){.has_faults = true,
                                         .mode = _i == 1 ? CAPU_MODE_GUIDED : CAPU_MODE_PASSIVE});
    blob = step_malloc(&rig, PAGES(8));
    RIG_OK(&rig, capu_iteration_begin(rig.context, "train"));
    step_set(&rig, blob, PAGES(8), 1);
    adaptor_fault_arm(rig.faults, &first);
    STEP_FAILS(&rig, capu_split(rig.context, blob, PAGES(5)), CAPU_DEVICE_FAILED, "splitting");
    step_expect(&rig, blob, PAGES(8), 1);
    RIG_OK(&rig, capu_free(rig.context, blob));
    RIG_OK(&rig, capu_synchronize(rig.context));
    ck_assert_uint_eq(pages_out(rig.context->memory.pages), 0);
    RIG_OK(&rig, capu_iteration_end(rig.context));
    rig_finish(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api split");
    TCase *cases = tcase_create("split");

    tcase_add_loop_test(cases, contents_are_kept_in_every_state, 0, STATES);
    tcase_add_test(cases, a_blob_can_be_split_into_many_tensors);
    tcase_add_test(cases, edge_pages_are_fixed_and_whole_pages_are_not);
    tcase_add_test(cases, the_rest_keeps_its_description);
    tcase_add_test(cases, a_range_meets_tensors_in_order);
    tcase_add_loop_test(cases, a_list_splits_as_single_calls_do, 0, STATES);
    tcase_add_test(cases, a_list_can_be_repeated_and_refined);
    tcase_add_test(cases, wrong_lists_change_nothing);
    tcase_add_test(cases, a_split_over_budget_changes_nothing);
    tcase_add_test(cases, a_failed_split_keeps_the_host_copy);
    tcase_add_test(cases, freeing_waits_for_every_piece_that_is_leaving);
    tcase_add_test(cases, resident_zeros_are_split_inside_an_iteration);
    tcase_add_test(cases, small_tensors_can_be_split);
    tcase_add_test(cases, pieces_of_a_freed_allocation_leave_one_by_one);
    tcase_add_loop_test(cases, a_tensor_can_be_freed_after_a_failed_split, 0, 2);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
