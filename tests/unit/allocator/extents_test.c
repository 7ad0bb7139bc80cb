/* Extents: splitting and merging, best fit, exact addresses, and a comparison with a map of units.
 */
#include "allocator/extents.h"

#include "tests/support/malloc_faults.h"
#include "tests/support/seed.h"
#include "tests/unit/allocator/valid.h"

#define UNIT UINT64_C(64)
#define BASE UINT64_C(0x10000)

START_TEST(extents_are_split_and_merged)
{
    struct extents extents;
    uint64_t a;
    uint64_t b;
    uint64_t c;

    ck_assert_int_eq(extents_init(&extents, UNIT, true), CAPU_OK);
    ck_assert_int_eq(extents_take(&extents, UNIT, &a), CAPU_NOT_READY);
    ck_assert_int_eq(extents_add(&extents, BASE, 10 * UNIT), CAPU_OK);
    ck_assert_int_eq(extents_take(&extents, 3 * UNIT, &a), CAPU_OK);
    ck_assert_int_eq(extents_take(&extents, 4 * UNIT, &b), CAPU_OK);
    ck_assert_int_eq(extents_take(&extents, 3 * UNIT, &c), CAPU_OK);
    ck_assert_uint_eq(extents.free_bytes, 0);
    CHECK_VALID(extents_validate, &extents);
    ck_assert_uint_eq(extents_give(&extents, a), 3 * UNIT);
    ck_assert_uint_eq(extents_give(&extents, a), 0);
    ck_assert_uint_eq(extents_give(&extents, c), 3 * UNIT);
    ck_assert_int_eq(extents_take(&extents, 4 * UNIT, &a), CAPU_NOT_READY);
    ck_assert_uint_eq(extents_taken_at(&extents, b), 4 * UNIT);
    ck_assert_uint_eq(extents_give(&extents, b), 4 * UNIT);
    CHECK_VALID(extents_validate, &extents);
    ck_assert_int_eq(extents_take(&extents, 10 * UNIT, &a), CAPU_OK);
    ck_assert_uint_eq(a, BASE);
    ck_assert_uint_eq(extents_give(&extents, BASE + UNIT), 0);
    extents_finish(&extents);
}
END_TEST

START_TEST(the_best_fit_is_taken)
{
    static const uint64_t gaps[] = {40, 33, 9, 50};
    struct extents extents;
    uint64_t at = BASE;
    uint64_t start;
    struct extent piece;

    ck_assert_int_eq(extents_init(&extents, UNIT, true), CAPU_OK);
    ck_assert_int_eq(extents_add(&extents, BASE, 200 * UNIT), CAPU_OK);
    for (size_t i = 0; i < 4; i++) { /* a taken unit after each gap */
        at += gaps[i] * UNIT;
        ck_assert_int_eq(extents_take_at(&extents, at, UNIT), CAPU_OK);
        at += UNIT;
    }
    ck_assert_int_eq(extents_take_at(&extents, at, 200 * UNIT - (at - BASE)), CAPU_OK);
    CHECK_VALID(extents_validate, &extents);
    ck_assert_int_eq(extents_take_some(&extents, 100 * UNIT, &piece), CAPU_OK);
    ck_assert_uint_eq(piece.bytes, 50 * UNIT);
    ck_assert_int_eq(extents_take(&extents, 31 * UNIT, &start), CAPU_OK);
    ck_assert_uint_eq(start, BASE + 41 * UNIT);
    ck_assert_int_eq(extents_take(&extents, 9 * UNIT, &start), CAPU_OK);
    ck_assert_uint_eq(start, BASE + 75 * UNIT);
    ck_assert_int_eq(extents_take(&extents, 41 * UNIT, &start), CAPU_NOT_READY);
    ck_assert_int_eq(extents_take(&extents, 40 * UNIT, &start), CAPU_OK);
    ck_assert_uint_eq(start, BASE);
    extents_finish(&extents);
}
END_TEST

/* Of many extents of nearly the same size only one fits. It is found although it is not among the
   first in its bin. */
START_TEST(the_only_fit_in_a_bin_is_found)
{
    struct extents extents;
    uint64_t start;

    ck_assert_int_eq(extents_init(&extents, UNIT, false), CAPU_OK);
    ck_assert_int_eq(extents_add(&extents, BASE, 131 * UNIT), CAPU_OK);
    for (uint64_t i = 1; i <= 50; i++) {
        ck_assert_int_eq(extents_add(&extents, BASE + i * 1000 * UNIT, 128 * UNIT), CAPU_OK);
    }
    ck_assert_int_eq(extents_take(&extents, 130 * UNIT, &start), CAPU_OK);
    ck_assert_uint_eq(start, BASE);
    ck_assert_int_eq(extents_take(&extents, 130 * UNIT, &start), CAPU_NOT_READY);
    CHECK_VALID(extents_validate, &extents);
    extents_finish(&extents);
}
END_TEST

