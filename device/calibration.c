/*
 * Calibration: see calibration.h.
 *
 * The first copies are not counted: an idle GPU needs a moment to raise its clocks, and host memory
 * may be touched for the first time.
 *
 * Both directions at once are not twice one direction on every machine, so they are measured and
 * not computed. The direction that ends first leaves the link to the other for the rest; that rest
 * is taken to have gone at the solo rate, which is known by then.
 */
#include "device/calibration.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_BYTES ((uint64_t)4 << 10)
enum { ROUNDS = 3, WAYS = 2 };

/* How much is copied: enough that starting a copy does not count. */
struct effort {
    uint64_t copy_bytes_max;
    unsigned warm_copies; /* not counted */
    unsigned copies;
    unsigned small_copies;
};
static const struct effort gpu_effort = {(uint64_t)32 << 20, 2, 4, 32};
/* A processor copies more slowly than a GPU and has no clocks to raise. Copies that follow a warm
   one would be timed in its caches, where tensors seldom are. */
static const struct effort host_effort = {(uint64_t)8 << 20, 0, 1, 8};

/* One way: its stream, memory at both ends, and the events around what is timed. */
struct way {
    bool is_out;
    capu_stream stream;
    char *memory; /* on the device */
    void *pinned;
    struct device_event *start;
    struct device_event *end;
    uint64_t alone_ns; /* for the effort's copies */
};

struct bench {
    struct device *device;
    const struct effort *effort;
    uint64_t memory_bytes; /* of the device, that may be used */
    uint64_t bytes;        /* of one copy */
    device_page *pages;
    size_t page_count; /* that were created */
    size_t page_limit; /* that are wanted: half of them for each way */
    void *range;
    bool is_mapped;
    struct way ways[WAYS];
};

static void close_way(const struct bench *bench, struct way *way)
{
    device_event_destroy(bench->device, way->end);
    device_event_destroy(bench->device, way->start);
    device_stream_destroy(bench->device, way->stream); /* waits for its copies */
}

/* Gives back whatever there is. Pages that cannot be unmapped stay, and go with the device. */
static capu_status close_bench(struct bench *bench)
{
    struct device *device = bench->device;
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < WAYS; i++) {
        close_way(bench, &bench->ways[i]);
    }
    for (size_t i = 0; i < WAYS; i++) {
        device_host_free(device, bench->ways[i].pinned, bench->bytes);
    }
    if (bench->is_mapped) {
        status = device_unmap(device, bench->range, bench->page_limit);
    }
    if (status == CAPU_OK) {
        device_range_release(device, bench->range,
                             bench->page_limit * device->capabilities.page_bytes);
        while (bench->page_count > 0) {
            device_page_destroy(device, bench->pages[--bench->page_count]);
        }
    }
    free(bench->pages);
    return status;
}

