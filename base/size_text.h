/*
 * Sizes in messages: for people in MiB, and exactly in bytes.
 */
#ifndef CAPU_BASE_SIZE_TEXT_H
#define CAPU_BASE_SIZE_TEXT_H

#include <stdint.h>

struct size_text {
    char text[64];
};

/* "18.90 MiB (19818086 bytes)". MiB are rounded up, so that a budget of so many suffices where one
   of so many bytes does. Sizes below 1 MiB are "2050 bytes". Use it in the call that needs it:
   size_text(bytes).text. */
struct size_text size_text(uint64_t bytes);

#endif
