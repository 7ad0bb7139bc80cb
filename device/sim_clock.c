/* The clock of the sim device, see sim_clock.h. */
#include "device/sim_clock.h"

#include "base/assert.h"
#include "device/device.h"

#include <stdlib.h>

#define WHOLE ((uint64_t)1 << 32)
#define FIRST_CAPACITY 64

/* The end of time is far enough away: 584 years. */
static uint64_t add_ns(uint64_t ns, uint64_t more)
{
    return more > UINT64_MAX - ns ? UINT64_MAX : ns + more;
}

void sim_clock_init(struct sim_clock *clock, const uint64_t shares[SIM_ENGINES])
{
    *clock = (struct sim_clock){0};
    for (unsigned i = 0; i < SIM_ENGINES; i++) {
        clock->shares[i] = shares[i] > 0 && shares[i] < WHOLE ? shares[i] : WHOLE;
    }
}

void sim_clock_finish(struct sim_clock *clock)
{
    for (unsigned i = 0; i < SIM_ENGINES; i++) {
        free(clock->engines[i].items);
    }
    *clock = (struct sim_clock){0};
}

/* The item with that number, counted from 1. */
static struct sim_item *item_of(const struct sim_engine *engine, uint64_t number)
{
    return &engine->items[number & (engine->capacity - 1)];
}

static capu_status grow_queue(struct sim_engine *engine)
{
    size_t capacity = engine->capacity == 0 ? FIRST_CAPACITY : engine->capacity * 2;
    struct sim_item *items = malloc(capacity * sizeof(*items));

    if (items == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint64_t number = engine->ended + 1; number <= engine->issued; number++) {
        struct sim_item *item = &items[number & (capacity - 1)];

        *item = *item_of(engine, number);
        if (item->waiting != NULL) {
            item->waiting->link = &item->waiting;
        }
    }
    free(engine->items);
    engine->items = items;
    engine->capacity = capacity;
    return CAPU_OK;
}

/* An engine whose items of the point have not all ended; SIM_ENGINES: there is
 * none. */
static unsigned find_pending(const struct sim_clock *clock, const struct sim_point *point)
{
    unsigned i = 0;

    while (i < SIM_ENGINES && clock->engines[i].ended >= point->items[i]) {
        i++;
    }
    return i;
}

bool sim_clock_has_passed(const struct sim_clock *clock, const struct sim_point *point)
{
    return find_pending(clock, point) == SIM_ENGINES;
}

/* The time is now, or it joins the list of an item. */
static void place_time(struct sim_clock *clock, struct sim_time *time)
{
    unsigned i = find_pending(clock, &time->point);
    struct sim_item *item;

    time->is_pending = i < SIM_ENGINES;
    if (!time->is_pending) {
        time->ns = clock->now_ns;
        return;
    }
    item = item_of(&clock->engines[i], time->point.items[i]);
    time->next = item->waiting;
    time->link = &item->waiting;
    if (time->next != NULL) {
        time->next->link = &time->next;
    }
    item->waiting = time;
}

void sim_clock_forget(struct sim_time *time)
{
    if (time->is_pending) {
        *time->link = time->next;
        if (time->next != NULL) {
            time->next->link = time->link;
        }
        time->is_pending = false;
    }
}

void sim_clock_set(struct sim_clock *clock, struct sim_time *time, const struct sim_point *point)
{
    sim_clock_forget(time);
    time->point = *point;
    place_time(clock, time);
}

capu_status sim_clock_issue(struct sim_clock *clock, unsigned engine, uint64_t ns,
                            struct sim_point *point)
{
    struct sim_engine *to = &clock->engines[engine];

    if (to->issued - to->ended >= to->capacity) {
        capu_status status = grow_queue(to);

        if (status != CAPU_OK) {
            return status;
        }
    }
    to->issued++;
    *item_of(to, to->issued) = (struct sim_item){.from = *point, .ns = ns};
    point->items[engine] = to->issued;
    return CAPU_OK;
}

