/* Where the results of a subcommand go: the file given with --output, else standard output. */
#ifndef CAPU_TOOLS_OUTPUT_H
#define CAPU_TOOLS_OUTPUT_H

#include <stdbool.h>

#include "policy/string_buffer.h"

/* `path` NULL: standard output. False: an error has been printed. */
bool output_write(const char *path, const struct string_buffer *text);

#endif
