/* The cases of ranks_test.c. Each runs on all ranks, and ends the process if a check fails. */
#ifndef CAPU_TESTS_PARALLEL_CASES_H
#define CAPU_TESTS_PARALLEL_CASES_H

#include "tests/parallel/ranks.h"

/* values.c */
void sums_have_one_order(void);
void integers_and_doubles(void);
void ranges_of_several_tensors(void);
void data_for_all(void);
void places_are_filled_in(void);
void nothing_is_sent_on_sim(void);
void counters(void);

/* programs.c */
void modes_and_budgets_differ(void);
void random_programs(void);

/* failures.c: with one rank most of them have nothing to check */
void collectives_that_differ(void);
void a_rank_that_leaves(void);
void a_rank_over_budget(void);
void a_rank_whose_op_fails(void);
void a_rank_that_says_it_failed(void);
void wrong_calls(void);

#endif
