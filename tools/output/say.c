/* Messages, exit codes and numbers of the command. */
#include "tools/output/say.h"

#include "base/printable.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
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

int exit_code_of_plan(capu_status status, const struct error_text *error)
{
    if (status == CAPU_OK) {
        return EXIT_FINE;
    }
    say_error(error);
    return status == CAPU_OVER_BUDGET   ? EXIT_NO_PLAN
           : status == CAPU_UNSUPPORTED ? EXIT_NONE_FOUND
                                        : EXIT_USAGE;
}

const char *human_bytes(uint64_t bytes, char *buffer)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024.0 && unit < sizeof(units) / sizeof(units[0]) - 1) {
        value /= 1024.0;
        unit++;
    }
    snprintf(buffer, 32, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return buffer;
}

const char *human_ns(uint64_t ns, char *buffer)
{
    snprintf(buffer, 32, "%.3f ms", (double)ns / 1e6);
    return buffer;
}
