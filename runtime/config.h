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

/* Appends to the text of an error in creating a context which environment variables gave the values
   that it is about, unless it names them already. `from` is the caller's config. */
void config_name_variables(const capu_config *from, char *text, size_t text_bytes);

/* Frees the strings. */
void config_finish(capu_config *config);

#endif
