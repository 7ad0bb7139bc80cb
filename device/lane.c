/*
 * Lanes: see lane.h.
 *
 * Marks are numbered from 1, and retired <= done <= marked always holds. The ring holds the marks
 * after `retired`. Streams run in order, so when one mark is reached, so are all before it: a query
 * or wait that succeeds moves `done`, and later questions about earlier marks cost no device call.
 */
#include "device/lane.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* Two iterations of a small program; larger ones double it a few times in their first iteration. */
#define FIRST_CAPACITY 64 /* capacities are powers of two */

static struct lane_slot *slot_of(const struct lane *lane, uint64_t sequence)
{
    return &lane->slots[sequence & (lane->capacity - 1)];
}

/* The event of a mark that was made. */
static struct device_event *event_of(struct lane_position position)
{
    const struct lane_slot *slot = slot_of(position.lane, position.sequence);

    ASSERT(position.sequence > position.lane->retired &&
           position.sequence <= position.lane->marked);
    if (slot->stand_in != 0) {
        slot = slot_of(position.lane, slot->stand_in);
    }
    return slot->events[slot->has_time];
}

/* Remembers that the marks up to `sequence` are reached: streams run in order. */
static void advance_done(struct lane *lane, uint64_t sequence)
{
    if (lane->done < sequence) {
        lane->done = sequence;
    }
}

/* Creates one kind of event for all slots, so that a steady iteration creates none. An event that
   cannot be created now is created when its slot is used. */
static void make_events(struct lane *lane, bool with_timing)
{
    for (size_t i = 0; i < lane->capacity; i++) {
        struct device_event **event = &lane->slots[i].events[with_timing];

        if (*event == NULL && device_event_create(lane->device, with_timing, event) != CAPU_OK) {
            return;
        }
    }
}

