/*
 * Launches, see run.h. Warps run one after the other, each until all its lanes have returned or
 * wait at a barrier; lanes that wait for their warp go on as soon as all that were named are there.
 * When no warp can go on, barriers open. Threads that have returned count as arrived everywhere.
 *
 * A kernel whose code never waits runs its threads as plain calls.
 */
#include "tests/ptx/machine/run.h"

#include "tests/ptx/machine/exchange.h"
#include "tests/ptx/machine/fibers.h"
#include "tests/ptx/machine/fragments.h"
#include "tests/ptx/machine/print.h"

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARP = EXCHANGE_LANES, BARRIERS = 16, BLOCK_ALIGNMENT = 256 };

enum state { STATE_RUNS, STATE_AT_BARRIER, STATE_AT_EXCHANGE, STATE_RETURNED };

struct lane {
    enum state state;
    uint32_t line; /* where it waits */
    /* At a barrier. */
    enum ptx_barrier reduction;
    uint32_t barrier, count, value, result;
    /* At an exchange. */
    enum ptx_exchange kind;
    uint32_t mask;
    const uint32_t *in;
    uint32_t *out;
};

/* The launch that runs. Guarded by `lock`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct run {
    const struct run_kernel *kernel;
    const struct machine_launch *launch;
    struct error_text *problem;
    struct ptx_block block;
    struct ptx_thread threads[RUN_THREADS_MOST];
    struct lane lanes[RUN_THREADS_MOST];
    uint32_t thread_count;
    uint32_t arrived[BARRIERS]; /* by bar.arrive */
    uint32_t expected[BARRIERS];
    bool has_failed;
    jmp_buf escape; /* from threads that are no fibers */
} run;

static _Thread_local const struct machine_function *running;
static uint64_t launches;

const struct machine_function *run_where(void)
{
    return running;
}

/* Failures. */

static void leave(void) __attribute__((noreturn));

static void leave(void)
{
    run.has_failed = true;
    if (!run.kernel->waits) {
        longjmp(run.escape, 1);
    }
    for (;;) { /* never resumed */
        fiber_wait();
    }
}

__attribute__((noreturn)) static void fail(struct ptx_thread *thread, uint32_t line,
                                           const char *what, uint64_t address)
{
    (void)error_text_set(run.problem, CAPU_DEVICE_FAILED,
                         "%s: line %" PRIu32 ": %s: 0x%" PRIx64 ", block %" PRIu32 ",%" PRIu32
                         ",%" PRIu32 ", thread %" PRIu32 ",%" PRIu32 ",%" PRIu32,
                         running->name, line, what, address, run.block.index[0], run.block.index[1],
                         run.block.index[2], thread->index[0], thread->index[1], thread->index[2]);
    leave();
}

__attribute__((noreturn)) static void assertion(struct ptx_thread *thread, uint32_t line,
                                                const char *message, const char *file,
                                                uint32_t file_line, const char *function)
{
    (void)line;
    (void)error_text_set(run.problem, CAPU_DEVICE_FAILED,
                         "%s: %s:%" PRIu32 ": %s: assertion `%s' failed, block %" PRIu32 ",%" PRIu32
                         ",%" PRIu32 ", thread %" PRIu32 ",%" PRIu32 ",%" PRIu32,
                         running->name, file, file_line, function, message, run.block.index[0],
                         run.block.index[1], run.block.index[2], thread->index[0], thread->index[1],
                         thread->index[2]);
    leave();
}

static void observe(struct ptx_thread *thread, uint64_t address, uint32_t bytes,
                    enum ptx_access kind, uint32_t line)
{
    static const enum machine_access_kind kinds[] = {MACHINE_READ, MACHINE_WRITE, MACHINE_ATOMIC};
    static const char *const names[] = {"a read that was not expected",
                                        "a write that was not expected",
                                        "an atomic that was not expected"};
    struct machine_access access = {address, bytes, kinds[kind], line, {0}, {0}, running};

