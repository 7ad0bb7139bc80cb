/*
 * Iterations found in a program's calls: which event begins one.
 *
 * An event is a launch, a copy, a memset or a call of a library; its hash says which, and which
 * pointers it was given, but neither its grid nor the size of a copy, since those vary from
 * iteration to iteration. A period is found when the last P events equal the P events before them,
 * and eight of them are launches. Its anchor is the event that begins an iteration: one that occurs
 * once in the period. That is the first of the copies from the host, else the event after the
 * longest wait of the host, else any; if possible one before which nothing is allocated that is
 * freed soon after it. From then on each anchor begins an iteration at once. An
 * iteration ends at the next anchor, or when it has had as many events as the longest period with
 * this anchor: what a program does only now and then is in no iteration.
 *
 * A step may contain smaller repetitions, which are found first. A longer period that has the
 * anchor several times replaces the shorter one if it has it up to four times (a step of a few
 * micro-steps), or if only the longer one begins with a copy from the host. Otherwise, as with a
 * validation after many training steps, each anchor goes on beginning an iteration.
 *
 * A wrong period costs time and nothing else. The caller reports iterations that were not as
 * expected: after three of them in a row no iteration begins for a while, and the period is looked
 * for anew. Each such pause is twice as long as the one before.
 *
 * Pure: no clock, no I/O. Owned by one thread. Memory is constant, about 2 MiB; only what is
 * used of it is touched. A period has up to PERIOD_MOST_EVENTS events.
 */
#ifndef CAPU_INTERPOSE_PERIOD_H
#define CAPU_INTERPOSE_PERIOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PERIOD_LEAST_LAUNCHES = 8, /* of a period that is found */
    PERIOD_MOST_EVENTS = 16000,
    PERIOD_FAILURES = 3,    /* in a row, before a pause */
    PERIOD_PAUSE = 16,      /* iterations: the length of the first pause */
    PERIOD_MICRO_STEPS = 4, /* anchors of a shorter period that make one iteration */
    PERIOD_PATIENCE = 2000, /* events in which a period should be found */
};

enum period_kind { PERIOD_LAUNCH, PERIOD_COPY_IN, PERIOD_OTHER };

struct period_event {
    uint64_t hash;
    uint64_t wait_ns; /* how long the host had waited for the device since the event before */
    uint32_t kind;    /* period_kind */
    bool is_named;    /* it begins an iteration because the user says so */
};

enum period_step {
    PERIOD_GOES_ON, /* nothing changes */
    PERIOD_BEGINS,  /* an iteration begins before this event; one that is open ends */
    PERIOD_ENDS     /* the open iteration ends before this event */
};

/* How the anchor was chosen. */
enum period_anchor {
    PERIOD_NONE, /* no period is known */
    PERIOD_BY_COPY,
    PERIOD_BY_WAIT,
    PERIOD_BY_PLACE, /* any event that occurs once */
    PERIOD_BY_NAME
};

struct period;

/* `is_named`: iterations begin where events say so, and no period is looked for. NULL: no host
   memory. */
struct period *period_create(bool is_named);
void period_destroy(struct period *period);

/* Takes the next event, before it happens, and says what begins or ends there. */
enum period_step period_next(struct period *period, const struct period_event *event);

/*
 * Memory is about to be allocated. If all events of the open iteration have happened, or
 * `is_named` says that the next event begins one, the next iteration begins here: programs allocate
 * what a step works on before its first event, and free it in the step. True: it does; one that is
 * open ends. If the next event is not the anchor, the iteration ends there.
 */
bool period_begins_early(struct period *period, bool is_named);

/* Whether none has been found for PERIOD_PATIENCE events, nor one that was known has occurred. */
bool period_is_missing(const struct period *period);

/* How many events there have been, for period_freed. */
uint64_t period_events(const struct period *period);

/* Memory is freed that was allocated when there had been `born` events. No iteration should begin
   in between, since it would work on other memory each time. */
void period_freed(struct period *period, uint64_t born);

/* What became of an iteration: it was as expected, or not. Iterations of which neither is known
   need no call. */
void period_note(struct period *period, bool was_expected);

/* The open iteration has ended for another reason. */
void period_close(struct period *period);

struct period_state {
    enum period_anchor anchor; /* of the period that is known, or was known last */
    size_t events;             /* of an iteration, at most */
    uint64_t found_count;      /* periods that were found: new ones, or longer ones */
    uint64_t pause_count;
};

struct period_state period_state(const struct period *period);

/*
 * Numbers for allocations that do not depend on addresses: an allocation gets the lowest number
 * that no other one has. A program that allocates and frees the same memory in each iteration
 * thereby gets the same numbers in each, wherever the memory is.
 *
 * Zeroed is empty. Owned by one thread.
 */
struct ordinals {
    uint64_t *taken; /* a bit per number; owned */
    size_t count, capacity;
    size_t first; /* all words before this one are full */
};

void ordinals_finish(struct ordinals *ordinals);

/* Takes the lowest number that is free. False: no host memory. */
bool ordinals_take(struct ordinals *ordinals, uint64_t *number);

/* Pre: the number is taken. */
void ordinals_give(struct ordinals *ordinals, uint64_t number);

#endif
