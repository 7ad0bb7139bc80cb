/* Calibration: on a simulated link, whose rates are known; what is given stays; nothing is left. */
#include "device/calibration.h"

#include "tests/support/adaptor_count.h"
#include "tests/support/adaptor_fault.h"
#include "tests/support/suite.h"

#define MIB ((uint64_t)1 << 20)
#define CHECK_OK(call) ck_assert_int_eq((call), CAPU_OK)

/* Within a hundredth: the latency of the copies counts as part of the time. */
static void check_rate(uint64_t found, uint64_t expected)
{
    ck_assert_uint_ge(found, expected / 100 * 99);
    ck_assert_uint_le(found, expected);
}

static struct device *counted_sim(void)
{
    const struct device_options options = {.memory_bytes = 256 * MIB,
                                           .d2h_bytes_per_s = 1000000000,
                                           .h2d_bytes_per_s = 3000000000,
                                           .copy_latency_ns = 7000};
    struct device *sim = NULL;
    struct device *device = NULL;

    CHECK_OK(sim_device_create(&options, &sim, NULL, 0));
    CHECK_OK(adaptor_count_create(sim, &device));
    return device;
}

static void check_nothing_is_left(struct device *device)
{
    struct adaptor_counts counts;

    adaptor_count_read(device, &counts);
    ck_assert_uint_eq(counts.pages, 0);
    ck_assert_uint_eq(counts.mapped_bytes, 0);
    ck_assert_uint_eq(counts.host_bytes, 0);
}

START_TEST(test_a_known_link_is_found)
{
    struct device *device = counted_sim();
    struct device_link link = {0};
    struct adaptor_counts counts;

    CHECK_OK(calibration_complete(device, device->capabilities.memory_bytes, &link));
    check_rate(link.d2h_bytes_per_s, 1000000000);
    check_rate(link.h2d_bytes_per_s, 3000000000);
    check_rate(link.d2h_duplex_bytes_per_s, 1000000000);
    check_rate(link.h2d_duplex_bytes_per_s, 3000000000);
    /* Its four KiB take a few microseconds as well. */
    ck_assert_uint_ge(link.copy_latency_ns, 7000);
    ck_assert_uint_le(link.copy_latency_ns, 12000);
    adaptor_count_read(device, &counts);
    ck_assert_uint_eq(counts.host_bytes_peak, 64 * MIB);
    check_nothing_is_left(device);
    device_destroy(device);
}
END_TEST

START_TEST(test_what_is_given_stays)
{
    struct device *device = counted_sim();
    struct device_link link = {.d2h_bytes_per_s = 5, .copy_latency_ns = 6};
    struct adaptor_counts counts;

    CHECK_OK(calibration_complete(device, device->capabilities.memory_bytes, &link));
    ck_assert_uint_eq(link.d2h_bytes_per_s, 5);
    ck_assert_uint_eq(link.copy_latency_ns, 6);
    check_rate(link.h2d_bytes_per_s, 3000000000);

    /* Nothing is measured if both solo rates are known. */
    adaptor_count_reset(device);
    link = (struct device_link){.d2h_bytes_per_s = 5, .h2d_bytes_per_s = 7};
    CHECK_OK(calibration_complete(device, device->capabilities.memory_bytes, &link));
    ck_assert_uint_eq(link.d2h_duplex_bytes_per_s, 0);
    adaptor_count_read(device, &counts);
    ck_assert_uint_eq(counts.slots[ADAPTOR_STREAM_CREATE].calls, 0);
    device_destroy(device);
}
END_TEST

START_TEST(test_the_limit_of_memory_holds)
{
    struct device *device = counted_sim();
    uint64_t page_bytes = device->capabilities.page_bytes;
    const uint64_t limits[] = {1, page_bytes, 2 * page_bytes, 5 * page_bytes};

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct device_link link = {0};
        struct adaptor_counts counts;

        adaptor_count_reset(device);
        CHECK_OK(calibration_complete(device, limits[i], &link));
        adaptor_count_read(device, &counts);
        ck_assert_uint_ge(counts.pages_peak, 1);
        ck_assert(counts.pages_peak == 1 || counts.pages_peak * page_bytes <= limits[i]);
        ck_assert_uint_gt(link.h2d_bytes_per_s, link.d2h_bytes_per_s);
        check_nothing_is_left(device);
    }
    device_destroy(device);
}
END_TEST

/* Every call fails once, for each slot in turn. */
START_TEST(test_failures_leave_nothing_behind)
{
    struct device *counted = counted_sim();
    struct device *device = NULL;
    struct adaptor_fault_plan plan = {.slot = ADAPTOR_ANY_SLOT, .status = CAPU_DEVICE_FAILED};
    uint64_t hits = 1;

    CHECK_OK(adaptor_fault_create(counted, &device));
    for (plan.call = 1; hits > 0; plan.call++) {
        struct device_link link = {0};
        struct adaptor_counts counts;
        capu_status status;

        adaptor_fault_arm(device, &plan);
        status = calibration_complete(device, 64 * MIB, &link);
        hits = adaptor_fault_hits(device);
        adaptor_fault_arm(device, NULL);
        ck_assert_int_eq(status, hits > 0 ? CAPU_DEVICE_FAILED : CAPU_OK);
        ck_assert(hits == 0 || link.d2h_bytes_per_s == 0);
        /* The mapping that could not be removed stays, with its pages. */
        adaptor_count_read(counted, &counts);
        if (counts.mapped_bytes == 0) {
            check_nothing_is_left(counted);
        } else {
            ck_assert_uint_eq(counts.host_bytes, 0);
            break;
        }
    }
    ck_assert_uint_gt(plan.call, 100);
    device_destroy(device);
}
END_TEST

START_TEST(test_the_host_device_is_measured)
{
    const struct device_options options = {.memory_bytes = 64 * MIB};
    struct device *device = NULL;
    struct device_link link = {0};

    CHECK_OK(host_device_create(&options, &device, NULL, 0));
    ck_assert_uint_eq(device->capabilities.link.d2h_bytes_per_s, 0);
    CHECK_OK(calibration_complete(device, options.memory_bytes, &link));
    ck_assert_uint_gt(link.d2h_bytes_per_s, MIB);
    ck_assert_uint_gt(link.h2d_bytes_per_s, MIB);
    ck_assert_uint_gt(link.d2h_duplex_bytes_per_s, MIB);
    ck_assert_uint_gt(link.h2d_duplex_bytes_per_s, MIB);
    ck_assert_uint_gt(link.copy_latency_ns, 0);
    device_destroy(device);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calibration");
    TCase *tcase = tcase_create("calibration");

    tcase_add_test(tcase, test_a_known_link_is_found);
    tcase_add_test(tcase, test_what_is_given_stays);
    tcase_add_test(tcase, test_the_limit_of_memory_holds);
    tcase_add_test(tcase, test_failures_leave_nothing_behind);
    tcase_add_test(tcase, test_the_host_device_is_measured);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
