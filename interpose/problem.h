/* What went wrong, as a sentence for the user. The caller owns the buffer. */
#ifndef CAPU_INTERPOSE_PROBLEM_H
#define CAPU_INTERPOSE_PROBLEM_H

#include "capuchin/status.h"

struct problem {
    char text[256]; /* always terminated; cut where the message is longer */
};

/* Writes the message and returns `status`, so that a guard is one line. */
capu_status problem_set(struct problem *problem, capu_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
