/* Failures, see failure.h. */
#include "runtime/context/failure.h"

#include <stdarg.h>
#include <stdio.h>

capu_status failure_set(struct failure *failure, capu_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(failure->text, sizeof(failure->text), format, arguments);
    va_end(arguments);
    return status;
}

capu_status failure_explain(struct failure *failure, capu_status status, const char *attempt)
{
    char text[ERROR_TEXT_BYTES / 2];

    if (device_failure(failure->device, text, sizeof(text)) != CAPU_OK) {
        failure->lost = device_failure(failure->device, NULL, 0);
        return failure_set(failure, failure->lost, "%s", text);
    }
    if (status == CAPU_DEVICE_FAILED && text[0] != '\0') {
        return failure_set(failure, status, "%s: %s: %s", attempt, capu_status_text(status), text);
    }
    return failure_set(failure, status, "%s: %s", attempt, capu_status_text(status));
}
