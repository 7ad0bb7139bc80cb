/* Timing copies, see links.h. */
#include "runtime/links.h"

#include "runtime/failure.h"
#include "runtime/internal.h"

#include <stdlib.h>

/* Large enough that a copy's fixed cost does not show, small enough to take milliseconds. */
#define PROBE_BYTES ((uint64_t)8 << 20)

enum { ROUNDS = 3 };

struct probe {
    uint64_t bytes; /* of each direction */
    size_t page_count;
    device_page *pages;
    unsigned char *device;
    unsigned char *host;
};

/* Copies `bytes` both ways at once; *ns is how long both took. */
static capu_status copy_both(capu_context *context, const struct probe *probe, uint64_t bytes,
                             uint64_t *ns)
{
    uint64_t start = device_now_ns(context->device);
    capu_status status =
        device_copy_out(context->device, context->d2h.stream, probe->host, probe->device, bytes);

    if (status == CAPU_OK) {
        status = device_copy_in(context->device, context->h2d.stream, probe->device + probe->bytes,
                                probe->host + probe->bytes, bytes);
    }
    if (status == CAPU_OK) {
        status = lane_synchronize(&context->d2h);
    }
    if (status == CAPU_OK) {
        status = lane_synchronize(&context->h2d);
    }
    *ns = device_now_ns(context->device) - start;
    return status;
}

/* The best of a few rounds: what disturbs only ever makes it slower. */
static capu_status time_both(capu_context *context, const struct probe *probe, uint64_t bytes,
                             uint64_t *best)
{
    capu_status status = CAPU_OK;

    *best = UINT64_MAX;
    for (int i = 0; i < ROUNDS && status == CAPU_OK; i++) {
        uint64_t ns;

        status = copy_both(context, probe, bytes, &ns);
        *best = ns < *best ? ns : *best;
    }
    return status;
}

static capu_status measure(capu_context *context, const struct probe *probe, struct links *links)
{
    uint64_t small;
    uint64_t large;
    capu_status status = time_both(context, probe, 64, &small);

    if (status == CAPU_OK) {
        status = time_both(context, probe, probe->bytes, &large);
    }
    if (status == CAPU_OK) {
        uint64_t ns = large > small ? large - small : 1;
        double rate = (double)probe->bytes * 1e9 / (double)ns;

        rate = rate < (double)TRACE_RATE_MIN ? (double)TRACE_RATE_MIN : rate;
        rate = rate > (double)TRACE_RATE_MAX ? (double)TRACE_RATE_MAX : rate;
        *links = (struct links){(uint64_t)rate, (uint64_t)rate, small};
    }
    return status;
}

static capu_status with_device_memory(capu_context *context, struct probe *probe,
                                      struct links *links)
{
    void *host;
    void *device;
    capu_status unmapped;
    capu_status status = pages_take(context->pages, probe->page_count, probe->pages);

    if (status != CAPU_OK) {
        return status;
    }
    status = ranges_take(context->ranges, probe->page_count, &device);
    if (status != CAPU_OK) {
        goto give_pages;
    }
    status = device_map(context->device, device, probe->pages, probe->page_count);
    if (status != CAPU_OK) {
        goto give_range;
    }
    status = device_host_alloc(context->device, 2 * probe->bytes, &host);
    if (status != CAPU_OK) {
        goto unmap;
    }
    probe->device = device;
    probe->host = host;
    status = measure(context, probe, links);
    failure_quiesce(context, &context->d2h);
    failure_quiesce(context, &context->h2d);
    device_host_free(context->device, host, 2 * probe->bytes);
unmap:
    unmapped = device_unmap(context->device, device, probe->page_count);
    if (unmapped != CAPU_OK) {
        /* Pages that are still mapped are nobody's: they go with the device, as the context is not
           made. */
        return status != CAPU_OK ? status : unmapped;
    }
give_range:
    ranges_give(context->ranges, device, probe->page_count, false);
give_pages:
    pages_give(context->pages, probe->pages, probe->page_count);
    return status;
}

capu_status links_measure(capu_context *context, struct links *links)
{
    const struct device_link *known = &context->device->capabilities.link;
    struct probe probe = {.bytes = PROBE_BYTES};
    uint64_t page_bytes = pages_bytes_each(context->pages);
    uint64_t room; /* whole pages of the budget */
    capu_status status;

    *links = (struct links){known->d2h_bytes_per_s, known->h2d_bytes_per_s, known->copy_latency_ns};
    if (known->d2h_bytes_per_s != 0 && known->h2d_bytes_per_s != 0) {
        return CAPU_OK;
    }
    room = context->config.budget_bytes - context->config.budget_bytes % page_bytes;
    if (probe.bytes > room / 2) {
        probe.bytes = room / 2;
    }
    probe.bytes -= probe.bytes % 64;
    probe.page_count = (size_t)((2 * probe.bytes + page_bytes - 1) / page_bytes);
    probe.pages = calloc(probe.page_count + 1, sizeof(*probe.pages));
    if (probe.pages == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = with_device_memory(context, &probe, links);
    free(probe.pages);
    return failure_check(context, status, "measuring the links between device and host");
}
