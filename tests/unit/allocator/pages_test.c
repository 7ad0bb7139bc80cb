/* Pages: the budget, reuse, contiguous runs, and a failure of every call. */
#include "allocator/pages.h"

#include "tests/support/adaptor_fault.h"
#include "tests/support/malloc_faults.h"
#include "tests/support/seed.h"
#include "tests/unit/allocator/valid.h"

#define PAGE UINT64_C(65536)
#define LIMIT 300

static struct device *new_device(void)
{
    const struct device_options options = {.memory_bytes = 1000 * PAGE, .page_bytes = PAGE};
    struct device *sim;
    struct device *device;

    ck_assert_int_eq(sim_device_create(&options, &sim, NULL, 0), CAPU_OK);
    ck_assert_int_eq(adaptor_fault_create(sim, &device), CAPU_OK);
    return device;
}

START_TEST(the_budget_is_a_hard_limit)
{
    struct device *device = new_device();
    device_page list[8];
    struct pages *pages = NULL;

    ck_assert_int_eq(pages_create(device, PAGE - 1, &pages), CAPU_OVER_BUDGET);
    ck_assert_ptr_null(pages);
    ck_assert_int_eq(pages_create(device, 8 * PAGE + PAGE / 2, &pages), CAPU_OK);
    ck_assert_uint_eq(pages_limit(pages), 8);
    ck_assert_uint_eq(pages_bytes_each(pages), PAGE);
    ck_assert_int_eq(pages_take(pages, 9, list), CAPU_OVER_BUDGET);
    ck_assert_int_eq(pages_take(pages, SIZE_MAX, list), CAPU_OVER_BUDGET);
    ck_assert_int_eq(pages_take(pages, 0, list), CAPU_OK);
    ck_assert_int_eq(pages_take(pages, 5, list), CAPU_OK);
    ck_assert_int_eq(pages_take(pages, 4, list + 5), CAPU_OVER_BUDGET);
    ck_assert_uint_eq(pages_available(pages), 3);
    ck_assert_uint_eq(pages_out(pages), 5);
    CHECK_VALID(pages_validate, pages);
    pages_give(pages, list, 2);
    ck_assert_uint_eq(pages_out_peak(pages), 5);
    pages_reset_peak(pages);
    ck_assert_uint_eq(pages_out_peak(pages), 3);
    pages_give(pages, list, 5); /* two of them were given back before */
    ck_assert_uint_eq(pages_available(pages), 8);
    CHECK_VALID(pages_validate, pages);
    pages_destroy(pages);
    pages_destroy(NULL);
    ck_assert_int_eq(pages_create(device, UINT64_MAX, &pages), CAPU_OK);
    ck_assert_uint_eq(pages_limit(pages), 1000);
    pages_destroy(pages);
    device_destroy(device);
}
END_TEST

START_TEST(pages_are_reused)
{
    struct device *device = new_device();
    device_page list[LIMIT];
    struct pages *pages;

    ck_assert_int_eq(pages_create(device, LIMIT * PAGE, &pages), CAPU_OK);
    adaptor_fault_arm(device, &(struct adaptor_fault_plan){.slot = ADAPTOR_PAGE_CREATE});
    for (size_t i = 0; i < 100; i++) {
        ck_assert_int_eq(pages_take(pages, 1 + i % 20, list), CAPU_OK);
        pages_give(pages, list, 1 + i % 20);
    }
    ck_assert_uint_eq(adaptor_fault_calls(device), 20);
    ck_assert_int_eq(pages_take(pages, LIMIT, list), CAPU_OK);
    ck_assert_uint_eq(adaptor_fault_calls(device), LIMIT);
    pages_give(pages, list, LIMIT);
    CHECK_VALID(pages_validate, pages);
    pages_destroy(pages);
    device_destroy(device);
}
END_TEST

static size_t run_count(const device_page *list, size_t count)
{
    size_t runs = 1;

    for (size_t i = 1; i < count; i++) {
        runs += list[i] != list[i - 1] + 1;
    }
    return runs;
}

START_TEST(contiguous_pages_are_preferred)
{
    struct device *device = new_device();
    device_page all[64];
    device_page list[64];
    struct pages *pages;

    ck_assert_int_eq(pages_create(device, 64 * PAGE, &pages), CAPU_OK);
    ck_assert_int_eq(pages_take(pages, 64, all), CAPU_OK);
    ck_assert_uint_eq(run_count(all, 64), 1);
    for (size_t i = 0; i < 16; i += 2) { /* single pages, then a run of 20 */
        pages_give(pages, &all[i], 1);
    }
    pages_give(pages, &all[30], 20);
    ck_assert_int_eq(pages_take(pages, 12, list), CAPU_OK);
    ck_assert_uint_eq(run_count(list, 12), 1);
    pages_give(pages, list, 12);
    ck_assert_int_eq(pages_take(pages, 24, list), CAPU_OK);
    ck_assert_uint_eq(run_count(list, 24), 5); /* the run and four single pages */
    CHECK_VALID(pages_validate, pages);
    pages_destroy(pages);
    device_destroy(device);
}
END_TEST

