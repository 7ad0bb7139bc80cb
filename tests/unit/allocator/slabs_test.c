/* Slabs: size classes, exact slots, no reuse before slabs_settle, trimming, and a failure of every
   call. */
#include "allocator/slabs.h"

#include "tests/support/adaptor_fault.h"
#include "tests/support/malloc_faults.h"
#include "tests/support/seed.h"
#include "tests/unit/allocator/valid.h"

#include <string.h>

#define PAGE UINT64_C(65536)
#define LIMIT 40

/* The objects that slabs need. On the host device slots can be written. */
struct ground {
    struct device *device;
    struct pages *pages;
    struct ranges *ranges;
    struct slabs *slabs;
};

static void ground_start(struct ground *ground, uint64_t page_bytes, bool is_host)
{
    const struct device_options options = {.memory_bytes = LIMIT * page_bytes,
                                           .page_bytes = page_bytes};
    struct device *inner;

    if (is_host) {
        ck_assert_int_eq(host_device_create(&options, &inner, NULL, 0), CAPU_OK);
    } else {
        ck_assert_int_eq(sim_device_create(&options, &inner, NULL, 0), CAPU_OK);
    }
    ck_assert_int_eq(adaptor_fault_create(inner, &ground->device), CAPU_OK);
    ck_assert_int_eq(pages_create(ground->device, UINT64_MAX, &ground->pages), CAPU_OK);
    ck_assert_int_eq(ranges_create(ground->device, &ground->ranges), CAPU_OK);
    ground->slabs = NULL;
}

static void ground_finish(struct ground *ground)
{
    slabs_destroy(ground->slabs);
    ck_assert_uint_eq(pages_out(ground->pages), 0);
    ranges_destroy(ground->ranges);
    pages_destroy(ground->pages);
    device_destroy(ground->device);
}

static void slabs_start(struct ground *ground)
{
    ck_assert_int_eq(slabs_create(ground->device, ground->pages, ground->ranges, &ground->slabs),
                     CAPU_OK);
}

static void spread_if(struct ground *ground, bool is_spread)
{
    if (is_spread) {
        slabs_spread(ground->slabs);
    }
}

/* Fills a slab for each size. Slots must be aligned and disjoint, and waste little of the page. */
START_TEST(every_size_uses_a_page_well)
{
    static const uint64_t page_sizes[] = {4096, 65536, 2097152};
    uint64_t page_bytes = page_sizes[_i];
    struct ground ground;

    ground_start(&ground, page_bytes, false);
    for (size_t bytes = 1; bytes <= page_bytes / 2; bytes += 1 + bytes / 3) {
        size_t count = 0;
        char *first = NULL;
        void *address;

        slabs_start(&ground);
        ck_assert(slabs_needs_page(ground.slabs, bytes));
        do {
            ck_assert_int_eq(slabs_take(ground.slabs, bytes, &address), CAPU_OK);
            ck_assert_uint_eq((uintptr_t)address % 256, 0);
            first = count == 0 ? address : first;
            ck_assert_uint_le((uintptr_t)address - (uintptr_t)first + bytes, page_bytes);
            count++;
        } while (!slabs_needs_page(ground.slabs, bytes));
        ck_assert_uint_eq(slabs_page_count(ground.slabs), 1);
        ck_assert_msg((count + 1) * ((bytes + 255) / 256 * 256 + 256) * 3 / 2 > page_bytes,
                      "%zu slots of %zu bytes", count, bytes);
        CHECK_VALID(slabs_validate, ground.slabs);
        slabs_destroy(ground.slabs);
        ground.slabs = NULL;
        ranges_settle(ground.ranges);
    }
    slabs_start(&ground);
    ck_assert(!slabs_needs_page(ground.slabs, page_bytes / 2 + 1));
    ck_assert_int_eq(slabs_take(ground.slabs, page_bytes / 2 + 1, &(void *){NULL}), CAPU_INVALID);
    ck_assert_int_eq(slabs_take(ground.slabs, 0, &(void *){NULL}), CAPU_INVALID);
    ground_finish(&ground);
}
END_TEST

