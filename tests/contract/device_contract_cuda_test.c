/* The contract suite over the cuda device on the fake runtime, and adaptors around it. */
#include "tests/contract/contract.h"

#include "tests/fake_cudart/fake_cudart.h"
#include "tests/support/adaptor_count.h"
#include "tests/support/adaptor_fault.h"
#include "tests/support/adaptor_limit.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <time.h>

#define PAGE ((uint64_t)64 << 10)

static capu_status sleep_kernel(capu_stream stream, const void *arguments)
{
    const uint64_t *ns = arguments;
    struct timespec left = {(time_t)(*ns / 1000000000u), (long)(*ns % 1000000000u)};

    (void)stream;
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    return CAPU_OK;
}

static capu_status slow(capu_stream stream, const void *arguments)
{
    return fake_cudart_launch(stream, sleep_kernel, arguments);
}

static capu_status make_cuda_of(uint64_t page_bytes, uint64_t page_count, struct device **device)
{
    const struct device_options options = {.memory_bytes = page_count * page_bytes,
                                           .page_bytes = page_bytes};

    fake_cudart_reset(NULL);
    return cuda_device_create(&options, device, NULL, 0);
}

static capu_status make_cuda(struct device **device)
{
    return make_cuda_of(PAGE, CONTRACT_PAGES, device);
}

/* Pages larger than the granularity of the driver. */
static capu_status make_large_pages(struct device **device)
{
    return make_cuda_of(4 * PAGE, CONTRACT_PAGES, device);
}

/* The second of two devices, which is not the current one by default. */
static capu_status make_second(struct device **device)
{
    const struct fake_cudart_machine machine = {.device_count = 2};
    const struct device_options options = {
        .memory_bytes = CONTRACT_PAGES * PAGE, .page_bytes = PAGE, .ordinal = 1};

    fake_cudart_reset(&machine);
    return cuda_device_create(&options, device, NULL, 0);
}

/* Work finishes late, by random delays. */
static capu_status make_late(struct device **device)
{
    const struct fake_cudart_machine machine = {.delay_seed = 1};
    const struct device_options options = {.memory_bytes = CONTRACT_PAGES * PAGE,
                                           .page_bytes = PAGE};

    fake_cudart_reset(&machine);
    return cuda_device_create(&options, device, NULL, 0);
}

static capu_status make_stacked(struct device **device)
{
    struct device *inner = NULL;

    CHECK_OK(make_cuda_of(PAGE, 4 * CONTRACT_PAGES, &inner));
    CHECK_OK(adaptor_count_create(inner, &inner));
    CHECK_OK(adaptor_fault_create(inner, &inner));
    return adaptor_limit_create(inner, CONTRACT_PAGES, device);
}

static const struct contract_subject subjects[] = {
    {"cuda", make_cuda, slow, true, true, false},
    {"cuda with large pages", make_large_pages, slow, true, true, false},
    {"second cuda", make_second, slow, true, true, false},
    {"late cuda", make_late, slow, true, true, false},
    {"stacked cuda", make_stacked, slow, true, true, false},
};

int main(void)
{
    return suite_run(
        contract_suite("cuda contract", subjects, sizeof(subjects) / sizeof(subjects[0])));
}
