/* The tables of this room: programs as users write them, one subject per file. */
#ifndef CAPU_TESTS_IDIOMS_IDIOMS_H
#define CAPU_TESTS_IDIOMS_IDIOMS_H

#include "tests/idioms/loop.h"

/* Each ends with an entry without a name. */
extern const struct idiom idioms_memory[];
extern const struct idiom idioms_phases[];
extern const struct idiom idioms_search[];
extern const struct idiom idioms_sequences[];
extern const struct idiom idioms_skips[];
extern const struct idiom idioms_state[];
extern const struct idiom idioms_sums[];

#endif