/* Here and below, with _i the slots are spread. */
START_TEST(a_slot_is_not_reused_until_settled)
{
    struct ground ground;
    void *a;
    void *b;

    ground_start(&ground, PAGE, true);
    slabs_start(&ground);
    spread_if(&ground, _i == 1);
    ck_assert_int_eq(slabs_take(ground.slabs, PAGE / 2, &a), CAPU_OK);
    ck_assert_int_eq(slabs_take(ground.slabs, PAGE / 2 - 9, &b), CAPU_OK);
    memset(a, 1, PAGE / 2);
    memset(b, 2, PAGE / 2 - 9);
    ck_assert(slabs_needs_page(ground.slabs, PAGE / 2));
    ck_assert_ptr_eq(slabs_find(ground.slabs, (char *)b + 77), b);
    ck_assert_uint_ge(slabs_slot_bytes(ground.slabs, b), 77);
    ck_assert_uint_eq(slabs_slot_bytes(ground.slabs, (char *)b + 77), 0);
    ck_assert(!slabs_give(ground.slabs, (char *)b + 256));
    ck_assert(!slabs_give(ground.slabs, &b));
    ck_assert(slabs_give(ground.slabs, b));
    ck_assert(!slabs_give(ground.slabs, b));
    ck_assert_ptr_null(slabs_find(ground.slabs, b));
    ck_assert(slabs_needs_page(ground.slabs, PAGE / 2));
    ck_assert_int_eq(slabs_take_at(ground.slabs, b, PAGE / 2), CAPU_NOT_READY);
    slabs_settle(ground.slabs);
    ck_assert(!slabs_needs_page(ground.slabs, PAGE / 2));
    ck_assert_int_eq(slabs_take_at(ground.slabs, b, 300), CAPU_NOT_READY); /* another class */
    ck_assert_int_eq(slabs_take_at(ground.slabs, (char *)b + 256, PAGE / 2), CAPU_NOT_READY);
    ck_assert_int_eq(slabs_take_at(ground.slabs, a, PAGE / 2), CAPU_NOT_READY);
    ck_assert_int_eq(slabs_take_at(ground.slabs, b, PAGE / 2), CAPU_OK);
    CHECK_VALID(slabs_validate, ground.slabs);
    ground_finish(&ground);
}
END_TEST

START_TEST(trim_releases_only_free_slabs)
{
    struct ground ground;
    void *list[LIMIT * 2];
    void *more;

    ground_start(&ground, PAGE, true);
    slabs_start(&ground);
    spread_if(&ground, _i == 1);
    for (size_t i = 0; i < LIMIT * 2; i++) {
        ck_assert_int_eq(slabs_take(ground.slabs, PAGE / 2, &list[i]), CAPU_OK);
    }
    ck_assert_int_eq(slabs_take(ground.slabs, PAGE / 2, &more), CAPU_OVER_BUDGET);
    ck_assert_int_eq(slabs_take(ground.slabs, 1, &more), CAPU_OVER_BUDGET);
    CHECK_VALID(slabs_validate, ground.slabs);
    for (size_t i = 0; i < LIMIT * 2; i++) {
        if (i % 4 != 0) { /* every second slab keeps a taken slot */
            ck_assert(slabs_give(ground.slabs, list[i]));
        }
    }
    ck_assert_uint_eq(slabs_trim(ground.slabs, true), 0); /* not settled yet */
    slabs_settle(ground.slabs);
    CHECK_VALID(slabs_validate, ground.slabs);
    ck_assert_uint_eq(slabs_trim(ground.slabs, true), LIMIT / 2);
    ck_assert_uint_eq(slabs_page_count(ground.slabs), LIMIT / 2);
    ck_assert_uint_eq(pages_available(ground.pages), LIMIT / 2);
    ck_assert_int_eq(slabs_take_at(ground.slabs, list[2], PAGE / 2), CAPU_NOT_READY);
    ck_assert_int_eq(slabs_take_at(ground.slabs, list[1], PAGE / 2), CAPU_OK);
    ck_assert_int_eq(slabs_take(ground.slabs, 1, &more), CAPU_OK);
    CHECK_VALID(slabs_validate, ground.slabs);
    ground_finish(&ground);
}
END_TEST

