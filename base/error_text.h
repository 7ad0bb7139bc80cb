/*
 * Where a function of this room reports what went wrong: which file, line and field, or which
 * tensor and op. The caller owns the buffer and may pass NULL if it does not need the message.
 */
#ifndef CAPU_POLICY_ERROR_TEXT_H
#define CAPU_POLICY_ERROR_TEXT_H

#include "capuchin/status.h"

struct error_text {
    char text[384]; /* always terminated; cut where the message is longer */
};

/* Writes the message and returns `status`, so that a guard is one line. */
capu_status error_text_set(struct error_text *error, capu_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
