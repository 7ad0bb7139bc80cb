/* Ranges: exact addresses, no reuse before ranges_settle, smaller reservations, and a failure of
   every call. */
#include "allocator/ranges.h"

#include "tests/support/adaptor_fault.h"
#include "tests/support/malloc_faults.h"
#include "tests/support/seed.h"
#include "tests/unit/allocator/valid.h"

#define PAGE UINT64_C(2097152)

static struct device *new_sim(void)
{
    const struct device_options options = {.memory_bytes = 16 * PAGE, .page_bytes = PAGE};
    struct device *device;

    ck_assert_int_eq(sim_device_create(&options, &device, NULL, 0), CAPU_OK);
    return device;
}

static char *pages_after(void *address, size_t page_count)
{
    return (char *)address + page_count * PAGE;
}

START_TEST(a_range_is_not_reused_until_settled)
{
    struct device *device = new_sim();
    struct ranges *ranges;
    void *a;
    void *b;
    void *c;

    ck_assert_int_eq(ranges_create(device, &ranges), CAPU_OK);
    ck_assert(!ranges_contains(ranges, &a));
    ck_assert_int_eq(ranges_take(ranges, 0, &a), CAPU_INVALID);
    ck_assert_int_eq(ranges_take(ranges, SIZE_MAX, &a), CAPU_SYSTEM_LIMIT);
    ck_assert_int_eq(ranges_take(ranges, 4, &a), CAPU_OK);
    ck_assert_int_eq(ranges_take(ranges, 4, &b), CAPU_OK);
    ck_assert_uint_eq((uintptr_t)a % PAGE, 0);
    ck_assert(ranges_contains(ranges, pages_after(a, 3)));
    ranges_give(ranges, a, 4, true);
    CHECK_VALID(ranges_validate, ranges);
    ck_assert_int_eq(ranges_take_at(ranges, a, 4), CAPU_NOT_READY);
    ck_assert_int_eq(ranges_take(ranges, 4, &c), CAPU_OK);
    ck_assert_ptr_ne(c, a);
    ranges_settle(ranges);
    ck_assert_int_eq(ranges_take_at(ranges, pages_after(a, 1), 2), CAPU_OK);
    ck_assert_int_eq(ranges_take_at(ranges, a, 4), CAPU_NOT_READY);
    ck_assert_int_eq(ranges_take_at(ranges, a, 1), CAPU_OK);
    ck_assert_int_eq(ranges_take_at(ranges, pages_after(a, 3), 2), CAPU_NOT_READY); /* b is there */
    ck_assert_int_eq(ranges_take_at(ranges, pages_after(a, 3), SIZE_MAX), CAPU_NOT_READY);
    ck_assert_int_eq(ranges_take_at(ranges, &a, 1), CAPU_INVALID);
    CHECK_VALID(ranges_validate, ranges);
    ranges_destroy(ranges);
    ranges_destroy(NULL);
    device_destroy(device);
}
END_TEST

START_TEST(a_range_can_be_reused_at_once)
{
    struct device *device = new_sim();
    struct ranges *ranges;
    void *a;

    ck_assert_int_eq(ranges_create(device, &ranges), CAPU_OK);
    ck_assert_int_eq(ranges_take(ranges, 4, &a), CAPU_OK);
    ranges_give(ranges, a, 4, false);
    CHECK_VALID(ranges_validate, ranges);
    ck_assert_int_eq(ranges_take_at(ranges, a, 4), CAPU_OK);
    ranges_destroy(ranges);
    device_destroy(device);
}
END_TEST

#define SMALL_BYTES (40 * PAGE)

static capu_status refuse_large(void *state, struct device *inner, const struct adaptor_call *call)
{
    (void)state;
    (void)inner;
    return call->slot == ADAPTOR_RANGE_RESERVE && call->bytes > SMALL_BYTES ? CAPU_SYSTEM_LIMIT
                                                                            : CAPU_OK;
}

/* If a process limit forbids large reservations, many small ones are made. */
START_TEST(reservations_shrink_to_what_is_possible)
{
    static const struct adaptor_hooks hooks = {.before = refuse_large};
    struct device *device;
    struct ranges *ranges;
    void *address;

    ck_assert_int_eq(adaptor_create(new_sim(), true, &hooks, NULL, &device), CAPU_OK);
    ck_assert_int_eq(ranges_create(device, &ranges), CAPU_OK);
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(ranges_take(ranges, 9, &address), CAPU_OK);
        CHECK_VALID(ranges_validate, ranges);
    }
    ck_assert_int_eq(ranges_take(ranges, 40, &address), CAPU_OK);
    ck_assert_int_eq(ranges_take(ranges, 41, &address), CAPU_SYSTEM_LIMIT);
    CHECK_VALID(ranges_validate, ranges);
    ranges_destroy(ranges);
    device_destroy(device);
}
END_TEST

