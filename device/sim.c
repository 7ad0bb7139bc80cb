/*
 * The sim device: no memory, a virtual clock, and the execution model of the
 * trace and plan files. It lets the real runtime run at the speed of its
 * bookkeeping, and the same way every time.
 *
 * Three engines (compute, d2h, h2d) each run one item at a time in the order of
 * issue; the stream determines the engine. An item starts when its engine is
 * idle, its stream has reached it (earlier work, events followed) and the host
 * has issued it; issuing takes no time. sim_clock.h runs them.
 *
 * Costs: `run` takes its duration and is not called. A copy to or from the host
 * takes copy_latency + ceil(bytes * 10^9 / rate). If duplex rates are lower
 * than the others, copies take longer while one in the other direction runs;
 * this is not part of the execution model. fill and copy_within take no time:
 * in the model clearing is an op, so a caller who wants it to cost time
 * declares an op with a duration.
 *
 * The host's clock moves only when the host waits, to the time of what it waits
 * for. An event is reached when its time is not after that clock. So a query
 * never makes progress, however often it is repeated: wait for the event, or
 * for anything later.
 *
 * Addresses are reserved for real, without access. Map, unmap and the device
 * side of copies are checked against the books; a violation is INVALID. Host
 * memory is real, lazy and zero. A copy out does not touch it, and writes zeros
 * to any other target.
 *
 * Owned by the calling thread, except for host memory, which has its lock.
 */
#include "device/device.h"

#include "device/books.h"
#include "device/sim_clock.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_PAGE_BYTES ((uint64_t)2 << 20)
#define DEFAULT_MEMORY_BYTES ((uint64_t)64 << 40)
#define DEFAULT_BYTES_PER_S 12000000000u /* PCIe 3 x16, the machine of the paper */
#define DEFAULT_LATENCY_NS 10000u

struct sim_stream {
    struct sim_stream *next;
    enum device_engine engine;
    struct sim_point point; /* its work, and what it follows */
};

struct device_event {
    bool with_timing;
    bool is_recorded;
    struct sim_time time; /* when the newest recording is reached */
};

struct sim_device {
    struct device head;
    struct page_numbers pages;
    struct reservations reservations;
    struct chunks chunks;
    struct sim_stream *streams;
    struct sim_clock clock;
    char failure_text[128]; /* written before `failure` is set, once */
    atomic_int failure;
};

static struct sim_device *sim_of(struct device *device)
{
    return (struct sim_device *)device;
}

static capu_status failure_of(struct device *device)
{
    return (capu_status)atomic_load_explicit(&sim_of(device)->failure, memory_order_acquire);
}

