/* Config: the caller's fields, the environment and the defaults become one complete config. */
#ifndef CAPU_RUNTIME_CONFIG_H
#define CAPU_RUNTIME_CONFIG_H

#include "capuchin/context.h"

/*
 * Fills *config from the caller's (NULL: none) and the environment, strings copied; sizes that only
 * the device can tell stay 0. On failure nothing is held and `text` names the field or variable.
 * INVALID, WRONG_STRUCT, UNSUPPORTED, NO_HOST_MEMORY.
 */
capu_status config_resolve(const capu_config *from, capu_config *config, char *text,
                           size_t text_bytes);

/* Frees the strings. */
void config_finish(capu_config *config);

#endif
