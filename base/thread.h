/*
 * Threads of the library, which leave the program's signals alone.
 *
 * A signal that is sent to a process goes to any thread that does not block it. Ours block all
 * signals, so that a handler of the program never runs on them, and a signal that the program
 * blocks everywhere stays pending. It also turns SIGPIPE and SIGXFSZ into errors of the call that
 * would raise them. Not blocked are the signals that a fault raises: blocked, they would end the
 * process without its handler.
 */
#ifndef CAPU_BASE_THREAD_H
#define CAPU_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/*
 * Starts a thread that calls `run(argument)`. Of SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP and
 * SIGABRT it blocks those that the calling thread blocks, and it blocks all other signals. False:
 * the system has no room for another thread, and *thread is undefined. Any thread.
 */
bool thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

#endif
