/* Checks a structure with its validator and reports the violation. */
#ifndef CAPU_TESTS_UNIT_ALLOCATOR_VALID_H
#define CAPU_TESTS_UNIT_ALLOCATOR_VALID_H

#include "tests/support/suite.h"

#define CHECK_VALID(validate, structure)                                              \
    do {                                                                              \
        const char *breach_ = "";                                                     \
        ck_assert_msg(validate((structure), &breach_), "%s: %s", #validate, breach_); \
    } while (0)

#endif
