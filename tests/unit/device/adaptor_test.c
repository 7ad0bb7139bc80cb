/* The adaptors: what each adds to the device inside it. The contract suite checks that they change
   nothing else. */
#include "tests/support/adaptor_count.h"
#include "tests/support/adaptor_delay.h"
#include "tests/support/adaptor_fault.h"
#include "tests/support/adaptor_limit.h"
#include "tests/support/suite.h"

#include <string.h>

#define CHECK_OK(call) ck_assert_int_eq((call), CAPU_OK)

static struct device *make_sim(void)
{
    struct device *device = NULL;

    CHECK_OK(sim_device_create(NULL, &device, NULL, 0));
    return device;
}

static struct device *make_host(void)
{
    const struct device_options options = {.memory_bytes = (uint64_t)1 << 20};
    struct device *device = NULL;

    CHECK_OK(host_device_create(&options, &device, NULL, 0));
    return device;
}

START_TEST(the_limit_counts_existing_pages)
{
    struct device *device = NULL;
    device_page page = DEVICE_NO_PAGE;
    device_page first = DEVICE_NO_PAGE;

    CHECK_OK(adaptor_limit_create(make_sim(), 3, &device));
    ck_assert_uint_eq(device->capabilities.memory_bytes, 3 * device->capabilities.page_bytes);
    CHECK_OK(device_page_create(device, &first));
    CHECK_OK(device_page_create(device, &page));
    CHECK_OK(device_page_create(device, &page));
    ck_assert_int_eq(device_page_create(device, &page), CAPU_OVER_BUDGET);
    ck_assert_uint_eq(adaptor_limit_refusals(device), 1);
    device_page_destroy(device, first);
    CHECK_OK(device_page_create(device, &page));
    ck_assert_int_eq(device_page_create(device, &page), CAPU_OVER_BUDGET);
    ck_assert_uint_eq(adaptor_limit_refusals(device), 2);
    device_destroy(device);
}
END_TEST

START_TEST(counts_include_calls_bytes_and_existing_pages)
{
    struct device *device = NULL;
    struct adaptor_counts counts;
    device_page pages[3];
    void *range = NULL;
    void *memory = NULL;
    capu_stream stream = NULL;
    uint64_t page_bytes;

    CHECK_OK(adaptor_count_create(make_sim(), &device));
    page_bytes = device->capabilities.page_bytes;
    for (int index = 0; index < 3; index++) {
        CHECK_OK(device_page_create(device, &pages[index]));
    }
    CHECK_OK(device_range_reserve(device, 4 * page_bytes, &range));
    CHECK_OK(device_map(device, range, pages, 2));
    CHECK_OK(device_map(device, (char *)range + 2 * page_bytes, pages, 2));
    ck_assert_int_eq(device_map(device, range, pages, 1), CAPU_INVALID);
    CHECK_OK(device_unmap(device, range, 2));
    device_page_destroy(device, pages[2]);
    CHECK_OK(device_host_alloc(device, 1000, &memory));
    CHECK_OK(device_stream_create(device, DEVICE_D2H, &stream));
    CHECK_OK(device_copy_out(device, stream, memory, (char *)range + 2 * page_bytes, 600));
    adaptor_count_read(device, &counts);
    ck_assert_uint_eq(counts.slots[ADAPTOR_PAGE_CREATE].calls, 3);
    ck_assert_uint_eq(counts.slots[ADAPTOR_PAGE_CREATE].bytes, 3 * page_bytes);
    ck_assert_uint_eq(counts.pages, 2);
    ck_assert_uint_eq(counts.pages_peak, 3);
    ck_assert_uint_eq(counts.slots[ADAPTOR_MAP].calls, 3);
    ck_assert_uint_eq(counts.slots[ADAPTOR_MAP].failures, 1);
    ck_assert_uint_eq(counts.mapped_bytes, 2 * page_bytes);
    ck_assert_uint_eq(counts.mapped_bytes_peak, 4 * page_bytes);
    ck_assert_uint_eq(counts.host_bytes, 1000);
    ck_assert_uint_eq(counts.slots[ADAPTOR_COPY_OUT].bytes, 600);
    adaptor_count_reset(device);
    adaptor_count_read(device, &counts);
    ck_assert_uint_eq(counts.slots[ADAPTOR_MAP].calls, 0);
    ck_assert_uint_eq(counts.pages, 2);
    ck_assert_uint_eq(counts.pages_peak, 2);
    ck_assert_str_eq(adaptor_slot_name(ADAPTOR_COPY_OUT), "copy_out");
    ck_assert_str_eq(adaptor_slot_name(ADAPTOR_SLOT_COUNT), "unknown");
    device_destroy(device);
}
END_TEST

