/*
 * LOOK_UP(name, function): a piece of code that trampolines jump to, which asks a C function where
 * to go on. It runs before a function whose arguments are not known, so it keeps every register
 * that can hold one; the caller's stack is untouched. x86-64, System V.
 */
#ifndef CAPU_SHIM_LOOK_UP_H
#define CAPU_SHIM_LOOK_UP_H

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