    memcpy(access.block, run.block.index, sizeof(access.block));
    memcpy(access.thread, thread->index, sizeof(access.thread));
    if (!run.launch->observer(run.launch->observer_context, &access)) {
        fail(thread, line, names[kind], address);
    }
}

/* Waiting. */

static struct lane *lane_of(const struct ptx_thread *thread)
{
    return &run.lanes[thread->number];
}

static uint32_t barrier(struct ptx_thread *thread, enum ptx_barrier kind, uint32_t id,
                        uint32_t count, uint32_t value, uint32_t line)
{
    struct lane *lane = lane_of(thread);

    if (id >= BARRIERS) {
        fail(thread, line, "a barrier beyond the last", id);
    }
    lane->state = STATE_AT_BARRIER;
    lane->line = line;
    lane->reduction = kind;
    lane->barrier = id;
    lane->count = count;
    lane->value = value;
    fiber_wait();
    return lane->result;
}

static void arrive(struct ptx_thread *thread, uint32_t id, uint32_t count, uint32_t line)
{
    if (id >= BARRIERS) {
        fail(thread, line, "a barrier beyond the last", id);
    }
    run.arrived[id]++;
    run.expected[id] = count;
}

static void exchange(struct ptx_thread *thread, enum ptx_exchange kind, uint32_t mask,
                     const uint32_t *in, uint32_t *out, uint32_t line)
{
    struct lane *lane = lane_of(thread);

    if ((mask >> thread->number % WARP & 1) == 0) {
        fail(thread, line, "a lane that its own mask does not name", mask);
    }
    lane->state = STATE_AT_EXCHANGE;
    lane->line = line;
    lane->kind = kind;
    lane->mask = mask;
    lane->in = in;
    lane->out = out;
    fiber_wait();
}

static uint64_t now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

__attribute__((noreturn)) static void end_thread(struct ptx_thread *thread)
{
    (void)thread;
    fiber_return();
}

static const struct ptx_calls calls = {
    .observe = observe,
    .barrier = barrier,
    .arrive = arrive,
    .exchange = exchange,
    .load_fragment = fragments_load,
    .store_fragment = fragments_store,
    .fail = fail,
    .assertion = assertion,
    .exit = end_thread,
    .print = print_formatted,
    .clock = now,
};

/* Meeting. */

static uint32_t lanes_there(uint32_t first)
{
    return run.thread_count - first < WARP ? run.thread_count - first : WARP;
}

/* Completes the exchange that lane `index` waits at, if all that its mask names are there. */
static bool meet_lane(uint32_t first, uint32_t index)
{
    const struct lane *one = &run.lanes[first + index];
    struct exchange together = {.kind = one->kind};

    for (uint32_t i = 0; i < lanes_there(first); i++) {
        const struct lane *lane = &run.lanes[first + i];

        if ((one->mask >> i & 1) == 0 || lane->state == STATE_RETURNED) {
            continue;
        }
        if (lane->state != STATE_AT_EXCHANGE || lane->kind != one->kind ||
            lane->mask != one->mask) {
            return false;
        }
        together.lanes |= 1u << i;
        together.in[i] = lane->in;
        together.out[i] = lane->out;
    }
    if (exchange_is_matrix(one->kind) && together.lanes != UINT32_MAX) {
        return false;
    }
    exchange_compute(&together);
    for (uint32_t i = 0; i < WARP; i++) {
        if ((together.lanes >> i & 1) != 0) {
            run.lanes[first + i].state = STATE_RUNS;
        }
    }
    return true;
}

static bool meet_warp(uint32_t first)
{
    bool has_met = false;

    for (uint32_t i = 0; i < lanes_there(first); i++) {
        if (run.lanes[first + i].state == STATE_AT_EXCHANGE) {
            has_met |= meet_lane(first, i);
        }
    }
    return has_met;
}

static uint32_t reduced(enum ptx_barrier kind, uint32_t waiting, uint32_t set)
{
    switch (kind) {
    case PTX_BARRIER_POPC:
        return set;
    case PTX_BARRIER_AND:
        return set == waiting;
    case PTX_BARRIER_OR:
        return set != 0;
    case PTX_BARRIER_SYNC:
        break;
    }
    return 0;
}

