/* Live counters, see live.h. */
#include "runtime/record/live.h"

#include <stdlib.h>
#include <string.h>

#define IS_NEW 4u /* in `newest`, besides an index */

struct live *live_create(const struct live_subject *subject)
{
    struct live *live = calloc(1, sizeof(*live));

    if (live != NULL) {
        live->subject = *subject;
        live->filled = 0;
        live->read = 1;
        atomic_init(&live->newest, 2);
    }
    return live;
}

void live_destroy(struct live *live)
{
    free(live);
}

void live_publish(struct live *live)
{
    live->samples[live->filled] = live->own;
    live->filled =
        atomic_exchange_explicit(&live->newest, live->filled | IS_NEW, memory_order_acq_rel) &
        ~IS_NEW;
}

const struct live_sample *live_newest(struct live *live)
{
    if ((atomic_load_explicit(&live->newest, memory_order_relaxed) & IS_NEW) != 0) {
        live->read =
            atomic_exchange_explicit(&live->newest, live->read, memory_order_acq_rel) & ~IS_NEW;
    }
    return &live->samples[live->read];
}

void live_copy_text(char *to, size_t bytes, const char *from)
{
    size_t length = from != NULL ? strlen(from) : 0;

    if (length >= bytes) {
        length = bytes - 1;
        while (length > 0 && ((unsigned char)from[length] & 0xC0) == 0x80) {
            length--;
        }
    }
    if (length > 0) {
        memcpy(to, from, length);
    }
    to[length] = '\0';
}

/* Puts a stall in its place among the longest. */
static void note_stall(struct live_sample *own, const capu_stall *stall)
{
    size_t at = own->stall_count;

    while (at > 0 && own->stalls[at - 1].wait_ns < stall->wait_ns) {
        at--;
    }
    if (at == LIVE_STALLS) {
        return;
    }
    own->stall_count += own->stall_count < LIVE_STALLS;
    memmove(&own->stalls[at + 1], &own->stalls[at],
            (own->stall_count - at - 1) * sizeof(own->stalls[0]));
    own->stalls[at] = (struct live_stall){.access = stall->access, .wait_ns = stall->wait_ns};
    live_copy_text(own->stalls[at].op, LIVE_NAME_BYTES, stall->op);
    live_copy_text(own->stalls[at].replay, LIVE_NAME_BYTES, stall->replay);
}

void live_note_report(struct live *live, const capu_report *report)
{
    struct live_sample *own = &live->own;

    own->report = *report;
    own->report.label = NULL;
    own->report.floor_op = NULL;
    own->report.plan_error = NULL;
    own->report.evictions = NULL;
    own->report.eviction_count = 0;
    own->report.stalls = NULL;
    own->report.stall_count = 0;
    live_copy_text(own->label, sizeof(own->label), report->label);
    live_copy_text(own->floor_op, sizeof(own->floor_op), report->floor_op);
    live_copy_text(own->plan_error, sizeof(own->plan_error), report->plan_error);
    if (own->time_count == LIVE_TIMES) {
        memmove(&own->times_ns[0], &own->times_ns[1], (LIVE_TIMES - 1) * sizeof(own->times_ns[0]));
        own->time_count--;
    }
    own->times_ns[own->time_count++] = report->time_ns;
    if (report->stall_count > 0) {
        own->stalls_iteration = report->iteration;
        own->stall_count = 0;
        for (size_t i = 0; i < report->stall_count; i++) {
            note_stall(own, &report->stalls[i]);
        }
    }
}
