/* An analysis as text, so that tests compare it with what they expect in one line per kernel:
   "closed: 0 read ids/ids; 0+16 updated ids/data". A word is parameter and offset, its role, and
   the classes of its addresses and of what decides whether its accesses happen. */
#ifndef CAPU_TESTS_UNIT_INTERPOSE_ANALYSIS_TEXT_H
#define CAPU_TESTS_UNIT_INTERPOSE_ANALYSIS_TEXT_H

#include "interpose/flow/roles.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ANALYSIS_TEXT_BYTES = 1024 };

static inline void analysis_text(const struct kernel *kernel, char text[static ANALYSIS_TEXT_BYTES])
{
    static const char *const classes[] = {"ids", "data", "unknown"};
    size_t length =
        (size_t)snprintf(text, ANALYSIS_TEXT_BYTES, "%s:", kernel->is_closed ? "closed" : "open");

    for (size_t i = 0; i < kernel->word_count && length < ANALYSIS_TEXT_BYTES - 100; i++) {
        const struct kernel_word *word = &kernel->words[i];
        char place[32] = "";

        if (word->offset == PTX_NONE) {
            snprintf(place, sizeof(place), "[]");
        } else if (word->offset != 0) {
            snprintf(place, sizeof(place), "+%" PRIu32, word->offset);
        }
        length +=
            (size_t)snprintf(text + length, ANALYSIS_TEXT_BYTES - length,
                             "%s %" PRIu32 "%s %s %s/%s", i == 0 ? "" : ";", word->parameter, place,
                             roles_name(word), classes[word->address], classes[word->condition]);
    }
}

#endif
