/*
 * The execution model, item by item: three engines (compute, copies out, copies in), memory that is
 * handed over in stream order, and four times per tensor.
 *
 * The timeline drives it over a whole program; the lowering drives it while it decides, so both
 * agree to the nanosecond on what has been issued so far. It does not record which tensors are
 * resident or which version is where: the caller does.
 */
#ifndef CAPU_POLICY_CLOCK_H
#define CAPU_POLICY_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "capuchin/status.h"
#include "policy/format/trace.h"

/* Longer times are rejected, so that adding one more item stays within 64 bits. */
#define CLOCK_NS_MAX ((uint64_t)1 << 62)

struct clock_tensor {
    uint64_t ready; /* when the device copy is usable */
    uint64_t last;  /* when its last access ends */
    uint64_t host;  /* when its host copy is valid */
    uint64_t saved; /* when its last save ends */
    bool is_fresh;  /* set by the code that allocates for a write: `ready` and `saved` are of an
                       earlier residency, and the op waits for its allocation instead */
};

struct clock_chunk {
    uint64_t usable_ns;
    uint64_t bytes;
};

/* Free bytes in a ring, in the order of their times. */
struct clock_lane {
    struct clock_chunk *chunks;
    uint32_t first;
    uint32_t count;
    uint32_t capacity; /* a power of two */
};

/* Memory is given back in a few rising sequences: as ops end, and as copies end. */
#define CLOCK_LANES 4

/* Why an item started later than its engine fell idle. */
enum clock_wait { WAIT_NOTHING, WAIT_TENSOR, WAIT_MEMORY, WAIT_SAVE, WAIT_COMPUTE, WAIT_HOST_COPY };

struct clock_span {
    uint64_t start;
    uint64_t end;
    uint64_t idle_from; /* when the engine fell idle */
    enum clock_wait wait;
};

struct clock {
    uint64_t compute;
    uint64_t d2h;
    uint64_t h2d;
    struct clock_tensor *tensors;
    uint64_t untouched_bytes;             /* free from the beginning */
    struct clock_lane lanes[CLOCK_LANES]; /* other free bytes */
    struct clock_chunk *heap;             /* those that fit into no lane, earliest usable first */
    uint32_t heap_count;
    size_t heap_capacity;
    uint64_t *out_ns; /* per tensor: how long its copies take */
    uint64_t *in_ns;
    uint32_t tensor_count;
};

/* Errors: NO_HOST_MEMORY. On failure zeroed. */
capu_status clock_init(struct clock *clock, const struct trace *trace,
                       const struct machine *machine);
void clock_finish(struct clock *clock);
/* Back to time 0: every engine is idle, so many bytes are free. */
void clock_reset(struct clock *clock, uint64_t free_bytes);

/* Takes the bytes that are usable earliest; the latest of their times. Where fewer are free, as
   when a plan is timed without a budget, all of them. Errors of giving back: NO_HOST_MEMORY. */
uint64_t clock_take(struct clock *clock, uint64_t bytes);
capu_status clock_give(struct clock *clock, uint64_t bytes, uint64_t usable_ns);

/* The model's items. Pre: the op or tensor exists. `alloc_ns` is what allocating gave (0: nothing
   was allocated). An evict or save that needs no copy is no item. The caller gives back the bytes
   of an evict from its end. */
struct clock_span clock_op(struct clock *clock, const struct trace *trace, uint32_t op,
                           uint64_t alloc_ns);
struct clock_span clock_evict(struct clock *clock, uint32_t tensor);
struct clock_span clock_save(struct clock *clock, uint32_t tensor);
struct clock_span clock_prefetch(struct clock *clock, uint32_t tensor, uint64_t alloc_ns);

/* From when a tensor's bytes are usable if they are given back now without a copy. */
uint64_t clock_usable(const struct clock *clock, uint32_t tensor);

/* Latency + ceil(bytes / rate). */
uint64_t clock_copy_ns(uint64_t bytes, uint64_t bytes_per_s, uint64_t latency_ns);

#endif
