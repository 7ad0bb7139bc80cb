/*
 * The context that most tests of the runtime use: on the host device, or on cuda over the fake
 * runtime, with small pages and a small budget. Adaptors around the device count its pages, so that
 * the budget can be checked independently of the library, check the order of work, and inject
 * delays and faults.
 */
#ifndef CAPU_TESTS_SUPPORT_RIG_H
#define CAPU_TESTS_SUPPORT_RIG_H

#include "device/device.h"
#include "policy/format/report.h"
#include "runtime/api/context.h"
#include "tests/support/adaptor_order.h"

#include <stdbool.h>

#define RIG_PAGE ((uint64_t)4096)

/* A rate for link_bytes_per_s: so fast that copies are hardly throttled, and known, so that it is
   not measured. */
#define RIG_FAST_LINK UINT64_C(100000000000)

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
    uint64_t delay_seed; /* not 0: random delays in the streams */
    bool is_late;        /* the host learns that work has completed only where it waits for it */
    bool any_order; /* the order of work is not checked: allocations fail, and the check needs some.
                       Nor is it on sim, which has no memory */
    uint64_t link_bytes_per_s;   /* of both links; 0: no throttle */
    uint64_t duplex_bytes_per_s; /* on sim: while the other one is busy; 0: the same */
    bool hides_duplex;           /* the runtime does not know that rate */
    const char *planner;         /* for guided mode; NULL: the default */
    bool wait_for_plan;
    bool keep_contents;
    bool timeline;
    bool places_nothing; /* in guided mode: plans have no places, also where there is room */
    const char *plan_path;
    uint64_t sample_every;                           /* 0: the default */
    uint64_t plan_memory_bytes;                      /* 0: the default */
    const struct adaptor_fault_plan *creation_fault; /* with has_faults: armed while the context is
                                                        created. If that fails, rig.context and
                                                        rig.faults are NULL */
    bool has_faults; /* adds a fault adaptor, which is not armed at first */
};

struct rig {
    capu_context *context;
    struct device *count;  /* the outermost adaptor, which counts */
    struct device *faults; /* the fault adaptor; NULL: none */
    struct device *order;  /* the adaptor that checks the order of work; NULL: none */
};

/* Creates the device under test: host in tests_rig; in tests_rig_cuda the cuda device over the fake
   runtime, which launches an op's run function as a kernel. */
capu_status rig_device_create(const struct device_options *options, struct device **device,
                              char *text, size_t text_bytes);

/* The error of a context after the op "bomb" failed while it ran. The host device knows which op it
   was. On cuda the device is only lost, as after a kernel that faults. */
extern const struct rig_failure {
    capu_status status;
    const char *text;
} rig_failure;

/* What the run functions of a test touch, beside mixing_run; NULL: not known. As `ranges` of
   adaptor_order_plan. */
extern _Thread_local size_t (*rig_ranges)(const struct device_work *work,
                                          struct adaptor_order_range *ranges, size_t most);

/* Creates the context, or fails the running test. */
void rig_init(struct rig *rig, const struct rig_options *options);

/* Checks the context as rig_check does, and destroys it. */
void rig_finish(struct rig *rig);

/* Fails the running test if the context's data structures are inconsistent, if the device has held
   more than the budget, or if work was not ordered as it must be. */
void rig_check(const struct rig *rig);

/* The report of the newest finished iteration with all counters, or fails the running test. Checks
   that capu_report_get has the same. */
struct report rig_report(const struct rig *rig);

/* The most pages that have existed at the device table at once. */
uint64_t rig_pages(const struct rig *rig);

/* Fails the running test, with the context's error, unless the call returns OK. */
#define RIG_OK(rig_, call_)                                                                \
    do {                                                                                   \
        capu_status status_ = (call_);                                                     \
        ck_assert_msg(status_ == CAPU_OK, "%s: %s: %s", #call_, capu_status_name(status_), \
                      capu_last_error((rig_)->context));                                   \
    } while (0)

#endif