static capu_status open_memory(struct bench *bench)
{
    struct device *device = bench->device;
    uint64_t page_bytes = device->capabilities.page_bytes;
    uint64_t half = bench->memory_bytes / 2;
    uint64_t most = bench->effort->copy_bytes_max;
    capu_status status = CAPU_OK;

    /* As many pages as the device has and the bench wants; half of one for each way, if it has no
       two. */
    bench->page_limit = (size_t)((half < most ? half : most) / page_bytes) * 2;
    if (bench->page_limit == 0) {
        bench->page_limit = 1;
    }
    bench->bytes = bench->page_limit * page_bytes / WAYS;
    bench->pages = calloc(bench->page_limit, sizeof(*bench->pages));
    if (bench->pages == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    while (status == CAPU_OK && bench->page_count < bench->page_limit) {
        status = device_page_create(device, &bench->pages[bench->page_count]);
        bench->page_count += status == CAPU_OK ? 1 : 0;
    }
    if (status == CAPU_OK) {
        status = device_range_reserve(device, bench->page_limit * page_bytes, &bench->range);
    }
    if (status == CAPU_OK) {
        status = device_map(device, bench->range, bench->pages, bench->page_limit);
        bench->is_mapped = status == CAPU_OK;
    }
    return status;
}

static capu_status open_way(struct bench *bench, size_t index)
{
    struct device *device = bench->device;
    struct way *way = &bench->ways[index];
    capu_status status = device_host_alloc(device, bench->bytes, &way->pinned);

    way->is_out = index == 0;
    way->memory = (char *)bench->range + index * bench->bytes;
    if (status == CAPU_OK) {
        status = device_stream_create(device, way->is_out ? DEVICE_D2H : DEVICE_H2D, &way->stream);
    }
    if (status == CAPU_OK) {
        status = device_event_create(device, true, &way->start);
    }
    if (status == CAPU_OK) {
        status = device_event_create(device, true, &way->end);
    }
    return status;
}

static capu_status copy_repeatedly(const struct bench *bench, const struct way *way, uint64_t bytes,
                                   unsigned count)
{
    capu_status status = CAPU_OK;

    for (unsigned i = 0; i < count && status == CAPU_OK; i++) {
        status = way->is_out
                     ? device_copy_out(bench->device, way->stream, way->pinned, way->memory, bytes)
                     : device_copy_in(bench->device, way->stream, way->memory, way->pinned, bytes);
    }
    return status;
}

/* Enqueues copies with an event on either side. */
static capu_status enqueue_timed(const struct bench *bench, const struct way *way, uint64_t bytes,
                                 unsigned count)
{
    capu_status status = device_event_record(bench->device, way->start, way->stream);

    if (status == CAPU_OK) {
        status = copy_repeatedly(bench, way, bytes, count);
    }
    return status == CAPU_OK ? device_event_record(bench->device, way->end, way->stream) : status;
}

static capu_status time_of(const struct bench *bench, const struct way *way, uint64_t *ns)
{
    capu_status status = device_event_wait(bench->device, way->end);

    if (status == CAPU_OK) {
        status = device_event_elapsed(bench->device, way->start, way->end, ns);
    }
    if (status == CAPU_OK && *ns == 0) {
        *ns = 1; /* below what the clock can tell */
    }
    return status;
}

static capu_status time_alone(const struct bench *bench, const struct way *way, uint64_t bytes,
                              unsigned count, uint64_t *ns)
{
    capu_status status = copy_repeatedly(bench, way, bytes, bench->effort->warm_copies);
    uint64_t least = UINT64_MAX;

    for (int round = 0; round < ROUNDS && status == CAPU_OK; round++) {
        status = enqueue_timed(bench, way, bytes, count);
        if (status == CAPU_OK) {
            status = time_of(bench, way, ns);
        }
        least = status == CAPU_OK && *ns < least ? *ns : least;
    }
    *ns = least;
    return status;
}

/* Both ways from the same moment on: the second stream follows the event that opens the first. */
static capu_status time_both_once(const struct bench *bench, uint64_t ns[WAYS])
{
    const struct way *ways = bench->ways;
    capu_status status = copy_repeatedly(bench, &ways[0], bench->bytes, bench->effort->warm_copies);

    if (status == CAPU_OK) {
        status = enqueue_timed(bench, &ways[0], bench->bytes, bench->effort->copies);
    }
    if (status == CAPU_OK) {
        status = device_stream_follow(bench->device, ways[1].stream, ways[0].start);
    }
    if (status == CAPU_OK) {
        status = enqueue_timed(bench, &ways[1], bench->bytes, bench->effort->copies);
    }
    for (size_t i = 0; i < WAYS && status == CAPU_OK; i++) {
        status = time_of(bench, &ways[i], &ns[i]);
    }
    return status;
}

/* The round that was the shortest for both together: its two times belong to each other. */
static capu_status time_both(const struct bench *bench, uint64_t ns[WAYS])
{
    capu_status status = CAPU_OK;

    for (int round = 0; round < ROUNDS && status == CAPU_OK; round++) {
        uint64_t now[WAYS] = {0};

        status = time_both_once(bench, now);
        if (status == CAPU_OK && (round == 0 || now[0] + now[1] < ns[0] + ns[1])) {
            memcpy(ns, now, sizeof(now));
        }
    }
    return status;
}

static uint64_t rate(double bytes, double ns)
{
    double per_s = bytes * 1e9 / ns;

    return per_s < 1 ? 1 : (uint64_t)per_s;
}

/* The rate of a way while the other was busy, too, for `other_ns` of its `ns`. */
static uint64_t rate_beside(double bytes, double ns, double other_ns, double alone_ns)
{
    double beside = bytes - (ns - other_ns) * bytes / alone_ns;

    if (ns <= other_ns || beside <= 0) {
        return rate(bytes, ns);
    }
    return rate(beside, other_ns);
}

/* Takes all the times; the bench is open. */
static capu_status time_all(struct bench *bench, uint64_t both_ns[WAYS], uint64_t *small_ns)
{
    struct way *ways = bench->ways;
    uint64_t small_bytes = bench->bytes < SMALL_BYTES ? bench->bytes : SMALL_BYTES;
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < WAYS && status == CAPU_OK; i++) {
        status =
            time_alone(bench, &ways[i], bench->bytes, bench->effort->copies, &ways[i].alone_ns);
    }
    if (status == CAPU_OK) {
        status = time_alone(bench, &ways[0], small_bytes, bench->effort->small_copies, small_ns);
    }
    return status == CAPU_OK ? time_both(bench, both_ns) : status;
}

