/* Windows of timed iterations, and what follows from them: see feedback.h. */
#include "runtime/guide/feedback.h"

#include "base/assert.h"

#include <stdlib.h>

/* When a plan is remade: ops that moved by more than this much of all their time, or compute that
   stood still for this much more of the iteration than planned. */
enum { DRIFT_PERCENT = 10, STALL_PERCENT = 5, LINK_STEP_PERCENT = 85, LINK_LEAST_PERCENT = 30 };

/* How far the copies' rate may be from that planned with. */
enum { RATE_PERCENT = 3 };

/* STRAYS: iterations in a row that took another time than the last window's, by DRIFT_PERCENT. */
enum { FIRST_WINDOW = 4, MOST_ROUNDS = 6, STRAYS = 4 };

/* The model's steady state is the fourth iteration: until then copies that begin in one iteration
   for the next are missing. */
enum { SETTLING = 3 };

capu_status feedback_init(struct feedback *feedback, uint32_t op_count)
{
    *feedback = (struct feedback){
        .op_count = op_count,
        .planned_ns = calloc((size_t)op_count + 1, sizeof(*feedback->planned_ns)),
        .seen_ns = calloc((size_t)op_count + 1, sizeof(*feedback->seen_ns)),
        .window = FIRST_WINDOW,
        .link.percent = 100,
    };
    if (feedback->planned_ns == NULL || feedback->seen_ns == NULL) {
        feedback_finish(feedback);
        return CAPU_NO_HOST_MEMORY;
    }
    return CAPU_OK;
}

capu_status feedback_copy(struct feedback *feedback, const struct feedback *from)
{
    struct feedback copy;
    capu_status status = feedback_init(&copy, from->op_count);

    *feedback = (struct feedback){0};
    if (status != CAPU_OK) {
        return status;
    }
    for (uint32_t k = 0; k < from->op_count; k++) {
        copy.planned_ns[k] = from->planned_ns[k];
        copy.seen_ns[k] = from->seen_ns[k];
    }
    *feedback = *from;
    feedback->planned_ns = copy.planned_ns;
    feedback->seen_ns = copy.seen_ns;
    return CAPU_OK;
}

uint64_t feedback_bytes(const struct feedback *feedback)
{
    return ((uint64_t)feedback->op_count + 1) *
           (sizeof(*feedback->planned_ns) + sizeof(*feedback->seen_ns));
}

void feedback_finish(struct feedback *feedback)
{
    free(feedback->planned_ns);
    free(feedback->seen_ns);
    *feedback = (struct feedback){0};
}

void feedback_inherit(struct feedback *feedback, const struct feedback *old)
{
    feedback->round = old->round + 1;
    feedback->window = old->window * 2;
}

void feedback_start(struct feedback *feedback)
{
    feedback_again(feedback);
    feedback->settling = SETTLING;
    feedback->to_time += SETTLING;
}

bool feedback_wants_times(struct feedback *feedback, uint64_t every)
{
    feedback->since_timed++;
    if (feedback->to_time > 0) {
        feedback->to_time--;
    } else if (feedback->since_timed < every) {
        return false;
    }
    feedback->since_timed = 0;
    return true;
}

bool feedback_times_next(const struct feedback *feedback, uint64_t every)
{
    return feedback->to_time > 0 || feedback->since_timed + 1 >= every;
}

void feedback_disregard(struct feedback *feedback)
{
    if (feedback->settling == 0) {
        feedback->settling = 1;
        feedback->to_time++;
    }
}

uint64_t feedback_op_ns(const struct feedback *feedback, uint32_t op)
{
    ASSERT(op < feedback->op_count && feedback->sampled > 0);
    return feedback->seen_ns[op] / feedback->sampled;
}

void feedback_restart(struct feedback *feedback)
{
    feedback->sampled = 0;
    feedback->total_ns = 0;
    feedback->stall_ns = 0;
    for (size_t way = 0; way < COPY_WAYS; way++) {
        feedback->copies[way] = (struct copy_sums){0};
    }
    for (uint32_t k = 0; k < feedback->op_count; k++) {
        feedback->seen_ns[k] = 0;
    }
}

void feedback_again(struct feedback *feedback)
{
    feedback->to_time = feedback->window;
    feedback->strays = 0;
    feedback_restart(feedback);
}

void feedback_accept(struct feedback *feedback, const struct feedback *newer)
{
    ASSERT(feedback->op_count == newer->op_count);
    feedback->expected_ns = feedback->measured_ns;
    feedback->ideal_ns = newer->ideal_ns;
    for (uint32_t k = 0; k < feedback->op_count; k++) {
        feedback->planned_ns[k] = newer->planned_ns[k];
    }
    feedback_again(feedback);
}

