/* The contract suite over host, sim, and every adaptor around both. */
#include "contract.h"

#include "tests/support/adaptor_count.h"
#include "tests/support/adaptor_delay.h"
#include "tests/support/adaptor_fault.h"
#include "tests/support/adaptor_limit.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <time.h>

static const struct adaptor_delay_plan delays = {.seed = 1, .longest_ns = 300000, .one_in = 2};

static capu_status slow(capu_stream stream, const void *arguments)
{
    const uint64_t *ns = arguments;
    struct timespec left = {(time_t)(*ns / 1000000000u), (long)(*ns % 1000000000u)};

    (void)stream;
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    return CAPU_OK;
}

static capu_status make_host(struct device **device)
{
    const struct device_options options = {.memory_bytes = CONTRACT_PAGES * ((uint64_t)64 << 10),
                                           .page_bytes = (uint64_t)64 << 10};

    return host_device_create(&options, device, NULL, 0);
}

static capu_status make_sim(struct device **device)
{
    const struct device_options options = {.memory_bytes = CONTRACT_PAGES * ((uint64_t)2 << 20)};

    return sim_device_create(&options, device, NULL, 0);
}

/* The inner device has more memory, so the limit comes from the adaptor. */
static capu_status make_limited_host(struct device **device)
{
    struct device *inner = NULL;
    const struct device_options options = {.memory_bytes = (uint64_t)64 << 20};

    CHECK_OK(host_device_create(&options, &inner, NULL, 0));
    return adaptor_limit_create(inner, CONTRACT_PAGES, device);
}

static capu_status make_limited_sim(struct device **device)
{
    struct device *inner = NULL;

    CHECK_OK(sim_device_create(NULL, &inner, NULL, 0));
    return adaptor_limit_create(inner, CONTRACT_PAGES, device);
}

/* X(name, call that creates the adaptor around `inner`) */
#define WRAPPED(X)                                           \
    X(counted, adaptor_count_create(inner, device))          \
    X(delayed, adaptor_delay_create(inner, &delays, device)) \
    X(faulty, adaptor_fault_create(inner, device))

#define MAKERS(name, wrap)                                        \
    static capu_status make_##name##_host(struct device **device) \
    {                                                             \
        struct device *inner = NULL;                              \
                                                                  \
        CHECK_OK(make_host(&inner));                              \
        return wrap;                                              \
    }                                                             \
    static capu_status make_##name##_sim(struct device **device)  \
    {                                                             \
        struct device *inner = NULL;                              \
                                                                  \
        CHECK_OK(make_sim(&inner));                               \
        return wrap;                                              \
    }
WRAPPED(MAKERS)

/* Three adaptors around each other. */
static capu_status make_stacked_host(struct device **device)
{
    struct device *counted = NULL;
    struct device *delayed = NULL;

    CHECK_OK(make_counted_host(&counted));
    CHECK_OK(adaptor_delay_create(counted, &delays, &delayed));
    return adaptor_limit_create(delayed, CONTRACT_PAGES, device);
}

#define ENTRIES(name, wrap)                                      \
    {#name " host", make_##name##_host, slow, true, true, true}, \
        {#name " sim", make_##name##_sim, slow, true, false, false},

static const struct contract_subject subjects[] = {
    {"host", make_host, slow, true, true, true},
    {"sim", make_sim, slow, true, false, false},
    {"limited host", make_limited_host, slow, true, true, true},
    {"limited sim", make_limited_sim, slow, true, false, false},
    WRAPPED(ENTRIES){"stacked host", make_stacked_host, slow, true, true, true},
};

int main(void)
{
    return suite_run(
        contract_suite("device contract", subjects, sizeof(subjects) / sizeof(subjects[0])));
}
