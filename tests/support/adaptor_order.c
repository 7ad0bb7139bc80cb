/* Checks the order of work: see adaptor_order.h. */
#include "tests/support/adaptor_order.h"

#include "base/array.h"
#include "base/table.h"
#include "tests/support/adaptor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACTORS = 8, HOST = 0, HOST_UNIT = 64, HOST_STEP = 64, RANGES = 32 };

/* For each actor, up to which of its accesses another one certainly comes later. */
struct clock {
    uint64_t at[ACTORS];
};

/* The last accesses to a piece of memory. */
struct spot {
    uint64_t written; /* by `writer`, on its own clock; 0: never */
    uint64_t read[ACTORS];
    unsigned char writer;
    unsigned char written_by; /* adaptor_slot */
    unsigned char read_by[ACTORS];
    uint64_t uploaded; /* of host memory: sum_unit of the last upload from here; 0: none */
};

/* Spots by key. */
struct spots {
    struct table index;
    struct spot *spots;
    size_t count;
    size_t capacity;
};

/* What a graph accesses: launches do it again. */
struct recorded {
    struct spots *spots;
    uint64_t key;
    bool is_written;
};

struct recording {
    struct device_graph *graph;
    struct recorded *accesses;
    size_t count;
    size_t capacity;
};

struct order {
    pthread_mutex_t lock; /* guards the rest */
    struct adaptor_order_plan plan;
    uint64_t page_bytes;
    capu_stream streams[ACTORS]; /* of actors from 1 on; NULL: none */
    bool has_run[ACTORS];        /* ops, of which ranges are known: copies in are uploads */
    struct clock clocks[ACTORS];
    struct table events; /* to the index of a clock */
    struct clock *event_clocks;
    size_t event_count;
    size_t event_capacity;
    struct table mapped;  /* page of addresses to page of memory */
    struct spots pages;   /* by page of memory */
    struct spots places;  /* by page of addresses */
    struct spots host;    /* by unit of host memory */
    struct recording now; /* while capturing */
    bool is_capturing;
    struct recording *recordings;
    size_t recording_count;
    size_t recording_capacity;
    bool is_off;
    char finding[320];
};

/* Tests end where there is no memory. */
static void need(bool has_memory)
{
    if (!has_memory) {
        abort();
    }
}

static void join(struct clock *clock, const struct clock *other)
{
    for (size_t i = 0; i < ACTORS; i++) {
        clock->at[i] = clock->at[i] < other->at[i] ? other->at[i] : clock->at[i];
    }
}

static struct spot *spot_at(struct spots *spots, uint64_t key)
{
    uint64_t number;

    if (!table_get(&spots->index, key, &number)) {
        number = spots->count++;
        need(array_reserve(&spots->spots, &spots->capacity, spots->count, sizeof(struct spot)) &&
             table_reserve(&spots->index, spots->count));
        spots->spots[number] = (struct spot){0};
        table_put(&spots->index, key, number);
    }
    return &spots->spots[number];
}

static size_t actor_of(struct order *order, capu_stream stream)
{
    size_t actor = 1;

    while (actor < ACTORS && order->streams[actor] != stream) {
        actor++;
    }
    for (size_t i = 1; i < ACTORS && actor == ACTORS; i++) {
        actor = order->streams[i] == NULL ? i : actor;
    }
    need(actor < ACTORS);
    order->streams[actor] = stream;
    return actor;
}

static const char *actor_name(size_t actor, char *text, size_t bytes)
{
    if (actor == HOST) {
        return "the host";
    }
    snprintf(text, bytes, "stream %zu", actor);
    return text;
}

static void report(struct order *order, size_t actor, enum adaptor_slot slot, const void *address,
                   size_t other, enum adaptor_slot other_slot, const char *other_does)
{
    char one[32];
    char two[32];

    if (order->finding[0] != '\0') {
        return;
    }
    snprintf(order->finding, sizeof(order->finding),
             "%s on %s touches memory at %p that %s on %s %s, and nothing makes it wait",
             adaptor_slot_name(slot), actor_name(actor, one, sizeof(one)), address,
             adaptor_slot_name(other_slot), actor_name(other, two, sizeof(two)), other_does);
}

