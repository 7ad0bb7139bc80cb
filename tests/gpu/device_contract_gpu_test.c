/* The contract suite over the cuda device on a real GPU. All tests run in one process, because CUDA
   cannot be used after a fork. */
#include "tests/contract/contract.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAGE ((uint64_t)2 << 20)
#define SKIPPED 77

static void CUDART_CB sleep_on_stream(void *argument)
{
    const uint64_t *ns = argument;
    struct timespec left = {(time_t)(*ns / 1000000000u), (long)(*ns % 1000000000u)};

    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static capu_status slow(capu_stream stream, const void *arguments)
{
    return cudaLaunchHostFunc(stream, sleep_on_stream, (void *)(uintptr_t)arguments) == cudaSuccess
               ? CAPU_OK
               : CAPU_DEVICE_FAILED;
}

/* Rates are given, so that the device does not measure the link each time. */
static capu_status make_cuda(struct device **device)
{
    const struct device_options options = {.memory_bytes = CONTRACT_PAGES * PAGE,
                                           .page_bytes = PAGE,
                                           .d2h_bytes_per_s = 1,
                                           .h2d_bytes_per_s = 1};

    return cuda_device_create(&options, device, NULL, 0);
}

static capu_status make_measured(struct device **device)
{
    const struct device_options options = {.memory_bytes = CONTRACT_PAGES * 2 * PAGE,
                                           .page_bytes = 2 * PAGE};

    return cuda_device_create(&options, device, NULL, 0);
}

static const struct contract_subject subjects[] = {
    {"cuda", make_cuda, slow, true, false, false},
    {"measured cuda", make_measured, slow, true, false, false},
};

int main(void)
{
    struct device *device = NULL;
    char text[300] = "";
    capu_status status = cuda_device_create(NULL, &device, text, sizeof(text));
    SRunner *runner;
    int failed;

    if (status == CAPU_NO_DEVICE) {
        printf("skipped: %s\n", text);
        return SKIPPED;
    }
    if (status != CAPU_OK) {
        printf("%s\n", text);
        return EXIT_FAILURE;
    }
    printf("link: out %.1f, in %.1f GB/s; both at once: out %.1f, in %.1f GB/s; a copy %llu ns\n",
           (double)device->capabilities.link.d2h_bytes_per_s / 1e9,
           (double)device->capabilities.link.h2d_bytes_per_s / 1e9,
           (double)device->capabilities.link.d2h_duplex_bytes_per_s / 1e9,
           (double)device->capabilities.link.h2d_duplex_bytes_per_s / 1e9,
           (unsigned long long)device->capabilities.link.copy_latency_ns);
    device_destroy(device);
    runner = srunner_create(
        contract_suite("gpu contract", subjects, sizeof(subjects) / sizeof(subjects[0])));
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
