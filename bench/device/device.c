/*
 * The cost of the calls of a device: pages, mappings, events, copies, pinned memory; and its link.
 *
 *     bench_device [-j] [host | cuda]
 *
 * Without a name it uses cuda if there is a GPU, otherwise host. A row is the median over rounds,
 * in nanoseconds per call. Mapped memory is filled and read back before a time is printed. -j:
 * JSON, one line per row.
 */
#include "device/device.h"
#include "tools/output/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 21
#define MOST_PAGES 512
#define CALLS 200 /* per measurement of calls that are too short to be timed alone */
#define PINNED_BYTES ((uint64_t)256 << 20)

struct bench {
    struct device *device;
    bool is_json;
    uint64_t page_bytes;
    device_page pages[MOST_PAGES];
    size_t page_count;
    char *range;
    capu_stream stream;
    struct device_event *event;
    struct device_event *timed;
    char *pinned; /* of one page */
};

static int by_value(const void *one, const void *other)
{
    const uint64_t *first = one;
    const uint64_t *second = other;

    return (*first > *second) - (*first < *second);
}

static void print(const struct bench *bench, const char *name, uint64_t count, uint64_t *ns)
{
    qsort(ns, ROUNDS, sizeof(*ns), by_value);
    progress_clear();
    if (bench->is_json) {
        printf("{\"device\":\"%s\",\"call\":\"%s\",\"count\":%" PRIu64 ",\"median_ns\":%" PRIu64
               ",\"least_ns\":%" PRIu64 "}\n",
               bench->device->capabilities.name, name, count, ns[ROUNDS / 2], ns[0]);
    } else {
        printf("%-24s %8" PRIu64 " %12" PRIu64 " %12" PRIu64 "\n", name, count, ns[ROUNDS / 2],
               ns[0]);
    }
}

/* Ends the program if a call of the device fails. */
static void check(capu_status status, const char *what)
{
    if (status != CAPU_OK) {
        fprintf(stderr, "bench_device: %s: status %d\n", what, (int)status);
        exit(EXIT_FAILURE);
    }
}

static void create_pages(struct bench *bench)
{
    uint64_t ns[ROUNDS];

    for (size_t round = 0; round < ROUNDS; round++) {
        size_t first = bench->page_count;
        uint64_t start = device_now_ns(bench->device);

        while (bench->page_count < (round + 1) * MOST_PAGES / ROUNDS) {
            check(device_page_create(bench->device, &bench->pages[bench->page_count]), "page");
            bench->page_count++;
        }
        ns[round] = (device_now_ns(bench->device) - start) / (bench->page_count - first);
    }
    print(bench, "page_create", 1, ns);
}

/* Checks that the whole range can be written and read. */
static bool holds(struct bench *bench, size_t count, unsigned char byte)
{
    struct device *device = bench->device;

    check(device_fill(device, bench->stream, bench->range, byte, count * bench->page_bytes),
          "fill");
    for (size_t i = 0; i<count; i += count> 1 ? count - 1 : 1) {
        const char *at = bench->range + i * bench->page_bytes;

        memset(bench->pinned, ~byte, bench->page_bytes);
        check(device_copy_out(device, bench->stream, bench->pinned, at, bench->page_bytes), "copy");
        check(device_stream_synchronize(device, bench->stream), "synchronize");
        for (uint64_t offset = 0; offset < bench->page_bytes; offset++) {
            if ((unsigned char)bench->pinned[offset] != byte) {
                return false;
            }
        }
    }
    return true;
}

/* Maps `count` pages in one call and unmaps them in one; `is_alias`: maps the same page everywhere.
 */
static void map(struct bench *bench, size_t count, bool is_alias)
{
    device_page same[MOST_PAGES];
    const device_page *pages = is_alias ? same : bench->pages;
    uint64_t map_ns[ROUNDS];
    uint64_t unmap_ns[ROUNDS];

    for (size_t i = 0; i < count; i++) {
        same[i] = bench->pages[0];
    }
    for (size_t round = 0; round < ROUNDS; round++) {
        uint64_t start = device_now_ns(bench->device);
        uint64_t mapped;

        check(device_map(bench->device, bench->range, pages, count), "map");
        mapped = device_now_ns(bench->device);
        map_ns[round] = mapped - start;
        if (!holds(bench, count, (unsigned char)(round + 1))) {
            fprintf(stderr, "bench_device: %zu mapped pages have wrong contents\n", count);
            exit(EXIT_FAILURE);
        }
        start = device_now_ns(bench->device);
        check(device_unmap(bench->device, bench->range, count), "unmap");
        unmap_ns[round] = device_now_ns(bench->device) - start;
    }
    print(bench, is_alias ? "map one page often" : "map", count, map_ns);
    print(bench, is_alias ? "unmap one page" : "unmap", count, unmap_ns);
}

enum short_call { RECORD, RECORD_TIMED, QUERY, FOLLOW, COPY_OUT, COPY_IN, SHORT_CALLS };

static capu_status call_once(struct bench *bench, enum short_call call)
{
    struct device *device = bench->device;
    const uint64_t bytes = 4096;

    switch (call) {
    case RECORD:
        return device_event_record(device, bench->event, bench->stream);
    case RECORD_TIMED:
        return device_event_record(device, bench->timed, bench->stream);
    case QUERY:
        return device_event_query(device, bench->event);
    case FOLLOW:
        return device_stream_follow(device, bench->stream, bench->event);
    case COPY_OUT:
        return device_copy_out(device, bench->stream, bench->pinned, bench->range, bytes);
    default:
        return device_copy_in(device, bench->stream, bench->range, bench->pinned, bytes);
    }
}