START_TEST(regions_are_never_merged)
{
    struct extents extents;
    uint64_t start;

    ck_assert_int_eq(extents_init(&extents, UNIT, true), CAPU_OK);
    ck_assert_int_eq(extents_add(&extents, BASE + 8 * UNIT, 8 * UNIT), CAPU_OK);
    ck_assert_int_eq(extents_add(&extents, BASE, 8 * UNIT), CAPU_OK);
    ck_assert_uint_eq(extents_region(&extents, 0).start, BASE);
    ck_assert_int_eq(extents_take(&extents, 9 * UNIT, &start), CAPU_NOT_READY);
    ck_assert_int_eq(extents_take_at(&extents, BASE + 7 * UNIT, 2 * UNIT), CAPU_NOT_READY);
    ck_assert_int_eq(extents_take_at(&extents, BASE + 7 * UNIT, UNIT), CAPU_OK);
    ck_assert_int_eq(extents_take_at(&extents, BASE + 8 * UNIT, UNIT), CAPU_OK);
    extents_give(&extents, BASE + 7 * UNIT);
    extents_give(&extents, BASE + 8 * UNIT);
    CHECK_VALID(extents_validate, &extents);
    ck_assert(extents_contain(&extents, BASE));
    ck_assert(extents_contain(&extents, BASE + 16 * UNIT - 1));
    ck_assert(!extents_contain(&extents, BASE - 1));
    ck_assert(!extents_contain(&extents, BASE + 16 * UNIT));
    ck_assert_int_eq(extents_take_at(&extents, BASE - UNIT, UNIT), CAPU_NOT_READY);
    ck_assert_int_eq(extents_take_at(&extents, BASE + 16 * UNIT, UNIT), CAPU_NOT_READY);
    extents_finish(&extents);
}
END_TEST

START_TEST(sizes_that_are_not_multiples_are_rejected)
{
    struct extents extents;
    struct extent piece;
    uint64_t start;

    ck_assert_int_eq(extents_init(&extents, 0, false), CAPU_INVALID);
    ck_assert_int_eq(extents_init(&extents, UNIT, false), CAPU_OK);
    ck_assert_int_eq(extents_add(&extents, BASE + 1, UNIT), CAPU_INVALID);
    ck_assert_int_eq(extents_add(&extents, BASE, UNIT + 1), CAPU_INVALID);
    ck_assert_int_eq(extents_add(&extents, BASE, 0), CAPU_INVALID);
    ck_assert_int_eq(extents_add(&extents, UINT64_MAX - 63, 2 * UNIT), CAPU_INVALID);
    ck_assert_int_eq(extents_take(&extents, 0, &start), CAPU_INVALID);
    ck_assert_int_eq(extents_take(&extents, 1, &start), CAPU_INVALID);
    ck_assert_int_eq(extents_take_some(&extents, 0, &piece), CAPU_INVALID);
    ck_assert_int_eq(extents_take_at(&extents, BASE, UNIT), CAPU_INVALID);
    extents_finish(&extents);
    ck_assert_int_eq(extents_init(&extents, UNIT, true), CAPU_OK);
    ck_assert_int_eq(extents_add(&extents, BASE, 4 * UNIT), CAPU_OK);
    ck_assert_int_eq(extents_take_at(&extents, BASE + 1, UNIT), CAPU_INVALID);
    ck_assert_int_eq(extents_take_at(&extents, BASE, UNIT + 1), CAPU_INVALID);
    extents_finish(&extents);
}
END_TEST

START_TEST(what_is_not_there_is_not_found)
{
    struct extents extents;
    struct extent piece;

    ck_assert_int_eq(extents_init(&extents, UNIT, true), CAPU_OK);
    ck_assert_int_eq(extents_take_some(&extents, UNIT, &piece), CAPU_NOT_READY);
    ck_assert_int_eq(extents_add(&extents, BASE, 4 * UNIT), CAPU_OK);
    ck_assert_uint_eq(extents_taken_at(&extents, BASE), 0);
    ck_assert_int_eq(extents_take_some(&extents, 5 * UNIT, &piece), CAPU_OK);
    ck_assert_uint_eq(piece.bytes, 4 * UNIT);
    ck_assert_uint_eq(extents_taken_at(&extents, BASE + UNIT), 0);
    ck_assert_int_eq(extents_take_some(&extents, UNIT, &piece), CAPU_NOT_READY);
    extents_finish(&extents);
}
END_TEST

#define REGIONS 3
#define UNITS 400 /* per region */

static uint64_t place_of(size_t unit)
{
    return BASE + (unit / UNITS * 2 * UNITS + unit % UNITS) * UNIT; /* gaps between regions */
}

/* Free units from `unit` to the end of its region or the next taken one. */
static size_t free_run(const uint16_t *model, size_t unit)
{
    size_t run = 0;

    while (unit + run < REGIONS * UNITS && model[unit + run] == 0 &&
           (run == 0 || (unit + run) % UNITS != 0)) {
        run++;
    }
    return run;
}

static size_t longest_run(const uint16_t *model)
{
    size_t longest = 0;

    for (size_t unit = 0; unit < REGIONS * UNITS; unit++) {
        size_t run = free_run(model, unit);

        longest = run > longest ? run : longest;
    }
    return longest;
}

