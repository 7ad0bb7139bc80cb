/*
 * The execution model. Every rule of the specification (docs/policy.md) is one maximum here: an
 * item starts when its engine is idle and everything that it waits for has happened.
 *
 * Free memory is a multiset of (time usable, bytes), and an allocation takes the earliest. Nearly
 * all releases come in rising order of time, so they are kept in a few ring buffers (lanes) whose
 * fronts are compared; only what fits into no lane goes to a heap. Taking and giving are then O(1)
 * in nearly all cases, and this is the inner loop of every search.
 */
#include "policy/model/clock.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/heap.h"

#include <stdlib.h>
#include <string.h>

uint64_t clock_copy_ns(uint64_t bytes, uint64_t bytes_per_s, uint64_t latency_ns)
{
    unsigned __int128 product = (unsigned __int128)bytes * 1000000000u + (bytes_per_s - 1);

    return latency_ns + (uint64_t)(product / bytes_per_s);
}

capu_status clock_init(struct clock *clock, const struct trace *trace,
                       const struct machine *machine)
{
    size_t tensors = (size_t)trace->tensor_count + 1;

    *clock = (struct clock){.tensor_count = trace->tensor_count};
    clock->tensors = calloc(tensors, sizeof(*clock->tensors));
    clock->out_ns = malloc(tensors * sizeof(*clock->out_ns));
    clock->in_ns = malloc(tensors * sizeof(*clock->in_ns));
    if (clock->tensors == NULL || clock->out_ns == NULL || clock->in_ns == NULL) {
        clock_finish(clock);
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        uint64_t bytes = trace->tensors[t].bytes;

        clock->out_ns[t] = clock_copy_ns(bytes, machine->d2h_bytes_per_s, machine->copy_latency_ns);
        clock->in_ns[t] = clock_copy_ns(bytes, machine->h2d_bytes_per_s, machine->copy_latency_ns);
    }
    return CAPU_OK;
}

void clock_finish(struct clock *clock)
{
    free(clock->tensors);
    free(clock->out_ns);
    free(clock->in_ns);
    free(clock->heap);
    for (size_t i = 0; i < CLOCK_LANES; i++) {
        free(clock->lanes[i].chunks);
    }
    *clock = (struct clock){0};
}

void clock_reset(struct clock *clock, uint64_t free_bytes)
{
    clock->compute = 0;
    clock->d2h = 0;
    clock->h2d = 0;
    clock->untouched_bytes = free_bytes;
    clock->heap_count = 0;
    for (size_t i = 0; i < CLOCK_LANES; i++) {
        clock->lanes[i].count = 0;
    }
    memset(clock->tensors, 0, clock->tensor_count * sizeof(*clock->tensors));
}

static bool is_usable_before(const void *a, const void *b, const void *context)
{
    (void)context;
    return ((const struct clock_chunk *)a)->usable_ns < ((const struct clock_chunk *)b)->usable_ns;
}

static const struct heap_order by_usable_time = {.element_bytes = sizeof(struct clock_chunk),
                                                 .is_before = is_usable_before};

static struct clock_chunk *front_of(const struct clock_lane *lane)
{
    return &lane->chunks[lane->first];
}

/* The lane whose front is usable earliest; CLOCK_LANES: the heap's is. -1: there is nothing. */
static int earliest_lane(const struct clock *clock)
{
    int earliest = clock->heap_count > 0 ? CLOCK_LANES : -1;
    uint64_t usable_ns = clock->heap_count > 0 ? clock->heap[0].usable_ns : UINT64_MAX;

    for (int i = 0; i < CLOCK_LANES; i++) {
        const struct clock_lane *lane = &clock->lanes[i];

        if (lane->count > 0 && (earliest < 0 || front_of(lane)->usable_ns < usable_ns)) {
            earliest = i;
            usable_ns = front_of(lane)->usable_ns;
        }
    }
    return earliest;
}

uint64_t clock_take(struct clock *clock, uint64_t bytes)
{
    uint64_t untouched = bytes < clock->untouched_bytes ? bytes : clock->untouched_bytes;
    uint64_t latest = 0;

    clock->untouched_bytes -= untouched;
    bytes -= untouched;
    while (bytes > 0) {
        int earliest = earliest_lane(clock);
        struct clock_chunk *chunk;

        if (earliest < 0) {
            break;
        }
        chunk = earliest < CLOCK_LANES ? front_of(&clock->lanes[earliest]) : &clock->heap[0];
        latest = chunk->usable_ns;
        if (chunk->bytes > bytes) {
            chunk->bytes -= bytes;
            break;
        }
        bytes -= chunk->bytes;
        if (earliest < CLOCK_LANES) {
            struct clock_lane *lane = &clock->lanes[earliest];

            lane->first = (lane->first + 1) & (lane->capacity - 1);
            lane->count--;
        } else {
            heap_pop(clock->heap, clock->heap_count--, by_usable_time);
        }
    }
    return latest;
}

static bool lane_grow(struct clock_lane *lane)
{
    uint32_t capacity = lane->capacity > 0 ? lane->capacity * 2 : 64;
    struct clock_chunk *grown = malloc(capacity * sizeof(*grown));

    if (grown == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < lane->count; i++) {
        grown[i] = lane->chunks[(lane->first + i) & (lane->capacity - 1)];
    }
    free(lane->chunks);
    lane->chunks = grown;
    lane->capacity = capacity;
    lane->first = 0;
    return true;
}

