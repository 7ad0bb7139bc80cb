/* capu_malloc and capu_free; describing, querying and printing tensors. */
#include "tests/api/steps.h"

START_TEST(addresses_are_aligned_and_disjoint)
{
    struct rig rig;
    unsigned char *addresses[100];
    size_t sizes[100];

    rig_init(&rig, &(struct rig_options){0});
    for (size_t i = 0; i < 100; i++) {
        sizes[i] = 1 + i * 197;
        addresses[i] = step_malloc(&rig, sizes[i]);
        ck_assert_uint_eq((uintptr_t)addresses[i] % 256, 0);
        step_set(&rig, addresses[i], sizes[i], (unsigned char)i);
    }
    for (size_t i = 0; i < 100; i++) {
        step_expect(&rig, addresses[i], sizes[i], (unsigned char)i);
        ck_assert_uint_eq(step_query(&rig, addresses[i]).bytes, sizes[i]);
    }
    for (size_t i = 0; i < 100; i++) {
        RIG_OK(&rig, capu_free(rig.context, addresses[i]));
    }
    rig_finish(&rig);
}
END_TEST

START_TEST(small_tensors_are_always_resident_and_large_ones_are_not)
{
    struct rig rig;
    unsigned char *small;
    unsigned char *large;

    rig_init(&rig, &(struct rig_options){0});
    small = step_malloc(&rig, RIG_PAGE / 2 - 1);
    large = step_malloc(&rig, RIG_PAGE / 2);
    ck_assert_uint_eq(step_query(&rig, small).is_resident, 1);
    ck_assert_uint_eq(step_query(&rig, small).fixed_bytes, RIG_PAGE / 2 - 1);
    ck_assert_uint_eq(step_query(&rig, large).is_resident, 0);
    ck_assert_uint_eq(step_query(&rig, large).fixed_bytes, 0);
    ck_assert_uint_eq(rig_pages(&rig), 1);
    rig_finish(&rig);
}
END_TEST

START_TEST(a_description_without_a_name_keeps_the_name)
{
    struct rig rig;
    unsigned char *tensor;
    capu_tensor_state state;

    rig_init(&rig, &(struct rig_options){0});
    tensor = step_malloc(&rig, PAGES(2));
    ck_assert_str_ne(step_query(&rig, tensor).name, "");
    RIG_OK(&rig, CAPU_DESCRIBE(rig.context, tensor, .name = "w", .kind = CAPU_GRADIENT,
                               .lifetime = CAPU_PERSISTENT, .hint = CAPU_HINT_SWAP));
    RIG_OK(&rig, CAPU_DESCRIBE(rig.context, tensor + 5000, .kind = CAPU_ACTIVATION));
    state = step_query(&rig, tensor + 8191);
    ck_assert_str_eq(state.name, "w");
    ck_assert_ptr_eq(state.address, tensor);
    ck_assert_uint_eq(state.kind, CAPU_ACTIVATION);
    ck_assert_uint_eq(state.hint, CAPU_HINT_NONE);
    ck_assert_uint_eq(state.is_persistent, 0);
    ck_assert_uint_eq(state.is_defined, 0);
    ck_assert_uint_eq(state.version, 0);
    step_set(&rig, tensor, PAGES(2), 1);
    step_set(&rig, tensor, PAGES(2), 2);
    ck_assert_uint_eq(step_query(&rig, tensor).version, 2);
    ck_assert_uint_eq(step_query(&rig, tensor).is_defined, 1);
    ck_assert_uint_eq(step_query(&rig, tensor).is_zero, 0);
    RIG_OK(&rig, capu_zero(rig.context, tensor, PAGES(2)));
    ck_assert_uint_eq(step_query(&rig, tensor).is_zero, 1);
    RIG_OK(&rig, capu_zero(rig.context, tensor, PAGES(1)));
    ck_assert_uint_eq(step_query(&rig, tensor).is_zero, 0);
    rig_finish(&rig);
}
END_TEST

START_TEST(which_kinds_are_persistent)
{
    static const uint32_t persistent[] = {1, 1, 1, 0, 0, 0, 0};
    struct rig rig;
    unsigned char *tensor;

    rig_init(&rig, &(struct rig_options){0});
    tensor = step_malloc(&rig, PAGES(1));
    for (uint32_t kind = CAPU_KIND_UNKNOWN; kind <= CAPU_INPUT; kind++) {
        RIG_OK(&rig, CAPU_DESCRIBE(rig.context, tensor, .kind = kind));
        ck_assert_uint_eq(step_query(&rig, tensor).is_persistent, persistent[kind]);
    }
    RIG_OK(&rig,
           CAPU_DESCRIBE(rig.context, tensor, .kind = CAPU_PARAMETER, .lifetime = CAPU_TRANSIENT));
    ck_assert_uint_eq(step_query(&rig, tensor).is_persistent, 0);
    rig_finish(&rig);
}
END_TEST

