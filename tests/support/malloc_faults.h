/*
 * Host allocations that fail on purpose, for sweeps: the n-th one fails, for n = 1, 2, ... until
 * the operation passes. Each thread has its own count, so that streams do not disturb a sweep.
 * Disarm before asserting: Check allocates too.
 */
#ifndef CAPU_TESTS_SUPPORT_MALLOC_FAULTS_H
#define CAPU_TESTS_SUPPORT_MALLOC_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* From now on allocation `call` of this thread (counted from 1) fails, or it and all later ones.
   0: none fails any more. */
void malloc_faults_arm(uint64_t call, bool is_lasting);

/* Allocations counted, and failed, since the last arming with a call. */
uint64_t malloc_faults_calls(void);
uint64_t malloc_faults_hits(void);

#endif
