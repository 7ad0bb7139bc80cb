/*
 * The device contract as tests: every promise of device.h that can be checked through the table,
 * for any device. To test a new device, add a subject.
 *
 * Each test creates its own device, since streams are threads and do not survive Check's fork.
 */
#ifndef CAPU_TESTS_CONTRACT_CONTRACT_H
#define CAPU_TESTS_CONTRACT_CONTRACT_H

#include "device/device.h"

#include <check.h>

/* The number of pages of a device whose size can be chosen. */
#define CONTRACT_PAGES 32

struct contract_subject {
    const char *name;
    /* Creates the device. If it returns NO_DEVICE, the tests pass without checking anything, and
       the caller must report that they were skipped. */
    capu_status (*make)(struct device **device);
    /* A run function that occupies the stream for `*(const uint64_t *)arguments` ns. */
    capu_run_function slow;
    bool has_page_limit;  /* it has exactly CONTRACT_PAGES pages */
    bool touching_faults; /* the host can access device memory, and faults on unmapped pages */
    bool runs_on_stream;  /* as in its capabilities */
};

/* A suite with one test case per subject. The subjects must outlive the suite. */
Suite *contract_suite(const char *name, const struct contract_subject *subjects, size_t count);

/* For the files of the suite itself. */
extern const struct contract_subject *contract_subjects;
void contract_add_memory(TCase *tcase, const struct contract_subject *subject, int index);
void contract_add_streams(TCase *tcase, const struct contract_subject *subject, int index);
void contract_add_capture(TCase *tcase, int index);
/* The subject's device; NULL if there is none here. */
struct device *contract_make(int index);
/* Reserves a range of `count` pages and maps it to new pages, which are stored in `pages`. */
char *contract_mapped(struct device *device, device_page *pages, size_t count);
/* Whether all bytes are `byte`; on a simulated device, whether all are zero. */
bool contract_reads_as(const struct device *device, const char *memory, uint64_t bytes, char byte);

#define CHECK_OK(call) ck_assert_int_eq((call), CAPU_OK)

#endif
