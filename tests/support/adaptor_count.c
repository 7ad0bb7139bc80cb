/* Counts calls: see adaptor_count.h. */
#include "tests/support/adaptor_count.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct count {
    pthread_mutex_t lock; /* guards the rest */
    struct adaptor_counts counts;
};

static void add(uint64_t *now, uint64_t *peak, uint64_t amount)
{
    *now += amount;
    if (*peak < *now) {
        *peak = *now;
    }
}

static void follow_state(struct adaptor_counts *counts, const struct adaptor_call *call)
{
    switch (call->slot) {
    case ADAPTOR_PAGE_CREATE:
        add(&counts->pages, &counts->pages_peak, 1);
        break;
    case ADAPTOR_PAGE_DESTROY:
        counts->pages--;
        break;
    case ADAPTOR_MAP:
        add(&counts->mapped_bytes, &counts->mapped_bytes_peak, call->bytes);
        break;
    case ADAPTOR_UNMAP:
        counts->mapped_bytes -= call->bytes;
        break;
    case ADAPTOR_HOST_ALLOC:
        add(&counts->host_bytes, &counts->host_bytes_peak, call->bytes);
        break;
    case ADAPTOR_HOST_FREE:
        counts->host_bytes -= call->bytes;
        break;
    default:
        break;
    }
}

static void after(void *state, struct device *inner, const struct adaptor_call *call,
                  capu_status status)
{
    struct count *count = state;

    (void)inner;
    pthread_mutex_lock(&count->lock);
    count->counts.slots[call->slot].calls++;
    if (status == CAPU_OK) {
        count->counts.slots[call->slot].bytes += call->bytes;
        follow_state(&count->counts, call);
    } else if (status != CAPU_NOT_READY) {
        count->counts.slots[call->slot].failures++;
    }
    pthread_mutex_unlock(&count->lock);
}

static void destroy(void *state)
{
    struct count *count = state;

    pthread_mutex_destroy(&count->lock);
    free(count);
}

static const struct adaptor_hooks hooks = {NULL, after, destroy};

capu_status adaptor_count_create(struct device *inner, struct device **device)
{
    struct count *count = calloc(1, sizeof(*count));
    capu_status status;

    if (count == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    pthread_mutex_init(&count->lock, NULL);
    status = adaptor_create(inner, true, &hooks, count, device);
    if (status != CAPU_OK) {
        destroy(count);
    }
    return status;
}

void adaptor_count_read(struct device *device, struct adaptor_counts *counts)
{
    struct count *count = adaptor_state(device, &hooks);

    memset(counts, 0, sizeof(*counts));
    if (count != NULL) {
        pthread_mutex_lock(&count->lock);
        *counts = count->counts;
        pthread_mutex_unlock(&count->lock);
    }
}

void adaptor_count_reset(struct device *device)
{
    struct count *count = adaptor_state(device, &hooks);

    if (count != NULL) {
        pthread_mutex_lock(&count->lock);
        memset(count->counts.slots, 0, sizeof(count->counts.slots));
        count->counts.pages_peak = count->counts.pages;
        count->counts.mapped_bytes_peak = count->counts.mapped_bytes;
        count->counts.host_bytes_peak = count->counts.host_bytes;
        pthread_mutex_unlock(&count->lock);
    }
}
