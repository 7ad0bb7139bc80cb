/*
 * The memory of the machine that a new context may plan on: what MemAvailable of /proc/meminfo
 * says, or the limit of the control group that the process is in (a container's), if that is less.
 *
 * Pinned memory cannot be swapped out, so a host budget without a limit can take the whole machine.
 * Stateless; any thread.
 */
#ifndef CAPU_RUNTIME_HOST_MEMORY_H
#define CAPU_RUNTIME_HOST_MEMORY_H

#include <stdint.h>

/* Bytes of host memory; UINT64_MAX: not known. `root` is put before every path that is read: "", or
   a folder of tests. */
uint64_t host_memory_available(const char *root);

/* The host budget of a context that was given none: HOST_MEMORY_PERCENT of that; UINT64_MAX: not
   known. */
uint64_t host_memory_default_budget(const char *root);

enum { HOST_MEMORY_PERCENT = 40 };

#endif
