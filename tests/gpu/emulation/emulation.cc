/*
 * The emulation, see emulation.h.
 *
 * Each thread of a block is a fiber, which the scheduler resumes in order of index. A fiber runs
 * until it ends or must wait: at a barrier for the whole block, at an exchange (shuffle or ballot)
 * for its warp. When every fiber has stopped, those whose partners have all arrived continue; if
 * there are none, the kernel is wrong, and the program ends with a message.
 *
 * A fiber is made once, and runs one thread after the other. Changing from one to another takes a
 * longjmp, which unlike swapcontext needs no system call.
 */
#include <cstdio>
#include <cstdlib>
#include <list>

#include <ucontext.h>

#ifdef EMULATION_ON_FAKE
extern "C" {
#include "tests/fake_cudart/fake_cudart.h"
}
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#define THREADS_LIMIT 1024u
#define WARP 32u
#define STACK_BYTES ((size_t)64 << 10)

dim3 gridDim;
dim3 blockDim;
dim3 blockIdx;
dim3 threadIdx;

enum state { STATE_RUNS, STATE_AT_BARRIER, STATE_AT_EXCHANGE, STATE_DONE };

/* Where a stack was left. */
struct place {
    ucontext_t context; /* also where a new fiber begins */
    void *at[5];
};

struct fiber {
    struct place place;
    enum state state;
    unsigned exchanges;
    unsigned char *stack;
    void *fake_stack; /* of ASan */
};

/* The current block. Exchanges alternate between two sets of values, since a lane can be at most
   one exchange ahead of another. */
static struct {
    struct fiber fiber[THREADS_LIMIT];
    uint64_t values[2][THREADS_LIMIT];
    struct place scheduler;
    const void *scheduler_stack;
    size_t scheduler_stack_bytes;
    void *scheduler_fake_stack;
    unsigned current;
    bool has_fibers; /* false: threads run one after the other and must not wait */
    bool has_waited; /* a thread of the block has waited */
    const std::function<void()> *thread;
} block;

static void fail(const char *what)
{
    fprintf(stderr, "emulation: %s\n", what);
    abort();
}

/* Tells ASan which stack is in use. */
static void enter_stack(void **fake_stack, const void *stack, size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(fake_stack, stack, bytes);
#else
    (void)fake_stack;
    (void)stack;
    (void)bytes;
#endif
}

static void entered_stack(void *fake_stack)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, &block.scheduler_stack,
                                    &block.scheduler_stack_bytes);
#else
    (void)fake_stack;
#endif
}

/* Continues at another place, until something continues at this one. Not instrumented: to ASan a
   longjmp is the end of what is on the stack. */
__attribute__((noinline, no_sanitize("address"))) static void change(struct place *from,
                                                                     struct place *to, bool is_new)
{
    if (__builtin_setjmp(from->at) == 0) {
        if (is_new) {
            setcontext(&to->context);
        }
        __builtin_longjmp(to->at, 1);
    }
}

/* Returns to the scheduler until it resumes this fiber. */
static void leave(struct fiber *fiber)
{
    enter_stack(&fiber->fake_stack, block.scheduler_stack, block.scheduler_stack_bytes);
    change(&fiber->place, &block.scheduler, false);
    entered_stack(fiber->fake_stack);
}

static void wait_as(enum state state)
{
    struct fiber *fiber = &block.fiber[block.current];

    if (!block.has_fibers) {
        fail("a block waits where the first one did not");
    }
    block.has_waited = true;
    fiber->state = state;
    leave(fiber);
}

/* One thread of every block. */
static void run_threads(void)
{
    struct fiber *fiber = &block.fiber[block.current];

    entered_stack(NULL);
    for (;;) {
        (*block.thread)();
        fiber->state = STATE_DONE;
        leave(fiber);
    }
}

static void make(struct fiber *fiber)
{
    fiber->stack = (unsigned char *)malloc(STACK_BYTES);
    if (fiber->stack == NULL) {
        fail("no memory for stacks");
    }
    getcontext(&fiber->place.context);
    fiber->place.context.uc_stack.ss_sp = fiber->stack;
    fiber->place.context.uc_stack.ss_size = STACK_BYTES;
    fiber->place.context.uc_link = NULL;
    makecontext(&fiber->place.context, run_threads, 0);
}

static void resume(unsigned index)
{
    struct fiber *fiber = &block.fiber[index];
    bool is_new = fiber->stack == NULL;

    block.current = index;
    threadIdx = dim3(index);
    if (is_new) {
        make(fiber);
    }
    enter_stack(&block.scheduler_fake_stack, fiber->stack, STACK_BYTES);
    change(&block.scheduler, &fiber->place, is_new);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(block.scheduler_fake_stack, NULL, NULL);
#endif
}

static unsigned count_in(enum state state, unsigned first, unsigned end)
{
    unsigned count = 0;

    for (unsigned i = first; i < end; i++) {
        count += block.fiber[i].state == state;
    }
    return count;
}

