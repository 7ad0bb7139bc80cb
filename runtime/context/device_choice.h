/*
 * The device that a config names, and the link to plan with.
 *
 * "auto" takes the first cuda device, and the host only if there is no cuda device at all: a device
 * that exists but fails, or does not fit the config, is an error. Stateless; any thread.
 */
#ifndef CAPU_RUNTIME_DEVICE_CHOICE_H
#define CAPU_RUNTIME_DEVICE_CHOICE_H

#include "capuchin/context.h"
#include "device/device.h"

/* Creates the device. `config` comes from config_resolve. On failure *device is untouched and
   `text` says what is wrong: INVALID (no such name), and the errors of creating a device. */
capu_status device_choice_open(const capu_config *config, struct device **device, char *text,
                               size_t text_bytes);

/* The link that plans are made for: what the device knows, else what the config says was measured,
   else what is measured now, within config->budget_bytes. After an error *link is what is known.
   Those of calibration_complete. */
capu_status device_choice_measure(struct device *device, const capu_config *config,
                                  struct device_link *link);

#endif
