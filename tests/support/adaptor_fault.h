/*
 * A device that fails on purpose: the n-th call of a slot, or of any, or one call in so many from a
 * seed; once or from then on; at the call, or in flight. Any thread.
 */
#ifndef CAPU_TESTS_SUPPORT_ADAPTOR_FAULT_H
#define CAPU_TESTS_SUPPORT_ADAPTOR_FAULT_H

#include "tests/support/adaptor.h"

#define ADAPTOR_ANY_SLOT ADAPTOR_SLOT_COUNT

/* Which calls fail, of those that return a status. All zero: none. */
struct adaptor_fault_plan {
    enum adaptor_slot slot; /* or ADAPTOR_ANY_SLOT */
    uint64_t call;          /* this call, counted from 1 since arming; 0: at random */
    uint32_t one_in;        /* at random: one call in this many; 0: none */
    uint64_t seed;
    capu_status status; /* what the call returns */
    bool is_lasting;    /* all later ones fail too */
    /* Only for copies, fills and runs, on host and sim: work that is enqueued before the call's own
       fails when the stream reaches it (on sim at once), and the device with it. The call returns
       OK, or the failure if the stream was faster. On host `status` appears in the failure's text.
     */
    bool in_flight;
};

/* Takes `inner`. Nothing fails until it is armed. NO_HOST_MEMORY. */
capu_status adaptor_fault_create(struct device *inner, struct device **device);

/* Starts counting. NULL: no call fails any more. */
void adaptor_fault_arm(struct device *device, const struct adaptor_fault_plan *plan);

/* Calls counted and failed since arming. A sweep is complete when no call failed. */
uint64_t adaptor_fault_calls(struct device *device);
uint64_t adaptor_fault_hits(struct device *device);

#endif
