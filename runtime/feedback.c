/* Windows of timed iterations, and what follows from them: see feedback.h. */
#include "runtime/feedback.h"

/* When a plan is remade: ops that moved by more than this much of all their time, or compute that
   stood still for this much more of the iteration than planned. */
enum { DRIFT_PERCENT = 10, STALL_PERCENT = 5, LINK_STEP_PERCENT = 85, LINK_LEAST_PERCENT = 30 };

/* STRAYS: iterations in a row that took another time than the last window's, by DRIFT_PERCENT. */
enum { FIRST_WINDOW = 4, MOST_ROUNDS = 6, STRAYS = 4 };

/* The model's steady state is the fourth iteration: until then copies that begin in one iteration
   for the next are missing. */
enum { SETTLING = 3 };

void feedback_init(struct guide *guide)
{
    guide->window = FIRST_WINDOW;
    guide->link_percent = 100;
}

void feedback_inherit(struct guide *guide, const struct guide *old)
{
    guide->round = old->round + 1;
    guide->window = old->window * 2;
}

void feedback_start(struct guide *guide)
{
    feedback_again(guide);
    guide->settling = SETTLING;
    guide->to_time += SETTLING;
}

bool feedback_wants_times(struct guide *guide, uint64_t every)
{
    guide->since_timed++;
    if (guide->to_time > 0) {
        guide->to_time--;
    } else if (guide->since_timed < every) {
        return false;
    }
    guide->since_timed = 0;
    return true;
}

void feedback_disregard(struct guide *guide)
{
    if (guide->settling == 0) {
        guide->settling = 1;
        guide->to_time++;
    }
}

uint64_t feedback_op_ns(const struct guide *guide, uint32_t op)
{
    return guide->ops[op].seen_ns / guide->sampled;
}

void feedback_restart(struct guide *guide)
{
    guide->sampled = 0;
    guide->seen_ns = 0;
    guide->seen_stall_ns = 0;
    for (uint32_t k = 0; k < guide->op_count; k++) {
        guide->ops[k].seen_ns = 0;
    }
}

void feedback_again(struct guide *guide)
{
    guide->to_time = guide->window;
    guide->strays = 0;
    feedback_restart(guide);
}

/* How far the ops' times are from those planned with, in percent of all their time. */
static uint64_t drift_percent(const struct guide *guide)
{
    uint64_t moved = 0;
    uint64_t all = 1;

    for (uint32_t k = 0; k < guide->op_count; k++) {
        uint64_t seen = feedback_op_ns(guide, k);
        uint64_t planned = guide->ops[k].ns;

        moved += seen > planned ? seen - planned : planned - seen;
        all += planned;
    }
    return moved >= UINT64_MAX / 100 ? UINT64_MAX : moved * 100 / all;
}

/* Whether compute stood still longer than planned by more than a few percent of the iteration. */
static bool is_late(const struct guide *guide)
{
    uint64_t seen = guide->seen_stall_ns / guide->sampled;
    uint64_t planned = guide->predicted_ns > guide->ideal_ns + guide->replay_ns
                           ? guide->predicted_ns - guide->ideal_ns - guide->replay_ns
                           : 0;

    return seen > planned && seen - planned > guide->predicted_ns / 100 * STALL_PERCENT;
}

static bool review(struct guide *guide, uint32_t *link_percent)
{
    bool has_moved = drift_percent(guide) > DRIFT_PERCENT;
    bool late = is_late(guide);
    uint32_t percent = guide->link_percent;

    if (late && !has_moved) {
        percent = percent * LINK_STEP_PERCENT / 100;
    }
    *link_percent = percent;
    return (has_moved || late) && percent >= LINK_LEAST_PERCENT && guide->round < MOST_ROUNDS;
}

/* An iteration whose ops were not timed: enough of another length in a row, and a window is. */
static void compare_whole(struct guide *guide, uint64_t ns)
{
    uint64_t usual = guide->measured_ns;
    uint64_t off = ns > usual ? ns - usual : usual - ns;

    guide->strays = off > usual / 100 * DRIFT_PERCENT ? guide->strays + 1 : 0;
    if (guide->strays >= STRAYS) {
        feedback_again(guide);
    }
}

bool feedback_take(struct guide *guide, const struct record *record, uint32_t *link_percent)
{
    if (guide->op_count != record->op_count) {
        return false;
    }
    if (guide->settling > 0) {
        guide->settling--;
        return false;
    }
    if (!record->is_timed) {
        compare_whole(guide, record->report.time_ns);
        return false;
    }
    for (uint32_t k = 0; k < guide->op_count; k++) {
        guide->ops[k].seen_ns += record->ops[k].ns;
    }
    guide->seen_ns += record->report.time_ns;
    guide->seen_stall_ns += record->report.stall_ns;
    guide->sampled++;
    if (guide->sampled < guide->window) {
        return false;
    }
    guide->measured_ns = guide->seen_ns / guide->sampled;
    if (review(guide, link_percent)) {
        return true;
    }
    feedback_restart(guide);
    return false;
}
