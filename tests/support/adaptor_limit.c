/* Limits pages: see adaptor_limit.h. */
#include "tests/support/adaptor_limit.h"

#include "tests/support/adaptor.h"

#include <stdlib.h>

struct limit {
    uint64_t page_limit;
    uint64_t page_count;
    uint64_t refusals;
};

static capu_status before(void *state, struct device *inner, const struct adaptor_call *call)
{
    struct limit *limit = state;

    (void)inner;
    if (call->slot == ADAPTOR_PAGE_CREATE && limit->page_count >= limit->page_limit) {
        limit->refusals++;
        return CAPU_OVER_BUDGET;
    }
    return CAPU_OK;
}

static void after(void *state, struct device *inner, const struct adaptor_call *call,
                  capu_status status)
{
    struct limit *limit = state;

    (void)inner;
    if (call->slot == ADAPTOR_PAGE_CREATE && status == CAPU_OK) {
        limit->page_count++;
    } else if (call->slot == ADAPTOR_PAGE_DESTROY) {
        limit->page_count--;
    }
}

static const struct adaptor_hooks hooks = {before, after, free};

capu_status adaptor_limit_create(struct device *inner, uint64_t page_limit, struct device **device)
{
    struct limit *limit = calloc(1, sizeof(*limit));
    uint64_t limit_bytes;
    capu_status status;

    if (limit == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    limit->page_limit = page_limit;
    status = adaptor_create(inner, true, &hooks, limit, device);
    if (status != CAPU_OK) {
        free(limit);
        return status;
    }
    if (!__builtin_mul_overflow(page_limit, inner->capabilities.page_bytes, &limit_bytes) &&
        limit_bytes < inner->capabilities.memory_bytes) {
        (*device)->capabilities.memory_bytes = limit_bytes;
    }
    return CAPU_OK;
}

uint64_t adaptor_limit_refusals(struct device *device)
{
    const struct limit *limit = adaptor_state(device, &hooks);

    return limit == NULL ? 0 : limit->refusals;
}
