/*
 * An adaptor: a device that passes every call on to another one, with a hook before and after it.
 * Behaviour that cuts across devices (limits, counts, delays, faults) is an adaptor and not a flag
 * in each of them.
 *
 * Streams, events, pages and addresses are those of the inner device, passed through unchanged. An
 * adaptor may wrap an adaptor. Hooks may be called from two threads at once for host_alloc and
 * host_free, and for failure: state they change needs a lock.
 */
#ifndef CAPU_TESTS_SUPPORT_ADAPTOR_H
#define CAPU_TESTS_SUPPORT_ADAPTOR_H

#include "device/device.h"

/* X(NAME, slot): every slot that is hooked. destroy, event_tally, now_ns, failure,
   guard, close and view are only passed on. */
#define ADAPTOR_SLOTS(X)                      \
    X(PAGE_CREATE, page_create)               \
    X(PAGE_DESTROY, page_destroy)             \
    X(RANGE_RESERVE, range_reserve)           \
    X(RANGE_RELEASE, range_release)           \
    X(MAP, map)                               \
    X(UNMAP, unmap)                           \
    X(HOST_ALLOC, host_alloc)                 \
    X(HOST_FREE, host_free)                   \
    X(STREAM_CREATE, stream_create)           \
    X(STREAM_DESTROY, stream_destroy)         \
    X(STREAM_SYNCHRONIZE, stream_synchronize) \
    X(EVENT_CREATE, event_create)             \
    X(EVENT_DESTROY, event_destroy)           \
    X(EVENT_RECORD, event_record)             \
    X(EVENT_QUERY, event_query)               \
    X(EVENT_WAIT, event_wait)                 \
    X(STREAM_FOLLOW, stream_follow)           \
    X(EVENT_ELAPSED, event_elapsed)           \
    X(COPY_OUT, copy_out)                     \
    X(COPY_IN, copy_in)                       \
    X(COPY_WITHIN, copy_within)               \
    X(FILL, fill)                             \
    X(RUN, run)                               \
    X(OPEN, open)                             \
    X(CAPTURE_BEGIN, capture_begin)           \
    X(CAPTURE_END, capture_end)               \
    X(GRAPH_LAUNCH, graph_launch)

#define ADAPTOR_SLOT_ENUMERATOR(name, slot) ADAPTOR_##name,
enum adaptor_slot { ADAPTOR_SLOTS(ADAPTOR_SLOT_ENUMERATOR) ADAPTOR_SLOT_COUNT };
#undef ADAPTOR_SLOT_ENUMERATOR

/* "page_create"; a constant. */
const char *adaptor_slot_name(enum adaptor_slot slot);

/* One call, as hooks see it. What a slot does not have is 0 or NULL. */
struct adaptor_call {
    enum adaptor_slot slot;
    uint64_t bytes; /* of memory it is about */
    capu_stream stream;
    const void *to;   /* what it writes, maps, unmaps or frees */
    const void *from; /* what it reads */
    const device_page *pages;
    size_t page_count;
    struct device_event *event;
    const struct device_work *work;
    struct device_graph *const *graph; /* after CAPTURE_END: the result */
};

struct adaptor_hooks {
    /* If the result is not OK, the call is not passed on and returns it. Slots without a result are
       always passed on. May be NULL. */
    capu_status (*before)(void *state, struct device *inner, const struct adaptor_call *call);
    /* Sees the inner device's result; not called if `before` stopped the call. May be NULL. */
    void (*after)(void *state, struct device *inner, const struct adaptor_call *call,
                  capu_status status);
    /* Destroys the state, with the adaptor. May be NULL. */
    void (*destroy)(void *state);
};

/*
 * Wraps `inner`. The adaptor owns it (device_destroy goes through) if owns_inner, and takes
 * `state`. On failure nothing is taken. `hooks` is a constant. NO_HOST_MEMORY.
 */
capu_status adaptor_create(struct device *inner, bool owns_inner, const struct adaptor_hooks *hooks,
                           void *state, struct device **device);

/* The state of an adaptor that was created with these hooks; NULL if `device` is not one. */
void *adaptor_state(struct device *device, const struct adaptor_hooks *hooks);

#endif