#define HELD 64

struct held {
    char *address;
    size_t page_count; /* 0: none */
    bool rests;
};

static bool overlaps_any(const struct held *held, char *address, size_t page_count)
{
    for (size_t i = 0; i < HELD; i++) {
        if (held[i].page_count > 0 && address < pages_after(held[i].address, held[i].page_count) &&
            held[i].address < pages_after(address, page_count)) {
            return true;
        }
    }
    return false;
}

START_TEST(ranges_match_the_model)
{
    uint64_t state = seed_start("ranges");
    struct device *device = new_sim();
    struct held held[HELD] = {{NULL, 0, false}};
    struct ranges *ranges;

    ck_assert_int_eq(ranges_create(device, &ranges), CAPU_OK);
    for (int step = 0; step < 6000; step++) {
        struct held *one = &held[seed_below(&state, HELD)];
        size_t page_count = 1 + seed_below(&state, 20);
        void *address;

        if (seed_below(&state, 50) == 0) {
            ranges_settle(ranges);
            for (size_t i = 0; i < HELD; i++) {
                held[i].page_count = held[i].rests ? 0 : held[i].page_count;
            }
        } else if (one->page_count == 0) {
            bool is_exact = one->address != NULL && seed_below(&state, 2) == 0;
            bool is_free = !overlaps_any(held, one->address, page_count);

            address = one->address;
            if (is_exact) {
                ck_assert_int_eq(ranges_take_at(ranges, address, page_count),
                                 is_free ? CAPU_OK : CAPU_NOT_READY);
            } else {
                ck_assert_int_eq(ranges_take(ranges, page_count, &address), CAPU_OK);
                ck_assert(!overlaps_any(held, address, page_count));
            }
            if (!is_exact || is_free) {
                *one = (struct held){address, page_count, false};
            }
        } else if (!one->rests) {
            ranges_give(ranges, one->address, one->page_count, true);
            one->rests = true;
        }
        CHECK_VALID(ranges_validate, ranges);
    }
    ranges_destroy(ranges);
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
        struct device *device;
        struct ranges *ranges = NULL;
        void *address;
        capu_status status;
        uint64_t hits;

        ck_assert_int_eq(adaptor_fault_create(new_sim(), &device), CAPU_OK);
        if (is_host) {
            malloc_faults_arm(call, is_lasting);
        } else {
            adaptor_fault_arm(device, &(struct adaptor_fault_plan){.slot = ADAPTOR_ANY_SLOT,
                                                                   .call = call,
                                                                   .status = CAPU_DEVICE_FAILED,
                                                                   .is_lasting = is_lasting});
        }
        status = ranges_create(device, &ranges);
        for (int i = 0; i < 100 && status == CAPU_OK; i++) {
            status = ranges_take(ranges, 1, &address);
        }
        malloc_faults_arm(0, false);
        hits = is_host ? malloc_faults_hits() : adaptor_fault_hits(device);
        adaptor_fault_arm(device, NULL);
        ck_assert_int_eq(status, hits == 0 ? CAPU_OK
                                 : is_host ? CAPU_NO_HOST_MEMORY
                                           : CAPU_DEVICE_FAILED);
        if (ranges != NULL) {
            CHECK_VALID(ranges_validate, ranges);
            ck_assert_int_eq(ranges_take(ranges, 5, &address), CAPU_OK);
            ranges_give(ranges, address, 5, true);
            ranges_settle(ranges);
            CHECK_VALID(ranges_validate, ranges);
        }
        ranges_destroy(ranges);
        device_destroy(device);
        if (hits == 0) {
            break;
        }
    }
    ck_assert_uint_gt(call, is_host ? 8 : 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ranges");
    TCase *tcase = tcase_create("ranges");

    tcase_add_test(tcase, a_range_is_not_reused_until_settled);
    tcase_add_test(tcase, a_range_can_be_reused_at_once);
    tcase_add_test(tcase, reservations_shrink_to_what_is_possible);
    tcase_add_test(tcase, ranges_match_the_model);
    tcase_add_loop_test(tcase, every_call_can_fail, 0, 4);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
