/* The cuda device over the fake runtime, for the tests that ask what it makes of CUDA's answers. */
#ifndef CAPU_TESTS_UNIT_DEVICE_ON_FAKE_H
#define CAPU_TESTS_UNIT_DEVICE_ON_FAKE_H

#include "device/device.h"
#include "tests/fake_cudart/fake_cudart.h"

#include <stddef.h>
#include <stdint.h>

#define PAGE ((uint64_t)64 << 10)
#define PAGES 8
#define RATE 1000000000 /* given, so that nothing is measured */

/* CUDA's numbers: its headers are not for tests. */
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

/* The device of a fresh machine (NULL: the usual one), with PAGES of PAGE bytes. */
struct device *on_fake_make(const struct fake_cudart_machine *machine);

/* A range of so many pages. */
void *on_fake_reserve(struct device *device, size_t count);

/* Creates so many pages. */
void on_fake_pages(struct device *device, device_page *pages, size_t count);

/* Fails the n-th call of a kind from now on, once. */
void on_fake_fail(enum fake_cudart_call call, uint64_t number, int error);

/* Fails the test if anything is left of what was asked of CUDA. */
void on_fake_nothing_is_left(void);

#endif