/* Whether copies run in both directions. */
static bool is_duplex(const struct sim_clock *clock)
{
    return clock->engines[DEVICE_D2H].is_running && clock->engines[DEVICE_H2D].is_running;
}

/* What share of its own speed the engine has now. */
static uint64_t share_of(const struct sim_clock *clock, unsigned engine)
{
    return engine != DEVICE_COMPUTE && is_duplex(clock) ? clock->shares[engine] : WHOLE;
}

/* How long the running item still takes if nothing else begins or ends. */
static uint64_t rest_ns(const struct sim_clock *clock, unsigned engine)
{
    uint64_t share = share_of(clock, engine);
    unsigned __int128 ns = clock->engines[engine].left_ns;

    ns = (ns * WHOLE + share - 1) / share;
    return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

static void begin_items(struct sim_clock *clock)
{
    for (unsigned i = 0; i < SIM_ENGINES; i++) {
        struct sim_engine *engine = &clock->engines[i];

        if (!engine->is_running && engine->ended < engine->issued) {
            const struct sim_item *oldest = item_of(engine, engine->ended + 1);

            engine->is_running = sim_clock_has_passed(clock, &oldest->from);
            engine->left_ns = oldest->ns;
        }
    }
}

static void end_item(struct sim_clock *clock, struct sim_engine *engine)
{
    struct sim_time *waiting;

    engine->ended++;
    engine->is_running = false;
    waiting = item_of(engine, engine->ended)->waiting;
    while (waiting != NULL) {
        struct sim_time *next = waiting->next;

        place_time(clock, waiting); /* another item may have to end, too */
        waiting = next;
    }
}

/* Ends the items that end next, all at the same time. */
static void step_clock(struct sim_clock *clock)
{
    uint64_t rests[SIM_ENGINES];
    uint64_t least = UINT64_MAX;
    bool is_idle = true;

    begin_items(clock);
    for (unsigned i = 0; i < SIM_ENGINES; i++) {
        rests[i] = clock->engines[i].is_running ? rest_ns(clock, i) : UINT64_MAX;
        least = rests[i] < least ? rests[i] : least;
        is_idle = is_idle && !clock->engines[i].is_running;
    }
    ASSERT(!is_idle); /* items only follow items that were issued before them */
    for (unsigned i = 0; i < SIM_ENGINES; i++) {
        struct sim_engine *engine = &clock->engines[i];
        unsigned __int128 made = (unsigned __int128)least * share_of(clock, i) / WHOLE;

        if (engine->is_running) {
            engine->left_ns -= made < engine->left_ns ? (uint64_t)made : engine->left_ns;
        }
    }
    clock->now_ns = add_ns(clock->now_ns, least);
    for (unsigned i = 0; i < SIM_ENGINES; i++) {
        if (clock->engines[i].is_running && rests[i] == least) {
            end_item(clock, &clock->engines[i]);
        }
    }
}

/* Whether an item ends now: one that takes no time, and has not been looked at.
 */
static bool ends_now(struct sim_clock *clock)
{
    begin_items(clock);
    for (unsigned i = 0; i < SIM_ENGINES; i++) {
        if (clock->engines[i].is_running && clock->engines[i].left_ns == 0) {
            return true;
        }
    }
    return false;
}

void sim_clock_wait(struct sim_clock *clock, const struct sim_point *point)
{
    while (!sim_clock_has_passed(clock, point)) {
        step_clock(clock);
    }
    while (ends_now(clock)) {
        step_clock(clock);
    }
}

struct sim_point sim_point_later(const struct sim_point *one, const struct sim_point *other)
{
    struct sim_point later = *one;

    for (unsigned i = 0; i < SIM_ENGINES; i++) {
        if (other->items[i] > later.items[i]) {
            later.items[i] = other->items[i];
        }
    }
    return later;
}
