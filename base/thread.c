/* Threads, see thread.h. */
#include "base/thread.h"

#include <signal.h>
#include <stddef.h>

static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};

bool thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
    sigset_t before;
    sigset_t blocked;
    int error;

    /* A thread inherits its mask. Setting it in the thread itself would be too late for a signal
       that arrives while the thread starts. */
    sigfillset(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    for (size_t i = 0; i < sizeof(fault_signals) / sizeof(fault_signals[0]); i++) {
        if (!sigismember(&before, fault_signals[i])) {
            sigdelset(&blocked, fault_signals[i]);
        }
    }
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    error = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}
