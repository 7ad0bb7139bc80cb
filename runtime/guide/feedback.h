/*
 * Feedback: what the iterations under a plan say about it, and in which of them ops are timed.
 *
 * A plan is made with times that were measured without it. Under the plan, ops may take longer
 * (copies share the memory's bandwidth), and copies may be slower than measured. So the first
 * iterations under a plan are a window: their times are summed, and when it is complete the plan
 * is reviewed. If the ops' own times moved, or compute stood still longer than planned, the plan is
 * made again with the times seen, of ops and of copies. Each such round doubles the window, and the
 * rounds are limited, because a review costs a plan and noise must not keep the planner busy
 * forever.
 *
 * Timing an op takes two timed events, so it is done where it is of use: in a window, and then in
 * one of many iterations. What an iteration takes as a whole is always known. If several in a row
 * take another time than the last window's, a new window begins at once. What run functions waited
 * for others (capu_run_waited) is part of no time here.
 *
 * Pure functions of the window and of records. Owned by the thread that owns the plan.
 */
#ifndef CAPU_RUNTIME_FEEDBACK_H
#define CAPU_RUNTIME_FEEDBACK_H

#include "runtime/iteration/record.h"

/* The rates that a plan was made for; 0: not known. */
struct feedback_link {
    uint64_t d2h_bytes_per_s;
    uint64_t h2d_bytes_per_s;
    uint32_t percent; /* of the rates that are known otherwise, because plans came too late */
};

struct feedback {
    uint32_t op_count;
    uint64_t *planned_ns; /* per op: what the plan was made with */
    uint64_t *seen_ns;    /* per op: sum over the iterations sampled */

    uint64_t predicted_ns; /* of an iteration, by the planner */
    uint64_t expected_ns;  /* the same at first; what a plan takes that proved to be the best */
    uint64_t ideal_ns;     /* of these, the ops without any wait */
    uint64_t replay_ns;    /* of these, ops that are run again */
    uint64_t measured_ns;  /* of an iteration, over the last window; 0: none yet */

    uint32_t settling;    /* iterations to come before times are those of a steady one */
    uint32_t to_time;     /* iterations to come whose ops are timed */
    uint64_t since_timed; /* iterations begun since the last one whose ops are timed */
    uint32_t strays;      /* iterations in a row that took another time than measured_ns */
    uint32_t sampled;     /* iterations of the present window */
    uint32_t window;      /* how many make it complete */
    uint32_t round;       /* how many plans this one improved on */
    uint64_t total_ns;    /* sum over the iterations sampled, as is: */
    uint64_t stall_ns;
    struct copy_sums copies[COPY_WAYS];
    struct feedback_link link;
    uint64_t copy_latency_ns;        /* as planned with */
    uint64_t bytes_per_s[COPY_WAYS]; /* of one direction alone: no plan is made for more */

    bool is_wrong; /* the plan does not fit its iterations: planning discards it */
};

/* For a new plan of so many ops, whose planned times the caller fills in. On failure zeroed.
   NO_HOST_MEMORY. */
capu_status feedback_init(struct feedback *feedback, uint32_t op_count);

/* A copy of what a plan that is not active yet says of itself. On failure zeroed. NO_HOST_MEMORY.
 */
capu_status feedback_copy(struct feedback *feedback, const struct feedback *from);

/* Host memory that its arrays take. */
uint64_t feedback_bytes(const struct feedback *feedback);

/* Zeroed is fine. */
void feedback_finish(struct feedback *feedback);

/* A plan made with what `old` saw: its windows are twice as long. */
void feedback_inherit(struct feedback *feedback, const struct feedback *old);

/* The plan becomes active: it must settle, and is timed until it has been reviewed. */
void feedback_start(struct feedback *feedback);

/* An iteration under the plan begins: whether its ops are to be timed. In steady state one in
   `every` is. */
bool feedback_wants_times(struct feedback *feedback, uint64_t every);

/* The same, asked ahead: whether those of the next one would be. */
bool feedback_times_next(const struct feedback *feedback, uint64_t every);

/*
 * Takes the times of an iteration that followed the plan to its end. True: a window is complete,
 * and the plan is to be made again with the times seen, for *link: the ops' own times moved, or
 * compute stood still longer than planned. The rates are those that the copies had,
 * but none is higher than that of a direction alone, which is measured better or given. Only if
 * compute stood still although ops and copies took what was planned are the links taken to be
 * slower.
 */
bool feedback_take(struct feedback *feedback, const struct record *record,
                   struct feedback_link *link);

/* The iteration under way does what others under the plan do not, and takes longer: it does not
   count. */
void feedback_disregard(struct feedback *feedback);

/* What an op took, by the iterations of the window. Pre: it is not empty. */
uint64_t feedback_op_ns(const struct feedback *feedback, uint32_t op);

/* The plan is the best there is, though it does not keep its prediction: it is expected to take
   what it took, and its ops what `newer` was made with. A new window begins. */
void feedback_accept(struct feedback *feedback, const struct feedback *newer);

/* A new window begins at once. */
void feedback_again(struct feedback *feedback);

/* The window is over. */
void feedback_restart(struct feedback *feedback);

#endif
