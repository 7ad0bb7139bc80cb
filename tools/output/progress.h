/*
 * Progress of long work, and how SIGINT ends it. While work is under way, one line on standard
 * error says how far it is and how long it may still take; if standard error is not a terminal,
 * nothing is printed. The first SIGINT asks the work to stop, so that it can hand over what it has;
 * the second one ends the process at once. Programs that ignore SIGINT go on ignoring it.
 *
 * One piece of work at a time per process, and one thread that calls these functions: a signal
 * handler has no other way to find them.
 */
#ifndef CAPU_TOOLS_PROGRESS_H
#define CAPU_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* The exit code of work that was stopped: what a shell gives a process that SIGINT has ended. */
enum { EXIT_STOPPED = 130 };

/* `what` names the work, in a few words; NULL: nothing is shown. `steps` is how often progress_step
   will be called, 0 if that is not known; `limit_s` is the time after which the work ends anyway, 0
   if there is none. The time left follows from them. */
void progress_begin(const char *what, uint64_t steps, double limit_s);

/* A step is done, or several are. */
void progress_step(void);
void progress_steps(uint64_t count);

/* Takes the line away until it is drawn again, so that the caller may print results. */
void progress_clear(void);

/* How long the work may still take, where the caller knows better than by steps; it is shown until
   that time has passed. */
void progress_set_left(double seconds);

/* What else the line says; it is copied, and may be cut off. */
void progress_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Is there a terminal to show the line on? */
bool progress_is_shown(void);

/* Draws the line, at most a few times per second, and returns true after a SIGINT. Its type is that
   of planner_request.should_stop; the argument is not used. */
bool progress_should_stop(void *unused);

/* Seconds since progress_begin. */
double progress_seconds(void);

/* Takes the line away and gives SIGINT its former meaning. True: the work was stopped. */
bool progress_end(void);

#endif
