/* Messages of the command. */
#include "tools/output/say.h"

#include "base/printable.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Longer than any message: two paths at most, and what is said of them. */
enum { MESSAGE_BYTES = 16384 };

void say(const char *format, ...)
{
    char message[MESSAGE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    fputs("capuchin: ", stderr);
    printable_print(stderr, message);
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
