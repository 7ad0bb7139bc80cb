/*
 * The newest events of a program, and which of them are repetitions. For interpose/period/period.h.
 *
 * Events are numbered from 0. A rolling hash of all events up to each one compares two stretches of
 * any length in one step. Two that differ are taken for equal with a chance of about one in 2^64 a
 * comparison.
 *
 * Events with the same hash are linked, from the newest of their bucket on. That is not a table of
 * base: it forgets the oldest event by overwriting it, and never allocates.
 *
 * Owned by one thread. Its memory is constant, and only what is used of it is touched.
 */
#ifndef CAPU_INTERPOSE_HISTORY_H
#define CAPU_INTERPOSE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HISTORY_EVENTS = 1 << 15,                  /* that are kept */
    HISTORY_LONGEST = (HISTORY_EVENTS - 1) / 2 /* stretch that can be compared */
};

/* No event. */
#define HISTORY_NONE UINT64_MAX

struct history_event {
    uint64_t hash;
    uint64_t sum;     /* the rolling hash up to this event */
    uint64_t before;  /* the one before it in its bucket, or HISTORY_NONE */
    uint64_t wait_ns; /* as the caller gave it */
    uint64_t count;   /* of the events that count, up to this one */
    int64_t crossing; /* how many spans more there are before this event than before the last one */
    bool is_marked;
};

struct history {
    struct history_event events[HISTORY_EVENTS];
    uint64_t newest[HISTORY_EVENTS];      /* by hash: the newest event of the bucket, plus one */
    uint64_t powers[HISTORY_LONGEST + 1]; /* of the rolling hash's base */
    uint64_t count;                       /* events so far */
    int64_t ended;                        /* spans since the newest event */
};

/* Pre: all bytes are zero. */
void history_init(struct history *history);

void history_add(struct history *history, uint64_t hash, uint64_t wait_ns, bool counts,
                 bool is_marked);

/* A span has ended that began when there were `born` events: something that lasted from the event
   with that number to the newest one. */
void history_span(struct history *history, uint64_t born);

/* Pre: the event is one of the newest HISTORY_EVENTS. */
const struct history_event *history_get(const struct history *history, uint64_t number);

/* The newest event before this one that has the same hash; HISTORY_NONE: it is not known. */
uint64_t history_before(const struct history *history, uint64_t number);

/* Whether the newest `length` events equal those before them. */
bool history_is_repeated(const struct history *history, uint64_t length);

/* How many of the newest `length` events count. Pre: history_is_repeated. */
uint64_t history_counted(const struct history *history, uint64_t length);

#endif
