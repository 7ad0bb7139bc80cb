/* Injects faults: see adaptor_fault.h. */
#include "tests/support/adaptor_fault.h"

#include "base/random.h"

#include <pthread.h>
#include <stdlib.h>

struct fault {
    pthread_mutex_t lock; /* guards the rest */
    struct adaptor_fault_plan plan;
    bool is_armed;
    uint64_t random;
    uint64_t calls;
    uint64_t hits;
};

static bool answers_nothing(enum adaptor_slot slot)
{
    return slot == ADAPTOR_PAGE_DESTROY || slot == ADAPTOR_RANGE_RELEASE ||
           slot == ADAPTOR_HOST_FREE || slot == ADAPTOR_STREAM_DESTROY ||
           slot == ADAPTOR_EVENT_DESTROY;
}

static bool is_work(enum adaptor_slot slot)
{
    return slot == ADAPTOR_COPY_OUT || slot == ADAPTOR_COPY_IN || slot == ADAPTOR_COPY_WITHIN ||
           slot == ADAPTOR_FILL || slot == ADAPTOR_RUN;
}

static bool is_counted(const struct fault *fault, enum adaptor_slot slot)
{
    if (!fault->is_armed || answers_nothing(slot) || (fault->plan.in_flight && !is_work(slot))) {
        return false;
    }
    return fault->plan.slot == ADAPTOR_ANY_SLOT || fault->plan.slot == slot;
}

/* Counts the call and returns whether it is to fail. The lock is held. */
static bool is_hit(struct fault *fault)
{
    bool is_due;

    fault->calls++;
    if (fault->plan.is_lasting && fault->hits > 0) {
        is_due = true;
    } else if (fault->plan.call > 0) {
        is_due = fault->calls == fault->plan.call;
    } else {
        is_due = fault->plan.one_in > 0 && random_next(&fault->random) % fault->plan.one_in == 0;
    }
    fault->hits += is_due ? 1 : 0;
    return is_due;
}

/* The pointer itself holds the status. */
static capu_status fail_now(capu_stream stream, const void *arguments)
{
    (void)stream;
    return (capu_status)(intptr_t)arguments;
}

static capu_status before(void *state, struct device *inner, const struct adaptor_call *call)
{
    struct fault *fault = state;
    struct adaptor_fault_plan plan;
    bool fails = false;

    pthread_mutex_lock(&fault->lock);
    plan = fault->plan;
    if (is_counted(fault, call->slot)) {
        fails = is_hit(fault);
    }
    pthread_mutex_unlock(&fault->lock);

    if (fails && plan.in_flight) {
        const struct device_work work = {
            .name = "injected fault",
            .run = fail_now,
            .arguments = (const void *)(intptr_t)plan.status,
        };

        (void)device_run(inner, call->stream, &work);
        return CAPU_OK;
    }
    return fails ? plan.status : CAPU_OK;
}

/* On sim the device fails after the call, since the call itself is to succeed. */
static void after(void *state, struct device *inner, const struct adaptor_call *call,
                  capu_status status)
{
    struct fault *fault = state;
    bool fails;

    (void)status;
    if (!inner->capabilities.is_simulated || !is_work(call->slot)) {
        return;
    }
    pthread_mutex_lock(&fault->lock);
    fails = fault->is_armed && fault->plan.in_flight && fault->hits > 0;
    pthread_mutex_unlock(&fault->lock);
    if (fails) {
        (void)sim_device_fail(inner, "injected fault");
    }
}

static void destroy(void *state)
{
    struct fault *fault = state;

    pthread_mutex_destroy(&fault->lock);
    free(fault);
}

static const struct adaptor_hooks hooks = {before, after, destroy};

capu_status adaptor_fault_create(struct device *inner, struct device **device)
{
    struct fault *fault = calloc(1, sizeof(*fault));
    capu_status status;

    if (fault == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    pthread_mutex_init(&fault->lock, NULL);
    status = adaptor_create(inner, true, &hooks, fault, device);
    if (status != CAPU_OK) {
        destroy(fault);
    }
    return status;
}

void adaptor_fault_arm(struct device *device, const struct adaptor_fault_plan *plan)
{
    struct fault *fault = adaptor_state(device, &hooks);

    if (fault == NULL) {
        return;
    }
    pthread_mutex_lock(&fault->lock);
    fault->is_armed = plan != NULL;
    if (plan != NULL) {
        fault->plan = *plan;
        fault->random = plan->seed;
        fault->calls = 0;
        fault->hits = 0;
    }
    pthread_mutex_unlock(&fault->lock);
}

uint64_t adaptor_fault_calls(struct device *device)
{
    struct fault *fault = adaptor_state(device, &hooks);
    uint64_t calls = 0;

    if (fault != NULL) {
        pthread_mutex_lock(&fault->lock);
        calls = fault->calls;
        pthread_mutex_unlock(&fault->lock);
    }
    return calls;
}

uint64_t adaptor_fault_hits(struct device *device)
{
    struct fault *fault = adaptor_state(device, &hooks);
    uint64_t hits = 0;

    if (fault != NULL) {
        pthread_mutex_lock(&fault->lock);
        hits = fault->hits;
        pthread_mutex_unlock(&fault->lock);
    }
    return hits;
}
