/* Which signature comes next, see history.h. */
#include "runtime/history.h"

#include <string.h>

/* The label's place, or the one that makes way for it. */
static struct history *place_of(struct histories *histories, const char *label)
{
    struct history *oldest = &histories->list[0];

    for (size_t i = 0; i < HISTORY_LABELS; i++) {
        struct history *history = &histories->list[i];

        if (history->label == label) {
            return history;
        }
        oldest = history->iteration < oldest->iteration ? history : oldest;
    }
    *oldest = (struct history){.label = label};
    return oldest;
}

void history_add(struct histories *histories, const char *label, uint64_t iteration,
                 uint64_t signature)
{
    struct history *history = place_of(histories, label);

    history->iteration = iteration;
    if (history->count == HISTORY_LENGTH) {
        memmove(history->signatures, history->signatures + 1,
                (HISTORY_LENGTH - 1) * sizeof(history->signatures[0]));
        history->count--;
    }
    history->signatures[history->count++] = signature;
}

const struct history *history_find(const struct histories *histories, const char *label)
{
    for (size_t i = 0; i < HISTORY_LABELS; i++) {
        if (histories->list[i].label == label) {
            return &histories->list[i];
        }
    }
    return NULL;
}

uint64_t history_newest(const struct history *history)
{
    return history->signatures[history->count - 1];
}

/* How much of the history before `end` is like its newest part. */
static size_t common_length(const struct history *history, size_t end)
{
    size_t length = 0;

    while (length < end && history->signatures[end - 1 - length] ==
                               history->signatures[history->count - 1 - length]) {
        length++;
    }
    return length;
}

static size_t times_seen(const struct history *history, uint64_t signature)
{
    size_t times = 0;

    for (size_t i = 0; i < history->count; i++) {
        times += history->signatures[i] == signature;
    }
    return times;
}

size_t history_predict(const struct history *history, uint64_t *signature)
{
    size_t best_length = 0;
    size_t best_times = 0;

    for (size_t end = 0; end < history->count; end++) {
        size_t length = common_length(history, end);
        size_t times;

        if (length < best_length) {
            continue;
        }
        times = times_seen(history, history->signatures[end]);
        if (length > best_length || times >= best_times) {
            best_length = length;
            best_times = times;
            *signature = history->signatures[end];
        }
    }
    return best_length;
}
