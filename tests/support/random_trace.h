/* Random traces from a seed: small, with everything that a trace can contain. */
#ifndef CAPU_TESTS_SUPPORT_RANDOM_TRACE_H
#define CAPU_TESTS_SUPPORT_RANDOM_TRACE_H

#include <stdint.h>

#include "policy/format/trace.h"

/* The next random number below `below`. *state is the state of the generator, not 0. */
uint64_t random_below(uint64_t *state, uint64_t below);

/*
 * Builds a trace of about `ops` ops: a forward pass, a backward pass that reads what forward wrote,
 * and updates. It contains tensors that are overwritten or updated in place, unmanaged tensors,
 * hints, segments, ops that are not replayable, and parameters that no op writes. Fails the test on
 * an error.
 */
void random_trace(struct trace *trace, uint64_t seed, uint32_t ops);

/*
 * Builds a trace that is legal but unusual. Tensors may have 0 bytes or all the same size, be all
 * persistent or all transient, mostly unmanaged, or never accessed. Ops may take no time, have no
 * operands, or many writes and updates. The machine may have the slowest or fastest allowed links,
 * and extreme latencies.
 */
void random_odd_trace(struct trace *trace, uint64_t seed, uint32_t ops);

#endif