static uint64_t copy_ns(const struct device *device, uint64_t bytes, uint64_t bytes_per_s)
{
    unsigned __int128 ns = ((unsigned __int128)bytes * 1000000000u + bytes_per_s - 1) / bytes_per_s;

    ns += device->capabilities.link.copy_latency_ns;
    return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

static capu_status issue_work(struct device *device, capu_stream stream, uint64_t duration_ns)
{
    struct sim_stream *issued = stream;
    capu_status status = failure_of(device);

    return status == CAPU_OK ? sim_clock_issue(&sim_of(device)->clock, issued->engine, duration_ns,
                                               &issued->point)
                             : status;
}

/* Whether all of [address, address + bytes) is mapped. */
static bool is_mapped(const struct sim_device *sim, const void *address, uint64_t bytes)
{
    uint64_t page_bytes = sim->reservations.page_bytes;
    uint64_t offset = (uintptr_t)address & (page_bytes - 1);
    const char *first = (const char *)address - offset;
    struct reservation *range;
    size_t count;

    if (bytes > UINT64_MAX - offset - page_bytes) {
        return false;
    }
    count = (size_t)((offset + bytes + page_bytes - 1) / page_bytes);
    range = reservations_find(&sim->reservations, first, count);
    return range != NULL && reservation_is_mapped(&sim->reservations, range, first, count);
}

static capu_status sim_page_create(struct device *device, device_page *page)
{
    return page_numbers_take(&sim_of(device)->pages, page);
}

static void sim_page_destroy(struct device *device, device_page page)
{
    page_numbers_give(&sim_of(device)->pages, page);
}

static capu_status sim_range_reserve(struct device *device, uint64_t bytes, void **address)
{
    struct sim_device *sim = sim_of(device);
    void *reserved;
    capu_status status = addresses_reserve(bytes, device->capabilities.page_bytes, &reserved);

    if (status != CAPU_OK) {
        return status;
    }
    status = reservations_add(&sim->reservations, reserved, bytes);
    if (status != CAPU_OK) {
        addresses_release(reserved, bytes);
        return status;
    }
    *address = reserved;
    return CAPU_OK;
}

static void sim_range_release(struct device *device, void *address, uint64_t bytes)
{
    struct sim_device *sim = sim_of(device);
    struct reservation *range = reservations_find_empty(&sim->reservations, address, bytes);

    if (range != NULL) {
        addresses_release(address, bytes);
        reservations_remove(&sim->reservations, range);
    }
}

static capu_status sim_map(struct device *device, void *address, const device_page *pages,
                           size_t count)
{
    struct sim_device *sim = sim_of(device);
    struct reservation *range = reservations_find(&sim->reservations, address, count);

    if (range == NULL || !reservation_is_unmapped(&sim->reservations, range, address, count)) {
        return CAPU_INVALID;
    }
    for (size_t index = 0; index < count; index++) {
        if (!page_numbers_has(&sim->pages, pages[index])) {
            return CAPU_INVALID;
        }
    }
    reservation_map(&sim->reservations, range, address, pages, count);
    return CAPU_OK;
}

static capu_status sim_unmap(struct device *device, void *address, size_t count)
{
    struct sim_device *sim = sim_of(device);
    struct reservation *range = reservations_find(&sim->reservations, address, count);

    if (range == NULL || !reservation_is_whole(&sim->reservations, range, address, count)) {
        return CAPU_INVALID;
    }
    reservation_unmap(&sim->reservations, range, address, count);
    return CAPU_OK;
}

static capu_status sim_host_alloc(struct device *device, uint64_t bytes, void **address)
{
    return chunks_alloc(&sim_of(device)->chunks, bytes, true, address);
}

static void sim_host_free(struct device *device, void *address, uint64_t bytes)
{
    chunks_free(&sim_of(device)->chunks, address, bytes);
}

static capu_status sim_stream_create(struct device *device, enum device_engine engine,
                                     capu_stream *stream)
{
    struct sim_device *sim = sim_of(device);
    struct sim_stream *made = calloc(1, sizeof(*made));

    if (made == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    made->engine = engine;
    made->next = sim->streams;
    sim->streams = made;
    *stream = made;
    return CAPU_OK;
}

static capu_status wait_until(struct device *device, const struct sim_point *point)
{
    capu_status status = failure_of(device);

    if (status == CAPU_OK) {
        sim_clock_wait(&sim_of(device)->clock, point);
    }
    return status;
}

static capu_status sim_stream_synchronize(struct device *device, capu_stream stream)
{
    return wait_until(device, &((struct sim_stream *)stream)->point);
}

static void sim_stream_destroy(struct device *device, capu_stream stream)
{
    struct sim_device *sim = sim_of(device);
    struct sim_stream **link = &sim->streams;

    (void)sim_stream_synchronize(device, stream);
    while (*link != NULL && *link != stream) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = (*link)->next;
        free(stream);
    }
}

static capu_status sim_event_create(struct device *device, bool with_timing,
                                    struct device_event **event)
{
    struct device_event *made = calloc(1, sizeof(*made));

    (void)device;
    if (made == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    made->with_timing = with_timing;
    *event = made;
    return CAPU_OK;
}

static void sim_event_destroy(struct device *device, struct device_event *event)
{
    (void)device;
    sim_clock_forget(&event->time);
    free(event);
}

static capu_status sim_event_record(struct device *device, struct device_event *event,
                                    capu_stream stream)
{
    capu_status status = failure_of(device);

    if (status == CAPU_OK) {
        event->is_recorded = true;
        sim_clock_set(&sim_of(device)->clock, &event->time, &((struct sim_stream *)stream)->point);
    }
    return status;
}

static capu_status sim_event_query(struct device *device, struct device_event *event)
{
    const struct sim_point now = {{0}};
    capu_status status = wait_until(device, &now);

    if (status != CAPU_OK) {
        return status;
    }
    return event->time.is_pending ? CAPU_NOT_READY : CAPU_OK;
}

static capu_status sim_event_wait(struct device *device, struct device_event *event)
{
    return wait_until(device, &event->time.point);
}

static capu_status sim_stream_follow(struct device *device, capu_stream stream,
                                     struct device_event *event)
{
    struct sim_stream *follower = stream;
    capu_status status = failure_of(device);

    if (status == CAPU_OK) {
        follower->point = sim_point_later(&follower->point, &event->time.point);
    }
    return status;
}

static capu_status sim_event_elapsed(struct device *device, struct device_event *from,
                                     struct device_event *to, uint64_t *ns)
{
    capu_status status = failure_of(device);

    if (!from->with_timing || !to->with_timing || !from->is_recorded || !to->is_recorded) {
        return CAPU_INVALID;
    }
    if (status != CAPU_OK) {
        return status;
    }
    if (from->time.is_pending || to->time.is_pending) {
        return CAPU_NOT_READY;
    }
    *ns = to->time.ns > from->time.ns ? to->time.ns - from->time.ns : 0;
    return CAPU_OK;
}

static capu_status sim_copy_out(struct device *device, capu_stream stream, void *to,
                                const void *from, uint64_t bytes)
{
    struct sim_device *sim = sim_of(device);
    capu_status status;

    if (!is_mapped(sim, from, bytes)) {
        return CAPU_INVALID;
    }
    status = issue_work(device, stream,
                        copy_ns(device, bytes, device->capabilities.link.d2h_bytes_per_s));
    if (status == CAPU_OK && !chunks_hold(&sim->chunks, to, bytes)) {
        memset(to, 0, bytes);
    }
    return status;
}

static capu_status sim_copy_in(struct device *device, capu_stream stream, void *to,
                               const void *from, uint64_t bytes)
{
    (void)from;
    if (!is_mapped(sim_of(device), to, bytes)) {
        return CAPU_INVALID;
    }
    return issue_work(device, stream,
                      copy_ns(device, bytes, device->capabilities.link.h2d_bytes_per_s));
}

static capu_status sim_copy_within(struct device *device, capu_stream stream, void *to,
                                   const void *from, uint64_t bytes)
{
    if (!is_mapped(sim_of(device), to, bytes) || !is_mapped(sim_of(device), from, bytes)) {
        return CAPU_INVALID;
    }
    return issue_work(device, stream, 0);
}

static capu_status sim_fill(struct device *device, capu_stream stream, void *to, unsigned char byte,
                            uint64_t bytes)
{
    (void)byte;
    return is_mapped(sim_of(device), to, bytes) ? issue_work(device, stream, 0) : CAPU_INVALID;
}

static capu_status sim_run(struct device *device, capu_stream stream,
                           const struct device_work *work)
{
    return issue_work(device, stream, work->duration_ns);
}

static uint64_t sim_now_ns(struct device *device)
{
    return sim_of(device)->clock.now_ns;
}

static capu_status sim_failure(struct device *device, char *text, size_t text_bytes)
{
    capu_status status = failure_of(device);

    if (text != NULL && text_bytes > 0) {
        snprintf(text, text_bytes, "%s", status == CAPU_OK ? "" : sim_of(device)->failure_text);
    }
    return status;
}

static void sim_destroy(struct device *device)
{
    struct sim_device *sim = sim_of(device);

    while (sim->streams != NULL) {
        struct sim_stream *next = sim->streams->next;

        free(sim->streams);
        sim->streams = next;
    }
    for (size_t index = 0; index < sim->reservations.count; index++) {
        const struct reservation *range = sim->reservations.sorted[index];

        addresses_release(range->address, range->page_count * sim->reservations.page_bytes);
    }
    reservations_finish(&sim->reservations);
    page_numbers_finish(&sim->pages);
    chunks_finish(&sim->chunks);
    sim_clock_finish(&sim->clock);
    free(sim);
}

static const struct device_table sim_table = {
    .destroy = sim_destroy,
    .page_create = sim_page_create,
    .page_destroy = sim_page_destroy,
    .range_reserve = sim_range_reserve,
    .range_release = sim_range_release,
    .map = sim_map,
    .unmap = sim_unmap,
    .host_alloc = sim_host_alloc,
    .host_free = sim_host_free,
    .stream_create = sim_stream_create,
    .stream_destroy = sim_stream_destroy,
    .stream_synchronize = sim_stream_synchronize,
    .event_create = sim_event_create,
    .event_destroy = sim_event_destroy,
    .event_record = sim_event_record,
    .event_query = sim_event_query,
    .event_wait = sim_event_wait,
    .stream_follow = sim_stream_follow,
    .event_elapsed = sim_event_elapsed,
    .copy_out = sim_copy_out,
    .copy_in = sim_copy_in,
    .copy_within = sim_copy_within,
    .fill = sim_fill,
    .run = sim_run,
    .now_ns = sim_now_ns,
    .failure = sim_failure,
};

bool sim_device_fail(struct device *device, const char *name)
{
    struct sim_device *sim = sim_of(device);

    if (device->table != &sim_table) {
        return false;
    }
    if (failure_of(device) == CAPU_OK) {
        snprintf(sim->failure_text, sizeof(sim->failure_text), "%s failed while running", name);
        atomic_store_explicit(&sim->failure, CAPU_OP_FAILED, memory_order_release);
    }
    return true;
}

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
    return value == 0 ? otherwise : value;
}

/* No direction becomes faster because the other one is busy. */
static uint64_t duplex_rate(uint64_t given, uint64_t solo)
{
    return given == 0 || given > solo ? solo : given;
}

/* How much of 2^32. */
static uint64_t share(uint64_t duplex, uint64_t solo)
{
    return (uint64_t)(((unsigned __int128)duplex << 32) / solo);
}

static struct device_capabilities complete_capabilities(const struct device_options *given)
{
    struct device_options complete = *given;
    uint64_t d2h_bytes_per_s = or_default(given->d2h_bytes_per_s, DEFAULT_BYTES_PER_S);
    uint64_t h2d_bytes_per_s = or_default(given->h2d_bytes_per_s, DEFAULT_BYTES_PER_S);
    struct device_page_rule rule;

    complete.memory_bytes = or_default(given->memory_bytes, DEFAULT_MEMORY_BYTES);
    rule = device_make_page_rule(&complete, DEFAULT_PAGE_BYTES, UINT64_MAX);
    return (struct device_capabilities){
        .name = "sim",
        .page_bytes =
            or_default(given->page_bytes, device_choose_page(&rule, complete.memory_bytes)),
        .page_rule = rule,
        .memory_bytes = complete.memory_bytes,
        /* Unless told otherwise, the directions share nothing. */
        .link = {.d2h_bytes_per_s = d2h_bytes_per_s,
                 .h2d_bytes_per_s = h2d_bytes_per_s,
                 .d2h_duplex_bytes_per_s =
                     duplex_rate(given->d2h_duplex_bytes_per_s, d2h_bytes_per_s),
                 .h2d_duplex_bytes_per_s =
                     duplex_rate(given->h2d_duplex_bytes_per_s, h2d_bytes_per_s),
                 .copy_latency_ns = or_default(given->copy_latency_ns, DEFAULT_LATENCY_NS)},
        .is_simulated = true,
    };
}

static void start_clock(struct sim_device *sim)
{
    const struct device_link *link = &sim->head.capabilities.link;
    const uint64_t shares[SIM_ENGINES] = {
        [DEVICE_D2H] = share(link->d2h_duplex_bytes_per_s, link->d2h_bytes_per_s),
        [DEVICE_H2D] = share(link->h2d_duplex_bytes_per_s, link->h2d_bytes_per_s),
    };

    sim_clock_init(&sim->clock, shares);
}

capu_status sim_device_create(const struct device_options *options, struct device **device,
                              char *text, size_t text_bytes)
{
    const struct device_options none = {0};
    struct device_capabilities capabilities =
        complete_capabilities(options == NULL ? &none : options);
    uint64_t page_bytes = capabilities.page_bytes;
    const char *problem = NULL;
    capu_status status = CAPU_OK;
    struct sim_device *sim;

    if ((page_bytes & (page_bytes - 1)) != 0 || page_bytes < (uint64_t)sysconf(_SC_PAGESIZE)) {
        status = CAPU_INVALID;
        problem = "the page is not a power of two of at least the machine's page";
    } else if (capabilities.memory_bytes < page_bytes) {
        status = CAPU_OVER_BUDGET;
        problem = "the budget is less than one page";
    }
    if (status != CAPU_OK) {
        if (text != NULL && text_bytes > 0) {
            snprintf(text, text_bytes, "%s: %" PRIu64 " bytes in pages of %" PRIu64, problem,
                     capabilities.memory_bytes, page_bytes);
        }
        return status;
    }
    sim = calloc(1, sizeof(*sim));
    if (sim == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    capabilities.memory_bytes &= ~(page_bytes - 1);
    sim->head.table = &sim_table;
    sim->head.capabilities = capabilities;
    page_numbers_init(&sim->pages, capabilities.memory_bytes / page_bytes);
    reservations_init(&sim->reservations, page_bytes);
    chunks_init(&sim->chunks);
    start_clock(sim);
    *device = &sim->head;
    return CAPU_OK;
}
