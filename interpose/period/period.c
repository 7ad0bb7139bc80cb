/*
 * Finding iterations, see period.h.
 *
 * While no period is known, each event is asked whether it ends a repetition: the distances to
 * earlier events with its hash are the periods that come into question. In a step most events occur
 * once, so a few distances are enough. While one is known, only its anchor is asked, which is part
 * of every longer period that matters.
 */
#include "interpose/period/period.h"

#include "base/array.h"
#include "interpose/period/history.h"

#include <stdlib.h>

_Static_assert((int)PERIOD_MOST_EVENTS <= (int)HISTORY_LONGEST, "the history compares two periods");

enum {
    TRIES = 32,           /* earlier events that are looked at, for one event */
    ANCHOR_TRIES = 512,   /* for an anchor: it may be part of a loop inside a step */
    MOST_PAUSE = 1 << 20, /* events */
    MOST_DOUBLED = 16     /* times that a pause is doubled */
};

struct anchor {
    enum period_anchor kind; /* PERIOD_NONE: there is none */
    uint64_t hash;
    uint64_t number; /* of its newest event */
};

/* A period in which no event occurs only once, as those that ended with event `end` - 1 showed. */
struct barren {
    uint64_t length;
    uint64_t end;
};

struct period {
    struct history history;
    bool is_named;
    uint64_t count;       /* events so far */
    struct anchor anchor; /* PERIOD_NONE: no period is known */
    uint64_t length;      /* events of an iteration, at most */
    struct barren barren; /* the newest; length 0: none */
    bool is_open;         /* an iteration is */
    bool is_early;        /* it has begun before its first event */
    uint64_t begun;       /* the number of the event that began it */
    unsigned failures;    /* in a row */
    unsigned pauses;      /* since an iteration was as expected */
    uint64_t resumes;     /* the number of the event with which a pause ends */
    struct period_state state;
};

struct period *period_create(bool is_named)
{
    struct period *period = calloc(1, sizeof(*period));

    if (period != NULL) {
        period->is_named = is_named;
        history_init(&period->history);
    }
    return period;
}

void period_destroy(struct period *period)
{
    free(period);
}

/* The fewest allocations that last across the start of an event, among `length` events of which the
   first is `from`; compared with that event. */
static int64_t least_crossing(const struct history *history, uint64_t from, uint64_t length)
{
    int64_t crossing = 0;
    int64_t least = 0;

    for (uint64_t i = from + 1; i < from + length; i++) {
        crossing += history_get(history, i)->crossing;
        least = crossing < least ? crossing : least;
    }
    return least;
}

/* Chooses the anchor of a period of `length` events, which the newest events repeat; only where the
   fewest allocations last across it, if asked to. */
static struct anchor choose_from(const struct history *history, uint64_t length, bool is_narrow)
{
    uint64_t end = history->count;
    uint64_t last_copy = end - 2 * length;
    uint64_t widest = 0;
    uint64_t longest = 0;
    /* Of the first repetition, since memory of the last one may be freed later. */
    int64_t least = least_crossing(history, end - 2 * length, length);
    int64_t crossing = 0;
    struct anchor anchor = {PERIOD_NONE, 0, 0};

    for (uint64_t i = end - 2 * length; i < end; i++) {
        const struct history_event *event = history_get(history, i);
        bool occurs_once = i >= end - length && history_before(history, i) == i - length;
        uint64_t wait_ns = 0;

        if (i > end - length) {
            crossing += history_get(history, i - length)->crossing;
        }
        occurs_once &= !is_narrow || crossing == least;
        if (occurs_once) {
            wait_ns = event->wait_ns + history_get(history, i - length)->wait_ns;
        }
        if (occurs_once && event->is_marked && i - last_copy > widest) {
            widest = i - last_copy;
            anchor = (struct anchor){PERIOD_BY_COPY, event->hash, i};
        } else if (occurs_once && wait_ns > longest && anchor.kind != PERIOD_BY_COPY) {
            longest = wait_ns;
            anchor = (struct anchor){PERIOD_BY_WAIT, event->hash, i};
        } else if (occurs_once && anchor.kind == PERIOD_NONE) {
            anchor = (struct anchor){PERIOD_BY_PLACE, event->hash, i};
        }
        last_copy = event->is_marked ? i : last_copy;
    }
    return anchor;
}

static struct anchor choose_anchor(const struct history *history, uint64_t length)
{
    struct anchor anchor = choose_from(history, length, true);

