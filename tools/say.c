/* Messages of the command. */
#include "tools/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void say(const char *format, ...)
{
    va_list arguments;

    fputs("capuchin: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

void say_error(const struct error_text *error)
{
    say("%s", error->text[0] != '\0' ? error->text : "out of memory");
}

void say_unwritten(const char *path)
{
    say("%s: cannot be written: %s", path, strerror(errno));
}