/* A slab is in use while one of its slots is taken or rests. What is kept was in use in the last
   two turns. */
START_TEST(used_slabs_are_counted)
{
    struct ground ground;
    void *list[8];

    ground_start(&ground, PAGE, true);
    slabs_start(&ground);
    for (size_t i = 0; i < 8; i++) {
        ck_assert_int_eq(slabs_take(ground.slabs, PAGE / 2, &list[i]), CAPU_OK);
    }
    ck_assert_uint_eq(slabs_used_count(ground.slabs), 4);
    for (size_t i = 0; i < 7; i++) {
        ck_assert(slabs_give(ground.slabs, list[i]));
    }
    ck_assert_uint_eq(slabs_used_count(ground.slabs), 4);
    slabs_settle(ground.slabs);
    ck_assert_uint_eq(slabs_used_count(ground.slabs), 1);
    ck_assert_uint_eq(slabs_used_bytes(ground.slabs), PAGE / 2);
    ck_assert_uint_eq(slabs_page_count(ground.slabs), 4);
    ck_assert_uint_eq(slabs_kept_count(ground.slabs), 4);
    slabs_turn(ground.slabs);
    ck_assert_uint_eq(slabs_kept_count(ground.slabs), 4);
    ck_assert_int_eq(slabs_take_at(ground.slabs, list[0], PAGE / 2), CAPU_OK);
    ck_assert_uint_eq(slabs_used_count(ground.slabs), 2);
    slabs_turn(ground.slabs);
    ck_assert_uint_eq(slabs_kept_count(ground.slabs), 2);
    ck_assert_uint_eq(slabs_trim(ground.slabs, false), 2);
    ck_assert_uint_eq(slabs_page_count(ground.slabs), 2);
    ck_assert(slabs_give(ground.slabs, list[0]));
    slabs_settle(ground.slabs);
    slabs_restart(ground.slabs);
    ck_assert_uint_eq(slabs_kept_count(ground.slabs), 1);
    /* Two that are in use one after the other are kept, both. */
    for (size_t bytes = PAGE / 4; bytes > PAGE / 16; bytes /= 2) {
        ck_assert_int_eq(slabs_take(ground.slabs, bytes, &list[0]), CAPU_OK);
        ck_assert(slabs_give(ground.slabs, list[0]));
        slabs_settle(ground.slabs);
        ck_assert_uint_eq(slabs_used_count(ground.slabs), 1);
    }
    ck_assert_uint_eq(slabs_kept_count(ground.slabs), 3);
    ck_assert_uint_eq(slabs_trim(ground.slabs, false), 1);
    CHECK_VALID(slabs_validate, ground.slabs);
    ground_finish(&ground);
}
END_TEST

#define HELD 500

struct held {
    char *address;
    size_t bytes; /* 0: none, but `address` was one */
    unsigned char mark;
    bool rests;
};

static void take_one(struct slabs *slabs, struct held *one, size_t bytes, uint64_t *state)
{
    bool needs_page = slabs_needs_page(slabs, bytes);
    size_t page_count = slabs_page_count(slabs);
    void *address = one->address;
    capu_status status = CAPU_NOT_READY;

    if (address != NULL && seed_below(state, 2) == 0) {
        status = slabs_take_at(slabs, address, bytes);
        ck_assert_uint_eq(slabs_page_count(slabs), page_count);
    }
    if (status != CAPU_OK) {
        status = slabs_take(slabs, bytes, &address);
        ck_assert(status == CAPU_OK || (status == CAPU_OVER_BUDGET && needs_page));
        ck_assert_uint_eq(slabs_page_count(slabs), page_count + (status == CAPU_OK && needs_page));
    }
    if (status == CAPU_OK) {
        *one = (struct held){address, bytes, (unsigned char)seed_next(state), false};
        memset(address, one->mark, bytes);
    }
}

