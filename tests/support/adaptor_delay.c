/* Delays work: see adaptor_delay.h. */
#include "tests/support/adaptor_delay.h"

#include "base/random.h"
#include "tests/support/adaptor.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

struct delay {
    struct adaptor_delay_plan plan;
    uint64_t random;
};

/* The pointer itself holds the time, so that nothing has to outlive the call. */
static capu_status idle(capu_stream stream, const void *arguments)
{
    uint64_t ns = (uintptr_t)arguments;
    struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

    (void)stream;
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    return CAPU_OK;
}

static bool is_delayed(const struct delay *delay, enum adaptor_slot slot)
{
    if (delay->plan.slots != 0 && (delay->plan.slots >> slot & 1) == 0) {
        return false;
    }
    return slot == ADAPTOR_COPY_OUT || slot == ADAPTOR_COPY_IN || slot == ADAPTOR_COPY_WITHIN ||
           slot == ADAPTOR_FILL || slot == ADAPTOR_RUN || slot == ADAPTOR_EVENT_RECORD;
}

static capu_status before(void *state, struct device *inner, const struct adaptor_call *call)
{
    struct delay *delay = state;
    struct device_work work = {.name = "delay", .run = idle};

    if (!is_delayed(delay, call->slot)) {
        return CAPU_OK;
    }
    if (delay->plan.quiet > 0) {
        delay->plan.quiet--;
        return CAPU_OK;
    }
    if (delay->plan.one_in > 1 && random_next(&delay->random) % delay->plan.one_in != 0) {
        return CAPU_OK;
    }
    work.duration_ns = random_next(&delay->random) % (delay->plan.longest_ns + 1);
    work.arguments = (const void *)(uintptr_t)work.duration_ns;
    /* If the delay cannot be enqueued, the call itself will fail, too, and report it. */
    (void)device_run(inner, call->stream, &work);
    return CAPU_OK;
}

static const struct adaptor_hooks hooks = {before, NULL, free};

capu_status adaptor_delay_create(struct device *inner, const struct adaptor_delay_plan *plan,
                                 struct device **device)
{
    struct delay *delay = calloc(1, sizeof(*delay));
    capu_status status;

    if (delay == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    delay->plan = *plan;
    delay->plan.longest_ns &= UINT32_MAX;
    delay->random = plan->seed;
    status = adaptor_create(inner, true, &hooks, delay, device);
    if (status != CAPU_OK) {
        free(delay);
    }
    return status;
}
