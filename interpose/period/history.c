/* The newest events of a program, see history.h. */
#include "interpose/period/history.h"

#include "base/hash.h"

/* A rolling hash is a polynomial, so that the sum of a stretch is a difference; hash_mix cannot do
   that. */
#define BASE HASH_FACTOR

void history_init(struct history *history)
{
    history->powers[0] = 1;
    for (size_t i = 1; i <= HISTORY_LONGEST; i++) {
        history->powers[i] = history->powers[i - 1] * BASE;
    }
}

const struct history_event *history_get(const struct history *history, uint64_t number)
{
    return &history->events[number % HISTORY_EVENTS];
}

void history_add(struct history *history, uint64_t hash, uint64_t wait_ns, bool counts,
                 bool is_marked)
{
    uint64_t number = history->count;
    uint64_t *newest = &history->newest[hash % HISTORY_EVENTS];
    struct history_event previous = {0};

    if (number > 0) {
        previous = *history_get(history, number - 1);
    }
    history->events[number % HISTORY_EVENTS] =
        (struct history_event){.hash = hash,
                               .sum = previous.sum * BASE + hash,
                               .before = *newest - 1,
                               .wait_ns = wait_ns,
                               .count = previous.count + counts,
                               .crossing = -history->ended,
                               .is_marked = is_marked};
    *newest = ++history->count;
    history->ended = 0;
}

void history_span(struct history *history, uint64_t born)
{
    if (born + 1 < history->count && history->count - born < HISTORY_EVENTS) {
        history->events[(born + 1) % HISTORY_EVENTS].crossing++;
        history->ended++;
    }
}

/* Events of a bucket are linked from the newest to the oldest; the links of those that are no
   longer kept lead nowhere. */
uint64_t history_before(const struct history *history, uint64_t number)
{
    uint64_t hash = history_get(history, number)->hash;
    uint64_t oldest = history->count > HISTORY_EVENTS ? history->count - HISTORY_EVENTS : 0;

    do {
        number = history_get(history, number)->before;
    } while (number != HISTORY_NONE && number >= oldest &&
             history_get(history, number)->hash != hash);
    return number != HISTORY_NONE && number >= oldest ? number : HISTORY_NONE;
}

/* Of the `length` events up to `end`, which is not one of them. */
static uint64_t sum_of(const struct history *history, uint64_t end, uint64_t length)
{
    uint64_t from = end - length;
    uint64_t before = from > 0 ? history_get(history, from - 1)->sum : 0;

    return history_get(history, end - 1)->sum - before * history->powers[length];
}

bool history_is_repeated(const struct history *history, uint64_t length)
{
    uint64_t end = history->count;

    return length > 0 && length <= HISTORY_LONGEST && 2 * length <= end &&
           sum_of(history, end, length) == sum_of(history, end - length, length);
}

uint64_t history_counted(const struct history *history, uint64_t length)
{
    return history_get(history, history->count - 1)->count -
           history_get(history, history->count - 1 - length)->count;
}
