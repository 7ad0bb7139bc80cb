/*
 * Fault traps: address ranges in which a memory fault is handled instead of ending the process.
 *
 * A device that guards its memory sets a trap over each range that it reserves. If a thread of the
 * process touches memory there that it has no right to, the trap's handler decides: it makes the
 * memory accessible and notes the fault, or declines. Every other fault, and every fault that is
 * declined, goes to the handler that was there before, or to the default action.
 *
 * The signal handler for SIGSEGV is installed with the first trap and removed with the last one, if
 * no other has been installed over it since. In between it calls the earlier handler with what it
 * was called with.
 *
 * Any thread. The signal handler takes no lock and allocates nothing: it walks a list of nodes that
 * are reused and never freed.
 */
#ifndef CAPU_DEVICE_FAULT_TRAP_H
#define CAPU_DEVICE_FAULT_TRAP_H

#include "capuchin/status.h"

#include <stdbool.h>
#include <stdint.h>

struct fault_trap;

/* Called by the signal handler, on the thread that faulted: only what is safe there is allowed.
   True: the access may be repeated. */
typedef bool fault_trap_handler(void *owner, void *address);

/* Sets a trap over [address, address + bytes), which no other trap meets. NO_HOST_MEMORY, and
   DEVICE_FAILED if the signal handler cannot be installed. */
capu_status fault_trap_set(void *address, uint64_t bytes, fault_trap_handler *handler, void *owner,
                           struct fault_trap **trap);

/* Pre: no thread can fault in the range any more. NULL is fine. */
void fault_trap_remove(struct fault_trap *trap);

#endif
