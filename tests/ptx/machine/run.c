/*
 * Launches, see run.h. Warps run one after the other, each until all its lanes have returned or
 * wait at a barrier; lanes that wait for their warp go on as soon as all that were named are there.
 * When no warp can go on, barriers open. Threads that have returned count as arrived everywhere.
 *
 * A kernel whose code never waits runs its threads as plain calls.
 *
 * Blocks run one after the other, those of a cooperative launch in turn.
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

enum state { STATE_RUNS, STATE_AT_BARRIER, STATE_AT_EXCHANGE, STATE_AT_PHASE, STATE_RETURNED };

struct lane {
    enum state state;
    uint32_t line; /* where it waits */
    /* At a barrier. */
    enum ptx_barrier reduction;
    uint32_t barrier, count, value, result;
    /* At a phase of an mbarrier. */
    const uint64_t *phases;
    uint32_t parity;
    /* At an exchange. */
    enum ptx_exchange kind;
    uint32_t mask;
    const uint32_t *in;
    uint32_t *out;
};

/* A block that runs. */
struct group {
    struct ptx_block block;
    struct ptx_thread *threads;
    struct lane *lanes;
    uint32_t first;             /* of its fibers */
    uint32_t arrived[BARRIERS]; /* by bar.arrive */
    uint32_t expected[BARRIERS];
    bool has_returned;
};

/* The launch that runs. Guarded by `lock`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct run {
    const struct run_kernel *kernel;
    const struct machine_launch *launch;
    struct error_text *problem;
    struct group *groups; /* the blocks that run at once */
    uint32_t group_count;
    struct group *group;        /* the one that runs */
    struct ptx_thread *threads; /* of all groups */
    struct lane *lanes;         /* of the threads */
    size_t thread_capacity;
    uint32_t thread_count; /* per group */
    bool has_fibers;
    bool has_failed;
    uint64_t grid_barrier[4]; /* of a cooperative launch */
    jmp_buf escape;           /* from threads that are no fibers */
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
    if (!run.has_fibers) {
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
                         running->name, line, what, address, run.group->block.index[0],
                         run.group->block.index[1], run.group->block.index[2], thread->index[0],
                         thread->index[1], thread->index[2]);
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
                         running->name, file, file_line, function, message,
                         run.group->block.index[0], run.group->block.index[1],
                         run.group->block.index[2], thread->index[0], thread->index[1],
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

    memcpy(access.block, run.group->block.index, sizeof(access.block));
    memcpy(access.thread, thread->index, sizeof(access.thread));
    if (address - (uintptr_t)run.grid_barrier < sizeof(run.grid_barrier)) {
        return; /* the driver's own memory */
    }
    if (!run.launch->observer(run.launch->observer_context, &access)) {
        fail(thread, line, names[kind], address);
    }
}

/* Waiting. */

static struct lane *lane_of(const struct ptx_thread *thread)
{
    return &run.lanes[thread - run.threads];
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
    run.group->arrived[id]++;
    run.group->expected[id] = count;
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

static void yield(void)
{
    if (run.has_fibers) {
        fiber_wait();
    }
}

static bool is_complete(const uint64_t *barrier, uint32_t parity)
{
    return (uint32_t)(*barrier >> PTX_MBARRIER_PARITY) != (parity & 1);
}

static void wait_phase(struct ptx_thread *thread, const uint64_t *barrier, uint32_t parity,
                       uint32_t line)
{
    struct lane *lane = lane_of(thread);

    if (!is_complete(barrier, parity)) {
        lane->state = STATE_AT_PHASE;
        lane->line = line;
        lane->phases = barrier;
        lane->parity = parity;
        fiber_wait();
    }
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
    .wait_phase = wait_phase,
    .load_fragment = fragments_load,
    .store_fragment = fragments_store,
    .fail = fail,
    .assertion = assertion,
    .exit = end_thread,
    .print = print_formatted,
    .clock = now,
    .yield = yield,
};

/* Meeting. */

static uint32_t lanes_there(uint32_t first)
{
    return run.thread_count - first < WARP ? run.thread_count - first : WARP;
}

/* Completes the exchange that lane `index` waits at, if all that its mask names are there. */
static bool meet_lane(uint32_t first, uint32_t index)
{
    const struct lane *one = &run.group->lanes[first + index];
    struct exchange together = {.kind = one->kind};

    for (uint32_t i = 0; i < lanes_there(first); i++) {
        const struct lane *lane = &run.group->lanes[first + i];

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
            run.group->lanes[first + i].state = STATE_RUNS;
        }
    }
    return true;
}

