/*
 * Environment variables that name files, folders, libraries or sockets.
 *
 * A set-user-ID program, or one with file capabilities, runs with rights that the user who starts
 * it does not have, and that user sets the environment. A path from there would be read, written
 * or loaded with the program's rights. So in such a program these variables are as if unset.
 *
 * The variables that configure a context are read in runtime/context/config.c (config_resolve),
 * paths among them by environment_path. Those that `capuchin run` sets are read in
 * shim/driver/settings.c.
 */
#ifndef CAPU_BASE_ENVIRONMENT_H
#define CAPU_BASE_ENVIRONMENT_H

#include <stdbool.h>

/* Whether the kernel started this process with rights that its caller does not have (AT_SECURE).
   Constant for the life of the process. Thread: any. */
bool environment_is_secure(void);

/* As getenv(3), for a variable whose value leads to a path; NULL in a process that is secure. */
const char *environment_path(const char *name);

#endif
