/*
 * Where the results of a subcommand go: the file given with --output, else standard output. A
 * regular file is replaced as a whole (base/files.h), so a failure leaves the old one.
 */
#ifndef CAPU_TOOLS_OUTPUT_H
#define CAPU_TOOLS_OUTPUT_H

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "policy/format/string_buffer.h"

/* A file that a command reads or writes, as named on its command line. */
struct output_file {
    const char *name; /* "TRACE", or the option */
    const char *path; /* NULL: not given */
    bool is_written;
};

/* Checks, before anything takes time, that every file to write can be written, and that it is not
   another file of the command, also through links. False: an error has been printed. */
bool output_check(const struct output_file *files, size_t count);

/* `path` NULL: standard output. False: an error has been printed. */
bool output_write(const char *path, const struct string_buffer *text);

/* Prints an object as one line of JSON, and releases it. Numbers with a point have nine digits, and
   the line is ASCII, whatever the names in it contain. NULL: memory ran out while it was made.
   False: an error has been printed. */
bool output_json(FILE *file, json_t *object);

/* Writes what a file of ours contains. False: an error has been printed. */
bool output_copy(const char *path, const char *from);

#endif
