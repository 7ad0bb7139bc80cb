/* What devices share when they are made: refusing with a text, and the memory that they may have.
 */
#ifndef CAPU_DEVICE_OPTIONS_H
#define CAPU_DEVICE_OPTIONS_H

#include "device/device.h"

/* Writes the text, if one is wanted, and returns the status. */
capu_status options_refuse(capu_status status, char *text, size_t text_bytes, const char *format,
                           ...) __attribute__((format(printf, 4, 5)));

/* Rounds the memory down to whole pages, page_bytes being a power of two. OVER_BUDGET: not one. */
capu_status options_round_memory(struct device_options *options, char *text, size_t text_bytes);

#endif
