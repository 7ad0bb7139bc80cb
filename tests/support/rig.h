/*
 * A context on a host device, or on cuda over the fake runtime, behind adaptors, as most tests of
 * the runtime want it: small pages, a small budget, and the budget checked at the device table by
 * counting pages there.
 */
#ifndef CAPU_TESTS_SUPPORT_RIG_H
#define CAPU_TESTS_SUPPORT_RIG_H

#include "device/device.h"
#include "runtime/internal.h"

#include <stdbool.h>

#define RIG_PAGE ((uint64_t)4096)

struct rig_options {
    uint64_t budget_pages;      /* 0: 1024 */
    uint64_t host_budget_bytes; /* 0: none */
    uint32_t mode;              /* 0: passive */
    bool strict;
    bool clear_fresh;
    bool is_sim;
    const char *report_path;
    const char *trace_path;
    uint64_t trace_iteration;
    uint64_t delay_seed;       /* not 0: random delays in the streams */
    uint64_t link_bytes_per_s; /* of both links; 0: no throttle */
    const char *planner;       /* mode guided; NULL: the default */
    bool wait_for_plan;
    const char *plan_path;
    uint64_t sample_every;                           /* 0: the default */
    const struct adaptor_fault_plan *creation_fault; /* with has_faults: armed while the context is
                                                        made, which may fail: rig.context is NULL
                                                        then, and rig.faults gone */
    bool has_faults; /* a fault adaptor is put around everything, quiet at first */
};

struct rig {
    capu_context *context;
    struct device *count; /* adaptors, outermost last; NULL: not there */
    struct device *faults;
};

/* The device under test: host in tests_rig; in tests_rig_cuda the cuda device over the fake
   runtime, where an op's function is launched as a kernel. */
capu_status rig_device_create(const struct device_options *options, struct device **device,
                              char *text, size_t text_bytes);

/* What a context says after an op "bomb" failed while it ran: on host which op it was, on cuda only
   that the device is lost, as a kernel that faults leaves it. */
extern const struct rig_failure {
    capu_status status;
    const char *text;
} rig_failure;

/* Creates the context, or fails the running test. */
void rig_init(struct rig *rig, const struct rig_options *options);

/* Destroys the context, having checked its books and that no page was left mapped beyond the
 * budget. */
void rig_finish(struct rig *rig);

/* Fails the running test if the context's books are wrong, or the device holds more than the
 * budget. */
void rig_check(const struct rig *rig);

/* Pages created at the device table: now and at most. */
uint64_t rig_pages(const struct rig *rig);

/* Fails the running test unless the status is OK; shows the context's error. */
#define RIG_OK(rig_, call_)                                                                \
    do {                                                                                   \
        capu_status status_ = (call_);                                                     \
        ck_assert_msg(status_ == CAPU_OK, "%s: %s: %s", #call_, capu_status_name(status_), \
                      capu_last_error((rig_)->context));                                   \
    } while (0)

#endif