/* The time at which 20 ops of 100 ns and their events have finished, with delays from this seed. */
static uint64_t delayed_end(uint64_t seed)
{
    const struct adaptor_delay_plan plan = {.seed = seed, .longest_ns = 1000, .one_in = 3};
    const struct device_work work = {.name = "op", .duration_ns = 100};
    struct device *device = NULL;
    struct device_event *event = NULL;
    capu_stream stream = NULL;
    uint64_t end;

    CHECK_OK(adaptor_delay_create(make_sim(), &plan, &device));
    CHECK_OK(device_stream_create(device, DEVICE_COMPUTE, &stream));
    CHECK_OK(device_event_create(device, false, &event));
    for (int index = 0; index < 20; index++) {
        CHECK_OK(device_run(device, stream, &work));
        CHECK_OK(device_event_record(device, event, stream));
    }
    CHECK_OK(device_event_wait(device, event));
    end = device_now_ns(device);
    device_event_destroy(device, event);
    device_destroy(device);
    return end;
}

START_TEST(delays_come_from_the_seed)
{
    ck_assert_uint_gt(delayed_end(1), 20 * 100);
    ck_assert_uint_eq(delayed_end(1), delayed_end(1));
    ck_assert_uint_ne(delayed_end(1), delayed_end(2));
}
END_TEST

/* Delays also affect events: one that is recorded after no work at all is not reached at once. */
START_TEST(events_of_a_delayed_device_are_late)
{
    const struct adaptor_delay_plan plan = {.seed = 4, .longest_ns = 50000000};
    struct device *device = NULL;
    struct device_event *event = NULL;
    capu_stream stream = NULL;
    int late = 0;

    CHECK_OK(adaptor_delay_create(make_host(), &plan, &device));
    CHECK_OK(device_stream_create(device, DEVICE_COMPUTE, &stream));
    CHECK_OK(device_event_create(device, false, &event));
    for (int round = 0; round < 8; round++) {
        CHECK_OK(device_event_record(device, event, stream));
        late += device_event_query(device, event) == CAPU_NOT_READY ? 1 : 0;
        CHECK_OK(device_event_wait(device, event));
        CHECK_OK(device_event_query(device, event));
    }
    ck_assert_int_gt(late, 0);
    device_event_destroy(device, event);
    device_destroy(device);
}
END_TEST

/* A small transaction, which succeeds or leaves nothing behind. */
static capu_status map_a_page(struct device *device)
{
    uint64_t page_bytes = device->capabilities.page_bytes;
    device_page page = DEVICE_NO_PAGE;
    void *range = NULL;
    capu_status status = device_page_create(device, &page);

    if (status == CAPU_OK) {
        status = device_range_reserve(device, page_bytes, &range);
    }
    if (status == CAPU_OK) {
        status = device_map(device, range, &page, 1);
        if (status == CAPU_OK) {
            while (device_unmap(device, range, 1) != CAPU_OK) {
                status = CAPU_DEVICE_FAILED;
            }
        }
    }
    device_range_release(device, range, page_bytes);
    device_page_destroy(device, page);
    return status;
}

START_TEST(every_call_can_be_made_to_fail)
{
    struct device *counted = NULL;
    struct device *device = NULL;
    struct adaptor_counts counts;
    uint64_t call = 1;

    CHECK_OK(adaptor_count_create(make_host(), &counted));
    CHECK_OK(adaptor_fault_create(counted, &device));
    CHECK_OK(map_a_page(device));
    for (;; call++) {
        const struct adaptor_fault_plan plan = {
            .slot = ADAPTOR_ANY_SLOT, .call = call, .status = CAPU_DEVICE_FAILED};
        capu_status status;

        adaptor_fault_arm(device, &plan);
        status = map_a_page(device);
        if (adaptor_fault_hits(device) == 0) {
            ck_assert_int_eq(status, CAPU_OK);
            break;
        }
        ck_assert_int_eq(status, CAPU_DEVICE_FAILED);
        adaptor_count_read(counted, &counts);
        ck_assert_uint_eq(counts.pages, 0);
        ck_assert_uint_eq(counts.mapped_bytes, 0);
    }
    ck_assert_uint_eq(call, 5); /* create, reserve, map, unmap */
    device_destroy(device);
}
END_TEST

