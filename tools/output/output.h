/* What the command prints and writes: messages, numbers for people, exit codes, and results. */
#ifndef CAPU_TOOLS_OUTPUT_H
#define CAPU_TOOLS_OUTPUT_H

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/format/string_buffer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Messages for people, on standard error, each a line that begins with the program's name. What
   they quote may come from files, so control characters are escaped (printable.h). */

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reports a failed call; an empty text means that memory ran out before there was one. */
void say_error(const struct error_text *error);

/* Reports that a file could not be written, with the reason from errno. */
void say_unwritten(const char *path);

/* Exit codes of the command. */

enum exit_code { EXIT_FINE = 0, EXIT_USAGE = 2, EXIT_NO_PLAN = 3, EXIT_NONE_FOUND = 4 };

/* The exit code for a planner's status. Reports the error on standard error. */
int exit_code_of_plan(capu_status status, const struct error_text *error);

/* Numbers in the units that people use: 12.34 GiB, 567.8 ms. `buffer` has 32 bytes. */

const char *human_bytes(uint64_t bytes, char *buffer);
const char *human_ns(uint64_t ns, char *buffer);

/* 0 if the whole is 0. */
double percent_of(uint64_t part, uint64_t whole);

/*
 * Where the results of a subcommand go: the file given with --output, else standard output. A
 * regular file is replaced as a whole (base/files.h), so a failure leaves the old one.
 */

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
