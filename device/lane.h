/*
 * A lane: a stream and the positions on it.
 *
 * A position means "everything enqueued on this lane up to here". It is how the rest of the library
 * names a moment on the device: memory may be reused after a position, a copy follows one, a report
 * takes the time between two. A position has passed once all of that work has completed.
 *
 * Positions are backed by a ring of events. It grows when needed and its events are reused once
 * they are retired, so that a steady iteration creates none. Events with timing cost about ten
 * times as much as those without. Therefore a lane with timing can also mark without it, and a
 * position that may never be asked for can be promised instead of marked.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_DEVICE_LANE_H
#define CAPU_DEVICE_LANE_H

#include "device/device.h"

struct lane_slot {
    struct device_event *events[2]; /* without timing, with timing; NULL: not made */
    bool has_time;                  /* which of the two the newest mark recorded */
    uint64_t stand_in;              /* the mark that stands for it: it was captured; 0: itself */
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
    bool is_captured;  /* work is recorded, not run: between lane_capture_begin and _end */
    uint64_t captured; /* the newest mark before that */
};

/* A moment on a lane. The zero position (no lane) has always passed. The sequence orders the
   positions of one lane. */
struct lane_position {
    struct lane *lane;
    uint64_t sequence;
};

/*
 * Uses the caller's `stream`; if it is NULL, the lane creates one and destroys it in the end.
 * DEVICE_FAILED, NO_HOST_MEMORY.
 */
capu_status lane_init(struct lane *lane, struct device *device, enum device_engine engine,
                      capu_stream stream, bool with_timing);

/* Waits for the stream's work. A zeroed lane is fine. */
void lane_finish(struct lane *lane);

/* Marks the point after everything enqueued so far. May create events when the ring is full. */
capu_status lane_mark(struct lane *lane, struct lane_position *position);

/* Like lane_mark, but the time of the mark cannot be asked for, even on a lane with timing. */
capu_status lane_mark_untimed(struct lane *lane, struct lane_position *position);

/*
 * The position after everything enqueued so far, without a mark yet. The mark is made when the host
 * or another lane has to wait for the position (untimed), or it is the lane's next mark. So it may
 * also cover work that was enqueued later, and its time means nothing.
 */
struct lane_position lane_promise(struct lane *lane);

/* The newest position, marked or promised; the zero position if there was none. */
struct lane_position lane_newest(struct lane *lane);

/* Whether the position has passed. Does not wait. If the device has failed, every position has
   passed: nothing more will run. */
bool lane_has_passed(struct lane_position position);

/* The host waits until the position has passed. Returns the device's failure if it has failed. */
capu_status lane_wait(struct lane_position position);

/* Later work of `lane` waits for the position. Nothing to do if it has passed or is on the same
   lane. */
capu_status lane_follow(struct lane *lane, struct lane_position position);

/* Device time between two marks with timing that have passed and are not retired; 0 if `to` came
   first. */
capu_status lane_elapsed_ns(struct lane_position from, struct lane_position to, uint64_t *ns);

/* What run functions have said between two such marks. */
capu_status lane_tally(struct lane_position from, struct lane_position to,
                       struct device_tally *tally);

/* Waits until everything enqueued so far has finished. */
capu_status lane_synchronize(struct lane *lane);

/* Allows the events of all marks up to the position, which has passed, to be reused.
   lane_elapsed_ns no longer knows those marks; everything else treats them as passed. */
void lane_retire(struct lane_position position);

/*
 * The lane's stream is being captured (device.h), together with all lanes that follow it or that it
 * follows; what is recorded will run after everything that these have so far. So positions from
 * before need not be followed, and none can be waited for: lane_wait and lane_synchronize return
 * WRONG_ORDER, and lane_has_passed says what is known already.
 */
void lane_capture_begin(struct lane *lane);

/* The stream runs again, and what was recorded, or a part that comes first, has been launched. The
   next mark must follow that launch: it stands for all marks that were captured. */
void lane_capture_end(struct lane *lane);

#endif
