/*
 * The device contract as tests: everything device.h promises that can be tried through the table,
 * for any device. A new device is one more subject.
 *
 * Tests make their device themselves: streams are threads and do not survive Check's fork.
 */
#ifndef CAPU_TESTS_CONTRACT_CONTRACT_H
#define CAPU_TESTS_CONTRACT_CONTRACT_H

#include "device/device.h"

#include <check.h>

/* A device has this many pages if it can be told. */
#define CONTRACT_PAGES 32

struct contract_subject {
    const char *name;
    /* Makes the device. NO_DEVICE: its tests pass without a check; the caller says that they were
       skipped. */
    capu_status (*make)(struct device **device);
    /* A run function that takes `*(const uint64_t *)arguments` ns on the stream. */
    capu_run_function slow;
    bool has_page_limit;  /* it was told to have CONTRACT_PAGES pages */
    bool touching_faults; /* the host touches device memory, and faults where nothing is mapped */
    bool runs_on_stream;  /* as in its capabilities */
};

/* One test case for each subject; they must outlive the suite. */
Suite *contract_suite(const char *name, const struct contract_subject *subjects, size_t count);

/* For the suite's own files. */
extern const struct contract_subject *contract_subjects;
void contract_add_memory(TCase *tcase, const struct contract_subject *subject, int index);
void contract_add_streams(TCase *tcase, const struct contract_subject *subject, int index);
/* The subject's device; NULL if there is none here. */
struct device *contract_make(int index);
/* A range of `count` pages, mapped to fresh pages that are stored in `pages`. */
char *contract_mapped(struct device *device, device_page *pages, size_t count);
/* Whether all bytes are `byte`; on a simulated device, whether all are zero. */
bool contract_reads_as(const struct device *device, const char *memory, uint64_t bytes, char byte);

#define CHECK_OK(call) ck_assert_int_eq((call), CAPU_OK)

#endif