static bool open_barrier(uint32_t id)
{
    uint32_t waiting = 0, set = 0, alive = 0;
    uint32_t expected = run.expected[id];

    for (uint32_t i = 0; i < run.thread_count; i++) {
        const struct lane *lane = &run.lanes[i];

        alive += lane->state != STATE_RETURNED;
        if (lane->state == STATE_AT_BARRIER && lane->barrier == id) {
            waiting++;
            set += lane->value != 0;
            expected = lane->count != 0 ? lane->count : expected;
        }
    }
    if (waiting == 0 || waiting + run.arrived[id] < (expected != 0 ? expected : alive)) {
        return false;
    }
    for (uint32_t i = 0; i < run.thread_count; i++) {
        struct lane *lane = &run.lanes[i];

        if (lane->state == STATE_AT_BARRIER && lane->barrier == id) {
            lane->result = reduced(lane->reduction, waiting, set);
            lane->state = STATE_RUNS;
        }
    }
    run.arrived[id] = 0;
    run.expected[id] = 0;
    return true;
}

static bool open_barriers(void)
{
    bool has_opened = false;

    for (uint32_t id = 0; id < BARRIERS; id++) {
        has_opened |= open_barrier(id);
    }
    return has_opened;
}

/* Blocks. */

static void run_fiber(unsigned index)
{
    run.kernel->entry(&run.threads[index]);
}

/* Runs the lanes of a warp as far as they get. True: one of them got on. */
static bool run_warp(uint32_t first)
{
    bool has_run = false;

    do {
        for (uint32_t i = first; i < first + lanes_there(first) && !run.has_failed; i++) {
            if (run.lanes[i].state == STATE_RUNS) {
                has_run = true;
                if (fiber_resume(i, run_fiber)) {
                    run.lanes[i].state = STATE_RETURNED;
                }
            }
        }
    } while (!run.has_failed && meet_warp(first));
    return has_run;
}

static bool all_returned(void)
{
    for (uint32_t i = 0; i < run.thread_count; i++) {
        if (run.lanes[i].state != STATE_RETURNED) {
            return false;
        }
    }
    return true;
}

/* Names the first two places at which threads wait. */
static void fail_waiting(void)
{
    uint32_t first = 0;
    uint32_t other;

    while (run.lanes[first].state == STATE_RETURNED) {
        first++;
    }
    other = first;
    while (other < run.thread_count && (run.lanes[other].state == STATE_RETURNED ||
                                        run.lanes[other].line == run.lanes[first].line)) {
        other++;
    }
    run.has_failed = true;
    if (other == run.thread_count) {
        (void)error_text_set(run.problem, CAPU_DEVICE_FAILED,
                             "%s: line %" PRIu32 ": thread %" PRIu32
                             " waits for threads that do not come",
                             running->name, run.lanes[first].line, first);
        return;
    }
    (void)error_text_set(run.problem, CAPU_DEVICE_FAILED,
                         "%s: threads wait for each other: %" PRIu32 " at line %" PRIu32
                         ", %" PRIu32 " at line %" PRIu32,
                         running->name, first, run.lanes[first].line, other, run.lanes[other].line);
}

static void run_together(void)
{
    for (uint32_t i = 0; i < run.thread_count; i++) {
        run.lanes[i].state = STATE_RUNS;
    }
    memset(run.arrived, 0, sizeof(run.arrived));
    memset(run.expected, 0, sizeof(run.expected));
    while (!run.has_failed && !all_returned()) {
        bool has_run = false;

        for (uint32_t first = 0; first < run.thread_count && !run.has_failed; first += WARP) {
            has_run |= run_warp(first);
        }
        if (!run.has_failed && !open_barriers() && !has_run) {
            fail_waiting();
        }
    }
}

