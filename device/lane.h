/*
 * A lane: a stream and the positions reached in it.
 *
 * A position says "everything enqueued on this lane up to here". It is how the rest of the library
 * names a moment on the device: memory is released behind a position, a copy follows one, a report
 * takes the time between two. Behind it is a ring of events, grown when needed and reused once
 * retired, so that a steady iteration creates none.
 *
 * Events with timing cost about ten times as much as those without, so a lane with timing can mark
 * without it, too; and a position that perhaps nobody will ask for can be promised instead of
 * marked.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_DEVICE_LANE_H
#define CAPU_DEVICE_LANE_H

#include "device/device.h"

struct lane_slot {
    struct device_event *events[2]; /* without timing, with timing; NULL: not made */
    bool has_time;                  /* which of them the newest mark recorded */
};

struct lane {
    struct device *device;
    capu_stream stream;
    bool owns_stream;
    bool with_timing;
    bool mixes;              /* with timing, and some marks are without */
    struct lane_slot *slots; /* ring: the mark with sequence s uses slots[s % capacity] */
    size_t capacity;
    uint64_t marked;   /* sequence of the newest mark; the first is 1 */
    uint64_t promised; /* of the newest promise: the next mark, or an earlier one */
    uint64_t done;     /* marks up to here are known to be reached */
    uint64_t retired;  /* marks up to here are reached and their events may be reused */
};

/* A moment on a lane. The zero position (no lane) is always past. Positions of one lane are ordered
   by their sequence. */
struct lane_position {
    struct lane *lane;
    uint64_t sequence;
};

/*
 * `stream` NULL: the lane creates its own and destroys it in the end; else the caller's is used.
 * DEVICE_FAILED, NO_HOST_MEMORY.
 */
capu_status lane_init(struct lane *lane, struct device *device, enum device_engine engine,
                      capu_stream stream, bool with_timing);

/* Waits for the stream's work. A zeroed lane is fine. */
void lane_finish(struct lane *lane);

/* Marks the point behind everything enqueued so far. May create events when the ring is full. */
capu_status lane_mark(struct lane *lane, struct lane_position *position);

/* As lane_mark, on a lane with timing too: a mark whose time nobody may ask for. */
capu_status lane_mark_untimed(struct lane *lane, struct lane_position *position);

/*
 * The position behind everything enqueued so far, without a mark: it is made when the host or
 * another lane is to wait for the position, untimed, or by the lane's next mark. It may so come to
 * stand behind work that was enqueued later, and its time means nothing.
 */
struct lane_position lane_promise(struct lane *lane);

/* The newest position, marked or promised; the zero position if there was none. */
struct lane_position lane_newest(struct lane *lane);

/* Whether the position is past. Does not wait. A failed device counts as past: nothing will come.
 */
bool lane_is_past(struct lane_position position);

/* The host waits until the position is past. Status of the device's failure, if it failed. */
capu_status lane_wait(struct lane_position position);

/* Later work of `lane` waits for the position. Nothing to do if it is past or on the same lane. */
capu_status lane_follow(struct lane *lane, struct lane_position position);

/* Device time between two marks with timing, both past and not retired; 0 if `to` came first. */
capu_status lane_elapsed_ns(struct lane_position from, struct lane_position to, uint64_t *ns);

/* Waits until everything enqueued so far has finished. */
capu_status lane_synchronize(struct lane *lane);

/* Lets the events of all marks up to the position be reused; it must be past. lane_elapsed_ns no
   longer knows those marks; everything else treats them as past. */
void lane_retire(struct lane_position position);

#endif