/* The lane whose end is the latest that is not after the time, so that the lanes stay apart; else
   an empty one; NULL: the time is before the end of all. */
static struct clock_lane *lane_for(struct clock *clock, uint64_t usable_ns)
{
    struct clock_lane *best = NULL;
    uint64_t best_ns = 0;

    for (size_t i = 0; i < CLOCK_LANES; i++) {
        struct clock_lane *lane = &clock->lanes[i];
        uint64_t end_ns = 0;

        if (lane->count > 0) {
            end_ns = lane->chunks[(lane->first + lane->count - 1) & (lane->capacity - 1)].usable_ns;
        }
        if (end_ns <= usable_ns && (best == NULL || end_ns > best_ns)) {
            best = lane;
            best_ns = end_ns;
        }
    }
    return best;
}

static capu_status give_to_heap(struct clock *clock, struct clock_chunk chunk)
{
    if (!array_reserve(&clock->heap, &clock->heap_capacity, (size_t)clock->heap_count + 1,
                       sizeof(*clock->heap))) {
        return CAPU_NO_HOST_MEMORY;
    }
    heap_push(clock->heap, clock->heap_count++, &chunk, by_usable_time);
    return CAPU_OK;
}

capu_status clock_give(struct clock *clock, uint64_t bytes, uint64_t usable_ns)
{
    struct clock_chunk chunk = {.usable_ns = usable_ns, .bytes = bytes};
    struct clock_lane *lane;

    if (bytes == 0) {
        return CAPU_OK;
    }
    lane = lane_for(clock, usable_ns);
    if (lane == NULL) {
        return give_to_heap(clock, chunk);
    }
    if (lane->count > 0) {
        struct clock_chunk *last =
            &lane->chunks[(lane->first + lane->count - 1) & (lane->capacity - 1)];

        if (last->usable_ns == usable_ns) {
            last->bytes += bytes;
            return CAPU_OK;
        }
    }
    if (lane->count == lane->capacity && !lane_grow(lane)) {
        return CAPU_NO_HOST_MEMORY;
    }
    lane->chunks[(lane->first + lane->count++) & (lane->capacity - 1)] = chunk;
    return CAPU_OK;
}

static void wait_for(struct clock_span *span, uint64_t time, enum clock_wait wait)
{
    if (time > span->start) {
        span->start = time;
        span->wait = wait;
    }
}

uint64_t clock_usable(const struct clock *clock, uint32_t tensor)
{
    const struct clock_tensor *times = &clock->tensors[tensor];
    uint64_t latest = times->last > times->ready ? times->last : times->ready;

    return latest > times->saved ? latest : times->saved;
}

struct clock_span clock_op(struct clock *clock, const struct trace *trace, uint32_t op,
                           uint64_t alloc_ns)
{
    const struct trace_op *entry = &trace->ops[op];
    const uint32_t *operands = trace->operands + entry->first;
    uint32_t count = trace_operand_count(entry);
    struct clock_span span = {.start = clock->compute, .idle_from = clock->compute};

    ASSERT(op < trace->op_count && trace->tensor_count <= clock->tensor_count);
    for (uint32_t i = 0; i < count; i++) {
        const struct clock_tensor *times = &clock->tensors[operands[i]];

        if (times->is_fresh) {
            continue;
        }
        wait_for(&span, times->ready, WAIT_TENSOR);
        if (i >= entry->read_count) {
            wait_for(&span, times->saved, WAIT_SAVE);
        }
    }
    wait_for(&span, alloc_ns, WAIT_MEMORY);
    span.end = span.start + entry->ns;
    clock->compute = span.end;
    for (uint32_t i = 0; i < count; i++) {
        struct clock_tensor *times = &clock->tensors[operands[i]];

        times->last = span.end;
        times->is_fresh = false;
        if (i >= entry->read_count) {
            times->ready = span.end;
        }
    }
    return span;
}

struct clock_span clock_evict(struct clock *clock, uint32_t tensor)
{
    struct clock_tensor *times = &clock->tensors[tensor];
    struct clock_span span = {.start = clock->d2h, .idle_from = clock->d2h};

    ASSERT(tensor < clock->tensor_count);
    wait_for(&span, times->last, WAIT_COMPUTE);
    wait_for(&span, times->ready, WAIT_TENSOR);
    span.end = span.start + clock->out_ns[tensor];
    clock->d2h = span.end;
    times->host = span.end;
    return span;
}

struct clock_span clock_save(struct clock *clock, uint32_t tensor)
{
    struct clock_tensor *times = &clock->tensors[tensor];
    struct clock_span span = {.start = clock->d2h, .idle_from = clock->d2h};

    ASSERT(tensor < clock->tensor_count);
    wait_for(&span, times->ready, WAIT_TENSOR);
    span.end = span.start + clock->out_ns[tensor];
    clock->d2h = span.end;
    times->host = span.end;
    times->saved = span.end;
    return span;
}

struct clock_span clock_prefetch(struct clock *clock, uint32_t tensor, uint64_t alloc_ns)
{
    struct clock_tensor *times = &clock->tensors[tensor];
    struct clock_span span = {.start = clock->h2d, .idle_from = clock->h2d};

    ASSERT(tensor < clock->tensor_count);
    wait_for(&span, clock->compute, WAIT_COMPUTE);
    wait_for(&span, times->host, WAIT_HOST_COPY);
    wait_for(&span, alloc_ns, WAIT_MEMORY);
    span.end = span.start + clock->in_ns[tensor];
    clock->h2d = span.end;
    times->ready = span.end;
    return span;
}
