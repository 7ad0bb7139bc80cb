/* The main function of every Check suite. */
#ifndef CAPU_TESTS_SUPPORT_SUITE_H
#define CAPU_TESTS_SUPPORT_SUITE_H

#include <check.h>
#include <stdlib.h>

/* Runs a suite in Check's default mode (forked, overridable by CK_FORK): 0 if everything passed. */
static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
