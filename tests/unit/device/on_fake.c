/* The cuda device over the fake runtime, see on_fake.h. */
#include "tests/unit/device/on_fake.h"

#include "tests/support/suite.h"

struct device *on_fake_make(const struct fake_cudart_machine *machine)
{
    const struct device_options options = {.memory_bytes = PAGES * PAGE,
                                           .page_bytes = PAGE,
                                           .d2h_bytes_per_s = RATE,
                                           .h2d_bytes_per_s = RATE,
                                           .host_wait_ns = 1000000};
    struct device *device = NULL;

    fake_cudart_reset(machine);
    OK(cuda_device_create(&options, &device, NULL, 0));
    return device;
}

void *on_fake_reserve(struct device *device, size_t count)
{
    void *address = NULL;

    OK(device_range_reserve(device, count * PAGE, &address));
    return address;
}

void on_fake_pages(struct device *device, device_page *pages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        OK(device_page_create(device, &pages[i]));
    }
}

void on_fake_fail(enum fake_cudart_call call, uint64_t number, int error)
{
    fake_cudart_arm(&(struct fake_cudart_fault){.call = call, .number = number, .error = error});
}

void on_fake_nothing_is_left(void)
{
    struct fake_cudart_left left = fake_cudart_left();

    ck_assert_uint_eq(left.handles, 0);
    ck_assert_uint_eq(left.mappings, 0);
    ck_assert_uint_eq(left.ranges, 0);
    ck_assert_uint_eq(left.registered, 0);
    ck_assert_uint_eq(left.streams, 0);
    ck_assert_uint_eq(left.events, 0);
}
