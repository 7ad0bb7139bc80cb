/*
 * Marks for profilers: what the library is doing, as NVTX ranges of the domain "capuchin". If no
 * profiler is attached, or the build lacks NVTX's headers, a mark costs one call.
 *
 * Any thread. A range that was begun ends on the same thread, innermost first; one that was opened
 * may be closed on any.
 */
#ifndef CAPU_DEVICE_MARKS_H
#define CAPU_DEVICE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

/* X(NAME, text): kinds, which are NVTX's categories. */
#define MARK_KINDS(X)         \
    X(ITERATION, "iteration") \
    X(OP, "op")               \
    X(SWAP_OUT, "swap-out")   \
    X(SWAP_IN, "swap-in")     \
    X(REPLAY, "replay")

#define MARK_ENUMERATOR(name, text) MARK_##name,
enum mark_kind { MARK_KINDS(MARK_ENUMERATOR) MARK_KIND_COUNT };
#undef MARK_ENUMERATOR

/* Whether a profiler is attached: only then is a payload worth computing. */
bool marks_are_on(void);

/* The bytes that an operand adds to an op's payload: those that are read and those that are
 * written. */
uint64_t marks_traffic(uint32_t role, uint64_t bytes);

/* Begins a range on this thread: "swap-out w1", or only "swap-out" if `name` is NULL. An op is just
   its name. `number` is its payload: bytes, or an iteration's number. */
void marks_begin(enum mark_kind kind, const char *name, uint64_t number);
void marks_end(void);

/* The same without nesting. marks_close takes the result of marks_open. */
uint64_t marks_open(enum mark_kind kind, const char *name, uint64_t number);
void marks_close(uint64_t range);

#endif