static void release(unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++) {
        block.fiber[i].state = STATE_RUNS;
    }
}

/* Called when every fiber has stopped: releases those whose partners have all arrived. */
static void meet(unsigned threads)
{
    bool is_released = false;

    if (count_in(STATE_AT_BARRIER, 0, threads) == threads) {
        release(0, threads);
        return;
    }
    for (unsigned first = 0; first < threads; first += WARP) {
        unsigned waiting = count_in(STATE_AT_EXCHANGE, first, first + WARP);

        if (waiting == WARP) {
            release(first, first + WARP);
            is_released = true;
        } else if (waiting != 0) {
            fail("some lanes of a warp shuffle, others do not");
        }
    }
    if (!is_released) {
        fail("not all threads of a block reach a barrier");
    }
}

/* Most kernels never wait. If no thread of the first block does, later blocks run without fibers.
 */
static void run_block(unsigned threads)
{
    if (!block.has_fibers) {
        for (unsigned i = 0; i < threads; i++) {
            threadIdx = dim3(i);
            (*block.thread)();
        }
        return;
    }
    for (unsigned i = 0; i < threads; i++) {
        block.fiber[i].state = STATE_RUNS;
        block.fiber[i].exchanges = 0;
    }
    for (;;) {
        for (unsigned i = 0; i < threads; i++) {
            if (block.fiber[i].state == STATE_RUNS) {
                resume(i);
            }
        }
        if (count_in(STATE_DONE, 0, threads) == threads) {
            return;
        }
        meet(threads);
    }
}

static void run_grid(dim3 blocks, dim3 threads, const std::function<void()> &thread)
{
    gridDim = blocks;
    blockDim = threads;
    block.thread = &thread;
    block.has_fibers = true;
    block.has_waited = false;
    for (unsigned z = 0; z < blocks.z; z++) {
        for (unsigned y = 0; y < blocks.y; y++) {
            for (unsigned x = 0; x < blocks.x; x++) {
                blockIdx = dim3(x, y, z);
                run_block(threads.x);
                block.has_fibers = block.has_waited;
            }
        }
    }
}

void emulation_launch(cudaStream_t stream, dim3 blocks, dim3 threads,
                      const std::function<void()> &thread)
{
    if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0 || blocks.y > 65535 || blocks.z > 65535 ||
        threads.x == 0 || threads.x > THREADS_LIMIT || threads.x % WARP != 0) {
        fail("a launch with an invalid shape");
    }
    emulation_enqueue(stream, [=] { run_grid(blocks, threads, thread); });
}

#ifdef EMULATION_ON_FAKE
static std::list<std::function<void()>> captured; /* runs at each launch of its graph */

static capu_status run_work(capu_stream, const void *arguments)
{
    (*(const std::function<void()> *)arguments)();
    return CAPU_OK;
}

static capu_status run_once(capu_stream stream, const void *arguments)
{
    run_work(stream, arguments);
    delete (const std::function<void()> *)arguments;
    return CAPU_OK;
}

void emulation_enqueue(cudaStream_t stream, const std::function<void()> &work)
{
    std::function<void()> *kept;

    if (fake_cudart_is_captured((capu_stream)stream)) {
        captured.push_back(work);
        (void)fake_cudart_launch((capu_stream)stream, run_work, &captured.back());
        return;
    }
    kept = new std::function<void()>(work);
    if (fake_cudart_launch((capu_stream)stream, run_once, kept) != CAPU_OK) {
        delete kept;
    }
}

/* The fake runtime has functions of the same names, with types of its own. */
cudaError_t cudaGetDevice(int *device)
{
    *device = fake_cudart_current();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    fake_cudart_make_current(device);
    return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    *device = fake_cudart_device_of((capu_stream)stream);
    return cudaSuccess;
}
#else
static int current_device;

void emulation_enqueue(cudaStream_t, const std::function<void()> &work)
{
    work();
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current_device;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    current_device = device;
    return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    *device = stream != NULL ? stream->device : current_device;
    return cudaSuccess;
}
#endif

void __syncthreads(void)
{
    wait_as(STATE_AT_BARRIER);
}

const uint64_t *emulation_exchange(uint64_t value)
{
    unsigned index = block.current;
    unsigned set = block.fiber[index].exchanges++ % 2;

    block.values[set][index] = value;
    wait_as(STATE_AT_EXCHANGE);
    return &block.values[set][index - index % WARP];
}

unsigned __ballot_sync(unsigned, bool value)
{
    const uint64_t *values = emulation_exchange(value);
    unsigned ballot = 0;

    for (unsigned lane = 0; lane < WARP; lane++) {
        ballot |= (unsigned)(values[lane] != 0) << lane;
    }
    return ballot;
}

cudaError_t cudaMalloc(void **address, size_t bytes)
{
    return posix_memalign(address, 256, bytes) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *address)
{
    free(address);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t)
{
    return "emulated";
}