/* Each slot is filled with a random byte, so that overlapping slots are found. */
START_TEST(slots_never_overlap)
{
    static struct held held[HELD];
    uint64_t state = seed_start("slabs");
    struct ground ground;

    ground_start(&ground, PAGE, true);
    slabs_start(&ground);
    spread_if(&ground, _i == 1);
    memset(held, 0, sizeof(held));
    for (int step = 0; step < (_i == 1 ? 1500 : 6000); step++) {
        struct held *one = &held[seed_below(&state, HELD)];
        size_t bytes = 1 + seed_below(&state, seed_below(&state, 9) == 0 ? PAGE / 2 : 3000);

        if (seed_below(&state, 200) == 0) {
            slabs_settle(ground.slabs);
            ranges_settle(ground.ranges);
            for (size_t i = 0; i < HELD; i++) {
                held[i].bytes = held[i].rests ? 0 : held[i].bytes;
                held[i].rests = false;
            }
            slabs_trim(ground.slabs, true);
        } else if (one->bytes == 0) {
            take_one(ground.slabs, one, bytes, &state);
        } else if (!one->rests) {
            size_t inside = seed_below(&state, one->bytes);

            ck_assert_ptr_eq(slabs_find(ground.slabs, one->address + inside), one->address);
            ck_assert_uint_eq((unsigned char)one->address[0], one->mark);
            ck_assert_uint_eq((unsigned char)one->address[inside], one->mark);
            ck_assert_uint_eq((unsigned char)one->address[one->bytes - 1], one->mark);
            ck_assert(slabs_give(ground.slabs, one->address));
            one->rests = true;
        }
        CHECK_VALID(slabs_validate, ground.slabs);
    }
    ground_finish(&ground);
}
END_TEST

/* Each in pages of its own, and all of them together in one page of memory. */
START_TEST(spread_slots_share_no_pages)
{
    static const size_t sizes[] = {256, 3000, PAGE / 2};
    struct ground ground;
    char *before = NULL;
    size_t count = 0;
    void *address;

    ground_start(&ground, PAGE, true);
    slabs_start(&ground);
    slabs_spread(ground.slabs);
    do {
        ck_assert_int_eq(slabs_take(ground.slabs, sizes[_i], &address), CAPU_OK);
        memset(address, (int)count, sizes[_i]);
        ck_assert(count == 0 || (uintptr_t)before / PAGE != (uintptr_t)address / PAGE);
        ck_assert(count == 0 || (unsigned char)before[sizes[_i] - 1] == (unsigned char)(count - 1));
        ck_assert_ptr_null(slabs_find(ground.slabs, (char *)address - 1));
        before = address;
        count++;
    } while (!slabs_needs_page(ground.slabs, sizes[_i]));
    ck_assert_uint_eq(count, PAGE / ((sizes[_i] + 255) / 256 * 256));
    ck_assert_uint_eq(slabs_page_count(ground.slabs), 1);
    ck_assert_uint_eq(pages_out(ground.pages), 1);
    CHECK_VALID(slabs_validate, ground.slabs);
    ground_finish(&ground);
}
END_TEST

START_TEST(slots_share_pages_where_mappings_are_short)
{
    struct ground ground;
    void *a;
    void *b;

    ground_start(&ground, PAGE, true);
    slabs_start(&ground);
    slabs_spread(ground.slabs);
    adaptor_fault_arm(
        ground.device,
        &(struct adaptor_fault_plan){.slot = ADAPTOR_MAP, .call = 1, .status = CAPU_SYSTEM_LIMIT});
    ck_assert_int_eq(slabs_take(ground.slabs, 256, &a), CAPU_OK);
    ck_assert_int_eq(slabs_take(ground.slabs, 256, &b), CAPU_OK);
    ck_assert_ptr_eq(b, (char *)a + 256);
    CHECK_VALID(slabs_validate, ground.slabs);
    ground_finish(&ground);
}
END_TEST