START_TEST(a_shorter_state_is_filled_as_far_as_it_reaches)
{
    struct rig rig;
    capu_tensor_state state;
    unsigned char *tensor;

    rig_init(&rig, &(struct rig_options){0});
    tensor = step_malloc(&rig, PAGES(3));
    memset(&state, 0xaa, sizeof(state));
    state.size = offsetof(capu_tensor_state, fixed_bytes);
    RIG_OK(&rig, capu_tensor_query(rig.context, tensor, &state));
    ck_assert_uint_eq(state.size, offsetof(capu_tensor_state, fixed_bytes));
    ck_assert_uint_eq(state.bytes, PAGES(3));
    ck_assert_uint_eq(state.fixed_bytes, 0xaaaaaaaaaaaaaaaaULL);
    rig_finish(&rig);
}
END_TEST

START_TEST(mode_off_checks_the_budget_at_malloc)
{
    struct rig rig;
    unsigned char *first;
    void *address = &rig;

    rig_init(&rig, &(struct rig_options){.mode = CAPU_MODE_OFF, .budget_pages = 8});
    first = step_malloc(&rig, PAGES(5));
    ck_assert_uint_eq(step_query(&rig, first).is_resident, 1);
    STEP_FAILS(&rig, capu_malloc(rig.context, PAGES(4), &address), CAPU_OVER_BUDGET, "5 of 8");
    ck_assert_ptr_eq(address, &rig);
    (void)step_malloc(&rig, PAGES(3));
    RIG_OK(&rig, capu_free(rig.context, first));
    (void)step_malloc(&rig, PAGES(5));
    rig_check(&rig);
    rig_finish(&rig);
}
END_TEST

/* Tensors that ops have used are not evicted to make room for an allocation either. */
START_TEST(mode_off_evicts_nothing)
{
    struct rig rig;
    unsigned char *first;
    unsigned char *second;
    void *address = &rig;

    rig_init(&rig, &(struct rig_options){.mode = CAPU_MODE_OFF, .budget_pages = 8});
    first = step_malloc(&rig, PAGES(3));
    second = step_malloc(&rig, PAGES(3));
    step_set(&rig, first, PAGES(3), 5);
    RIG_OK(&rig, capu_zero(rig.context, second, 0));
    STEP_FAILS(&rig, capu_malloc(rig.context, PAGES(4), &address), CAPU_OVER_BUDGET, "6 of 8");
    ck_assert_uint_eq(step_query(&rig, first).is_resident, 1);
    ck_assert_uint_eq(step_query(&rig, second).is_resident, 1);
    step_expect(&rig, first, PAGES(3), 5);
    step_expect(&rig, second, PAGES(3), 0);
    rig_check(&rig);
    rig_finish(&rig);
}
END_TEST

/* A large tensor can use the pages of small tensors that were freed, but those pages must not be
   unmapped while an op that uses them still runs. */
START_TEST(pages_of_freed_small_tensors_are_reused)
{
    struct rig rig;
    unsigned char *small[64];
    unsigned char *large;

    rig_init(&rig, &(struct rig_options){.budget_pages = 16, .delay_seed = 3});
    for (size_t round = 0; round < 4; round++) {
        for (size_t i = 0; i < 64; i++) {
            small[i] = step_malloc(&rig, 1000);
            step_set(&rig, small[i], 1000, (unsigned char)i);
        }
        for (size_t i = 0; i < 64; i++) {
            RIG_OK(&rig, capu_free(rig.context, small[i]));
        }
        large = step_malloc(&rig, PAGES(16));
        step_set(&rig, large, PAGES(16), 9);
        step_expect(&rig, large, PAGES(16), 9);
        RIG_OK(&rig, capu_free(rig.context, large));
        rig_check(&rig);
    }
    rig_finish(&rig);
}
END_TEST

START_TEST(usage_counts_pages_and_host_bytes)
{
    struct rig rig;
    unsigned char *tensors[3];
    uint64_t held;
    uint64_t peak;
    uint64_t host;

    rig_init(&rig, &(struct rig_options){.budget_pages = 8});
    for (size_t i = 0; i < 3; i++) {
        tensors[i] = step_malloc(&rig, PAGES(4));
        step_set(&rig, tensors[i], PAGES(4), (unsigned char)i);
    }
    RIG_OK(&rig, capu_synchronize(rig.context));
    capu_memory_usage(rig.context, &held, &peak, &host);
    ck_assert_uint_eq(held, PAGES(8));
    ck_assert_uint_eq(peak, PAGES(8));
    ck_assert_uint_eq(host, host_arena_chunk_bytes(rig.context->memory.arena));
    ck_assert_uint_ge(host, PAGES(4));
    for (size_t i = 0; i < 3; i++) {
        RIG_OK(&rig, capu_free(rig.context, tensors[i]));
    }
    RIG_OK(&rig, capu_synchronize(rig.context));
    capu_memory_usage(rig.context, &held, NULL, &host);
    ck_assert_uint_eq(held, 0);
    ck_assert_uint_eq(host_arena_used_bytes(rig.context->memory.arena), 0);
    ck_assert_uint_eq(host, host_arena_chunk_bytes(rig.context->memory.arena)); /* it is kept */
    rig_finish(&rig);
}
END_TEST

