/*
 * The clock of the sim device: three engines (compute, d2h, h2d) that each run
 * one item at a time in the order of issue, and copies that slow each other
 * down.
 *
 * An item takes as long as it does alone. While copies run in both directions,
 * each makes progress at a share of that speed. So when an item ends may depend
 * on what is issued later, and time is only ever computed up to the host's:
 * whatever is issued afterwards starts later. The host's time moves when the
 * host waits.
 *
 * A point names work that has been issued: up to an item of each engine. Since
 * engines run in order, a point is passed once these items have ended; a stream
 * is at a point, and an event remembers one until it is passed, from when on it
 * has a time.
 *
 * Owned by one thread.
 */
#ifndef CAPU_DEVICE_SIM_CLOCK_H
#define CAPU_DEVICE_SIM_CLOCK_H

#include "capuchin/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_ENGINES = 3 }; /* numbered as enum device_engine */

/* Per engine, how many of its items come first, all since the beginning. */
struct sim_point {
    uint64_t items[SIM_ENGINES];
};

/* A time to come. Zeroed, it is time 0. */
struct sim_time {
    struct sim_point point;
    bool is_pending; /* it is in the list of an item that has to end first */
    uint64_t ns;     /* when the point was passed, unless it is pending */
    struct sim_time *next;
    struct sim_time **link; /* what points to it in that list */
};

struct sim_item {
    struct sim_point from;    /* what it follows */
    uint64_t ns;              /* how long it takes alone */
    struct sim_time *waiting; /* times that are pending until it ends */
};

struct sim_engine {
    struct sim_item *items; /* ring of those that have not ended; its capacity is
                               a power of two */
    size_t capacity;
    uint64_t issued;
    uint64_t ended;
    bool is_running;  /* the oldest that has not ended */
    uint64_t left_ns; /* of it, as long as it would take alone */
};

struct sim_clock {
    uint64_t now_ns;
    struct sim_engine engines[SIM_ENGINES];
    /* Speed of a copy while there is one in the other direction: how much of 2^32
     * steps it makes. */
    uint64_t shares[SIM_ENGINES];
};

/* `shares` of 2^32, per engine, in (0, 2^32]; that of compute does not count.
 */
void sim_clock_init(struct sim_clock *clock, const uint64_t shares[SIM_ENGINES]);
void sim_clock_finish(struct sim_clock *clock);

/* Issues an item for a stream that is at *point, and moves the stream there.
 * NO_HOST_MEMORY. */
capu_status sim_clock_issue(struct sim_clock *clock, unsigned engine, uint64_t ns,
                            struct sim_point *point);

/* *time becomes that at which the point is passed, at the earliest now. It must
   not move, and must be forgotten before it is freed. */
void sim_clock_set(struct sim_clock *clock, struct sim_time *time, const struct sim_point *point);
void sim_clock_forget(struct sim_time *time);

/* Whether the point, or the time, has been passed. */
bool sim_clock_has_passed(const struct sim_clock *clock, const struct sim_point *point);

/* The host waits until the point is passed. */
void sim_clock_wait(struct sim_clock *clock, const struct sim_point *point);

/* The point after two others. */
struct sim_point sim_point_later(const struct sim_point *one, const struct sim_point *other);

#endif
