/* The file of a program that is to be started with a preloaded library. */
#ifndef CAPU_TOOLS_PROGRAM_FILE_H
#define CAPU_TOOLS_PROGRAM_FILE_H

#include <limits.h>
#include <stdbool.h>

/* Finds a program as a shell does: by its path, or in the folders of $PATH. False: it is not there,
   and an error has been printed. */
bool program_file_find(const char *name, char path[PATH_MAX]);

/* Whether a library can be preloaded into it: not into statically linked programs, and not into
   those that run with the rights of another user. A script is fine, since its interpreter counts.
   False: an error has been printed. */
bool program_file_check(const char *path);

#endif
