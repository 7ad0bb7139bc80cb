/*
 * What trampolines of symbols lead to: the look-up at a symbol's first call, and refusals.
 *
 * The look-up runs before a function whose arguments are not known, so it keeps every register that
 * can hold one; the caller's stack is untouched. x86-64, System V.
 */
#include "interpose/shim/driver.h"
#include "interpose/shim/log.h"
#include "interpose/shim/real.h"
#include "interpose/shim/symbol.h"

#include <pthread.h>
#include <string.h>

/* In: the symbol's entry in r11. Nine eights below the return address keep the stack aligned. */
__asm__(".text\n"
        ".globl symbol_resolve_and_jump\n"
        ".hidden symbol_resolve_and_jump\n"
        ".type symbol_resolve_and_jump, @function\n"
        "symbol_resolve_and_jump:\n"
        "  push %rdi\n  push %rsi\n  push %rdx\n  push %rcx\n  push %r8\n  push %r9\n  push %rax\n"
        "  sub $128, %rsp\n"
        "  movups %xmm0, (%rsp)\n  movups %xmm1, 16(%rsp)\n"
        "  movups %xmm2, 32(%rsp)\n  movups %xmm3, 48(%rsp)\n"
        "  movups %xmm4, 64(%rsp)\n  movups %xmm5, 80(%rsp)\n"
        "  movups %xmm6, 96(%rsp)\n  movups %xmm7, 112(%rsp)\n"
        "  mov %r11, %rdi\n"
        "  call symbol_resolve\n"
        "  mov %rax, %r11\n"
        "  movups (%rsp), %xmm0\n  movups 16(%rsp), %xmm1\n"
        "  movups 32(%rsp), %xmm2\n  movups 48(%rsp), %xmm3\n"
        "  movups 64(%rsp), %xmm4\n  movups 80(%rsp), %xmm5\n"
        "  movups 96(%rsp), %xmm6\n  movups 112(%rsp), %xmm7\n"
        "  add $128, %rsp\n"
        "  pop %rax\n  pop %r9\n  pop %r8\n  pop %rcx\n  pop %rdx\n  pop %rsi\n  pop %rdi\n"
        "  jmp *%r11\n");

/* The function that a symbol's calls go to from now on. */
void *symbol_resolve(struct symbol *symbol)
{
    void *function = real_find(symbol->name);

    if (function == NULL) {
        function = symbol->refusal;
    }
    __atomic_store_n(&symbol->target, function, __ATOMIC_RELEASE);
    return function;
}

/* What was refused so far. */
enum { REFUSALS = 128 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *refusals[REFUSALS];
static size_t refusal_count;

void symbol_note_refusal(const char *base)
{
    size_t i = 0;

    (void)pthread_mutex_lock(&lock);
    while (i < refusal_count && strcmp(refusals[i], base) != 0) {
        i++;
    }
    if (i == refusal_count && refusal_count < REFUSALS) {
        refusals[refusal_count++] = base;
    }
    (void)pthread_mutex_unlock(&lock);
}

const char *symbol_refused(size_t index)
{
    const char *base;

    (void)pthread_mutex_lock(&lock);
    base = index < refusal_count ? refusals[index] : NULL;
    (void)pthread_mutex_unlock(&lock);
    return base;
}

/* What a program can call in place of a refused function; empty: nothing is known. */
static const char *instead_of(const char *base)
{
    static const struct {
        const char *part; /* of the name */
        const char *text;
    } others[] = {
        {"cuCtxCreate", ": use cuDevicePrimaryCtxRetain and cuCtxSetCurrent"},
        {"GreenCtx", ": use the primary context"},
        {"WaitValue", ": use events"},
        {"WriteValue", ": use events"},
        {"BatchMemOp", ": use events"},
        {"Peer", ": use the function for one device"},
        {"cuMemcpyBatch", ": copy one by one"},
        {"cuMemcpy3DBatch", ": copy one by one"},
        {"cuMemcpyAtoD", ": use cuMemcpy2D"},
        {"cuMemcpyDtoA", ": use cuMemcpy2D"},
        {"CaptureToGraph", ": capture into a graph of its own, and add that as a child node"},
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strstr(base, others[i].part) != NULL) {
            return others[i].text;
        }
    }
    return "";
}

int symbol_refuse(struct symbol *symbol)
{
    if (!real_is_open()) {
        return DRIVER_NO_DEVICE;
    }
    if (symbol->kind == SYMBOL_FORWARD) {
        log_line("the CUDA driver has no function %s, which the program calls", symbol->name);
        return DRIVER_NOT_FOUND;
    }
    symbol_note_refusal(symbol->base);
    log_line("refused: %s, which programs cannot use under a budget%s (docs/unmodified.md)",
             symbol->base, instead_of(symbol->base));
    return DRIVER_NOT_SUPPORTED;
}
