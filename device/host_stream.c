/*
 * The host device's streams.
 *
 * A stream is a thread with a ring of items. Items are numbered from 1, and `done` is the number of
 * the last one that has finished. An event is therefore only a stream and a number (host.c),
 * and following an event is an item that waits until the other stream's `done` reaches its number.
 *
 * A destroyed stream keeps its struct until the device is destroyed. When the struct is used again,
 * numbers continue, so that events recorded in the old stream stay reached.
 *
 * Locks: the device's streams_lock before a stream's lock. No lock is held while work runs. `done`
 * and `failure` are atomic and written with release order, so that a query takes no lock and still
 * sees everything that the work has written.
 *
 * After a failure nothing is executed and `done` stands still, so whatever waits for `done` checks
 * `failure` as well.
 */
#define _GNU_SOURCE
#include "device/host.h"

#include "base/thread.h"
#include "device/monotonic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIRST_CAPACITY 64 /* a power of two, as all capacities */

enum item_kind { ITEM_RUN, ITEM_COPY, ITEM_FILL, ITEM_NOTICE, ITEM_FOLLOW };

/* Work in a ring; the kind says which member of the union is valid. */
struct item {
    enum item_kind kind;
    unsigned char byte;
    struct host_link *link; /* copies: NULL within the device */
    union {
        struct {
            void *to;
            const void *from;
            uint64_t bytes;
        } copy; /* and fill */
        struct device_work run;
        struct {
            host_stream_notice *call;
            struct device_event *event;
            uint64_t recording;
        } notice;
        struct {
            struct host_stream *stream;
            uint64_t number;
        } follow;
    } of;
};

struct host_stream {
    struct host_device *host;
    struct host_stream *next; /* guarded by streams_lock */
    pthread_t thread;
    bool is_running; /* has a thread; owned by the calling thread */

    struct device_notes notes; /* owned by the stream's thread */

    uint64_t enqueued; /* number of the newest item; written by the caller under the lock */

    pthread_mutex_t lock;     /* guards what follows */
    pthread_cond_t has_items; /* the thread waits here */
    pthread_cond_t has_done;  /* others wait here for `done` */
    _Atomic uint64_t done;    /* written under the lock, read anywhere */
    struct item *items;       /* ring: item n lies at n % capacity */
    size_t capacity;
    uint64_t taken;  /* number of the newest item that the thread has taken */
    uint64_t let_go; /* number of the newest item that it has finished with, executed or not */
    bool is_idle;    /* the thread waits for items */
    bool is_ending;
    uint64_t awaited; /* the lowest number that a thread waits for in has_done; 0: none waits */
};

/* Stops the device; the first failure counts. Wakes every thread that waits for an item that will
   now never finish. */
static void fail(struct host_device *host, const char *name, capu_status cause, const char *why)
{
#define CAUSE_TEXT(cause_name, value, cause_text) \
    case value:                                   \
        what = cause_text;                        \
        break;
    const char *what = NULL;

    switch ((int)cause) {
        CAPU_STATUS_LIST(CAUSE_TEXT)
    }
#undef CAUSE_TEXT
    pthread_mutex_lock(&host->failure_lock);
    if (host_failure_of(host) == CAPU_OK) {
        if (why[0] != '\0') {
            snprintf(host->failure_text, sizeof(host->failure_text), "%s failed while running: %s",
                     name, why);
        } else if (what != NULL) {
            snprintf(host->failure_text, sizeof(host->failure_text), "%s failed while running: %s",
                     name, what);
        } else {
            snprintf(
                host->failure_text, sizeof(host->failure_text),
                "%s failed while running: its function returned %d, which is not a capu_status",
                name, (int)cause);
        }
        atomic_store_explicit(&host->failure, CAPU_OP_FAILED, memory_order_release);
    }
    pthread_mutex_unlock(&host->failure_lock);

    pthread_mutex_lock(&host->streams_lock);
    for (struct host_stream *stream = host->streams; stream != NULL; stream = stream->next) {
        pthread_mutex_lock(&stream->lock);
        pthread_cond_broadcast(&stream->has_done);
        pthread_mutex_unlock(&stream->lock);
    }
    pthread_mutex_unlock(&host->streams_lock);
}

bool host_stream_is_done(struct host_stream *stream, uint64_t number)
{
    return atomic_load_explicit(&stream->done, memory_order_acquire) >= number;
}

capu_status host_stream_wait(struct host_stream *stream, uint64_t number)
{
    if (!host_stream_is_done(stream, number)) {
        pthread_mutex_lock(&stream->lock);
        while (!host_stream_is_done(stream, number) && host_failure_of(stream->host) == CAPU_OK) {
            if (stream->awaited == 0 || number < stream->awaited) {
                stream->awaited = number;
            }
            pthread_cond_wait(&stream->has_done, &stream->lock);
        }
        pthread_mutex_unlock(&stream->lock);
    }
    return host_failure_of(stream->host);
}

