/* The cuda device over the fake runtime, for tests of how it handles the results of CUDA calls. */
#ifndef CAPU_TESTS_UNIT_DEVICE_ON_FAKE_H
#define CAPU_TESTS_UNIT_DEVICE_ON_FAKE_H

#include "device/device.h"
#include "tests/fake_cudart/fake_cudart.h"

#include <stddef.h>
#include <stdint.h>

#define PAGE ((uint64_t)64 << 10)
#define PAGES 8
#define RATE 1000000000 /* a given rate, so that nothing is measured */

/* Error numbers of CUDA, whose headers tests do not include. */
enum {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    DEVICES_UNAVAILABLE = 46,
    NOT_READY = 600,
    NOT_SUPPORTED = 801,
    ILLEGAL_ADDRESS = 700,
    UNKNOWN = 999
};

#define OK(call_) ck_assert_int_eq((call_), CAPU_OK)

/* Creates a device with PAGES pages of PAGE bytes on a new machine; NULL: the default one. */
struct device *on_fake_make(const struct fake_cudart_machine *machine);

/* Reserves a range of `count` pages. */
void *on_fake_reserve(struct device *device, size_t count);

/* Creates `count` pages. */
void on_fake_pages(struct device *device, device_page *pages, size_t count);

/* Makes the n-th call of a kind from now on fail, once. */
void on_fake_fail(enum fake_cudart_call call, uint64_t number, int error);

/* Fails the test if any CUDA object is left. */
void on_fake_nothing_is_left(void);

#endif