    return anchor.kind != PERIOD_NONE ? anchor : choose_from(history, length, false);
}

/* An anchor as choose finds it. While a repetition that has none goes on, it has the same events,
   and is not gone through again for each of them. */
static struct anchor find_anchor(struct period *period, uint64_t length)
{
    uint64_t end = period->history.count;
    struct anchor anchor = {PERIOD_NONE, 0, 0};

    if (length != period->barren.length || end - period->barren.end > length) {
        anchor = choose_anchor(&period->history, length);
    }
    if (anchor.kind == PERIOD_NONE) {
        period->barren = (struct barren){length, end};
    }
    return anchor;
}

/* How often the newest event occurs in the newest `length` ones, and at most how far apart. */
static uint64_t count_newest(const struct history *history, uint64_t length, uint64_t *widest)
{
    uint64_t last = history->count - 1;
    uint64_t at = last;
    uint64_t count = 0;

    *widest = 0;
    while (last - at < length) {
        uint64_t before = history_before(history, at);

        if (before == HISTORY_NONE) {
            break;
        }
        *widest = at - before > *widest ? at - before : *widest;
        at = before;
        count++;
    }
    return count;
}

static bool is_fresh(const struct period *period)
{
    return period->anchor.kind != PERIOD_NONE &&
           period->count - period->anchor.number <= 2 * period->length;
}

static void adopt(struct period *period, struct anchor anchor, uint64_t length)
{
    period->anchor = anchor;
    period->length = length;
    period->failures = 0;
    period->state.found_count++;
}

static void lengthen_period(struct period *period, uint64_t length)
{
    if (length > period->length) {
        period->length = length;
        period->state.found_count++;
    }
}

/* The newest events repeat after `length`. True: nothing longer needs to be looked at. */
static bool consider_length(struct period *period, uint64_t length)
{
    const struct history *history = &period->history;
    bool replaces = !is_fresh(period);
    struct anchor anchor;
    uint64_t widest;
    uint64_t times;

    if ((!replaces && length <= period->length) ||
        history_counted(history, length) < PERIOD_LEAST_LAUNCHES) {
        return false;
    }
    anchor = find_anchor(period, length);
    if (!replaces) { /* then the newest event is the anchor */
        times = count_newest(history, length, &widest);
        replaces = (times > 1 && times <= PERIOD_MICRO_STEPS) ||
                   (anchor.kind == PERIOD_BY_COPY && period->anchor.kind != PERIOD_BY_COPY);
        if (!replaces || anchor.kind == PERIOD_NONE) {
            lengthen_period(period, widest);
            return false;
        }
    }
    if (anchor.kind == PERIOD_NONE) {
        return false;
    }
    adopt(period, anchor, length);
    return true;
}

/* Looks for a repetition that ends with the newest event. */
static void look_for_period(struct period *period)
{
    const struct history *history = &period->history;
    uint64_t last = history->count - 1;
    uint64_t at = last;
    uint64_t smallest = 0;
    int tries = is_fresh(period) ? ANCHOR_TRIES : TRIES;

    for (int i = 0; i < tries; i++) {
        uint64_t length;

        at = history_before(history, at);
        length = last - at;
        if (at == HISTORY_NONE || length > PERIOD_MOST_EVENTS) {
            return;
        }
        /* Several of a shorter one are no longer period. */
        if ((smallest > 0 && length % smallest == 0) || !history_is_repeated(history, length)) {
            continue;
        }
        smallest = smallest > 0 ? smallest : length;
        if (consider_length(period, length)) {
            return;
        }
    }
}

static enum period_step begin_iteration(struct period *period)
{
    if (period->is_named && period->is_open) {
        period->length = period->count - 1 - period->begun;
    }
    period->is_open = true;
    period->begun = period->count - 1;
    period->anchor.number = period->begun;
    return PERIOD_BEGINS;
}

/* The first event of an iteration that has begun before it. */
static enum period_step catch_up(struct period *period)
{
    period->anchor.number = period->begun;
    return PERIOD_GOES_ON;
}

static enum period_step end_iteration(struct period *period)
{
    if (!period->is_open) {
        return PERIOD_GOES_ON;
    }
    period->is_open = false;
    return PERIOD_ENDS;
}

static bool is_anchor(const struct period *period, const struct period_event *event)
{
    return period->is_named
               ? event->is_named
               : period->anchor.kind != PERIOD_NONE && period->anchor.hash == event->hash;
}

