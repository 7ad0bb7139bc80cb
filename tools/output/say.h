/* Messages for people, on standard error, each a line that begins with the program's name. What
   they quote may come from files, so control characters are escaped (printable.h). */
#ifndef CAPU_TOOLS_SAY_H
#define CAPU_TOOLS_SAY_H

#include "base/error_text.h"

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reports a failed call; an empty text means that memory ran out before there was one. */
void say_error(const struct error_text *error);

/* Reports that a file could not be written, with the reason from errno. */
void say_unwritten(const char *path);

#endif