START_TEST(faults_can_be_lasting_or_random)
{
    struct adaptor_fault_plan plan = {
        .slot = ADAPTOR_PAGE_CREATE, .call = 3, .status = CAPU_NO_HOST_MEMORY, .is_lasting = true};
    struct device *device = NULL;
    device_page page = DEVICE_NO_PAGE;
    void *range = NULL;
    uint64_t hits;

    CHECK_OK(adaptor_fault_create(make_sim(), &device));
    adaptor_fault_arm(device, &plan);
    CHECK_OK(device_page_create(device, &page));
    CHECK_OK(device_page_create(device, &page));
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(device_page_create(device, &page), CAPU_NO_HOST_MEMORY);
        CHECK_OK(device_range_reserve(device, device->capabilities.page_bytes, &range));
    }
    ck_assert_uint_eq(adaptor_fault_calls(device), 5);
    ck_assert_uint_eq(adaptor_fault_hits(device), 3);
    adaptor_fault_arm(device, NULL);
    CHECK_OK(device_page_create(device, &page));

    plan = (struct adaptor_fault_plan){
        .slot = ADAPTOR_PAGE_CREATE, .one_in = 4, .seed = 9, .status = CAPU_OVER_BUDGET};
    adaptor_fault_arm(device, &plan);
    for (int round = 0; round < 1000; round++) {
        (void)device_page_create(device, &page);
    }
    hits = adaptor_fault_hits(device);
    ck_assert_uint_gt(hits, 150);
    ck_assert_uint_lt(hits, 350);
    adaptor_fault_arm(device, &plan);
    for (int round = 0; round < 1000; round++) {
        (void)device_page_create(device, &page);
    }
    ck_assert_uint_eq(adaptor_fault_hits(device), hits);
    device_destroy(device);
}
END_TEST

static void fail_in_flight(struct device *inner)
{
    const struct adaptor_fault_plan plan = {
        .slot = ADAPTOR_FILL, .call = 2, .status = CAPU_DEVICE_LOST, .in_flight = true};
    struct device *device = NULL;
    capu_stream stream = NULL;
    device_page page = DEVICE_NO_PAGE;
    void *range = NULL;
    char text[200] = "";

    CHECK_OK(adaptor_fault_create(inner, &device));
    CHECK_OK(device_stream_create(device, DEVICE_COMPUTE, &stream));
    CHECK_OK(device_page_create(device, &page));
    CHECK_OK(device_range_reserve(device, device->capabilities.page_bytes, &range));
    CHECK_OK(device_map(device, range, &page, 1));
    adaptor_fault_arm(device, &plan);
    CHECK_OK(device_fill(device, stream, range, 1, 100));
    CHECK_OK(device_stream_synchronize(device, stream));
    (void)device_fill(device, stream, range, 2, 100);
    ck_assert_int_eq(device_stream_synchronize(device, stream), CAPU_OP_FAILED);
    ck_assert_int_eq(device_failure(device, text, sizeof(text)), CAPU_OP_FAILED);
    ck_assert_ptr_nonnull(strstr(text, "injected fault"));
    if (!device->capabilities.is_simulated) {
        ck_assert_int_eq(*(const char *)range, 1); /* the second fill never ran */
    }
    device_destroy(device);
}

START_TEST(work_can_fail_in_flight)
{
    fail_in_flight(make_host());
    fail_in_flight(make_sim());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("adaptors");
    TCase *tcase = tcase_create("adaptors");

    tcase_add_test(tcase, the_limit_counts_existing_pages);
    tcase_add_test(tcase, counts_include_calls_bytes_and_existing_pages);
    tcase_add_test(tcase, delays_come_from_the_seed);
    tcase_add_test(tcase, events_of_a_delayed_device_are_late);
    tcase_add_test(tcase, every_call_can_be_made_to_fail);
    tcase_add_test(tcase, faults_can_be_lasting_or_random);
    tcase_add_test(tcase, work_can_fail_in_flight);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
