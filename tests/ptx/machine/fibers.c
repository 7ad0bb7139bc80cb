/* Fibers, see fibers.h. Their stacks are kept from launch to launch, each with a page below that is
   not mapped. */
#undef _FORTIFY_SOURCE /* it takes jumps to another stack for errors */
#include "tests/ptx/machine/fibers.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define HAS_ASAN 1
#endif
#endif
#ifndef HAS_ASAN
#define HAS_ASAN 0
#endif

static const size_t stack_bytes = (size_t)128 << 10;
static const size_t guard_bytes = (size_t)16 << 10; /* whole pages on every machine */

struct fiber {
    unsigned char *stack;
    bool has_begun;
    bool has_returned;
    void *place[5]; /* where it waits */
    jmp_buf base;   /* in its loop, around its function */
    ucontext_t context;
    void *fake_stack; /* of ASan */
};

static struct fiber fibers[FIBERS_MOST];
static unsigned current;
static void (*current_run)(unsigned index);
static void *scheduler[5]; /* where it waits */
#if HAS_ASAN
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;
static void *scheduler_fake_stack;
#endif

bool fibers_reserve(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        void *memory;

        if (fibers[i].stack != NULL) {
            continue;
        }
        memory = mmap(NULL, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            return false;
        }
        if (mprotect(memory, guard_bytes, PROT_NONE) != 0) {
            (void)munmap(memory, guard_bytes + stack_bytes);
            return false;
        }
        fibers[i].stack = (unsigned char *)memory + guard_bytes;
    }
    return true;
}

void fibers_abandon(void)
{
    for (unsigned i = 0; i < FIBERS_MOST && fibers[i].stack != NULL; i++) {
        fibers[i].has_begun = false;
    }
}

/*
 * Continues at another place, or begins a fiber, until something continues at this one. The
 * compiler's own jumps store three words; the C library's calls cost more than what fibers do
 * between them. Not inlined: a jump must not end in the function that it came from. Not
 * instrumented: to ASan a jump is the end of what is on the stack.
 */
__attribute__((noinline, no_sanitize("address"))) static void change(void **from, void **to,
                                                                     const ucontext_t *begins)
{
    if (__builtin_setjmp(from) == 0) {
        if (begins != NULL) {
            (void)setcontext(begins);
        }
        __builtin_longjmp(to, 1);
    }
}

void fiber_wait(void)
{
    struct fiber *fiber = &fibers[current];

#if HAS_ASAN
    __sanitizer_start_switch_fiber(&fiber->fake_stack, scheduler_stack, scheduler_stack_bytes);
#endif
    change(fiber->place, scheduler, NULL);
#if HAS_ASAN
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &scheduler_stack, &scheduler_stack_bytes);
#endif
}

void fiber_return(void)
{
    _longjmp(fibers[current].base, 1);
}

/* A fiber that has returned waits in its loop for the next function. */
static void loop(void)
{
#if HAS_ASAN
    __sanitizer_finish_switch_fiber(NULL, &scheduler_stack, &scheduler_stack_bytes);
#endif
    for (;;) {
        if (_setjmp(fibers[current].base) == 0) {
            current_run(current);
        }
        fibers[current].has_returned = true;
        fiber_wait();
    }
}

static void begin(struct fiber *fiber)
{
    (void)getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = stack_bytes;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, loop, 0);
    fiber->has_begun = true;
}

bool fiber_resume(unsigned index, void (*run)(unsigned index))
{
    struct fiber *fiber = &fibers[index];
    bool is_new = !fiber->has_begun;

    current = index;
    current_run = run;
    fiber->has_returned = false;
    if (is_new) {
        begin(fiber);
    }
#if HAS_ASAN
    __sanitizer_start_switch_fiber(&scheduler_fake_stack, fiber->stack, stack_bytes);
#endif
    change(scheduler, fiber->place, is_new ? &fiber->context : NULL);
#if HAS_ASAN
    __sanitizer_finish_switch_fiber(scheduler_fake_stack, NULL, NULL);
#endif
    return fibers[current].has_returned;
}