/* Pages that are aside are out for all but one caller, and join to runs again. */
START_TEST(pages_are_put_aside)
{
    struct device *device = new_device();
    device_page all[64];
    device_page list[64];
    struct pages *pages;

    ck_assert_int_eq(pages_create(device, 64 * PAGE, &pages), CAPU_OK);
    ck_assert_int_eq(pages_take(pages, 64, all), CAPU_OK);
    for (size_t i = 0; i < 32; i += 2) {
        pages_put_aside(pages, &all[i], 1);
    }
    for (size_t i = 1; i < 32; i += 2) {
        pages_put_aside(pages, &all[i], 1);
    }
    CHECK_VALID(pages_validate, pages);
    ck_assert_uint_eq(pages_out(pages), 64);
    ck_assert_uint_eq(pages_available(pages), 0);
    ck_assert_int_eq(pages_take(pages, 1, list), CAPU_OVER_BUDGET);
    pages_take_aside(pages, 0, list);
    pages_take_aside(pages, 20, list);
    ck_assert_uint_eq(run_count(list, 20), 1);
    pages_put_aside(pages, list, 20);
    pages_give(pages, &all[32], 4);
    ck_assert_int_eq(pages_take(pages, 5, list), CAPU_OVER_BUDGET);
    ck_assert_int_eq(pages_take(pages, 4, list), CAPU_OK);
    CHECK_VALID(pages_validate, pages);
    pages_give(pages, list, 4);
    pages_give_aside(pages, 32);
    ck_assert_uint_eq(pages_available(pages), 36);
    CHECK_VALID(pages_validate, pages);
    pages_destroy(pages);

    /* What is aside stays in the pool: other takes make pages of their own. */
    ck_assert_int_eq(pages_create(device, 64 * PAGE, &pages), CAPU_OK);
    ck_assert_int_eq(pages_take(pages, 8, all), CAPU_OK);
    pages_put_aside(pages, all, 8);
    ck_assert_int_eq(pages_take(pages, 4, list), CAPU_OK);
    ck_assert_uint_eq(pages_created(pages), 12);
    CHECK_VALID(pages_validate, pages);
    pages_destroy(pages);
    device_destroy(device);
}
END_TEST

/* A lower budget destroys free pages, and what is out stays as it is. */
START_TEST(the_budget_changes)
{
    struct device *device = new_device();
    device_page list[64];
    struct pages *pages;

    ck_assert_int_eq(pages_create(device, 64 * PAGE, &pages), CAPU_OK);
    ck_assert_int_eq(pages_take(pages, 40, list), CAPU_OK);
    pages_give(pages, list, 20); /* the upper half keeps its handles, with other numbers */
    ck_assert_int_eq(pages_set_budget(pages, 19 * PAGE), CAPU_OVER_BUDGET);
    ck_assert_int_eq(pages_set_budget(pages, PAGE - 1), CAPU_OVER_BUDGET);
    ck_assert_uint_eq(pages_limit(pages), 64);
    ck_assert_int_eq(pages_set_budget(pages, 25 * PAGE + PAGE / 2), CAPU_OK);
    ck_assert_uint_eq(pages_limit(pages), 25);
    ck_assert_uint_eq(pages_created(pages), 25);
    ck_assert_uint_eq(pages_created_peak(pages), 40);
    ck_assert_uint_eq(pages_available(pages), 5);
    CHECK_VALID(pages_validate, pages);
    ck_assert_int_eq(pages_take(pages, 6, list), CAPU_OVER_BUDGET);
    ck_assert_int_eq(pages_take(pages, 5, list), CAPU_OK);
    pages_put_aside(pages, list, 5);
    ck_assert_int_eq(pages_set_budget(pages, 24 * PAGE), CAPU_OVER_BUDGET);
    pages_give(pages, &list[20], 20);
    ck_assert_uint_eq(pages_out(pages), 5);
    ck_assert_int_eq(pages_set_budget(pages, 5 * PAGE), CAPU_OK);
    pages_take_aside(pages, 5, list);
    ck_assert_int_eq(pages_set_budget(pages, UINT64_MAX), CAPU_OK);
    ck_assert_uint_eq(pages_available(pages), 995);
    CHECK_VALID(pages_validate, pages);
    pages_destroy(pages);
    device_destroy(device);
}
END_TEST