/* Takes slots of many classes, and settles and trims in between, so that every call can fail. */
static capu_status churn(struct ground *ground, bool is_spread)
{
    capu_status status =
        slabs_create(ground->device, ground->pages, ground->ranges, &ground->slabs);

    if (status == CAPU_OK) {
        spread_if(ground, is_spread);
    }
    for (size_t i = 0; i < 60 && status == CAPU_OK; i++) {
        void *address;

        status = slabs_take(ground->slabs, 1 + i * 500 % (PAGE / 2), &address);
        if (status == CAPU_OK && i % 3 != 0) {
            slabs_give(ground->slabs, address);
        }
        if (i % 20 == 19) {
            slabs_settle(ground->slabs);
            ranges_settle(ground->ranges);
            slabs_trim(ground->slabs, true);
        }
    }
    return status;
}

/* _i: bit 0: all later calls fail too; bit 1: host allocations fail instead of device calls; bit 2:
   the slots are spread. */
START_TEST(every_call_can_fail)
{
    bool is_lasting = (_i & 1) != 0;
    bool is_host = (_i & 2) != 0;
    uint64_t call = 1;
    uint64_t hits = 1;

    for (; hits > 0; call++) {
        struct ground ground;
        capu_status status;

        ground_start(&ground, PAGE, false);
        if (is_host) {
            malloc_faults_arm(call, is_lasting);
        } else {
            adaptor_fault_arm(ground.device,
                              &(struct adaptor_fault_plan){.slot = ADAPTOR_ANY_SLOT,
                                                           .call = call,
                                                           .status = CAPU_DEVICE_FAILED,
                                                           .is_lasting = is_lasting});
        }
        status = churn(&ground, (_i & 4) != 0);
        malloc_faults_arm(0, false);
        hits = is_host ? malloc_faults_hits() : adaptor_fault_hits(ground.device);
        adaptor_fault_arm(ground.device, NULL);
        /* A failed trim only leaves the slab where it is. */
        ck_assert(status == CAPU_OK
                      ? hits <= 1 || is_lasting
                      : status == (is_host ? CAPU_NO_HOST_MEMORY : CAPU_DEVICE_FAILED));
        if (ground.slabs != NULL) {
            const char *breach = "";
            void *address;

            ck_assert_msg(slabs_validate(ground.slabs, &breach), "call %d: %s", (int)call, breach);
            ck_assert_uint_eq(pages_out(ground.pages), slabs_page_count(ground.slabs));
            ck_assert_int_eq(slabs_take(ground.slabs, 1000, &address), CAPU_OK);
            CHECK_VALID(slabs_validate, ground.slabs);
        }
        CHECK_VALID(pages_validate, ground.pages);
        CHECK_VALID(ranges_validate, ground.ranges);
        ground_finish(&ground);
    }
    ck_assert_uint_gt(call, 15);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slabs");
    TCase *tcase = tcase_create("slabs");

    tcase_add_loop_test(tcase, every_size_uses_a_page_well, 0, 3);
    tcase_add_loop_test(tcase, a_slot_is_not_reused_until_settled, 0, 2);
    tcase_add_loop_test(tcase, trim_releases_only_free_slabs, 0, 2);
    tcase_add_test(tcase, used_slabs_are_counted);
    tcase_add_loop_test(tcase, slots_never_overlap, 0, 2);
    tcase_add_loop_test(tcase, spread_slots_share_no_pages, 0, 3);
    tcase_add_test(tcase, slots_share_pages_where_mappings_are_short);
    tcase_add_loop_test(tcase, every_call_can_fail, 0, 8);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
