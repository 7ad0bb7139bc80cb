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

/* Timing a plan's copies. */

enum { FIRST_CAPACITY = 64 };

void copy_times_finish(struct records *records)
{
    for (size_t way = 0; way < COPY_WAYS; way++) {
        struct copy_time *times = records->copy_times.ways[way].times;

        for (size_t i = 0; i < records->copy_times.ways[way].capacity; i++) {
            device_event_destroy(records->lanes->device, times[i].begin);
            device_event_destroy(records->lanes->device, times[i].end);
        }
        free(times);
    }
    records->copy_times = (struct copy_times){0};
}

static struct copy_time *time_at(struct copy_times *copies, enum copy_way way, size_t index)
{
    return &copies->ways[way]
                .times[(copies->ways[way].first + index) & (copies->ways[way].capacity - 1)];
}

/* Twice as many, the oldest first. */
static bool grow(struct copy_times *copies, enum copy_way way)
{
    size_t capacity = copies->ways[way].capacity;
    size_t wanted = capacity == 0 ? FIRST_CAPACITY : 2 * capacity;
    struct copy_time *times = calloc(wanted, sizeof(*times));

    if (times == NULL) {
        return false;
    }
    for (size_t i = 0; i < capacity; i++) {
        times[i] = *time_at(copies, way, i);
    }
    free(copies->ways[way].times);
    copies->ways[way].times = times;
    copies->ways[way].capacity = wanted;
    copies->ways[way].first = 0;
    return true;
}

static bool mark(struct records *records, enum copy_way way, struct device_event **event)
{
    const struct lane *lane = way == COPY_OUT ? &records->lanes->d2h : &records->lanes->h2d;

    return (*event != NULL ||
            device_event_create(records->lanes->device, true, event) == CAPU_OK) &&
           device_event_record(records->lanes->device, *event, lane->stream) == CAPU_OK;
}

void copy_times_begin(struct records *records, enum copy_way way, uint64_t bytes)
{
    struct copy_times *copies = &records->copy_times;
    const struct record *record = records->tracker.open;
    struct copy_time *time;

    copies->ways[way].is_open = false;
    if (record == NULL || !record->is_timed || records->guided->active == NULL ||
        (copies->ways[way].count == copies->ways[way].capacity && !grow(copies, way))) {
        return;
    }
    time = time_at(copies, way, copies->ways[way].count);
    time->bytes = bytes;
    copies->ways[way].is_open = mark(records, way, &time->begin);
}

void copy_times_end(struct records *records, enum copy_way way)
{
    struct copy_times *copies = &records->copy_times;

    if (copies->ways[way].is_open &&
        mark(records, way, &time_at(copies, way, copies->ways[way].count)->end)) {
        copies->ways[way].count++;
    }
    copies->ways[way].is_open = false;
}

/* The oldest copy that was not read yet, if it has ended. */
static bool read_oldest(struct records *records, enum copy_way way, struct copy_sums *sums)
{
    struct copy_times *copies = &records->copy_times;
    const struct copy_time *time = time_at(copies, way, 0);
    uint64_t ns = 0;

    if (copies->ways[way].count == 0 ||
        device_event_query(records->lanes->device, time->end) != CAPU_OK) {
        return false;
    }
    if (device_event_elapsed(records->lanes->device, time->begin, time->end, &ns) == CAPU_OK) {
        sums->count++;
        sums->bytes += time->bytes;
        sums->ns += ns;
    }
    copies->ways[way].first = (copies->ways[way].first + 1) & (copies->ways[way].capacity - 1);
    copies->ways[way].count--;
    return true;
}

void copy_times_read(struct records *records, struct record *record)
{
    uint64_t latency_ns = records->lanes->link.copy_latency_ns;

    for (unsigned way = 0; way < COPY_WAYS; way++) {
        record->copies[way] = (struct copy_sums){0};
        while (read_oldest(records, way, &record->copies[way])) {
        }
    }
    record->report.seen_d2h_bytes_per_s = copy_sums_rate(&record->copies[COPY_OUT], latency_ns);
    record->report.seen_h2d_bytes_per_s = copy_sums_rate(&record->copies[COPY_IN], latency_ns);
}