/* The time at which a copy that starts now will have passed the link. Copies in one direction queue
   up, whatever their streams. */
static uint64_t pass_link(struct host_link *link, uint64_t bytes)
{
    uint64_t now = monotonic_now_ns();
    uint64_t ns = (uint64_t)(((unsigned __int128)bytes * 1000000000u + link->bytes_per_s - 1) /
                             link->bytes_per_s);
    uint64_t end;

    pthread_mutex_lock(&link->lock);
    end = (link->free_at_ns > now ? link->free_at_ns : now) + ns;
    link->free_at_ns = end;
    pthread_mutex_unlock(&link->lock);
    return end;
}

static void sleep_until(uint64_t ns)
{
    const struct timespec until = {
        .tv_sec = (time_t)(ns / 1000000000u),
        .tv_nsec = (long)(ns % 1000000000u),
    };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

static void copy_item(const struct item *item)
{
    bool has_rate = item->link != NULL && item->link->bytes_per_s > 0;
    uint64_t end = has_rate ? pass_link(item->link, item->of.copy.bytes) : 0;

    memmove(item->of.copy.to, item->of.copy.from, item->of.copy.bytes);
    if (has_rate) {
        sleep_until(end);
    }
}

/* Calls the function of some work. */
static capu_status call_function(struct host_stream *stream, const struct device_work *work)
{
    struct device_tally tally = stream->notes.tally;
    capu_status status = device_call(work->run, stream, work->arguments, &stream->notes);

    if (work->is_repeated) {
        stream->notes.tally = tally;
    }
    return status;
}

/* Executes an item, or skips it if the device has failed. Returns whether it has finished. */
static bool execute(struct host_stream *stream, const struct item *item)
{
    struct host_device *host = stream->host;
    bool is_working = host_failure_of(host) == CAPU_OK;
    capu_status status;

    switch (item->kind) {
    case ITEM_RUN:
        if (is_working) {
            status = call_function(stream, &item->of.run);
            if (status != CAPU_OK) {
                fail(host, item->of.run.name, status, stream->notes.why);
                is_working = false;
            }
        }
        break;
    case ITEM_COPY:
        if (is_working) {
            copy_item(item);
        }
        break;
    case ITEM_FILL:
        if (is_working) {
            memset(item->of.copy.to, item->byte, item->of.copy.bytes);
        }
        break;
    case ITEM_NOTICE:
        item->of.notice.call(item->of.notice.event, item->of.notice.recording,
                             &stream->notes.tally);
        break;
    case ITEM_FOLLOW:
        if (is_working) {
            /* If the other item finished before the failure, this one has finished, too. */
            (void)host_stream_wait(item->of.follow.stream, item->of.follow.number);
            is_working = host_stream_is_done(item->of.follow.stream, item->of.follow.number);
        }
        break;
    }
    return is_working;
}

/* A stream's thread: executes items in order until the stream ends and none is left. */
static void *serve_stream(void *argument)
{
    struct host_stream *stream = argument;

    pthread_mutex_lock(&stream->lock);
    for (;;) {
        struct item item;
        bool has_finished;

        while (stream->taken == stream->enqueued && !stream->is_ending) {
            stream->is_idle = true;
            pthread_cond_wait(&stream->has_items, &stream->lock);
            stream->is_idle = false;
        }
        if (stream->taken == stream->enqueued) {
            break;
        }
        stream->taken++;
        item = stream->items[stream->taken & (stream->capacity - 1)];
        pthread_mutex_unlock(&stream->lock);

        has_finished = execute(stream, &item);

        pthread_mutex_lock(&stream->lock);
        stream->let_go = stream->taken;
        if (host_failure_of(stream->host) != CAPU_OK) {
            pthread_cond_broadcast(&stream->has_done);
        }
        if (has_finished) {
            atomic_store_explicit(&stream->done, stream->taken, memory_order_release);
        }
        /* Waking a thread after every item would cost more than most items do. */
        if (stream->awaited != 0 && host_stream_is_done(stream, stream->awaited)) {
            stream->awaited = 0;
            pthread_cond_broadcast(&stream->has_done);
        }
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

/* Doubles the ring. The lock is held. */
static bool grow_ring(struct host_stream *stream)
{
    size_t capacity = stream->capacity == 0 ? FIRST_CAPACITY : stream->capacity * 2;
    struct item *items = malloc(capacity * sizeof(*items));

    if (items == NULL) {
        return false;
    }
    for (uint64_t number = stream->taken + 1; number <= stream->enqueued; number++) {
        items[number & (capacity - 1)] = stream->items[number & (stream->capacity - 1)];
    }
    free(stream->items);
    stream->items = items;
    stream->capacity = capacity;
    return true;
}

/* Makes room for `count` items more. The calling thread alone adds items, so the room stays. */
static capu_status make_room(struct host_stream *stream, uint64_t count)
{
    capu_status status = host_failure_of(stream->host);

    if (status != CAPU_OK) {
        return status;
    }
    pthread_mutex_lock(&stream->lock);
    while (stream->enqueued - stream->taken + count > stream->capacity && status == CAPU_OK) {
        status = grow_ring(stream) ? CAPU_OK : CAPU_NO_HOST_MEMORY;
    }
    pthread_mutex_unlock(&stream->lock);
    return status;
}

static capu_status push_item(struct host_stream *stream, const struct item *item)
{
    capu_status status = host_failure_of(stream->host);
    bool must_wake;

    if (status != CAPU_OK) {
        return status;
    }
    pthread_mutex_lock(&stream->lock);
    if (stream->enqueued - stream->taken == stream->capacity && !grow_ring(stream)) {
        pthread_mutex_unlock(&stream->lock);
        return CAPU_NO_HOST_MEMORY;
    }
    stream->enqueued++;
    stream->items[stream->enqueued & (stream->capacity - 1)] = *item;
    must_wake = stream->is_idle;
    stream->is_idle = false; /* woken once is enough */
    pthread_mutex_unlock(&stream->lock);
    if (must_wake) {
        pthread_cond_signal(&stream->has_items);
    }
    return CAPU_OK;
}

static capu_status start_thread(struct host_stream *stream)
{
    if (!thread_start(&stream->thread, serve_stream, stream)) {
        return CAPU_SYSTEM_LIMIT;
    }
    stream->is_running = true;
    return CAPU_OK;
}

/* A stream that was destroyed, or a new one in the list; NULL if there is no memory. */
static struct host_stream *find_or_make(struct host_device *host)
{
    struct host_stream *stream;

    for (stream = host->streams; stream != NULL; stream = stream->next) {
        if (!stream->is_running) {
            return stream;
        }
    }
    stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return NULL;
    }
    stream->host = host;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->has_items, NULL);
    pthread_cond_init(&stream->has_done, NULL);
    if (!grow_ring(stream)) {
        pthread_cond_destroy(&stream->has_done);
        pthread_cond_destroy(&stream->has_items);
        pthread_mutex_destroy(&stream->lock);
        free(stream);
        return NULL;
    }
    pthread_mutex_lock(&host->streams_lock);
    stream->next = host->streams;
    host->streams = stream;
    pthread_mutex_unlock(&host->streams_lock);
    return stream;
}

capu_status host_stream_create(struct device *device, enum device_engine engine,
                               capu_stream *stream)
{
    struct host_stream *made;
    capu_status status;

    (void)engine; /* every stream is a thread of its own */
    made = find_or_make(host_of(device));
    if (made == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    made->is_ending = false;
    status = start_thread(made);
    if (status != CAPU_OK) {
        return status;
    }
    *stream = made;
    return CAPU_OK;
}

void host_stream_destroy(struct device *device, capu_stream stream)
{
    struct host_stream *ended = stream;

    (void)device;
    pthread_mutex_lock(&ended->lock);
    ended->is_ending = true;
    pthread_cond_signal(&ended->has_items);
    pthread_mutex_unlock(&ended->lock);
    pthread_join(ended->thread, NULL);
    ended->is_running = false;
}

void host_streams_finish(struct host_device *host)
{
    struct host_stream *stream;
    struct host_stream *next;

    /* Streams wait for each other, so all threads end before any struct is freed. */
    for (stream = host->streams; stream != NULL; stream = stream->next) {
        if (stream->is_running) {
            host_stream_destroy(&host->head, stream);
        }
    }
    for (stream = host->streams; stream != NULL; stream = next) {
        next = stream->next;
        pthread_cond_destroy(&stream->has_done);
        pthread_cond_destroy(&stream->has_items);
        pthread_mutex_destroy(&stream->lock);
        free(stream->items);
        free(stream);
    }
}

/* After a failure, items that a thread takes do nothing. The item that it took before may still use
   memory that the caller is about to unmap, so wait for that one. */
static void wait_for_taken(struct host_stream *stream)
{
    uint64_t number;

    pthread_mutex_lock(&stream->lock);
    number = stream->taken;
    while (stream->let_go < number) {
        pthread_cond_wait(&stream->has_done, &stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
}

capu_status host_stream_synchronize(struct device *device, capu_stream stream)
{
    struct host_stream *awaited = stream;
    capu_status status = host_stream_wait(awaited, awaited->enqueued);

    (void)device;
    if (status != CAPU_OK) {
        wait_for_taken(awaited);
    }
    return status;
}

/* A copy or a fill, at addresses of which some are device memory. */
struct transfer {
    struct item item;
    bool is_to_device;
    bool is_from_device;
};

/* Where the device reaches its own memory: at the address itself, or, if it is guarded, in the view
   of all memory, which may have the pages in another order. Then *bytes becomes less. Addresses
   with no page stay as they are, and fault. */
static void *reach_memory(struct host_device *host, const void *address, bool is_device,
                          uint64_t *bytes)
{
    void *seen = NULL;

    if (is_device && host->guard.view != NULL) {
        seen = host_view(&host->head, address, bytes);
    }
    return seen != NULL ? seen : (void *)(uintptr_t)address;
}

/* The next piece of a transfer. *bytes: what is left of it, then how much the piece has. */
static struct item next_piece(struct host_device *host, const struct transfer *transfer,
                              uint64_t done, uint64_t *bytes)
{
    struct item item = transfer->item;

    *bytes = item.of.copy.bytes - done;
    item.of.copy.to =
        reach_memory(host, (char *)item.of.copy.to + done, transfer->is_to_device, bytes);
    if (item.kind == ITEM_COPY) {
        item.of.copy.from = reach_memory(host, (const char *)item.of.copy.from + done,
                                         transfer->is_from_device, bytes);
    }
    item.of.copy.bytes = *bytes;
    return item;
}

/* All pieces or, unless the device fails meanwhile, none. */
static capu_status push_transfer(struct host_device *host, struct host_stream *stream,
                                 const struct transfer *transfer)
{
    uint64_t total = transfer->item.of.copy.bytes;
    uint64_t count = 0;
    uint64_t bytes;
    capu_status status;

    for (uint64_t done = 0; done < total; done += bytes) {
        (void)next_piece(host, transfer, done, &bytes);
        count++;
    }
    status = count > 1 ? make_room(stream, count) : CAPU_OK;
    for (uint64_t done = 0; done < total && status == CAPU_OK; done += bytes) {
        const struct item item = next_piece(host, transfer, done, &bytes);

        status = push_item(stream, &item);
    }
    return status;
}

static capu_status push_copy(struct host_device *host, struct host_link *link, capu_stream stream,
                             void *to, const void *from, uint64_t bytes)
{
    const struct transfer transfer = {
        .item = {.kind = ITEM_COPY,
                 .link = link,
                 .of.copy = {.to = to, .from = from, .bytes = bytes}},
        .is_to_device = link != &host->links[0],
        .is_from_device = link != &host->links[1],
    };

    return push_transfer(host, stream, &transfer);
}

capu_status host_copy_out(struct device *device, capu_stream stream, void *to, const void *from,
                          uint64_t bytes)
{
    struct host_device *host = host_of(device);

    return push_copy(host, &host->links[0], stream, to, from, bytes);
}

capu_status host_copy_in(struct device *device, capu_stream stream, void *to, const void *from,
                         uint64_t bytes)
{
    struct host_device *host = host_of(device);

    return push_copy(host, &host->links[1], stream, to, from, bytes);
}

capu_status host_copy_within(struct device *device, capu_stream stream, void *to, const void *from,
                             uint64_t bytes)
{
    return push_copy(host_of(device), NULL, stream, to, from, bytes);
}

capu_status host_fill(struct device *device, capu_stream stream, void *to, unsigned char byte,
                      uint64_t bytes)
{
    const struct transfer transfer = {
        .item = {.kind = ITEM_FILL, .byte = byte, .of.copy = {.to = to, .bytes = bytes}},
        .is_to_device = true,
    };

    return push_transfer(host_of(device), stream, &transfer);
}

capu_status host_run(struct device *device, capu_stream stream, const struct device_work *work)
{
    const struct item item = {.kind = ITEM_RUN, .of.run = *work};

    (void)device;
    return push_item(stream, &item);
}

uint64_t host_stream_newest(const struct host_stream *stream)
{
    return stream->enqueued;
}

capu_status host_stream_push_notice(struct host_stream *stream, host_stream_notice *notice,
                                    struct device_event *event, uint64_t recording)
{
    const struct item item = {
        .kind = ITEM_NOTICE,
        .of.notice = {.call = notice, .event = event, .recording = recording},
    };

    return push_item(stream, &item);
}

capu_status host_stream_push_follow(struct host_stream *stream, struct host_stream *other,
                                    uint64_t number)
{
    const struct item item = {
        .kind = ITEM_FOLLOW,
        .of.follow = {.stream = other, .number = number},
    };

    return push_item(stream, &item);
}