/* One access to one spot, by work that was just enqueued or by the host. */
static void access_spot(struct order *order, size_t actor, enum adaptor_slot slot,
                        struct spot *spot, const void *address, bool is_written)
{
    const struct clock *clock = &order->clocks[actor];

    if (spot->written > clock->at[spot->writer]) {
        report(order, actor, slot, address, spot->writer, spot->written_by, "writes");
    }
    for (size_t i = 0; is_written && i < ACTORS; i++) {
        if (spot->read[i] > clock->at[i]) {
            report(order, actor, slot, address, i, spot->read_by[i], "reads");
        }
    }
    if (is_written) {
        spot->written = clock->at[actor];
        spot->writer = (unsigned char)actor;
        spot->written_by = (unsigned char)slot;
    } else {
        spot->read[actor] = clock->at[actor];
        spot->read_by[actor] = (unsigned char)slot;
    }
}

static void access_key(struct order *order, size_t actor, enum adaptor_slot slot,
                       struct spots *spots, uint64_t key, const void *address, bool is_written)
{
    access_spot(order, actor, slot, spot_at(spots, key), address, is_written);
    if (order->is_capturing) {
        need(array_reserve(&order->now.accesses, &order->now.capacity, order->now.count + 1,
                           sizeof(struct recorded)));
        order->now.accesses[order->now.count++] = (struct recorded){spots, key, is_written};
    }
}

static void access_device(struct order *order, size_t actor, enum adaptor_slot slot,
                          const void *address, uint64_t bytes, bool is_written)
{
    uint64_t first = (uintptr_t)address / order->page_bytes;
    uint64_t last = ((uintptr_t)address + bytes - 1) / order->page_bytes;

    for (uint64_t place = first; bytes > 0 && place <= last; place++) {
        uint64_t page;

        if (table_get(&order->mapped, place, &page)) {
            access_key(order, actor, slot, &order->pages, page, address, is_written);
            /* Unmapping must come after all of it. */
            access_key(order, actor, slot, &order->places, place, address, false);
        } else if (order->finding[0] == '\0') {
            snprintf(order->finding, sizeof(order->finding),
                     "%s touches memory at %p, %llu bytes, which is not mapped",
                     adaptor_slot_name(slot), address, (unsigned long long)bytes);
        }
    }
}

/* The first and the last unit, and one in HOST_STEP of those between, always the same ones. */
static uint64_t next_unit(uint64_t unit, uint64_t last)
{
    uint64_t next = unit + HOST_STEP - unit % HOST_STEP;

    return unit < last && next > last ? last : next;
}

static void access_host(struct order *order, size_t actor, enum adaptor_slot slot,
                        const void *address, uint64_t bytes, bool is_written)
{
    uint64_t first = (uintptr_t)address / HOST_UNIT;
    uint64_t last = ((uintptr_t)address + bytes - 1) / HOST_UNIT;

    for (uint64_t unit = first; bytes > 0 && unit <= last; unit = next_unit(unit, last)) {
        access_key(order, actor, slot, &order->host, unit, address, is_written);
    }
}

/* What the host has written to a unit, for an upload. */
static uint64_t sum_unit(uint64_t unit, const unsigned char *from, const unsigned char *end)
{
    const unsigned char *unit_at = from + (int64_t)(unit * HOST_UNIT - (uintptr_t)from);
    uint64_t sum = 1;

    for (size_t i = 0; i < HOST_UNIT; i++) {
        if (unit_at + i >= from && unit_at + i < end) {
            sum = sum * 31 + unit_at[i];
        }
    }
    return sum;
}

/* The host wrote what an upload reads, which must come after all that the device did there. Replays
   upload the same bytes again, so whether the host wrote shows in the bytes. */
static void check_upload(struct order *order, size_t actor, const void *address, uint64_t bytes)
{
    const unsigned char *end = (const unsigned char *)address + bytes;
    uint64_t last = ((uintptr_t)address + bytes - 1) / HOST_UNIT;

    for (uint64_t unit = (uintptr_t)address / HOST_UNIT; bytes > 0 && unit <= last;
         unit = next_unit(unit, last)) {
        struct spot *spot = spot_at(&order->host, unit);
        const struct clock *host = &order->clocks[HOST];
        uint64_t sum;

        if (spot->written > host->at[spot->writer]) {
            report(order, HOST, ADAPTOR_OPEN, address, spot->writer, spot->written_by, "writes");
            return;
        }
        sum = sum_unit(unit, address, end);
        if (spot->uploaded != 0 && spot->uploaded != sum && spot->read[actor] > host->at[actor]) {
            report(order, HOST, ADAPTOR_OPEN, address, actor, spot->read_by[actor], "reads");
            return;
        }
        spot->uploaded = sum;
    }
}