static void run_apart(void)
{
    if (setjmp(run.escape) != 0) {
        return;
    }
    for (uint32_t i = 0; i < run.thread_count; i++) {
        run.kernel->entry(&run.threads[i]);
    }
}

static void run_block(void)
{
    if (run.block.shared_bytes > 0) { /* of the block before: nothing may be read */
        memset(run.block.shared, 0xff, run.block.shared_bytes);
    }
    if (run.kernel->waits) {
        run_together();
    } else {
        run_apart();
    }
}

static void run_grid(void)
{
    uint32_t *index = run.block.index;

    for (index[2] = 0; index[2] < run.block.grid[2]; index[2]++) {
        for (index[1] = 0; index[1] < run.block.grid[1]; index[1]++) {
            for (index[0] = 0; index[0] < run.block.grid[0]; index[0]++) {
                run_block();
                if (run.has_failed) {
                    return;
                }
            }
        }
    }
}

static void place_threads(void)
{
    const uint32_t *size = run.block.size;

    run.thread_count = size[0] * size[1] * size[2];
    for (uint32_t i = 0; i < run.thread_count; i++) {
        run.threads[i] = (struct ptx_thread){
            .block = &run.block,
            .local = run.block.locals + (run.kernel->waits ? (size_t)i * run.block.local_bytes : 0),
            .index = {i % size[0], i / size[0] % size[1], i / size[0] / size[1]},
            .number = i,
            .is_observed = run.block.is_observed,
            .shared = run.block.shared,
            .shared_bytes = run.block.shared_bytes,
        };
    }
}

static capu_status begin(const struct run_kernel *kernel, const struct machine_launch *launch)
{
    const struct machine_function *function = kernel->function;
    uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
    uint32_t shared = kernel->shared_bytes + launch->shared_bytes;
    uint64_t locals = (uint64_t)kernel->local_bytes * (kernel->waits ? threads : 1);
    void *memory;
    size_t parameters =
        (function->parameter_bytes + BLOCK_ALIGNMENT) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;
    size_t shared_place = (shared + BLOCK_ALIGNMENT) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;

    if (posix_memalign(&memory, BLOCK_ALIGNMENT, parameters + shared_place + locals + 1) != 0) {
        return CAPU_NO_HOST_MEMORY;
    }
    memset(memory, 0, parameters + shared_place + locals + 1);
    if (function->parameter_bytes > 0) {
        memcpy(memory, launch->parameters, function->parameter_bytes);
    }
    run.kernel = kernel;
    run.launch = launch;
    run.has_failed = false;
    run.block = (struct ptx_block){
        .calls = &calls,
        .grid_number = ++launches,
        .is_observed = launch->observer != NULL,
        .shared_bytes = shared,
        .static_bytes = function->shared_bytes,
        .dynamic_bytes = launch->shared_bytes,
        .local_bytes = kernel->local_bytes,
        .parameters = memory,
        .shared = (unsigned char *)memory + parameters,
        .locals = (unsigned char *)memory + parameters + shared_place,
        .locals_bytes = locals,
        .variables = kernel->variables,
    };
    memcpy(run.block.grid, launch->grid, sizeof(run.block.grid));
    memcpy(run.block.size, launch->block, sizeof(run.block.size));
    place_threads();
    if (kernel->waits && !fibers_reserve(run.thread_count)) {
        free(memory);
        return CAPU_NO_HOST_MEMORY;
    }
    return CAPU_OK;
}

capu_status run_launch(const struct run_kernel *kernel, const struct machine_launch *launch,
                       struct error_text *problem)
{
    capu_status status;

    (void)pthread_mutex_lock(&lock);
    run.problem = problem;
    status = begin(kernel, launch);
    if (status != CAPU_OK) {
        (void)error_text_set(problem, status, "%s: no memory to run it", kernel->function->name);
    } else {
        running = kernel->function;
        run_grid();
        running = NULL;
        free((void *)(uintptr_t)run.block.parameters);
        if (run.has_failed) {
            fibers_abandon();
            status = CAPU_DEVICE_FAILED;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return status;
}
