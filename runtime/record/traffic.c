/* Totals of copies and waits, see traffic.h and capuchin/report.h. */
#include "runtime/record/traffic.h"

#include "base/array.h"
#include "runtime/context/internal.h"

#include <stdlib.h>
#include <string.h>

void traffic_finish(struct traffic *traffic)
{
    free(traffic->gaps);
    *traffic = (struct traffic){0};
}

void traffic_out(capu_context *context, struct tensor *tensor)
{
    context->records.traffic.totals.out_bytes += tensor->span_bytes;
    context->records.traffic.totals.out_count++;
    tensor->out_bytes += tensor->span_bytes;
    TRACKER_ADD(context, evicted_bytes, tensor->span_bytes);
}

void traffic_back(capu_context *context, struct tensor *tensor)
{
    context->records.traffic.totals.back_bytes += tensor->span_bytes;
    context->records.traffic.totals.back_count++;
    tensor->back_bytes += tensor->span_bytes;
    TRACKER_ADD(context, prefetch_count, 1);
    TRACKER_ADD(context, prefetched_bytes, tensor->span_bytes);
}

void traffic_dropped(capu_context *context, const struct tensor *tensor, uint32_t method)
{
    capu_traffic *totals = &context->records.traffic.totals;

    *(method == CAPU_METHOD_CLEAN   ? &totals->clean_bytes
      : method == CAPU_METHOD_EMPTY ? &totals->empty_bytes
                                    : &totals->discarded_bytes) += tensor->span_bytes;
    TRACKER_ADD(context, dropped_bytes, tensor->span_bytes);
}

void traffic_host_waited(capu_context *context, uint64_t begin_ns)
{
    uint64_t ns = device_now_ns(context->lanes.device) - begin_ns;

    context->records.traffic.totals.host_wait_ns += ns;
    TRACKER_ADD(context, host_wait_ns, ns);
}

void traffic_wait_begin(capu_context *context)
{
    struct traffic *traffic = &context->records.traffic;

    if (context->settings.is_paging && !context->iteration.is_open && traffic->from.lane == NULL &&
        lane_mark(&context->lanes.compute, &traffic->from) != CAPU_OK) {
        traffic->from.lane = NULL;
    }
}

void traffic_wait_end(capu_context *context)
{
    struct traffic *traffic = &context->records.traffic;
    struct traffic_gap gap = {.from = traffic->from, .to = context->operands.start};

    traffic_settle(context);
    if (context->operands.has_waited &&
        array_reserve(&traffic->gaps, &traffic->gap_capacity, traffic->gap_count + 1,
                      sizeof(traffic->gaps[0]))) {
        traffic->gaps[traffic->gap_count++] = gap;
    }
}

void traffic_settle(capu_context *context)
{
    struct traffic *traffic = &context->records.traffic;
    size_t done = 0;

    while (done < traffic->gap_count && lane_has_passed(traffic->gaps[done].to)) {
        const struct traffic_gap *gap = &traffic->gaps[done++];
        uint64_t ns;

        if (gap->from.sequence > gap->from.lane->retired &&
            lane_elapsed_ns(gap->from, gap->to, &ns) == CAPU_OK) {
            traffic->totals.stall_ns += ns;
        }
    }
    if (done == 0) {
        return;
    }
    traffic->gap_count -= done;
    memmove(traffic->gaps, traffic->gaps + done, traffic->gap_count * sizeof(traffic->gaps[0]));
}