START_TEST(holders_are_printed_largest_first)
{
    struct rig rig;
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);

    rig_init(&rig, &(struct rig_options){.budget_pages = 8});
    step_set(&rig, step_tensor(&rig, "little", CAPU_PARAMETER, 1), PAGES(1), 1);
    step_set(&rig, step_tensor(&rig, "big", CAPU_OPTIMIZER, 5), PAGES(5), 1);
    step_set(&rig, step_tensor(&rig, "\x1b[2J\n  forged", CAPU_OPTIMIZER, 1), PAGES(1), 1);
    step_set(&rig, step_tensor(&rig, "third", CAPU_OPTIMIZER, 7), PAGES(7), 1);
    RIG_OK(&rig, capu_synchronize(rig.context));
    RIG_OK(&rig, capu_memory_print(rig.context, file));
    fclose(file);
    ck_assert_ptr_nonnull(strstr(text, "8 pages of 4096 bytes"));
    ck_assert_ptr_nonnull(strstr(text, "big"));
    ck_assert(strstr(text, "third") < strstr(text, "big"));
    ck_assert_ptr_nonnull(strstr(text, "out\n"));
    ck_assert_ptr_nonnull(strstr(text, "  \\x1b[2J\\x0a  forged "));
    free(text);
    rig_finish(&rig);
}
END_TEST

/* Of 400 small tensors, every fourth is kept, and none without a name. */
START_TEST(small_tensors_are_printed_together)
{
    enum { COUNT = 400, KEPT = 4 };
    unsigned char *tensors[COUNT];
    struct rig rig;
    char *text = NULL;
    char *line;
    size_t lines = 0;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);

    rig_init(&rig, &(struct rig_options){.budget_pages = 200});
    for (size_t i = 0; i < COUNT; i++) {
        char name[32];

        snprintf(name, sizeof(name), "norm.%zu.scale", i);
        tensors[i] = step_malloc(&rig, 1000);
        RIG_OK(&rig, CAPU_DESCRIBE(rig.context, tensors[i], .name = i % 2 == 0 ? name : NULL,
                                   .kind = CAPU_PARAMETER));
    }
    for (size_t i = 0; i < COUNT; i++) {
        if (i % KEPT != 0) {
            RIG_OK(&rig, capu_free(rig.context, tensors[i]));
        }
    }
    step_malloc(&rig, 1000);
    step_malloc(&rig, 1000);
    RIG_OK(&rig, capu_memory_print(rig.context, file));
    fclose(file);
    ck_assert_msg(strstr(text, "take 104448 bytes of 409600 bytes of slabs; 0 more") != NULL, "%s",
                  text);
    ck_assert_ptr_nonnull(strstr(text, "allocate small tensors that live long before"));
    ck_assert_ptr_nonnull(strstr(text, "norm."));
    ck_assert_ptr_nonnull(strstr(text, "always resident, 100 such tensors\n"));
    ck_assert_ptr_nonnull(strstr(text, "always resident, 2 such tensors\n"));
    for (line = text; (line = strchr(line, '\n')) != NULL; line++) {
        lines++;
    }
    ck_assert_uint_eq(lines, 6);
    free(text);
    rig_finish(&rig);
}
END_TEST

/* Without iterations nothing recycles the events of the lanes, so the library must do it itself, or
   it would grow with every call. */
START_TEST(endless_use_outside_iterations_keeps_the_lanes_small)
{
    struct rig rig;
    unsigned char *tensor;
    unsigned char byte = 1;

    rig_init(&rig, &(struct rig_options){0});
    tensor = step_malloc(&rig, PAGES(1));
    for (size_t i = 0; i < 9000; i++) {
        RIG_OK(&rig, capu_upload(rig.context, tensor, &byte, 1, 0));
    }
    ck_assert_uint_le(rig.context->lanes.compute.capacity, 16384);
    rig_finish(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api memory");
    TCase *cases = tcase_create("memory");

    tcase_add_test(cases, addresses_are_aligned_and_disjoint);
    tcase_add_test(cases, small_tensors_are_always_resident_and_large_ones_are_not);
    tcase_add_test(cases, a_description_without_a_name_keeps_the_name);
    tcase_add_test(cases, which_kinds_are_persistent);
    tcase_add_test(cases, a_shorter_state_is_filled_as_far_as_it_reaches);
    tcase_add_test(cases, mode_off_checks_the_budget_at_malloc);
    tcase_add_test(cases, mode_off_evicts_nothing);
    tcase_add_test(cases, pages_of_freed_small_tensors_are_reused);
    tcase_add_test(cases, usage_counts_pages_and_host_bytes);
    tcase_add_test(cases, holders_are_printed_largest_first);
    tcase_add_test(cases, small_tensors_are_printed_together);
    tcase_add_test(cases, endless_use_outside_iterations_keeps_the_lanes_small);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
