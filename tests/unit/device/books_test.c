/* The bookkeeping of pages, ranges and host memory, compared with plain arrays. */
#include "device/books.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHECK_OK(call) ck_assert_int_eq((call), CAPU_OK)
#define PAGE ((uint64_t)65536)

static uint64_t next(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 33;
}

START_TEST(the_lowest_free_page_comes_first)
{
    enum { LIMIT = 300 };
    struct page_numbers numbers;
    bool exists[LIMIT] = {false};
    uint64_t count = 0;
    uint64_t random = 3;
    uint64_t number = 0;

    page_numbers_init(&numbers, LIMIT);
    for (int round = 0; round < 20000; round++) {
        uint64_t victim = next(&random) % LIMIT;

        if (next(&random) % 2 == 0) {
            page_numbers_give(&numbers, victim); /* pages that do not exist too */
            count -= exists[victim] ? 1 : 0;
            exists[victim] = false;
        } else if (count == LIMIT) {
            ck_assert_int_eq(page_numbers_take(&numbers, &number), CAPU_OVER_BUDGET);
        } else {
            uint64_t lowest = 0;

            while (exists[lowest]) {
                lowest++;
            }
            CHECK_OK(page_numbers_take(&numbers, &number));
            ck_assert_uint_eq(number, lowest);
            exists[lowest] = true;
            count++;
        }
        ck_assert_uint_eq(numbers.count, count);
        ck_assert_int_eq(page_numbers_has(&numbers, victim), exists[victim]);
    }
    ck_assert(!page_numbers_has(&numbers, UINT64_MAX));
    page_numbers_finish(&numbers);
}
END_TEST

/* Ranges of 4 pages with gaps of 4 pages are found from every address inside and from none outside,
   in whatever order they were added. */
START_TEST(ranges_are_found_from_inside)
{
    enum { COUNT = 200 };
    struct reservations ranges;
    bool exists[COUNT] = {false};
    uint64_t random = 5;

    reservations_init(&ranges, PAGE);
    for (int round = 0; round < 4000; round++) {
        size_t index = next(&random) % COUNT;
        char *address = (char *)(uintptr_t)((index + 1) * 8 * PAGE);

        if (exists[index]) {
            struct reservation *range = reservations_find_empty(&ranges, address, 4 * PAGE);

            ck_assert_ptr_nonnull(range);
            ck_assert_ptr_null(reservations_find_empty(&ranges, address, 3 * PAGE));
            ck_assert_ptr_null(reservations_find_empty(&ranges, address + PAGE, 4 * PAGE));
            ck_assert_ptr_eq(reservations_find(&ranges, address, 4), range);
            ck_assert_ptr_eq(reservations_find(&ranges, address + 3 * PAGE, 1), range);
            ck_assert_ptr_null(reservations_find(&ranges, address + 3 * PAGE, 2));
            reservations_remove(&ranges, range);
        } else {
            CHECK_OK(reservations_add(&ranges, address, 4 * PAGE));
        }
        exists[index] = !exists[index];
        ck_assert_ptr_null(reservations_find(&ranges, address + 4 * PAGE, 1));
        ck_assert_ptr_null(reservations_find(&ranges, address - PAGE, 1));
        ck_assert_int_eq(reservations_find(&ranges, address, 1) != NULL, exists[index]);
    }
    reservations_finish(&ranges);
}
END_TEST

START_TEST(only_complete_mappings_are_whole)
{
    char *address = (char *)(uintptr_t)(8 * PAGE);
    const device_page consecutive[] = {4, 5, 6};
    const device_page scattered[] = {9, 7, 8};
    struct reservations ranges;
    struct reservation *range;

    reservations_init(&ranges, PAGE);
    CHECK_OK(reservations_add(&ranges, address, 8 * PAGE));
    range = reservations_find(&ranges, address, 8);
    ck_assert(reservation_is_unmapped(&ranges, range, address, 8));
    reservation_map(&ranges, range, address, consecutive, 3);
    reservation_map(&ranges, range, address + 3 * PAGE, scattered, 3);
    ck_assert(!reservation_is_unmapped(&ranges, range, address + 5 * PAGE, 3));
    ck_assert(reservation_is_mapped(&ranges, range, address, 6));
    ck_assert(!reservation_is_mapped(&ranges, range, address, 7));
    ck_assert(reservation_is_whole(&ranges, range, address, 3));
    ck_assert(reservation_is_whole(&ranges, range, address, 6));
    ck_assert(!reservation_is_whole(&ranges, range, address, 2));
    ck_assert(!reservation_is_whole(&ranges, range, address, 4));
    ck_assert(!reservation_is_whole(&ranges, range, address + PAGE, 2));
    ck_assert(!reservation_is_whole(&ranges, range, address + 3 * PAGE, 4));
    /* The kernel needs a mapping per run of pages, and one for each hole next to it. */
    ck_assert_uint_eq(pages_cost(consecutive, 3), 2);
    ck_assert_uint_eq(pages_cost(scattered, 3), 3);
    ck_assert_uint_eq(reservation_cost(&ranges, range, address, 3), 2);
    ck_assert_uint_eq(reservation_cost(&ranges, range, address, 6), 5);
    ck_assert_ptr_null(reservations_find_empty(&ranges, address, 8 * PAGE));
    reservation_unmap(&ranges, range, address, 6);
    ck_assert_ptr_eq(reservations_find_empty(&ranges, address, 8 * PAGE), range);
    reservations_finish(&ranges);
}
END_TEST

