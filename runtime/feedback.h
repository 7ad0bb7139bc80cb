/*
 * Feedback: what the iterations of a plan tell about it, and in which of them ops are timed.
 *
 * Timing an op takes two timed events, so it is done where it is of use: in the first iterations of
 * a plan in force, until a window of them has been reviewed, and then now and then. What an
 * iteration takes as a whole is always known: where that strays from what the last window found,
 * another window is timed at once.
 *
 * Pure functions of a guide and of records.
 */
#ifndef CAPU_RUNTIME_FEEDBACK_H
#define CAPU_RUNTIME_FEEDBACK_H

#include "runtime/guide.h"

/* A new guide, with the times it was planned with. */
void feedback_init(struct guide *guide);

/* A guide made of what `old` saw: its windows are twice as long. */
void feedback_inherit(struct guide *guide, const struct guide *old);

/* The guide comes into force: it must settle, and is timed until it has been reviewed. */
void feedback_start(struct guide *guide);

/* An iteration of the guide in force begins: whether its ops are to be timed. In steady state one
   in `every` is. */
bool feedback_wants_times(struct guide *guide, uint64_t every);

/*
 * Takes what an iteration took that was guided to its end. True: a window of them is complete, and
 * the plan is to be remade with the times seen, for links of *link_percent of their measured rates:
 * the ops' own times moved, or compute stood still longer than planned; if it did though ops ran as
 * planned, for slower links.
 */
bool feedback_take(struct guide *guide, const struct record *record, uint32_t *link_percent);

/* The iteration under way does what no other of the plan does, and takes longer: it counts for
   nothing. */
void feedback_disregard(struct guide *guide);

/* What an op took, by the iterations of the window that is complete. */
uint64_t feedback_op_ns(const struct guide *guide, uint32_t op);

/* Another window is timed at once. */
void feedback_again(struct guide *guide);

/* The window is over. */
void feedback_restart(struct guide *guide);

#endif
