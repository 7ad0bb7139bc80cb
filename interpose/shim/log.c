/* Messages on standard error, see log.h. */
#include "interpose/shim/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void log_line(const char *format, ...)
{
    char line[1024] = "capuchin: ";
    size_t used = strlen(line);
    int error = errno;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line + used, sizeof(line) - used - 1, format, arguments);
    va_end(arguments);
    used += length < 0 ? 0 : (size_t)length;
    if (used > sizeof(line) - 2) {
        used = sizeof(line) - 2;
    }
    line[used] = '\n';
    (void)!write(STDERR_FILENO, line, used + 1);
    errno = error;
}