/* The host frees memory. Most of it may never have been used. */
static void free_host(struct order *order, enum adaptor_slot slot, const void *address,
                      uint64_t bytes)
{
    uint64_t first = (uintptr_t)address / HOST_UNIT;
    uint64_t last = ((uintptr_t)address + bytes - 1) / HOST_UNIT;
    uint64_t number;

    for (uint64_t unit = first; bytes > 0 && unit <= last; unit++) {
        if (table_get(&order->host.index, unit, &number)) {
            access_spot(order, HOST, slot, &order->host.spots[number], address, true);
        }
    }
}

/* Work is enqueued: it comes after all that the host has done or waited for. */
static size_t enqueue(struct order *order, capu_stream stream)
{
    size_t actor = actor_of(order, stream);

    join(&order->clocks[actor], &order->clocks[HOST]);
    order->clocks[actor].at[actor]++;
    return actor;
}

/* The host does something that work enqueued so far does not come after. */
static void host_steps(struct order *order)
{
    order->clocks[HOST].at[HOST]++;
}

static struct clock *event_clock(struct order *order, const struct device_event *event)
{
    uint64_t number;

    if (!table_get(&order->events, (uintptr_t)event, &number)) {
        number = order->event_count++;
        need(array_reserve(&order->event_clocks, &order->event_capacity, order->event_count,
                           sizeof(struct clock)) &&
             table_reserve(&order->events, order->event_count));
        order->event_clocks[number] = (struct clock){0};
        table_put(&order->events, (uintptr_t)event, number);
    }
    return &order->event_clocks[number];
}

static bool host_knows(struct order *order, const struct device_event *event)
{
    const struct clock *clock = event_clock(order, event);

    for (size_t i = 0; i < ACTORS; i++) {
        if (clock->at[i] > order->clocks[HOST].at[i]) {
            return false;
        }
    }
    return true;
}

static void note_mapping(struct order *order, const struct adaptor_call *call)
{
    uint64_t first = (uintptr_t)call->to / order->page_bytes;

    need(table_reserve(&order->mapped, order->mapped.count + call->page_count));
    for (size_t i = 0; i < call->page_count; i++) {
        table_put(&order->mapped, first + i, call->pages[i]);
    }
}

static void note_unmapping(struct order *order, const struct adaptor_call *call)
{
    uint64_t first = (uintptr_t)call->to / order->page_bytes;

    host_steps(order);
    for (size_t i = 0; i < call->page_count; i++) {
        access_spot(order, HOST, call->slot, spot_at(&order->places, first + i), call->to, true);
        table_remove(&order->mapped, first + i);
    }
}

static void note_run(struct order *order, const struct adaptor_call *call)
{
    struct adaptor_order_range ranges[RANGES];
    size_t actor = enqueue(order, call->stream);
    size_t count = order->plan.ranges != NULL ? order->plan.ranges(call->work, ranges, RANGES) : 0;

    order->has_run[actor] = order->has_run[actor] || count > 0;
    /* Reads first: an op's own writes do not race with them. */
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < count; i++) {
            if (ranges[i].is_written == (pass == 1)) {
                access_device(order, actor, call->slot, ranges[i].address, ranges[i].bytes,
                              ranges[i].is_written);
            }
        }
    }
}

static struct recording *recording_of(struct order *order, const struct device_graph *graph)
{
    for (size_t i = 0; i < order->recording_count; i++) {
        if (order->recordings[i].graph == graph) {
            return &order->recordings[i];
        }
    }
    return NULL;
}