static bool meet_warp(uint32_t first)
{
    bool has_met = false;

    for (uint32_t i = 0; i < lanes_there(first); i++) {
        if (run.group->lanes[first + i].state == STATE_AT_EXCHANGE) {
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
    uint32_t expected = run.group->expected[id];

    for (uint32_t i = 0; i < run.thread_count; i++) {
        const struct lane *lane = &run.group->lanes[i];

        alive += lane->state != STATE_RETURNED;
        if (lane->state == STATE_AT_BARRIER && lane->barrier == id) {
            waiting++;
            set += lane->value != 0;
            expected = lane->count != 0 ? lane->count : expected;
        }
    }
    if (waiting == 0 || waiting + run.group->arrived[id] < (expected != 0 ? expected : alive)) {
        return false;
    }
    for (uint32_t i = 0; i < run.thread_count; i++) {
        struct lane *lane = &run.group->lanes[i];

        if (lane->state == STATE_AT_BARRIER && lane->barrier == id) {
            lane->result = reduced(lane->reduction, waiting, set);
            lane->state = STATE_RUNS;
        }
    }
    run.group->arrived[id] = 0;
    run.group->expected[id] = 0;
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

static bool open_phases(void)
{
    bool has_opened = false;

    for (uint32_t i = 0; i < run.thread_count; i++) {
        struct lane *lane = &run.group->lanes[i];

        if (lane->state == STATE_AT_PHASE && is_complete(lane->phases, lane->parity)) {
            lane->state = STATE_RUNS;
            has_opened = true;
        }
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
            if (run.group->lanes[i].state == STATE_RUNS) {
                has_run = true;
                if (fiber_resume(run.group->first + i, run_fiber)) {
                    run.group->lanes[i].state = STATE_RETURNED;
                }
            }
        }
    } while (!run.has_failed && meet_warp(first));
    return has_run;
}

static bool all_returned(void)
{
    for (uint32_t i = 0; i < run.thread_count; i++) {
        if (run.group->lanes[i].state != STATE_RETURNED) {
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

    while (run.group->lanes[first].state == STATE_RETURNED) {
        first++;
    }
    other = first;
    while (other < run.thread_count &&
           (run.group->lanes[other].state == STATE_RETURNED ||
            run.group->lanes[other].line == run.group->lanes[first].line)) {
        other++;
    }
    run.has_failed = true;
    if (other == run.thread_count) {
        (void)error_text_set(run.problem, CAPU_DEVICE_FAILED,
                             "%s: line %" PRIu32 ": thread %" PRIu32
                             " waits for threads that do not come",
                             running->name, run.group->lanes[first].line, first);
        return;
    }
    (void)error_text_set(run.problem, CAPU_DEVICE_FAILED,
                         "%s: threads wait for each other: %" PRIu32 " at line %" PRIu32
                         ", %" PRIu32 " at line %" PRIu32,
                         running->name, first, run.group->lanes[first].line, other,
                         run.group->lanes[other].line);
}

/* Runs a block as far as it gets without the others. True: some thread got on. */
static bool run_group(struct group *group)
{
    bool has_run = false;

    run.group = group;
    for (uint32_t first = 0; first < run.thread_count && !run.has_failed; first += WARP) {
        has_run |= run_warp(first);
    }
    has_run |= open_phases();
    has_run |= !run.has_failed && open_barriers();
    group->has_returned = !run.has_failed && all_returned();
    return has_run;
}

static void start(struct group *group)
{
    for (uint32_t i = 0; i < run.thread_count; i++) {
        group->lanes[i].state = STATE_RUNS;
        group->threads[i].spins = 0;
    }
    memset(group->arrived, 0, sizeof(group->arrived));
    memset(group->expected, 0, sizeof(group->expected));
    group->has_returned = false;
    if (group->block.shared_bytes > 0) { /* of the block before: nothing may be read */
        memset(group->block.shared, 0xff, group->block.shared_bytes);
    }
}

/* Runs all groups in turn. */
static void run_together(void)
{
    bool is_running = true;

    while (is_running && !run.has_failed) {
        is_running = false;
        for (uint32_t i = 0; i < run.group_count && !run.has_failed; i++) {
            if (run.groups[i].has_returned) {
                continue;
            }
            if (!run_group(&run.groups[i]) && !run.has_failed) {
                fail_waiting();
            }
            is_running |= !run.groups[i].has_returned;
        }
    }
}

static void run_apart(void)
{
    if (setjmp(run.escape) != 0) {
        return;
    }
    for (uint32_t i = 0; i < run.thread_count; i++) {
        run.kernel->entry(&run.group->threads[i]);
    }
}

/* Runs the blocks of a grid, as many at a time as there are groups. */
static void run_grid(void)
{
    const uint32_t *grid = run.launch->grid;
    uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];

    for (uint64_t i = 0; i < blocks && !run.has_failed; i += run.group_count) {
        for (uint32_t j = 0; j < run.group_count; j++) {
            uint32_t *index = run.groups[j].block.index;

            index[0] = (uint32_t)((i + j) % grid[0]);
            index[1] = (uint32_t)((i + j) / grid[0] % grid[1]);
            index[2] = (uint32_t)((i + j) / grid[0] / grid[1]);
            start(&run.groups[j]);
        }
        run.group = run.groups;
        if (run.has_fibers) {
            run_together();
        } else {
            run_apart();
        }
    }
}

static void place_threads(struct group *group)
{
    const uint32_t *size = group->block.size;

    for (uint32_t i = 0; i < run.thread_count; i++) {
        group->threads[i] = (struct ptx_thread){
            .block = &group->block,
            .local =
                group->block.locals + (run.has_fibers ? (size_t)i * group->block.local_bytes : 0),
            .index = {i % size[0], i / size[0] % size[1], i / size[0] / size[1]},
            .number = i,
            .is_observed = group->block.is_observed,
            .shared = group->block.shared,
            .shared_bytes = group->block.shared_bytes,
        };
    }
}

static bool reserve_threads(size_t count)
{
    struct ptx_thread *threads;
    struct lane *lanes;

    if (count <= run.thread_capacity) {
        return true;
    }
    threads = realloc(run.threads, count * sizeof(*threads));
    run.threads = threads != NULL ? threads : run.threads;
    lanes = realloc(run.lanes, count * sizeof(*lanes));
    run.lanes = lanes != NULL ? lanes : run.lanes;
    if (threads == NULL || lanes == NULL) {
        return false;
    }
    memset(run.lanes, 0, count * sizeof(*lanes));
    run.thread_capacity = count;
    return true;
}

/* Gives a group its memory: shared memory, then that of its threads. */
static void place_group(struct group *group, const unsigned char *parameters, unsigned char *memory,
                        size_t shared_place, uint64_t locals)
{
    const struct machine_launch *launch = run.launch;

    group->block = (struct ptx_block){
        .calls = &calls,
        .grid_number = launches,
        .grid_barrier = launch->is_cooperative ? (uintptr_t)run.grid_barrier : 0,
        .is_observed = launch->observer != NULL,
        .shared_bytes = run.kernel->shared_bytes + launch->shared_bytes,
        .static_bytes = run.kernel->function->shared_bytes,
        .dynamic_bytes = launch->shared_bytes,
        .local_bytes = run.kernel->local_bytes,
        .reserved = (uint32_t)(shared_place - PTX_RESERVED_BYTES),
        .parameters = parameters,
        .shared = memory,
        .locals = memory + shared_place,
        .locals_bytes = locals,
        .variables = run.kernel->variables,
    };
    memcpy(group->block.grid, launch->grid, sizeof(group->block.grid));
    memcpy(group->block.size, launch->block, sizeof(group->block.size));
    place_threads(group);
}

static size_t rounded(uint64_t bytes)
{
    return (bytes + BLOCK_ALIGNMENT) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;
}

/* *memory is for the caller to free after the launch. */
static capu_status begin(const struct run_kernel *kernel, const struct machine_launch *launch,
                         unsigned char **memory)
{
    const struct machine_function *function = kernel->function;
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    bool is_cooperative = launch->is_cooperative;
    uint64_t groups =
        is_cooperative ? (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2] : 1;
    uint64_t locals = kernel->local_bytes * (kernel->waits || is_cooperative ? threads : 1);
    size_t parameters = rounded(function->parameter_bytes);
    size_t shared = rounded(kernel->shared_bytes + launch->shared_bytes) + PTX_RESERVED_BYTES;
    size_t bytes = shared + rounded(locals);
    void *taken;

    run.groups = calloc(groups, sizeof(*run.groups));
    if (run.groups == NULL || !reserve_threads(groups * threads) ||
        posix_memalign(&taken, BLOCK_ALIGNMENT, parameters + groups * bytes) != 0) {
        free(run.groups);
        return CAPU_NO_HOST_MEMORY;
    }
    *memory = taken;
    memset(taken, 0, parameters + groups * bytes);
    if (function->parameter_bytes > 0) {
        memcpy(taken, launch->parameters, function->parameter_bytes);
    }
    run.kernel = kernel;
    run.launch = launch;
    run.has_failed = false;
    run.has_fibers = kernel->waits || is_cooperative;
    run.thread_count = (uint32_t)threads;
    run.group_count = (uint32_t)groups;
    memset(run.grid_barrier, 0, sizeof(run.grid_barrier));
    launches++;
    for (uint32_t i = 0; i < groups; i++) {
        run.groups[i].first = i * run.thread_count;
        run.groups[i].threads = run.threads + run.groups[i].first;
        run.groups[i].lanes = run.lanes + run.groups[i].first;
        place_group(&run.groups[i], taken, *memory + parameters + i * bytes, shared, locals);
    }
    if (run.has_fibers && !fibers_reserve((unsigned)(groups * threads))) {
        free(run.groups);
        free(taken);
        return CAPU_NO_HOST_MEMORY;
    }
    return CAPU_OK;
}

capu_status run_launch(const struct run_kernel *kernel, const struct machine_launch *launch,
                       struct error_text *problem)
{
    unsigned char *memory = NULL;
    capu_status status;

    (void)pthread_mutex_lock(&lock);
    run.problem = problem;
    status = begin(kernel, launch, &memory);
    if (status != CAPU_OK) {
        (void)error_text_set(problem, status, "%s: no memory to run it", kernel->function->name);
    } else {
        running = kernel->function;
        run_grid();
        running = NULL;
        free(memory);
        free(run.groups);
        if (run.has_failed) {
            fibers_abandon();
            status = CAPU_DEVICE_FAILED;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return status;
}
