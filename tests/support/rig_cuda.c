/*
 * The device of tests_rig_cuda: cuda over the fake runtime.
 *
 * The ops of the tests compute in their run function, whereas on cuda that only launches a kernel.
 * So the `run` of the device table is replaced by one that launches the op's function as a kernel
 * of the fake. The device then reports that ops run on the stream, since they do.
 */
#include "tests/support/rig.h"

#include "tests/fake_cudart/fake_cudart.h"

enum { MACHINE_PAGES = 16384 };

const struct rig_failure rig_failure = {CAPU_DEVICE_LOST, "cudaErrorLaunchFailure"};

static capu_status launch(capu_stream stream, const void *arguments)
{
    const struct device_work *work = arguments;

    return fake_cudart_launch(stream, work->run, work->arguments);
}

static struct device_table launching;
static const struct device_table *cuda_table;

static capu_status run_as_kernel(struct device *device, capu_stream stream,
                                 const struct device_work *work)
{
    const struct device_work launched = {.name = work->name, .run = launch, .arguments = work};

    return cuda_table->run(device, stream, &launched);
}

/* Resets the fake machine for the first device and after it was lost. Several contexts of a test
   share it. */
static void make_machine(void)
{
    static bool is_made;
    const struct fake_cudart_machine machine = {.memory_bytes = MACHINE_PAGES * RIG_PAGE,
                                                .granularity_bytes = RIG_PAGE};

    if (!is_made || fake_cudart_is_lost()) {
        fake_cudart_reset(&machine);
        is_made = true;
    }
}

capu_status rig_device_create(const struct device_options *options, struct device **device,
                              char *text, size_t text_bytes)
{
    struct device_options own = *options;
    capu_status status;

    make_machine();
    if (own.d2h_bytes_per_s == 0 && own.h2d_bytes_per_s == 0) {
        /* Given rates save measuring the link each time. */
        own.d2h_bytes_per_s = 1000000000;
        own.h2d_bytes_per_s = 1000000000;
    }
    own.host_wait_ns = 1000000; /* so that sweeps of faults do not wait */
    status = cuda_device_create(&own, device, text, text_bytes);
    if (status == CAPU_OK) {
        cuda_table = (*device)->table;
        launching = *cuda_table;
        launching.run = run_as_kernel;
        (*device)->table = &launching;
        (*device)->capabilities.runs_on_stream = true;
    }
    return status;
}