START_TEST(pages_match_the_model)
{
    uint64_t state = seed_start("pages");
    struct device *device = new_device();
    static device_page held[LIMIT];
    static unsigned char out[1000];
    size_t held_count = 0;
    size_t limit = LIMIT;
    struct pages *pages;

    ck_assert_int_eq(pages_create(device, LIMIT * PAGE, &pages), CAPU_OK);
    for (int step = 0; step < 5000; step++) {
        size_t count = seed_below(&state, seed_below(&state, 20) == 0 ? LIMIT : 12);

        if (seed_below(&state, 2) == 0) {
            device_page *list = &held[held_count];
            capu_status status = CAPU_OVER_BUDGET;

            if (held_count + count <= limit) {
                status = pages_take(pages, count, list);
                ck_assert_int_eq(status, CAPU_OK);
                for (size_t i = 0; i < count; i++) {
                    ck_assert_uint_lt(list[i], sizeof(out));
                    ck_assert_uint_eq(out[list[i]]++, 0);
                }
                held_count += count;
            }
        } else {
            for (; count > 0 && held_count > 0; count--) {
                size_t at = seed_below(&state, held_count);

                pages_give(pages, &held[at], 1);
                out[held[at]] = 0;
                held[at] = held[--held_count];
            }
        }
        if (seed_below(&state, 8) == 0) {
            limit = held_count + 1 + seed_below(&state, LIMIT - held_count + 1);
            limit = limit < LIMIT ? limit : LIMIT;
            ck_assert_int_eq(pages_set_budget(pages, limit * PAGE), CAPU_OK);
            ck_assert_uint_le(pages_created(pages), limit);
        }
        ck_assert_uint_eq(pages_out(pages), held_count);
        ck_assert_uint_eq(pages_available(pages), limit - held_count);
        CHECK_VALID(pages_validate, pages);
    }
    pages_destroy(pages);
    device_destroy(device);
}
END_TEST

/* _i: bit 0: all later calls fail too; bit 1: host allocations fail instead of device calls. */
START_TEST(every_call_can_fail)
{
    bool is_lasting = (_i & 1) != 0;
    bool is_host = (_i & 2) != 0;
    uint64_t call = 1;

    for (;; call++) {
        struct device *device = new_device();
        device_page list[LIMIT];
        struct pages *pages = NULL;
        capu_status status;
        uint64_t hits;

        if (is_host) {
            malloc_faults_arm(call, is_lasting);
        } else {
            adaptor_fault_arm(device, &(struct adaptor_fault_plan){.slot = ADAPTOR_ANY_SLOT,
                                                                   .call = call,
                                                                   .status = CAPU_DEVICE_FAILED,
                                                                   .is_lasting = is_lasting});
        }
        status = pages_create(device, LIMIT * PAGE, &pages);
        if (status == CAPU_OK) {
            status = pages_take(pages, 3, list);
        }
        if (status == CAPU_OK) {
            status = pages_take(pages, LIMIT - 3, list + 3);
        }
        malloc_faults_arm(0, false);
        hits = is_host ? malloc_faults_hits() : adaptor_fault_hits(device);
        adaptor_fault_arm(device, NULL);
        if (hits == 0) {
            ck_assert_int_eq(status, CAPU_OK);
        } else if (pages != NULL) {
            size_t before = pages_out(pages);

            ck_assert_int_eq(status, is_host ? CAPU_NO_HOST_MEMORY : CAPU_DEVICE_FAILED);
            ck_assert(before == 0 || before == 3);
            CHECK_VALID(pages_validate, pages);
            ck_assert_int_eq(pages_take(pages, LIMIT - before, list), CAPU_OK);
            CHECK_VALID(pages_validate, pages);
        }
        pages_destroy(pages);
        device_destroy(device);
        if (hits == 0) {
            break;
        }
    }
    ck_assert_uint_gt(call, is_host ? 5 : LIMIT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pages");
    TCase *tcase = tcase_create("pages");

    tcase_add_test(tcase, the_budget_is_a_hard_limit);
    tcase_add_test(tcase, pages_are_reused);
    tcase_add_test(tcase, contiguous_pages_are_preferred);
    tcase_add_test(tcase, pages_are_put_aside);
    tcase_add_test(tcase, the_budget_changes);
    tcase_add_test(tcase, pages_match_the_model);
    tcase_add_loop_test(tcase, every_call_can_fail, 0, 4);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