/* Moves the live marks into a ring of twice the size. On failure nothing has changed. */
static capu_status grow_ring(struct lane *lane)
{
    size_t capacity = lane->capacity == 0 ? FIRST_CAPACITY : lane->capacity * 2;
    struct lane_slot *slots = calloc(capacity, sizeof(*slots));

    if (slots == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    /* The ring is full, so its live marks name every old slot once. */
    for (uint64_t sequence = lane->retired + 1; sequence <= lane->marked; sequence++) {
        slots[sequence & (capacity - 1)] = *slot_of(lane, sequence);
    }
    free(lane->slots);
    lane->slots = slots;
    lane->capacity = capacity;
    make_events(lane, lane->with_timing);
    if (lane->mixes) {
        make_events(lane, false);
    }
    return CAPU_OK;
}

/* Makes room for one more mark. A lane without timing has no use for the event of a mark that is
   reached, so it reuses those before it grows, even if they were not retired. */
static capu_status make_room(struct lane *lane)
{
    if (lane->marked - lane->retired < lane->capacity) {
        return CAPU_OK;
    }
    if (!lane->with_timing && lane->capacity > 0) {
        struct lane_position oldest = {lane, lane->retired + 1};

        if (lane_has_passed(oldest)) {
            /* On a failed device this is true, too, but then the record that follows is refused. */
            advance_done(lane, oldest.sequence);
            lane->retired = lane->done;
            return CAPU_OK;
        }
    }
    return grow_ring(lane);
}

capu_status lane_init(struct lane *lane, struct device *device, enum device_engine engine,
                      capu_stream stream, bool with_timing)
{
    bool owns_stream = stream == NULL;

    if (owns_stream) {
        capu_status status = device_stream_create(device, engine, &stream);

        if (status != CAPU_OK) {
            return status;
        }
    }
    memset(lane, 0, sizeof(*lane));
    lane->device = device;
    lane->stream = stream;
    lane->owns_stream = owns_stream;
    lane->with_timing = with_timing;
    return CAPU_OK;
}

void lane_finish(struct lane *lane)
{
    if (lane == NULL || lane->device == NULL) {
        return;
    }
    (void)device_stream_synchronize(lane->device, lane->stream);
    for (size_t index = 0; index < lane->capacity; index++) {
        device_event_destroy(lane->device, lane->slots[index].events[false]);
        device_event_destroy(lane->device, lane->slots[index].events[true]);
    }
    free(lane->slots);
    if (lane->owns_stream) {
        device_stream_destroy(lane->device, lane->stream);
    }
    memset(lane, 0, sizeof(*lane));
}

static capu_status mark_position(struct lane *lane, bool with_timing,
                                 struct lane_position *position)
{
    struct device_event **event;
    struct lane_slot *slot;
    capu_status status = make_room(lane);

    with_timing = with_timing && !lane->is_captured;
    ASSERT(lane->retired <= lane->done && lane->done <= lane->marked);
    if (status != CAPU_OK) {
        return status;
    }
    slot = slot_of(lane, lane->marked + 1);
    event = &slot->events[with_timing];
    if (*event == NULL) {
        status = device_event_create(lane->device, with_timing, event);
        if (status != CAPU_OK) {
            return status;
        }
    }
    status = device_event_record(lane->device, *event, lane->stream);
    if (status != CAPU_OK) {
        return status;
    }
    slot->has_time = with_timing;
    slot->stand_in = 0;
    lane->marked++;
    position->lane = lane;
    position->sequence = lane->marked;
    return CAPU_OK;
}

capu_status lane_mark(struct lane *lane, struct lane_position *position)
{
    return mark_position(lane, lane->with_timing, position);
}

capu_status lane_mark_untimed(struct lane *lane, struct lane_position *position)
{
    if (lane->with_timing && !lane->mixes) {
        lane->mixes = true;
        make_events(lane, false);
    }
    return mark_position(lane, false, position);
}

struct lane_position lane_promise(struct lane *lane)
{
    lane->promised = lane->marked + 1;
    return (struct lane_position){.lane = lane, .sequence = lane->promised};
}

struct lane_position lane_newest(struct lane *lane)
{
    uint64_t newest = lane->promised > lane->marked ? lane->promised : lane->marked;

    return newest > 0 ? (struct lane_position){.lane = lane, .sequence = newest}
                      : (struct lane_position){0};
}

/* Makes the mark of a position that was promised and never marked. */
static capu_status keep_promise(struct lane_position position)
{
    struct lane_position kept;

    return position.sequence <= position.lane->marked ? CAPU_OK
                                                      : lane_mark_untimed(position.lane, &kept);
}

bool lane_has_passed(struct lane_position position)
{
    struct lane *lane = position.lane;
    capu_status status;

    if (lane == NULL || position.sequence <= lane->done) {
        return true;
    }
    if (position.sequence > lane->marked || lane->is_captured) {
        return device_failure(lane->device, NULL, 0) != CAPU_OK;
    }
    status = device_event_query(lane->device, event_of(position));
    if (status == CAPU_OK) {
        advance_done(lane, position.sequence);
    }
    return status != CAPU_NOT_READY;
}

capu_status lane_wait(struct lane_position position)
{
    struct lane *lane = position.lane;
    capu_status status;

    if (lane == NULL) {
        return CAPU_OK;
    }
    if (position.sequence <= lane->done) {
        return device_failure(lane->device, NULL, 0);
    }
    if (lane->is_captured) {
        return CAPU_WRONG_ORDER;
    }
    status = keep_promise(position);
    if (status == CAPU_OK) {
        status = device_event_wait(lane->device, event_of(position));
    }
    if (status == CAPU_OK) {
        advance_done(lane, position.sequence);
    }
    return status;
}

capu_status lane_follow(struct lane *lane, struct lane_position position)
{
    capu_status status;

    if (position.lane == lane || lane_has_passed(position) ||
        (position.lane->is_captured && position.sequence <= position.lane->captured)) {
        return CAPU_OK;
    }
    status = keep_promise(position);
    return status != CAPU_OK ? status
                             : device_stream_follow(lane->device, lane->stream, event_of(position));
}

/* Whether the position's event is not yet reused and has a time. */
static bool has_time(struct lane_position position)
{
    const struct lane *lane = position.lane;

    return lane != NULL && position.sequence > lane->retired && position.sequence <= lane->marked &&
           slot_of(lane, position.sequence)->has_time;
}

capu_status lane_elapsed_ns(struct lane_position from, struct lane_position to, uint64_t *ns)
{
    if (!has_time(from) || !has_time(to) || from.lane->device != to.lane->device) {
        return CAPU_INVALID;
    }
    return device_event_elapsed(from.lane->device, event_of(from), event_of(to), ns);
}

capu_status lane_tally(struct lane_position from, struct lane_position to,
                       struct device_tally *tally)
{
    if (!has_time(from) || !has_time(to) || from.lane->device != to.lane->device) {
        return CAPU_INVALID;
    }
    return device_event_tally(from.lane->device, event_of(from), event_of(to), tally);
}

capu_status lane_synchronize(struct lane *lane)
{
    capu_status status = lane->is_captured ? CAPU_WRONG_ORDER
                                           : device_stream_synchronize(lane->device, lane->stream);

    if (status == CAPU_OK) {
        advance_done(lane, lane->marked);
    }
    return status;
}

void lane_retire(struct lane_position position)
{
    struct lane *lane = position.lane;

    if (lane == NULL || position.sequence > lane->marked) {
        return;
    }
    advance_done(lane, position.sequence);
    if (lane->retired < position.sequence) {
        lane->retired = position.sequence;
    }
}

void lane_capture_begin(struct lane *lane)
{
    lane->is_captured = true;
    lane->captured = lane->marked;
}

void lane_capture_end(struct lane *lane)
{
    for (uint64_t sequence = lane->captured + 1; sequence <= lane->marked; sequence++) {
        slot_of(lane, sequence)->stand_in = lane->marked + 1;
    }
    lane->is_captured = false;
}
