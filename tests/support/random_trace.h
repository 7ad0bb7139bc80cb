/* Random traces from a seed: small, and with everything a trace may have. */
#ifndef CAPU_TESTS_SUPPORT_RANDOM_TRACE_H
#define CAPU_TESTS_SUPPORT_RANDOM_TRACE_H

#include <stdint.h>

#include "policy/trace.h"

/* The next number of a generator whose state is *state (not 0), below `below`. */
uint64_t random_below(uint64_t *state, uint64_t below);

/*
 * A forward pass, a backward pass that reads what forward made, and updates, with about `ops` ops.
 * Among them tensors overwritten and updated in place, unmanaged ones, hints, segments, ops that
 * cannot be replayed, parameters nobody writes. Check fails the test where building does.
 */
void random_trace(struct trace *trace, uint64_t seed, uint32_t ops);

/*
 * The same for what is legal and unusual: tensors of 0 bytes or of one size, all persistent or all
 * transient, most unmanaged, never accessed; ops of no time, without operands, with many writes and
 * updates; links at the slowest and the fastest that a machine may have, and latencies as long.
 */
void random_odd_trace(struct trace *trace, uint64_t seed, uint32_t ops);

#endif
