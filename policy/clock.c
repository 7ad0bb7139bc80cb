/* The execution model. Every rule of the specification is one maximum here. */
#include "policy/clock.h"

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
    clock->heap_capacity = trace->tensor_count + 16;
    clock->heap = malloc(clock->heap_capacity * sizeof(*clock->heap));
    if (clock->tensors == NULL || clock->out_ns == NULL || clock->in_ns == NULL ||
        clock->heap == NULL) {
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
    *clock = (struct clock){0};
}

void clock_reset(struct clock *clock, uint64_t free_bytes)
{
    clock->compute = 0;
    clock->d2h = 0;
    clock->h2d = 0;
    clock->heap[0] = (struct clock_chunk){.usable_ns = 0, .bytes = free_bytes};
    clock->heap_count = free_bytes > 0;
    memset(clock->tensors, 0, clock->tensor_count * sizeof(*clock->tensors));
}

static void sift_down(struct clock *clock)
{
    struct clock_chunk moving = clock->heap[0];
    uint32_t hole = 0;

    for (;;) {
        uint32_t child = hole * 2 + 1;

        if (child >= clock->heap_count) {
            break;
        }
        if (child + 1 < clock->heap_count &&
            clock->heap[child + 1].usable_ns < clock->heap[child].usable_ns) {
            child++;
        }
        if (moving.usable_ns <= clock->heap[child].usable_ns) {
            break;
        }
        clock->heap[hole] = clock->heap[child];
        hole = child;
    }
    clock->heap[hole] = moving;
}

uint64_t clock_take(struct clock *clock, uint64_t bytes)
{
    uint64_t latest = 0;

    while (bytes > 0 && clock->heap_count > 0) {
        struct clock_chunk *earliest = &clock->heap[0];

        latest = earliest->usable_ns;
        if (earliest->bytes > bytes) {
            earliest->bytes -= bytes;
            return latest;
        }
        bytes -= earliest->bytes;
        *earliest = clock->heap[--clock->heap_count];
        sift_down(clock);
    }
    return latest;
}

capu_status clock_give(struct clock *clock, uint64_t bytes, uint64_t usable_ns)
{
    uint32_t hole = clock->heap_count;

    if (bytes == 0) {
        return CAPU_OK;
    }
    if (clock->heap_count == clock->heap_capacity) {
        struct clock_chunk *grown =
            realloc(clock->heap, 2 * (size_t)clock->heap_capacity * sizeof(*grown));

        if (grown == NULL) {
            return CAPU_NO_HOST_MEMORY;
        }
        clock->heap = grown;
        clock->heap_capacity *= 2;
    }
    clock->heap_count++;
    while (hole > 0 && clock->heap[(hole - 1) / 2].usable_ns > usable_ns) {
        clock->heap[hole] = clock->heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    clock->heap[hole] = (struct clock_chunk){.usable_ns = usable_ns, .bytes = bytes};
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

    wait_for(&span, clock->compute, WAIT_COMPUTE);
    wait_for(&span, times->host, WAIT_HOST_COPY);
    wait_for(&span, alloc_ns, WAIT_MEMORY);
    span.end = span.start + clock->in_ns[tensor];
    clock->h2d = span.end;
    times->ready = span.end;
    return span;
}
