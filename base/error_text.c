/* Messages of errors, written into a buffer of the caller. */
#include "base/error_text.h"

#include <stdarg.h>
#include <stdio.h>

int error_text_set(struct error_text *error, int status, const char *format, ...)
{
    va_list arguments;

    if (error == NULL) {
        return status;
    }
    va_start(arguments, format);
    if (vsnprintf(error->text, sizeof(error->text), format, arguments) < 0) {
        error->text[0] = '\0';
    }
    va_end(arguments);
    return status;
}
