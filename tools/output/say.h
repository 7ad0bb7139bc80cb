/* Messages for people, on standard error, each a line that begins with the program's name. What
   they quote may come from files, so control characters are escaped (printable.h). */
#ifndef CAPU_TOOLS_SAY_H
#define CAPU_TOOLS_SAY_H

#include "base/error_text.h"
#include "capuchin/status.h"

#include <stdint.h>

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

#endif
