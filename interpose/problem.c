/* Messages about files and kernels, see problem.h. */
#include "interpose/problem.h"

#include <stdarg.h>
#include <stdio.h>

capu_status problem_set(struct problem *problem, capu_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (vsnprintf(problem->text, sizeof(problem->text), format, arguments) < 0) {
        problem->text[0] = '\0';
    }
    va_end(arguments);
    return status;
}
