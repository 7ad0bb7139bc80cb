/*
 * Host allocations that fail on purpose, for sweeps: the n-th allocation fails, for n = 1, 2, ...
 * until the operation succeeds. Each thread has its own count, so that streams do not disturb a
 * sweep. Disarm before an assertion, because Check allocates too.
 */
#ifndef CAPU_TESTS_SUPPORT_MALLOC_FAULTS_H
#define CAPU_TESTS_SUPPORT_MALLOC_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* Makes allocation number `call` of this thread fail, counted from 1, and all later ones too if
   `is_lasting`. 0: none fails any more. */
void malloc_faults_arm(uint64_t call, bool is_lasting);

/* The number of allocations, and of failures, since the last arming with a call. */
uint64_t malloc_faults_calls(void);
uint64_t malloc_faults_hits(void);

#endif
