/*
 * The host device's events.
 *
 * A recording is a stream and the number of its newest item; it is reached when the stream's `done`
 * reaches that number (host_stream.c). Nothing is enqueued for it. Only an event with timing needs
 * an item as well, which reads the clock and keeps the event alive until then.
 *
 * Locks: an event's lock is taken alone.
 */
#include "device/host.h"

#include "device/monotonic.h"

#include <stdlib.h>

struct device_event {
    struct host_stream *stream; /* of the newest recording; NULL before */
    uint64_t number;            /* its item */
    uint64_t recording;         /* counts recordings with timing */
    bool with_timing;

    pthread_mutex_t lock;     /* guards the rest */
    unsigned reference_count; /* the caller's, and one per item that will read the clock */
    uint64_t timed;           /* the recording that `ns` belongs to; older ones no longer count */
    uint64_t ns;
    struct device_tally tally; /* of the stream, at that time */
};

static void release(struct device_event *event)
{
    bool is_last;

    pthread_mutex_lock(&event->lock);
    is_last = --event->reference_count == 0;
    pthread_mutex_unlock(&event->lock);
    if (is_last) {
        pthread_mutex_destroy(&event->lock);
        free(event);
    }
}

/* On the stream's thread: the time of a recording, and the end of its item's reference. */
static void take_time(struct device_event *event, uint64_t recording,
                      const struct device_tally *tally)
{
    uint64_t now = monotonic_now_ns();

    pthread_mutex_lock(&event->lock);
    if (event->timed < recording) {
        event->timed = recording;
        event->ns = now;
        event->tally = *tally;
    }
    pthread_mutex_unlock(&event->lock);
    release(event);
}

capu_status host_event_create(struct device *device, bool with_timing, struct device_event **event)
{
    struct device_event *made = calloc(1, sizeof(*made));

    (void)device;
    if (made == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    pthread_mutex_init(&made->lock, NULL);
    made->with_timing = with_timing;
    made->reference_count = 1;
    *event = made;
    return CAPU_OK;
}

void host_event_destroy(struct device *device, struct device_event *event)
{
    (void)device;
    release(event);
}

/* Enqueues an item that reads the clock. */
static capu_status record_time(struct device_event *event, struct host_stream *stream)
{
    capu_status status;

    pthread_mutex_lock(&event->lock);
    event->reference_count++;
    pthread_mutex_unlock(&event->lock);

    status = host_stream_push_notice(stream, take_time, event, event->recording + 1);
    if (status != CAPU_OK) {
        release(event);
        return status;
    }
    event->recording++;
    return CAPU_OK;
}

capu_status host_event_record(struct device *device, struct device_event *event, capu_stream stream)
{
    struct host_stream *recorded = stream;
    capu_status status;

    status = event->with_timing ? record_time(event, recorded) : host_failure_of(host_of(device));
    if (status != CAPU_OK) {
        return status;
    }
    event->stream = recorded;
    event->number = host_stream_newest(recorded);
    return CAPU_OK;
}

capu_status host_event_query(struct device *device, struct device_event *event)
{
    capu_status status = host_failure_of(host_of(device));

    if (status != CAPU_OK) {
        return status;
    }
    return event->stream == NULL || host_stream_is_done(event->stream, event->number)
               ? CAPU_OK
               : CAPU_NOT_READY;
}

capu_status host_event_wait(struct device *device, struct device_event *event)
{
    return event->stream == NULL ? host_failure_of(host_of(device))
                                 : host_stream_wait(event->stream, event->number);
}

capu_status host_stream_follow(struct device *device, capu_stream stream,
                               struct device_event *event)
{
    if (event->stream == NULL || event->stream == stream ||
        host_stream_is_done(event->stream, event->number)) {
        return host_failure_of(host_of(device));
    }
    return host_stream_push_follow(stream, event->stream, event->number);
}

/* Whether both are timed and have been reached. */
static capu_status check_times(struct device *device, const struct device_event *from,
                               const struct device_event *to)
{
    capu_status status = host_failure_of(host_of(device));

    if (!from->with_timing || !to->with_timing || from->stream == NULL || to->stream == NULL) {
        return CAPU_INVALID;
    }
    if (status != CAPU_OK) {
        return status;
    }
    return host_stream_is_done(from->stream, from->number) &&
                   host_stream_is_done(to->stream, to->number)
               ? CAPU_OK
               : CAPU_NOT_READY;
}

static uint64_t time_of(struct device_event *event)
{
    uint64_t ns;

    pthread_mutex_lock(&event->lock);
    ns = event->ns;
    pthread_mutex_unlock(&event->lock);
    return ns;
}

static struct device_tally tally_of(struct device_event *event)
{
    struct device_tally tally;

    pthread_mutex_lock(&event->lock);
    tally = event->tally;
    pthread_mutex_unlock(&event->lock);
    return tally;
}

capu_status host_event_elapsed(struct device *device, struct device_event *from,
                               struct device_event *to, uint64_t *ns)
{
    capu_status status = check_times(device, from, to);
    uint64_t start;
    uint64_t end;

    if (status != CAPU_OK) {
        return status;
    }
    start = time_of(from);
    end = time_of(to);
    *ns = end > start ? end - start : 0;
    return CAPU_OK;
}

capu_status host_event_tally(struct device *device, struct device_event *from,
                             struct device_event *to, struct device_tally *tally)
{
    capu_status status = from->stream == to->stream ? check_times(device, from, to) : CAPU_INVALID;
    struct device_tally start;
    struct device_tally end;

    if (status != CAPU_OK) {
        return status;
    }
    start = tally_of(from);
    end = tally_of(to);
    *tally = (struct device_tally){
        .waited_ns = end.waited_ns - start.waited_ns,
        .exchange_ns = end.exchange_ns - start.exchange_ns,
        .exchanged_bytes = end.exchanged_bytes - start.exchanged_bytes,
    };
    return CAPU_OK;
}
