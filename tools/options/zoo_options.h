/* The options that `capuchin model` and `capuchin maxbatch` share: the network, its variant, and
 * the machine. */
#ifndef CAPU_TOOLS_ZOO_OPTIONS_H
#define CAPU_TOOLS_ZOO_OPTIONS_H

#include "models/zoo.h"
#include "tools/options/arguments.h"

struct zoo_settings {
    const char *model; /* NULL: not named yet */
    const char *machine;
    struct zoo_options options;
};

enum zoo_key {
    ZOO_KEY_DTYPE = 512,
    ZOO_KEY_UPDATE,
    ZOO_KEY_GRANULARITY,
    ZOO_KEY_ATTENTION,
    ZOO_KEY_SEQUENCE,
    ZOO_KEY_IMAGE
};

/* A child parser, whose input is a struct zoo_settings: the options and the argument MODEL. */
extern const struct argp zoo_argp;

/* Finds the model and the machine by name. False: an error has been printed, with the known names.
 */
bool zoo_settings_find(const struct zoo_settings *settings, const struct zoo_model **model,
                       struct hardware *hardware);

/* One model per line. */
void zoo_print_list(FILE *file);

#endif
