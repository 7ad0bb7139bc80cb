/*
 * A device that fails on purpose: the n-th call of a slot, or of any, or one call in so many from a
 * seed; once or from then on; at the call, or in flight. Any thread.
 */
#ifndef CAPU_DEVICE_ADAPTOR_FAULT_H
#define CAPU_DEVICE_ADAPTOR_FAULT_H

#include "device/adaptor.h"

#define ADAPTOR_ANY_SLOT ADAPTOR_SLOT_COUNT

/* Which calls fail, of those that answer a status. All zero: none. */
struct adaptor_fault_plan {
    enum adaptor_slot slot; /* or ADAPTOR_ANY_SLOT */
    uint64_t call;          /* this one of them, counted from 1 since arming; 0: by chance */
    uint32_t one_in;        /* by chance: one in so many; 0: none */
    uint64_t seed;
    capu_status status; /* what the call answers */
    bool is_lasting;    /* all later ones fail too */
    /* Only for copies, fills and runs, on host and sim: the work before the call's own fails when
       the stream gets there (sim: at once), and the device with it. The call answers OK, or the
       failure if the stream was faster. On host `status` is in the failure's text. */
    bool in_flight;
};

/* Takes `inner`. Nothing fails until it is armed. NO_HOST_MEMORY. */
capu_status adaptor_fault_create(struct device *inner, struct device **device);

/* Counts from here. NULL: nothing fails any more. */
void adaptor_fault_arm(struct device *device, const struct adaptor_fault_plan *plan);

/* Calls counted, and failed, since arming: a sweep is over when nothing failed. */
uint64_t adaptor_fault_calls(struct device *device);
uint64_t adaptor_fault_hits(struct device *device);

#endif
