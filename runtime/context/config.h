/* Config: combines the caller's fields, the environment and the defaults into one config. */
#ifndef CAPU_RUNTIME_CONFIG_H
#define CAPU_RUNTIME_CONFIG_H

#include "capuchin/context.h"

/*
 * Fills *config from the caller's config (NULL: none), the environment and the defaults. Strings
 * are copied; release them with config_finish. Fields whose default depends on the device stay 0.
 * On failure *config is unchanged, nothing is held, and `text` names the field or variable.
 * INVALID, WRONG_STRUCT, NO_HOST_MEMORY.
 */
capu_status config_resolve(const capu_config *from, capu_config *config, char *text,
                           size_t text_bytes);

/* Ends the text of an error in creating a context with the environment variables that gave the
   values which it is about, unless it names them already, and copies it to the buffer of the
   caller's config, if that has one. `from` is that config, or NULL. */
void config_report_error(const capu_config *from, capu_status status, char *text,
                         size_t text_bytes);

/* Frees the strings. */
void config_finish(capu_config *config);

#endif