/* How far the ops' times are from those planned with, in percent of all their time. */
static uint64_t drift_percent(const struct feedback *feedback)
{
    uint64_t moved = 0;
    uint64_t all = 1;

    for (uint32_t k = 0; k < feedback->op_count; k++) {
        uint64_t seen = feedback_op_ns(feedback, k);
        uint64_t planned = feedback->planned_ns[k];

        moved += seen > planned ? seen - planned : planned - seen;
        all += planned;
    }
    return moved >= UINT64_MAX / 100 ? UINT64_MAX : moved * 100 / all;
}

/* Whether compute stood still longer than planned by more than a few percent of the iteration. */
static bool is_late(const struct feedback *feedback)
{
    uint64_t seen = feedback->stall_ns / feedback->sampled;
    uint64_t planned = feedback->expected_ns > feedback->ideal_ns + feedback->replay_ns
                           ? feedback->expected_ns - feedback->ideal_ns - feedback->replay_ns
                           : 0;

    return seen > planned && seen - planned > feedback->expected_ns / 100 * STALL_PERCENT;
}

/* Replaces a rate by that which the copies had, if it is another one. True: they were slower. */
static bool take_rate(const struct feedback *feedback, enum copy_way way, uint64_t *bytes_per_s)
{
    uint64_t planned = *bytes_per_s;
    uint64_t most = feedback->bytes_per_s[way];
    uint64_t seen = copy_sums_rate(&feedback->copies[way], feedback->copy_latency_ns);
    uint64_t off;

    seen = seen < most ? seen : most;
    off = seen > planned ? seen - planned : planned - seen;
    if (seen == 0 || off <= planned / 100 * RATE_PERCENT) {
        return false;
    }
    *bytes_per_s = seen;
    return seen < planned;
}

static bool review(const struct feedback *feedback, struct feedback_link *link)
{
    bool has_moved = drift_percent(feedback) > DRIFT_PERCENT;
    bool late = is_late(feedback);
    struct feedback_link found = feedback->link;
    bool out_is_slower = take_rate(feedback, COPY_OUT, &found.d2h_bytes_per_s);
    bool in_is_slower = take_rate(feedback, COPY_IN, &found.h2d_bytes_per_s);

    if (late && !has_moved && !out_is_slower && !in_is_slower) {
        found.d2h_bytes_per_s = found.d2h_bytes_per_s / 100 * LINK_STEP_PERCENT;
        found.h2d_bytes_per_s = found.h2d_bytes_per_s / 100 * LINK_STEP_PERCENT;
        found.percent = found.percent * LINK_STEP_PERCENT / 100;
    }
    *link = found;
    return (has_moved || late) && found.percent >= LINK_LEAST_PERCENT &&
           feedback->round < MOST_ROUNDS;
}

/* An iteration whose ops were not timed: enough of another length in a row, and a window is. */
static void compare_whole(struct feedback *feedback, uint64_t ns)
{
    uint64_t usual = feedback->measured_ns;
    uint64_t off = ns > usual ? ns - usual : usual - ns;

    feedback->strays = off > usual / 100 * DRIFT_PERCENT ? feedback->strays + 1 : 0;
    if (feedback->strays >= STRAYS) {
        feedback_again(feedback);
    }
}

/* How long the iteration took by itself: not its waits for others. */
static uint64_t own_ns(const struct report *report)
{
    return report->time_ns -
           (report->waited_ns < report->time_ns ? report->waited_ns : report->time_ns);
}

bool feedback_take(struct feedback *feedback, const struct record *record,
                   struct feedback_link *link)
{
    if (feedback->op_count != record->op_count) {
        return false;
    }
    if (feedback->settling > 0) {
        feedback->settling--;
        return false;
    }
    if (!record->is_timed) {
        compare_whole(feedback, own_ns(&record->report));
        return false;
    }
    for (uint32_t k = 0; k < feedback->op_count; k++) {
        feedback->seen_ns[k] += record->ops[k].ns;
    }
    feedback->total_ns += own_ns(&record->report);
    feedback->stall_ns += record->report.stall_ns;
    for (size_t way = 0; way < COPY_WAYS; way++) {
        feedback->copies[way].count += record->copies[way].count;
        feedback->copies[way].bytes += record->copies[way].bytes;
        feedback->copies[way].ns += record->copies[way].ns;
    }
    feedback->sampled++;
    if (feedback->sampled < feedback->window) {
        return false;
    }
    feedback->measured_ns = feedback->total_ns / feedback->sampled;
    if (review(feedback, link)) {
        return true;
    }
    feedback_restart(feedback);
    return false;
}