/* Address space costs nothing, so a program may reserve far more than it will ever use. */
START_TEST(a_large_range_takes_little_memory)
{
    const size_t page_count = (size_t)1 << 26;
    const size_t machine_page = (size_t)sysconf(_SC_PAGESIZE);
    const device_page page = 5;
    struct reservations reservations;
    struct reservation *range;
    char *address = (char *)(uintptr_t)(PAGE << 4);
    unsigned char *resident;
    size_t pages_of_slots = page_count * sizeof(uint64_t) / machine_page - 1;
    size_t count = 0;
    uintptr_t slots;

    reservations_init(&reservations, PAGE);
    CHECK_OK(reservations_add(&reservations, address, page_count * PAGE));
    range = reservations_find(&reservations, address, page_count);
    ck_assert_ptr_nonnull(range);
    reservation_map(&reservations, range, address + PAGE, &page, 1);
    resident = malloc(pages_of_slots);
    ck_assert_ptr_nonnull(resident);
    slots = ((uintptr_t)range->slots + machine_page - 1) & ~(uintptr_t)(machine_page - 1);
    ck_assert_int_eq(mincore((void *)slots, pages_of_slots * machine_page, resident), 0);
    for (size_t index = 0; index < pages_of_slots; index++) {
        count += resident[index] & 1;
    }
    ck_assert_uint_lt(count, pages_of_slots / 16); /* a huge page may become resident at once */
    ck_assert(reservation_is_unmapped(&reservations, range, address, 1));
    ck_assert(reservation_is_mapped(&reservations, range, address + PAGE, 1));
    free(resident);
    reservations_finish(&reservations);
}
END_TEST

START_TEST(addresses_are_aligned_and_bounded)
{
    void *address = NULL;

    for (uint64_t alignment = 4096; alignment <= (uint64_t)1 << 30; alignment *= 8) {
        CHECK_OK(addresses_reserve(alignment, alignment, &address));
        ck_assert_uint_eq((uintptr_t)address % alignment, 0);
        addresses_release(address, alignment);
    }
    ck_assert_int_eq(addresses_reserve(UINT64_MAX - 4095, 8192, &address), CAPU_SYSTEM_LIMIT);
}
END_TEST

START_TEST(chunks_know_their_own_memory)
{
    struct chunks chunks;
    char *blocks[40];
    int outside = 0;

    chunks_init(&chunks);
    for (int index = 0; index < 40; index++) {
        CHECK_OK(chunks_alloc(&chunks, 10000, index % 2 == 0, (void **)&blocks[index]));
        ck_assert_int_eq(blocks[index][9999], 0);
    }
    for (int index = 0; index < 40; index += 3) {
        chunks_free(&chunks, blocks[index] + 1, 10000); /* not the start of a block: ignored */
        chunks_free(&chunks, blocks[index], 10000);
        ck_assert(!chunks_hold(&chunks, blocks[index], 1));
    }
    for (int index = 1; index < 40; index += 3) {
        ck_assert(chunks_hold(&chunks, blocks[index], 10000));
        ck_assert(chunks_hold(&chunks, blocks[index] + 9999, 1));
        ck_assert(!chunks_hold(&chunks, blocks[index] + 9999, 2));
    }
    ck_assert(!chunks_hold(&chunks, &outside, 1));
    ck_assert_int_eq(chunks_alloc(&chunks, (uint64_t)1 << 62, false, (void **)&blocks[0]),
                     CAPU_NO_HOST_MEMORY);
    chunks_finish(&chunks);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("books");
    TCase *tcase = tcase_create("books");

    tcase_add_test(tcase, the_lowest_free_page_comes_first);
    tcase_add_test(tcase, ranges_are_found_from_inside);
    tcase_add_test(tcase, only_complete_mappings_are_whole);
#ifndef __SANITIZE_THREAD__ /* its calloc writes, which makes the memory resident */
    tcase_add_test(tcase, a_large_range_takes_little_memory);
#else
    (void)a_large_range_takes_little_memory;
#endif
    tcase_add_test(tcase, addresses_are_aligned_and_bounded);
    tcase_add_test(tcase, chunks_know_their_own_memory);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
