/*
 * Fibers: functions with stacks of their own that run in turn. Only the scheduler, which is the
 * code that calls fiber_resume, is outside of them. They switch without calls of the system, except
 * under ASan, which has to know about each stack. One set per process; the machine's lock guards
 * it.
 */
#ifndef CAPU_TESTS_PTX_MACHINE_FIBERS_H
#define CAPU_TESTS_PTX_MACHINE_FIBERS_H

#include <stdbool.h>

enum { FIBERS_MOST = 16384 };

/* Makes sure that so many exist. False: no memory. */
bool fibers_reserve(unsigned count);

/* Runs fiber `index` until it waits or its function returns; a fiber that has not begun, or has
   returned, begins. True: it has returned. */
bool fiber_resume(unsigned index, void (*run)(unsigned index));

/* In a fiber: back to the scheduler. */
void fiber_wait(void);

/* In a fiber: ends its function. */
void fiber_return(void) __attribute__((noreturn));

/* Forgets what the fibers were doing: they begin anew. Outside of them. */
void fibers_abandon(void);

#endif