static void end_capture(struct order *order, const struct adaptor_call *call, capu_status status)
{
    struct recording *recording;

    order->is_capturing = false;
    if (status != CAPU_OK) {
        free(order->now.accesses);
        order->now = (struct recording){0};
        return;
    }
    recording = recording_of(order, *call->graph);
    if (recording == NULL) {
        need(array_reserve(&order->recordings, &order->recording_capacity,
                           order->recording_count + 1, sizeof(struct recording)));
        recording = &order->recordings[order->recording_count++];
    } else {
        free(recording->accesses);
    }
    *recording = order->now;
    recording->graph = *call->graph;
    order->now = (struct recording){0};
}

static void note_launch(struct order *order, const struct adaptor_call *call)
{
    const struct recording *recording = recording_of(order, *call->graph);
    size_t actor = enqueue(order, call->stream);

    for (size_t i = 0; recording != NULL && i < recording->count; i++) {
        const struct recorded *access = &recording->accesses[i];

        access_spot(order, actor, call->slot, spot_at(access->spots, access->key), NULL,
                    access->is_written);
    }
}

static void note_copy(struct order *order, const struct adaptor_call *call)
{
    size_t actor = enqueue(order, call->stream);

    switch (call->slot) {
    case ADAPTOR_COPY_OUT:
        access_device(order, actor, call->slot, call->from, call->bytes, false);
        access_host(order, actor, call->slot, call->to, call->bytes, true);
        break;
    case ADAPTOR_COPY_IN:
        if (order->has_run[actor] && !order->is_capturing) {
            check_upload(order, actor, call->from, call->bytes);
        }
        access_host(order, actor, call->slot, call->from, call->bytes, false);
        access_device(order, actor, call->slot, call->to, call->bytes, true);
        break;
    case ADAPTOR_COPY_WITHIN:
        access_device(order, actor, call->slot, call->from, call->bytes, false);
        access_device(order, actor, call->slot, call->to, call->bytes, true);
        break;
    default:
        access_device(order, actor, call->slot, call->to, call->bytes, true);
        break;
    }
}

static void note_done(struct order *order, const struct adaptor_call *call)
{
    size_t actor;

    switch (call->slot) {
    case ADAPTOR_MAP:
        note_mapping(order, call);
        break;
    case ADAPTOR_UNMAP:
        note_unmapping(order, call);
        break;
    case ADAPTOR_PAGE_DESTROY:
        host_steps(order);
        access_spot(order, HOST, call->slot, spot_at(&order->pages, call->pages[0]), NULL, true);
        break;
    case ADAPTOR_HOST_FREE:
        host_steps(order);
        free_host(order, call->slot, call->to, call->bytes);
        break;
    case ADAPTOR_STREAM_SYNCHRONIZE:
        join(&order->clocks[HOST], &order->clocks[actor_of(order, call->stream)]);
        break;
    case ADAPTOR_STREAM_DESTROY:
        actor = actor_of(order, call->stream);
        join(&order->clocks[HOST], &order->clocks[actor]);
        order->streams[actor] = NULL;
        order->has_run[actor] = false;
        break;
    case ADAPTOR_EVENT_RECORD:
        *event_clock(order, call->event) = order->clocks[enqueue(order, call->stream)];
        break;
    case ADAPTOR_EVENT_QUERY:
    case ADAPTOR_EVENT_WAIT:
        join(&order->clocks[HOST], event_clock(order, call->event));
        break;
    case ADAPTOR_STREAM_FOLLOW:
        join(&order->clocks[enqueue(order, call->stream)], event_clock(order, call->event));
        break;
    case ADAPTOR_EVENT_DESTROY:
        table_remove(&order->events, (uintptr_t)call->event);
        break;
    case ADAPTOR_COPY_OUT:
    case ADAPTOR_COPY_IN:
    case ADAPTOR_COPY_WITHIN:
    case ADAPTOR_FILL:
        note_copy(order, call);
        break;
    case ADAPTOR_RUN:
        note_run(order, call);
        break;
    case ADAPTOR_CAPTURE_BEGIN:
        order->is_capturing = true;
        break;
    case ADAPTOR_GRAPH_LAUNCH:
        note_launch(order, call);
        break;
    default:
        break;
    }
}

/* Calls that do not say whether they succeed are noted before they are made: afterwards the thread
   that pins host memory may already have what was freed. */
