/* What devices share in their creation: refusal with a text, and rounding of the memory. */
#ifndef CAPU_DEVICE_OPTIONS_H
#define CAPU_DEVICE_OPTIONS_H

#include "device/device.h"

/* Writes the text, if one is wanted, and returns the status. */
capu_status options_refuse(capu_status status, char *text, size_t text_bytes, const char *format,
                           ...) __attribute__((format(printf, 4, 5)));

/* The rule by which the page is chosen. Pre: memory_bytes is set. */
struct device_page_rule options_page_rule(const struct device_options *options,
                                          uint64_t least_bytes, uint64_t most_pages);

/* Rounds the memory down to whole pages; page_bytes is a power of two. OVER_BUDGET: less than one
   page. */
capu_status options_round_memory(struct device_options *options, char *text, size_t text_bytes);

#endif