static void mark(uint16_t *model, uint64_t start, uint64_t bytes, uint16_t owner)
{
    size_t place = (size_t)((start - BASE) / UNIT);
    size_t unit = place / (2 * UNITS) * UNITS + place % (2 * UNITS);

    for (size_t i = 0; i < bytes / UNIT; i++) {
        ck_assert((model[unit + i] == 0) != (owner == 0));
        model[unit + i] = owner;
    }
}

START_TEST(extents_match_the_model)
{
    static uint16_t model[REGIONS * UNITS];
    uint64_t state = seed_start("extents");
    struct extent taken[200] = {{0, 0}};
    struct extents extents;

    ck_assert_int_eq(extents_init(&extents, UNIT, true), CAPU_OK);
    for (size_t i = 0; i < REGIONS; i++) {
        ck_assert_int_eq(extents_add(&extents, place_of(i * UNITS), UNITS * UNIT), CAPU_OK);
    }
    for (int step = 0; step < 6000; step++) {
        size_t slot = seed_below(&state, 200);
        uint64_t bytes = (1 + seed_below(&state, seed_below(&state, 10) == 0 ? 150 : 12)) * UNIT;
        size_t unit = seed_below(&state, REGIONS * UNITS);
        struct extent piece = {.bytes = bytes};
        capu_status status;

        if (taken[slot].bytes > 0) {
            ck_assert_uint_eq(extents_give(&extents, taken[slot].start), taken[slot].bytes);
            mark(model, taken[slot].start, taken[slot].bytes, 0);
            taken[slot].bytes = 0;
            CHECK_VALID(extents_validate, &extents);
            continue;
        }
        switch (seed_below(&state, 3)) {
        case 0:
            status = extents_take(&extents, bytes, &piece.start);
            ck_assert_int_eq(status, longest_run(model) * UNIT >= bytes ? CAPU_OK : CAPU_NOT_READY);
            break;
        case 1:
            piece.start = place_of(unit);
            status = extents_take_at(&extents, piece.start, bytes);
            ck_assert_int_eq(status,
                             free_run(model, unit) * UNIT >= bytes ? CAPU_OK : CAPU_NOT_READY);
            break;
        default:
            status = extents_take_some(&extents, bytes, &piece);
            ck_assert_int_eq(status, longest_run(model) > 0 ? CAPU_OK : CAPU_NOT_READY);
            if (status == CAPU_OK) {
                ck_assert(piece.bytes == bytes ||
                          piece.bytes * 33 / 32 >= longest_run(model) * UNIT);
            }
            break;
        }
        if (status == CAPU_OK) {
            taken[slot] = piece;
            mark(model, piece.start, piece.bytes, (uint16_t)(slot + 1));
        }
        CHECK_VALID(extents_validate, &extents);
    }
    extents_finish(&extents);
}
END_TEST

/* Adds regions and takes from them, often enough that every table must grow. */
static capu_status fill(struct extents *extents)
{
    capu_status status = extents_init(extents, UNIT, true);
    struct extent piece;
    uint64_t start;

    if (status != CAPU_OK) {
        return status;
    }
    for (uint64_t i = 0; i < 10 && status == CAPU_OK; i++) {
        status = extents_add(extents, BASE + i * 64 * UNIT, 32 * UNIT);
    }
    for (uint64_t i = 5; i < 10 && status == CAPU_OK; i++) {
        status = extents_take_at(extents, BASE + (i * 64 + 10) * UNIT, 3 * UNIT);
    }
    for (int i = 0; i < 300 && status == CAPU_OK; i++) {
        status = i < 100 ? extents_take(extents, UNIT, &start)
                         : extents_take_some(extents, UNIT, &piece);
    }
    return status;
}

START_TEST(failed_allocations_change_nothing)
{
    uint64_t call = 1;

    for (;; call++) {
        struct extents extents = {0};
        capu_status status;

        malloc_faults_arm(call, _i == 1);
        status = fill(&extents);
        malloc_faults_arm(0, false);
        if (malloc_faults_hits() == 0) {
            ck_assert_int_eq(status, CAPU_OK);
            extents_finish(&extents);
            break;
        }
        ck_assert_msg(status == CAPU_NO_HOST_MEMORY, "allocation %d", (int)call);
        if (extents.unit_bytes != 0) {
            CHECK_VALID(extents_validate, &extents);
        }
        extents_finish(&extents);
    }
    ck_assert_uint_gt(call, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("extents");
    TCase *tcase = tcase_create("extents");

    tcase_add_test(tcase, extents_are_split_and_merged);
    tcase_add_test(tcase, the_best_fit_is_taken);
    tcase_add_test(tcase, the_only_fit_in_a_bin_is_found);
    tcase_add_test(tcase, regions_are_never_merged);
    tcase_add_test(tcase, sizes_that_are_not_multiples_are_rejected);
    tcase_add_test(tcase, what_is_not_there_is_not_found);
    tcase_add_test(tcase, extents_match_the_model);
    tcase_add_loop_test(tcase, failed_allocations_change_nothing, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
