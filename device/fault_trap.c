/* Fault traps and their signal handler, see fault_trap.h. */
#define _GNU_SOURCE
#include "device/fault_trap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

/* `end` is 0 while the trap is not set. It is written last and cleared first, so that the signal
   handler, which reads it before and after the rest, never mixes two uses of a node. */
struct fault_trap {
    struct fault_trap *next; /* constant once the node is in the list */
    _Atomic uintptr_t end;
    _Atomic uintptr_t start;
    _Atomic(fault_trap_handler *) handler;
    _Atomic(void *) owner;
};

static _Atomic(struct fault_trap *) traps;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static size_t set_count;                                 /* traps that are set */
static bool is_installed; /* the signal handler is, perhaps below another one */

/* What was installed before. Written before our handler can run. */
static struct sigaction earlier;

/* Asks the handler of the trap over the address, if one is set. */
static bool is_handled(void *address)
{
    uintptr_t at = (uintptr_t)address;

    for (struct fault_trap *trap = atomic_load(&traps); trap != NULL; trap = trap->next) {
        uintptr_t end = atomic_load(&trap->end);
        uintptr_t start = atomic_load(&trap->start);
        fault_trap_handler *handler = atomic_load(&trap->handler);
        void *owner = atomic_load(&trap->owner);

        if (at >= start && at < end && atomic_load(&trap->end) == end) {
            return handler(owner, address);
        }
    }
    return false;
}

/* Does what would have been done without us. */
static void pass_on(int signal_number, siginfo_t *info, void *machine)
{
    bool was_sent = info->si_code <= 0; /* by kill or the like, and not raised by a fault */

    if ((earlier.sa_flags & SA_SIGINFO) != 0) {
        earlier.sa_sigaction(signal_number, info, machine);
    } else if (earlier.sa_handler == SIG_IGN && was_sent) {
        return;
    } else if (earlier.sa_handler == SIG_DFL || earlier.sa_handler == SIG_IGN) {
        /* Blocked while this handler runs, so it is delivered when it returns. */
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    } else {
        earlier.sa_handler(signal_number);
    }
}

static void on_fault(int signal_number, siginfo_t *info, void *machine)
{
    int error = errno;

    /* Memory without the right to access it; other faults are not about protection. */
    if (info->si_code != SEGV_ACCERR || !is_handled(info->si_addr)) {
        pass_on(signal_number, info, machine);
    }
    errno = error;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == on_fault;
}

static bool is_handler(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* The lock is held. If ours was left in place below another handler, and that one is still there,
   it passes faults on to ours: installing ours above it as well would make a circle. */
static bool install_handler(void)
{
    struct sigaction action = {.sa_sigaction = on_fault};
    struct sigaction current;

    if (sigaction(SIGSEGV, NULL, &current) != 0) {
        return false;
    }
    if (is_ours(&current) || (is_installed && is_handler(&current))) {
        return true;
    }
    earlier = current;
    action.sa_mask = current.sa_mask;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | (current.sa_flags & (SA_NODEFER | SA_RESTART));
    is_installed = sigaction(SIGSEGV, &action, NULL) == 0;
    return is_installed;
}

/* The lock is held. */
static void uninstall(void)
{
    struct sigaction current;

    if (is_installed && sigaction(SIGSEGV, NULL, &current) == 0 && is_ours(&current)) {
        is_installed = sigaction(SIGSEGV, &earlier, NULL) != 0;
    }
}

/* A node that is not set, or a new one in the list; NULL: no memory. The lock is held. */
static struct fault_trap *find_or_make(void)
{
    struct fault_trap *trap = atomic_load(&traps);

    while (trap != NULL && atomic_load(&trap->end) != 0) {
        trap = trap->next;
    }
    if (trap == NULL) {
        trap = calloc(1, sizeof(*trap));
        if (trap != NULL) {
            trap->next = atomic_load(&traps);
            atomic_store(&traps, trap);
        }
    }
    return trap;
}

capu_status fault_trap_set(void *address, uint64_t bytes, fault_trap_handler *handler, void *owner,
                           struct fault_trap **out)
{
    struct fault_trap *trap;
    capu_status status = CAPU_OK;

    pthread_mutex_lock(&lock);
    trap = find_or_make();
    if (trap == NULL) {
        status = CAPU_NO_HOST_MEMORY;
    } else if (set_count == 0 && !install_handler()) {
        status = CAPU_DEVICE_FAILED;
    } else {
        set_count++;
        atomic_store(&trap->start, (uintptr_t)address);
        atomic_store(&trap->handler, handler);
        atomic_store(&trap->owner, owner);
        atomic_store(&trap->end, (uintptr_t)address + bytes);
        *out = trap;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void fault_trap_remove(struct fault_trap *trap)
{
    if (trap == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    atomic_store(&trap->end, 0);
    if (--set_count == 0) {
        uninstall();
    }
    pthread_mutex_unlock(&lock);
}