static bool has_no_status(enum adaptor_slot slot)
{
    return slot == ADAPTOR_PAGE_DESTROY || slot == ADAPTOR_HOST_FREE ||
           slot == ADAPTOR_EVENT_DESTROY;
}

static capu_status before(void *state, struct device *inner, const struct adaptor_call *call)
{
    struct order *order = state;
    capu_status status = CAPU_OK;

    pthread_mutex_lock(&order->lock);
    order->is_off = order->is_off || device_failure(inner, NULL, 0) != CAPU_OK;
    if (!order->is_off && has_no_status(call->slot)) {
        note_done(order, call);
    }
    if (!order->is_off && order->plan.is_late && call->slot == ADAPTOR_EVENT_QUERY &&
        !host_knows(order, call->event)) {
        status = CAPU_NOT_READY;
    }
    pthread_mutex_unlock(&order->lock);
    return status;
}

static void after(void *state, struct device *inner, const struct adaptor_call *call,
                  capu_status status)
{
    struct order *order = state;

    pthread_mutex_lock(&order->lock);
    order->is_off = order->is_off || device_failure(inner, NULL, 0) != CAPU_OK;
    if (!order->is_off && call->slot == ADAPTOR_CAPTURE_END) {
        end_capture(order, call, status);
    } else if (!order->is_off && (status == CAPU_OK || call->slot == ADAPTOR_RUN) &&
               !has_no_status(call->slot)) {
        /* A run function that fails may have enqueued some of its work. */
        note_done(order, call);
    }
    pthread_mutex_unlock(&order->lock);
}

static void finish_spots(struct spots *spots)
{
    table_finish(&spots->index);
    free(spots->spots);
}

static void destroy(void *state)
{
    struct order *order = state;

    for (size_t i = 0; i < order->recording_count; i++) {
        free(order->recordings[i].accesses);
    }
    free(order->recordings);
    free(order->now.accesses);
    finish_spots(&order->pages);
    finish_spots(&order->places);
    finish_spots(&order->host);
    table_finish(&order->mapped);
    table_finish(&order->events);
    free(order->event_clocks);
    pthread_mutex_destroy(&order->lock);
    free(order);
}

static const struct adaptor_hooks hooks = {before, after, destroy};

capu_status adaptor_order_create(struct device *inner, const struct adaptor_order_plan *plan,
                                 struct device **device)
{
    struct order *order = calloc(1, sizeof(*order));
    capu_status status;

    if (order == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    pthread_mutex_init(&order->lock, NULL);
    order->plan = *plan;
    order->page_bytes = inner->capabilities.page_bytes;
    status = adaptor_create(inner, true, &hooks, order, device);
    if (status != CAPU_OK) {
        destroy(order);
    }
    return status;
}

void adaptor_order_touch(struct device *device, const void *address, uint64_t bytes,
                         bool is_written)
{
    struct order *order = adaptor_state(device, &hooks);

    if (order != NULL) {
        pthread_mutex_lock(&order->lock);
        host_steps(order);
        if (!order->is_off) {
            access_device(order, HOST, ADAPTOR_OPEN, address, bytes, is_written);
        }
        pthread_mutex_unlock(&order->lock);
    }
}

uint64_t adaptor_order_last(struct device *device, capu_stream stream, const void *address)
{
    struct order *order = adaptor_state(device, &hooks);
    uint64_t last;

    pthread_mutex_lock(&order->lock);
    last = spot_at(&order->places, (uintptr_t)address / order->page_bytes)
               ->read[actor_of(order, stream)];
    pthread_mutex_unlock(&order->lock);
    return last;
}

bool adaptor_order_is_after(struct device *device, capu_stream later, capu_stream earlier,
                            uint64_t time)
{
    struct order *order = adaptor_state(device, &hooks);
    size_t actor;
    bool is_after;

    pthread_mutex_lock(&order->lock);
    actor = actor_of(order, earlier);
    is_after = order->clocks[HOST].at[actor] >= time ||
               (later != NULL && order->clocks[actor_of(order, later)].at[actor] >= time);
    pthread_mutex_unlock(&order->lock);
    return is_after;
}

const char *adaptor_order_finding(struct device *device)
{
    const struct order *order = adaptor_state(device, &hooks);

    return order != NULL && order->finding[0] != '\0' ? order->finding : NULL;
}
