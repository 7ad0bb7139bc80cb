/*
 * The driver's symbols: what the library exports for each. The table is generated from names.txt.
 *
 * A symbol is forwarded (its trampoline jumps to the real driver), refused (its function fails and
 * says so if the caller is the program, or in most cases if it is a library of CUDA), wrapped (a
 * function of ours), or counted (a function of ours that only counts). `target` is written once, by
 * the first call, always with the same value; everything else is constant.
 */
#ifndef CAPU_SHIM_SYMBOL_H
#define CAPU_SHIM_SYMBOL_H

#include "shim/driver/caller.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum symbol_kind {
    SYMBOL_FORWARD,
    SYMBOL_REFUSE,
    SYMBOL_REFUSE_PROGRAM, /* not to libraries of CUDA */
    SYMBOL_WRAP,
    SYMBOL_COUNT
};

struct symbol {
    void *target;           /* where the trampoline jumps; of a refused symbol: its own function */
    void *refusal;          /* a function that refuses the call, whatever its arguments are */
    const char *name;       /* "cuMemAlloc_v2" */
    const char *base;       /* "cuMemAlloc": what cuGetProcAddress is asked for */
    int32_t version;        /* of a wrapped symbol: since when it is the one given for its base */
    uint16_t kind;          /* symbol_kind */
    uint16_t is_per_thread; /* the variant for per-thread default streams */
};

/* generate.awk computes places in the table. */
_Static_assert(sizeof(struct symbol) == 40, "the trampolines rely on it");

extern struct symbol symbols[];
extern const size_t symbol_count;

/* One of our own functions: which symbol it is for. */
struct symbol_wrapper {
    size_t index;
    void *function;
};

/* Sets what cuGetProcAddress gives for wrapped symbols. Called while the library is loaded, before
   any of its functions can be called. */
void symbol_publish(const struct symbol_wrapper *wrappers, size_t count);

/* What the trampolines call. symbol_resolve stores where a symbol's calls go from now on, and
   returns it; symbol_judge returns where a call goes that is refused to some callers; symbol_refuse
   reports the call and returns the error for it. */
void *symbol_resolve(struct symbol *symbol);
void *symbol_judge(const struct symbol *symbol, const void *caller);
int symbol_refuse(struct symbol *symbol);

/* Whether a caller is refused what a symbol stands for, or of a wrapped one its other variants,
   while memory is managed. Thread: any. */
bool symbol_is_refused(enum caller caller, const struct symbol *symbol);

/* Notes for the report what was refused: a function, or words; the text lives for ever. Thread:
 * any. */
void symbol_note_refusal(const char *what);

/* What was refused, from 0; NULL: there is no more. Thread: any. */
const char *symbol_refused(size_t index);

/*
 * LOOK_UP(name, function): a piece of code that trampolines jump to, which asks a C function where
 * to go on. It runs before a function whose arguments are not known, so it keeps every register
 * that can hold one; the caller's stack is untouched. x86-64, System V.
 */

/* In: the symbol's entry in r11. Nine eights below the return address keep the stack aligned. The C
   function gets the entry and the caller's return address, and returns where to jump. */
#define LOOK_UP(name, function)                                                            \
    __asm__(".text\n"                                                                      \
            ".globl " name "\n"                                                            \
            ".hidden " name "\n"                                                           \
            ".type " name ", @function\n" name ":\n"                                       \
            "  push %rdi\n  push %rsi\n  push %rdx\n  push %rcx\n  push %r8\n  push %r9\n" \
            "  push %rax\n  sub $128, %rsp\n"                                              \
            "  movups %xmm0, (%rsp)\n  movups %xmm1, 16(%rsp)\n"                           \
            "  movups %xmm2, 32(%rsp)\n  movups %xmm3, 48(%rsp)\n"                         \
            "  movups %xmm4, 64(%rsp)\n  movups %xmm5, 80(%rsp)\n"                         \
            "  movups %xmm6, 96(%rsp)\n  movups %xmm7, 112(%rsp)\n"                        \
            "  mov %r11, %rdi\n  mov 184(%rsp), %rsi\n"                                    \
            "  call " function "\n  mov %rax, %r11\n"                                      \
            "  movups (%rsp), %xmm0\n  movups 16(%rsp), %xmm1\n"                           \
            "  movups 32(%rsp), %xmm2\n  movups 48(%rsp), %xmm3\n"                         \
            "  movups 64(%rsp), %xmm4\n  movups 80(%rsp), %xmm5\n"                         \
            "  movups 96(%rsp), %xmm6\n  movups 112(%rsp), %xmm7\n"                        \
            "  add $128, %rsp\n  pop %rax\n"                                               \
            "  pop %r9\n  pop %r8\n  pop %rcx\n  pop %rdx\n  pop %rsi\n  pop %rdi\n"       \
            "  jmp *%r11\n")

#endif