static void time_short_calls(struct bench *bench)
{
    static const char *const names[] = {"event_record",  "event_record timed", "event_query",
                                        "stream_follow", "copy_out 4 KiB",     "copy_in 4 KiB"};

    check(device_map(bench->device, bench->range, bench->pages, 1), "map");
    for (enum short_call call = 0; call < SHORT_CALLS; call++) {
        uint64_t ns[ROUNDS];

        for (size_t round = 0; round < ROUNDS; round++) {
            uint64_t start = device_now_ns(bench->device);

            for (size_t i = 0; i < CALLS; i++) {
                check(call_once(bench, call), names[call]);
            }
            ns[round] = (device_now_ns(bench->device) - start) / CALLS;
            check(device_stream_synchronize(bench->device, bench->stream), "synchronize");
        }
        print(bench, names[call], 1, ns);
    }
    check(device_unmap(bench->device, bench->range, 1), "unmap");
}

static void time_pinning(struct bench *bench)
{
    uint64_t alloc_ns[ROUNDS];
    uint64_t free_ns[ROUNDS];

    for (size_t round = 0; round < ROUNDS; round++) {
        uint64_t start = device_now_ns(bench->device);
        void *memory = NULL;
        uint64_t allocated;

        check(device_host_alloc(bench->device, PINNED_BYTES, &memory), "host_alloc");
        allocated = device_now_ns(bench->device);
        device_host_free(bench->device, memory, PINNED_BYTES);
        alloc_ns[round] = allocated - start;
        free_ns[round] = device_now_ns(bench->device) - allocated;
    }
    print(bench, "host_alloc 256 MiB", 1, alloc_ns);
    print(bench, "host_free 256 MiB", 1, free_ns);
}

static void print_link(const struct bench *bench)
{
    const struct device_capabilities *capabilities = &bench->device->capabilities;
    const struct device_link *link = &capabilities->link;

    if (bench->is_json) {
        printf("{\"device\":\"%s\",\"d2h_bytes_per_s\":%" PRIu64 ",\"h2d_bytes_per_s\":%" PRIu64
               ",\"d2h_duplex_bytes_per_s\":%" PRIu64 ",\"h2d_duplex_bytes_per_s\":%" PRIu64
               ",\"copy_latency_ns\":%" PRIu64 "}\n",
               capabilities->name, link->d2h_bytes_per_s, link->h2d_bytes_per_s,
               link->d2h_duplex_bytes_per_s, link->h2d_duplex_bytes_per_s, link->copy_latency_ns);
        return;
    }
    printf("device %s, pages of %" PRIu64 " KiB; link: out %.1f, in %.1f GB/s, both at once: out "
           "%.1f, in %.1f GB/s, latency of a copy %" PRIu64 " ns (0: unknown)\n",
           capabilities->name, capabilities->page_bytes >> 10, (double)link->d2h_bytes_per_s / 1e9,
           (double)link->h2d_bytes_per_s / 1e9, (double)link->d2h_duplex_bytes_per_s / 1e9,
           (double)link->h2d_duplex_bytes_per_s / 1e9, link->copy_latency_ns);
    printf("%-24s %8s %12s %12s\n", "call", "pages", "median ns", "min ns");
}

static struct device *open_device(const char *name)
{
    struct device_options options = {0};
    struct device *device = NULL;
    char text[300] = "";
    capu_status status = CAPU_NO_DEVICE;

    if (name == NULL || strcmp(name, "cuda") == 0) {
        status = cuda_device_create(NULL, &device, text, sizeof(text));
    }
    if (status == CAPU_NO_DEVICE && (name == NULL || strcmp(name, "host") == 0)) {
        options.page_bytes = (uint64_t)64 << 10;
        options.memory_bytes = MOST_PAGES * options.page_bytes;
        status = host_device_create(&options, &device, text, sizeof(text));
    }
    if (status != CAPU_OK) {
        fprintf(stderr, "bench_device: %s\n", text[0] != '\0' ? text : "host or cuda");
        exit(EXIT_FAILURE);
    }
    return device;
}

int main(int argument_count, char **arguments)
{
    static struct bench bench;
    const char *name = NULL;
    void *memory = NULL;

    for (int i = 1; i < argument_count; i++) {
        if (strcmp(arguments[i], "-j") == 0) {
            bench.is_json = true;
        } else {
            name = arguments[i];
        }
    }
    bench.device = open_device(name);
    bench.page_bytes = bench.device->capabilities.page_bytes;
    print_link(&bench);
    check(device_stream_create(bench.device, DEVICE_COMPUTE, &bench.stream), "stream");
    check(device_event_create(bench.device, false, &bench.event), "event");
    check(device_event_create(bench.device, true, &bench.timed), "event");
    check(device_host_alloc(bench.device, bench.page_bytes, &memory), "host_alloc");
    bench.pinned = memory;
    check(device_range_reserve(bench.device, MOST_PAGES * bench.page_bytes, &memory), "range");
    bench.range = memory;
    create_pages(&bench);
    progress_begin("measuring", 0, 0.0);
    for (size_t count = 1; count <= MOST_PAGES && !progress_should_stop(NULL); count *= 8) {
        map(&bench, count, false);
    }
    if (!progress_should_stop(NULL)) {
        map(&bench, 64, true);
    }
    if (!progress_should_stop(NULL)) {
        time_short_calls(&bench);
    }
    if (!progress_should_stop(NULL)) {
        time_pinning(&bench);
    }
    device_event_destroy(bench.device, bench.timed);
    device_event_destroy(bench.device, bench.event);
    device_stream_destroy(bench.device, bench.stream);
    device_destroy(bench.device);
    return progress_end() ? EXIT_STOPPED : EXIT_SUCCESS;
}
