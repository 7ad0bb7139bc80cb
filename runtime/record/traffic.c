/* Totals of copies and waits, see traffic.h and capuchin/report.h. */
#include "runtime/record/traffic.h"

#include "base/array.h"
#include "runtime/record/records.h"

#include <stdlib.h>
#include <string.h>

void traffic_finish(struct traffic *traffic)
{
    free(traffic->gaps);
    *traffic = (struct traffic){0};
}

void traffic_out(struct records *records, struct tensor *tensor)
{
    records->traffic.totals.out_bytes += tensor->span_bytes;
    records->traffic.totals.out_count++;
    tensor->out_bytes += tensor->span_bytes;
    TRACKER_ADD(records, evicted_bytes, tensor->span_bytes);
}

void traffic_back(struct records *records, struct tensor *tensor)
{
    records->traffic.totals.back_bytes += tensor->span_bytes;
    records->traffic.totals.back_count++;
    tensor->back_bytes += tensor->span_bytes;
    TRACKER_ADD(records, prefetch_count, 1);
    TRACKER_ADD(records, prefetched_bytes, tensor->span_bytes);
}

void traffic_dropped(struct records *records, const struct tensor *tensor, uint32_t method)
{
    capu_traffic *totals = &records->traffic.totals;

    *(method == CAPU_METHOD_CLEAN   ? &totals->clean_bytes
      : method == CAPU_METHOD_EMPTY ? &totals->empty_bytes
                                    : &totals->discarded_bytes) += tensor->span_bytes;
    TRACKER_ADD(records, dropped_bytes, tensor->span_bytes);
}

void traffic_host_waited(struct records *records, uint64_t begin_ns)
{
    uint64_t ns = device_now_ns(records->lanes->device) - begin_ns;

    records->traffic.totals.host_wait_ns += ns;
    records->traffic.has_waited = true;
    TRACKER_ADD(records, host_wait_ns, ns);
}

void traffic_wait_begin(struct records *records)
{
    struct traffic *traffic = &records->traffic;

    if (records->settings->is_paging && !records->iteration->is_open &&
        traffic->from.lane == NULL &&
        lane_mark(&records->lanes->compute, &traffic->from) != CAPU_OK) {
        traffic->from.lane = NULL;
    }
}

void traffic_wait_end(struct records *records, struct lane_position start)
{
    struct traffic *traffic = &records->traffic;
    struct traffic_gap gap = {.from = traffic->from, .to = start};

    traffic_settle(records);
    if (traffic->has_waited && array_reserve(&traffic->gaps, &traffic->gap_capacity,
                                             traffic->gap_count + 1, sizeof(traffic->gaps[0]))) {
        traffic->gaps[traffic->gap_count++] = gap;
    }
}

void traffic_settle(struct records *records)
{
    struct traffic *traffic = &records->traffic;
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