enum period_step period_next(struct period *period, const struct period_event *event)
{
    uint64_t found = period->state.found_count;
    uint64_t most = period->is_named ? PERIOD_MOST_EVENTS : period->length;
    bool was_early = period->is_early;

    if (!period->is_named) {
        history_add(&period->history, event->hash, event->wait_ns, event->kind == PERIOD_LAUNCH,
                    event->kind == PERIOD_COPY_IN);
    }
    period->count++;
    period->is_early = false;
    if (period->count <= period->resumes) {
        return end_iteration(period);
    }
    if (!period->is_named && (!is_fresh(period) || is_anchor(period, event))) {
        look_for_period(period);
    }
    if (is_anchor(period, event)) {
        period->anchor.kind = period->is_named ? PERIOD_BY_NAME : period->anchor.kind;
        return was_early ? catch_up(period) : begin_iteration(period);
    }
    if (was_early || found != period->state.found_count ||
        period->count - 1 - period->begun >= most) {
        return end_iteration(period);
    }
    return PERIOD_GOES_ON;
}

bool period_is_missing(const struct period *period)
{
    uint64_t last = period->anchor.kind == PERIOD_NONE ? period->resumes
                                                       : period->anchor.number + 2 * period->length;

    return !period->is_named && period->count > last && period->count - last > PERIOD_PATIENCE;
}

uint64_t period_events(const struct period *period)
{
    return period->history.count;
}

void period_freed(struct period *period, uint64_t born)
{
    history_span(&period->history, born);
}

bool period_begins_early(struct period *period, bool is_named)
{
    uint64_t events = period->count - period->begun;
    bool is_due = period->is_open && period->anchor.kind != PERIOD_NONE && period->length > 0 &&
                  events >= period->length;

    if (period->is_early || period->count < period->resumes || !(is_due || is_named)) {
        return false;
    }
    if (period->is_named && period->is_open) {
        period->length = events;
    }
    period->is_open = true;
    period->is_early = true;
    period->begun = period->count;
    return true;
}

/* Ends the open iteration with the next event, and forgets the period. */
static void pause(struct period *period)
{
    uint64_t events = period->length > 0 ? period->length : 1;

    period->state.anchor = period->anchor.kind;
    period->state.events = period->length;
    period->state.pause_count++;
    period->failures = 0;
    events = (events * PERIOD_PAUSE) << period->pauses;
    period->resumes = period->count + (events < MOST_PAUSE ? events : MOST_PAUSE);
    period->pauses += period->pauses < MOST_DOUBLED;
    period->anchor.kind = PERIOD_NONE;
}

void period_note(struct period *period, bool was_expected)
{
    if (was_expected) {
        period->failures = 0;
        period->pauses = 0;
    } else if (++period->failures >= PERIOD_FAILURES && period->count >= period->resumes) {
        pause(period);
    }
}

void period_close(struct period *period)
{
    period->is_open = false;
    period->is_early = false;
}

struct period_state period_state(const struct period *period)
{
    struct period_state state = period->state;

    if (period->anchor.kind != PERIOD_NONE) {
        state.anchor = period->anchor.kind;
        state.events = period->length;
    }
    return state;
}

/* Ordinals. */

void ordinals_finish(struct ordinals *ordinals)
{
    free(ordinals->taken);
    *ordinals = (struct ordinals){0};
}

bool ordinals_take(struct ordinals *ordinals, uint64_t *number)
{
    unsigned bit;

    while (ordinals->first < ordinals->count && ordinals->taken[ordinals->first] == UINT64_MAX) {
        ordinals->first++;
    }
    if (ordinals->first == ordinals->count) {
        if (!array_reserve(&ordinals->taken, &ordinals->capacity, ordinals->count + 1,
                           sizeof(ordinals->taken[0]))) {
            return false;
        }
        ordinals->taken[ordinals->count++] = 0;
    }
    bit = (unsigned)__builtin_ctzll(~ordinals->taken[ordinals->first]);
    ordinals->taken[ordinals->first] |= UINT64_C(1) << bit;
    *number = ordinals->first * 64 + bit;
    return true;
}

void ordinals_give(struct ordinals *ordinals, uint64_t number)
{
    size_t word = (size_t)(number / 64);

    ordinals->taken[word] &= ~(UINT64_C(1) << number % 64);
    ordinals->first = word < ordinals->first ? word : ordinals->first;
}