static capu_status measure_link(struct bench *bench, struct device_link *found)
{
    const struct way *ways = bench->ways;
    uint64_t both_ns[WAYS] = {0};
    uint64_t small_ns = 0;
    double bytes;
    capu_status status = open_memory(bench);

    for (size_t i = 0; i < WAYS && status == CAPU_OK; i++) {
        status = open_way(bench, i);
    }
    if (status == CAPU_OK) {
        status = time_all(bench, both_ns, &small_ns);
    }
    if (status != CAPU_OK) {
        return status;
    }
    bytes = (double)bench->bytes * bench->effort->copies;
    found->d2h_bytes_per_s = rate(bytes, (double)ways[0].alone_ns);
    found->h2d_bytes_per_s = rate(bytes, (double)ways[1].alone_ns);
    found->d2h_duplex_bytes_per_s =
        rate_beside(bytes, (double)both_ns[0], (double)both_ns[1], (double)ways[0].alone_ns);
    found->h2d_duplex_bytes_per_s =
        rate_beside(bytes, (double)both_ns[1], (double)both_ns[0], (double)ways[1].alone_ns);
    found->copy_latency_ns = small_ns / bench->effort->small_copies;
    return CAPU_OK;
}

static void fill_in(uint64_t *known, uint64_t found)
{
    if (*known == 0) {
        *known = found;
    }
}

capu_status calibration_complete(struct device *device, uint64_t memory_bytes,
                                 struct device_link *link)
{
    struct device_link found = {0};
    struct bench bench = {
        .device = device,
        .effort = device->capabilities.runs_on_stream ? &host_effort : &gpu_effort,
        .memory_bytes = memory_bytes,
    };
    capu_status status;
    capu_status closed;

    if (link->d2h_bytes_per_s != 0 && link->h2d_bytes_per_s != 0) {
        return CAPU_OK;
    }
    status = measure_link(&bench, &found);
    closed = close_bench(&bench);
    status = status == CAPU_OK ? closed : status;
    if (status != CAPU_OK) {
        return status;
    }
    fill_in(&link->d2h_bytes_per_s, found.d2h_bytes_per_s);
    fill_in(&link->h2d_bytes_per_s, found.h2d_bytes_per_s);
    fill_in(&link->d2h_duplex_bytes_per_s, found.d2h_duplex_bytes_per_s);
    fill_in(&link->h2d_duplex_bytes_per_s, found.h2d_duplex_bytes_per_s);
    fill_in(&link->copy_latency_ns, found.copy_latency_ns);
    return CAPU_OK;
}
