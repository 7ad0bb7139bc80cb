/*
 * Where a function reports what went wrong: which file, line and field, or which tensor and op. The
 * caller owns the buffer and may pass NULL if it does not need the message.
 */
#ifndef CAPU_BASE_ERROR_TEXT_H
#define CAPU_BASE_ERROR_TEXT_H

struct error_text {
    char text[384]; /* always terminated; cut where the message is longer */
};

/* Writes the message and returns `status`, a capu_status, so that a guard is one line. */
int error_text_set(struct error_text *error, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
