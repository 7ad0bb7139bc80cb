/*
 * What an instruction does, as far as addresses and memory are concerned. An opcode that is not in
 * the table is unknown, and makes its kernel open; it is never an error.
 */
#ifndef CAPU_INTERPOSE_PTX_OPCODE_H
#define CAPU_INTERPOSE_PTX_OPCODE_H

#include "interpose/ptx/ptx_lex.h"

enum effect {
    EFFECT_UNKNOWN,
    /* Without effects on memory; the first operand is the result, unless there is none. */
    EFFECT_CHOOSE,       /* one of its sources, whole: mov, selp, min */
    EFFECT_CONVERT,      /* its source, if that stays 64 bits wide */
    EFFECT_ADD,          /* an address, if one of its sources is one */
    EFFECT_SUBTRACT,     /* an address, if its first source is one */
    EFFECT_MULTIPLY_ADD, /* an address, if its third source is one */
    EFFECT_COMPUTE,      /* never an address */
    EFFECT_EXCHANGE,     /* depends on other threads: votes, shuffles, matrix products */
    EFFECT_NONE,         /* no result: barriers, fences, prefetches */
    /* Memory. */
    EFFECT_LOAD,
    EFFECT_STORE,
    EFFECT_ATOMIC,     /* with a result */
    EFFECT_REDUCE,     /* without */
    EFFECT_COPY_ASYNC, /* from global to shared memory, by one thread */
    EFFECT_BULK_LOAD,  /* the same, of as many bytes as an operand says */
    EFFECT_LOAD_TILE,  /* by a warp */
    EFFECT_STORE_TILE,
    EFFECT_DISCARD, /* may change what is there */
    EFFECT_SHARED,  /* shared memory only, and a result that is unknown, if any */
    /* Control flow. */
    EFFECT_BRANCH,
    EFFECT_BRANCH_TABLE,
    EFFECT_EXIT,
    EFFECT_CALL,
    /* Known, and beyond what is analysed. */
    EFFECT_TEXTURE,
    EFFECT_BULK_COPY,
    EFFECT_MULTIMEM,
};

enum effect ptx_opcode_effect(struct span opcode);

/* The width of the type at the end of an opcode, in bits; 0: it has none. */
unsigned ptx_opcode_bits(struct span opcode);

/* How many elements a vector access has: 1, 2, 4 or 8. */
unsigned ptx_opcode_elements(struct span opcode);

/* Whether the result could differ in its bits from run to run of the compiler, or between the slice
   and the kernel: approximations, and operations that ptxas may contract into one. */
bool ptx_opcode_is_inexact(struct span opcode);

#endif
