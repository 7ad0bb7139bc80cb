/*
 * What a context uses of the machine: the device that its config names, the link to plan with, and
 * the host memory that it may plan on if its config does not say. Stateless; any thread.
 */
#ifndef CAPU_RUNTIME_DEVICE_CHOICE_H
#define CAPU_RUNTIME_DEVICE_CHOICE_H

#include "device/device.h"
#include "runtime/context/config.h"

#include <stdint.h>

/*
 * "auto" takes the first cuda device, and the host only if there is no cuda device at all: a device
 * that exists but fails, or does not fit the config, is an error.
 */

/* Creates the device. `config` comes from config_resolve. On failure *device is untouched and
   `text` says what is wrong: INVALID (no such name), and the errors of creating a device. */
capu_status device_choice_open(const struct config *config, struct device **device, char *text,
                               size_t text_bytes);

/* The link that plans are made for: what the device knows, else what the config says was measured,
   else what is measured now, within config->budget_bytes. After an error *link is what is known.
   Those of calibration_complete. */
capu_status device_choice_measure(struct device *device, const struct config *config,
                                  struct device_link *link);

/*
 * The memory of the machine that a new context may plan on: what MemAvailable of /proc/meminfo
 * says, or the limit of the control group that the process is in (a container's), if that is less.
 * Pinned memory cannot be swapped out, so a host budget without a limit can take the whole machine.
 */

/* Bytes of host memory; UINT64_MAX: not known. `root` is put before every path that is read: "", or
   a folder of tests. */
uint64_t host_memory_available(const char *root);

/* The host budget of a context that was given none: HOST_MEMORY_PERCENT of that; UINT64_MAX: not
   known. */
uint64_t host_memory_default_budget(const char *root);

enum { HOST_MEMORY_PERCENT = 40 };

#endif
