/* Statuses and failures, see failure.h. Also the version of the library. */
#include "runtime/context/failure.h"

#include "capuchin/status.h"
#include "capuchin/version.h"

#include <stdarg.h>
#include <stdio.h>

/* Names and texts of status codes. */

const char *capu_status_name(capu_status status)
{
    switch (status) {
#define NAME(name, value, text) \
    case CAPU_##name:           \
        return "CAPU_" #name;
        CAPU_STATUS_LIST(NAME)
#undef NAME
    }
    return "CAPU_?";
}

const char *capu_status_text(capu_status status)
{
    switch (status) {
#define TEXT(name, value, text) \
    case CAPU_##name:           \
        return text;
        CAPU_STATUS_LIST(TEXT)
#undef TEXT
    }
    return "not a status code";
}

const char *capu_version(void)
{
    return CAPU_VERSION_STRING;
}

/* The last error, and lost contexts. */

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
