/* Failures, see failure.h. */
#include "runtime/context/failure.h"

#include "runtime/context/internal.h"

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

void failure_quiesce(capu_context *context, struct lane *lane)
{
    struct lane_position now;

    capture_give_up(context, "a call had to wait for the device");
    if (lane_synchronize(lane) != CAPU_OK &&
        device_failure(context->lanes.device, NULL, 0) == CAPU_OK &&
        lane_mark(lane, &now) == CAPU_OK) {
        lane_wait(now);
    }
}

void failure_quiesce_all(capu_context *context)
{
    failure_quiesce(context, &context->lanes.compute);
    failure_quiesce(context, &context->lanes.d2h);
    failure_quiesce(context, &context->lanes.h2d);
}
