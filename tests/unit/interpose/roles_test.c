/* Roles and closedness of kernels written for the purpose: each shows one rule of the data flow. */
#include "interpose/flow/roles.h"

#include "tests/support/suite.h"
#include "tests/unit/interpose/analysis_text.h"

#define REGISTERS                                                              \
    ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<19>; .reg .f32 %f<9>;\n" \
    "ld.param.u64 %rd1, [k_param_0]; ld.param.u64 %rd2, [k_param_1];\n"        \
    "ld.param.u32 %r1, [k_param_2]; mov.u32 %r2, %tid.x; mul.wide.u32 %rd3, %r2, 4;\n"

static const struct {
    const char *what;
    const char *before; /* the kernel, in the module */
    const char *body;   /* %rd1 and %rd2 are pointers, %r1 an integer, %rd3 an offset by thread */
    const char *analysis;
    const char *reason; /* part of the first; NULL: closed */
} cases[] = {
    {"nothing", "", "", "closed:", NULL},
    {"a pointer plus an offset", "", "add.s64 %rd4, %rd1, %rd3; ld.global.f32 %f1, [%rd4+8];",
     "closed: 0 read ids/ids", NULL},
    {"the offset first", "", "add.s64 %rd4, %rd3, %rd1; st.global.f32 [%rd4], %f0;",
     "closed: 0 written ids/ids", NULL},
    {"generic addresses", "", "st.f32 [%rd1], 0f00000000; ld.f32 %f1, [%rd2];",
     "closed: 0 written ids/ids; 1 read ids/ids", NULL},
    {"a multiplied pointer is none", "", "mul.lo.s64 %rd4, %rd1, 2; ld.global.f32 %f1, [%rd4];",
     "open:", "computed"},
    {"the third factor is one", "", "mad.lo.s64 %rd4, %rd3, 4, %rd1; ld.global.f32 %f1, [%rd4];",
     "closed: 0 read ids/ids", NULL},
    {"an aligned pointer", "", "and.b64 %rd4, %rd1, -16; ld.global.f32 %f1, [%rd4];",
     "closed: 0 read ids/ids", NULL},
    {"an offset from low bits", "",
     "and.b64 %rd4, %rd1, 15; add.s64 %rd5, %rd2, %rd4; ld.global.f32 %f1, [%rd5];",
     "closed: 1 read ids/ids", NULL},
    {"one of two pointers", "",
     "setp.gt.s32 %p1, %r1, 3; selp.b64 %rd4, %rd1, %rd2, %p1; st.global.f32 [%rd4], %f0;",
     "closed: 0 written ids/ids; 1 written ids/ids", NULL},
    {"a pointer or null", "",
     "setp.gt.s32 %p1, %r1, 3; selp.b64 %rd4, %rd1, 0, %p1; ld.global.f32 %f1, [%rd4];",
     "closed: 0 read ids/ids", NULL},
    {"a pointer or a loaded one", "",
     "ld.global.u64 %rd4, [%rd2]; setp.gt.s32 %p1, %r1, 3; selp.b64 %rd5, %rd1, %rd4, %p1;\n"
     "ld.global.f32 %f1, [%rd5];",
     "open: 0 read data/ids; 1 read ids/ids", "loaded from memory"},
    {"the same by two definitions", "",
     "mov.u64 %rd5, %rd1; setp.gt.s32 %p1, %r1, 3; @%p1 bra A; ld.global.u64 %rd5, [%rd2]; A:\n"
     "ld.global.f32 %f1, [%rd5];",
     "open: 0 read data/ids; 1 read ids/ids", "loaded from memory"},
    {"a pointer that moves", "",
     "mov.u64 %rd5, %rd1; A: ld.global.f32 %f1, [%rd5]; add.s64 %rd5, %rd5, 4;\n"
     "add.s32 %r1, %r1, -1; setp.ne.s32 %p1, %r1, 0; @%p1 bra A;",
     "closed: 0 read ids/ids", NULL},
    {"the same until data ends it", "",
     "mov.u64 %rd5, %rd1; A: ld.global.u32 %r3, [%rd5]; add.s64 %rd5, %rd5, 4;\n"
     "setp.ne.s32 %p1, %r3, 0; @%p1 bra A; st.global.u32 [%rd5], %r1;",
     "closed: 0 updated data/data", NULL},
    {"data chooses between two offsets", "",
     "ld.global.u32 %r3, [%rd2]; setp.ne.s32 %p1, %r3, 0; mov.u64 %rd4, 0; @%p1 bra A;\n"
     "mov.u64 %rd4, %rd3; A: add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], %r1;",
     "closed: 0 written data/ids; 1 read ids/ids", NULL},
    {"an access on one way knows which way", "",
     "ld.global.u32 %r3, [%rd2]; setp.ne.s32 %p1, %r3, 0; mov.u64 %rd4, 0; @%p1 bra A;\n"
     "mov.u64 %rd4, %rd3; add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], %r1; A:",
     "closed: 0 written ids/data; 1 read ids/ids", NULL},
    {"data counts in a loop", "",
     "mov.u32 %r5, 0; A: ld.global.u32 %r3, [%rd2]; setp.ne.s32 %p1, %r3, 0; @%p1 bra B;\n"
     "add.s32 %r5, %r5, 1; mul.wide.u32 %rd4, %r5, 4; add.s64 %rd5, %rd1, %rd4;\n"
     "st.global.u32 [%rd5], %r1; B: add.s64 %rd2, %rd2, 4; add.s32 %r1, %r1, -1;\n"
     "setp.ne.s32 %p2, %r1, 0; @%p2 bra A;",
     "closed: 0 written data/data; 1 read ids/ids", NULL},
    {"a branch that comes later", "",
     "mov.u64 %rd4, %rd1; st.global.u32 [%rd4], %r1; ld.global.u32 %r3, [%rd2];\n"
     "setp.ne.s32 %p1, %r3, 0; @%p1 bra A; add.s64 %rd4, %rd4, 4; st.global.u32 [%rd4], %r1; A:",
     "closed: 0 written ids/data; 1 read ids/ids", NULL},
    {"a predicate is a condition", "",
     "ld.global.u32 %r3, [%rd2]; setp.ne.s32 %p1, %r3, 0; @%p1 st.global.u32 [%rd1], %r1;",
     "closed: 0 written ids/data; 1 read ids/ids", NULL},
    {"exit is one, too", "",
     "ld.global.u32 %r3, [%rd2]; setp.ne.s32 %p1, %r3, 0; @!%p1 exit; st.global.u32 [%rd1], %r1;",
     "closed: 0 written ids/data; 1 read ids/ids", NULL},
    {"a predicated definition", "",
     "mov.u64 %rd4, %rd3; ld.global.u32 %r3, [%rd2]; setp.ne.s32 %p1, %r3, 0;\n"
     "@%p1 mov.u64 %rd4, 0; add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], %r1;",
     "closed: 0 written data/ids; 1 read ids/ids", NULL},
    {"an unset register", "", "add.s64 %rd5, %rd1, %rd7; st.global.u32 [%rd5], %r1;",
     "closed: 0 written unknown/ids", NULL},
    {"set on one path only", "",
     "setp.ne.s32 %p1, %r1, 0; @%p1 bra A; mov.u64 %rd7, %rd3; A: add.s64 %rd5, %rd1, %rd7;\n"
     "st.global.u32 [%rd5], %r1;",
     "closed: 0 written unknown/ids", NULL},
    {"a carry", "",
     "ld.global.u32 %r3, [%rd2]; add.cc.u32 %r4, %r3, %r3; addc.u32 %r5, 0, 0;\n"
     "mul.wide.u32 %rd4, %r5, 4; add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], %r1;",
     "closed: 0 written data/ids; 1 read ids/ids", NULL},
    {"the clock", "",
     "mov.u32 %r3, %clock; mul.wide.u32 %rd4, %r3, 4; add.s64 %rd5, %rd1, %rd4;\n"
     "st.global.u32 [%rd5], %r1;",
     "closed: 0 written unknown/ids", NULL},
    {"a ballot", "",
     "setp.ne.s32 %p1, %r1, 0; vote.sync.ballot.b32 %r3, %p1, -1; mul.wide.u32 %rd4, %r3, 4;\n"
     "add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], %r1;",
     "closed: 0 written unknown/ids", NULL},
    {"rounded floating point is known", "",
     "cvt.rn.f32.s32 %f1, %r1; mul.rn.f32 %f2, %f1, %f1; cvt.rzi.s32.f32 %r3, %f2;\n"
     "mul.wide.s32 %rd4, %r3, 4; add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], %r1;",
     "closed: 0 written ids/ids", NULL},
    {"what may be contracted is not", "",
     "cvt.rn.f32.s32 %f1, %r1; mul.f32 %f2, %f1, %f1; cvt.rzi.s32.f32 %r3, %f2;\n"
     "mul.wide.s32 %rd4, %r3, 4; add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], %r1;",
     "closed: 0 written unknown/ids", NULL},
    {"an atomic's result as an index", "",
     "atom.global.add.u32 %r3, [%rd2], 1; mul.wide.u32 %rd4, %r3, 4; add.s64 %rd5, %rd1, %rd4;\n"
     "st.global.u32 [%rd5], %r1;",
     "closed: 0 written unknown/ids; 1 atomic ids/ids", NULL},
    {"a reduction", "", "red.global.add.f32 [%rd1], 0f3F800000;", "closed: 0 atomic ids/ids", NULL},
    {"an asynchronous copy reads", ".shared .b8 s[64];\n",
     "mov.u32 %r3, s; cp.async.ca.shared.global [%r3], [%rd1], 4;", "closed: 0 read ids/ids", NULL},
    {"shared memory is not global", ".shared .b8 s[64];\n",
     "mov.u64 %rd4, s; cvta.shared.u64 %rd5, %rd4; st.u32 [%rd5], %r1; st.shared.u32 [%rd4], %r1;",
     "closed:", NULL},
    {"a pointer through local memory", "",
     ".local .align 8 .b8 l[16]; mov.u64 %rd4, l; st.local.u64 [%rd4], %rd1;\n"
     "ld.local.u64 %rd5, [%rd4]; st.global.u32 [%rd5], %r1;",
     "closed: 0 written unknown/ids", NULL},
    {"a pointer in parts through local memory", "",
     ".local .align 8 .b8 l[16]; mov.u64 %rd4, l; st.local.u64 [%rd4], %rd1;\n"
     "mov.b64 {%r3, %r4}, %rd2; st.local.v2.u32 [%rd4+8], {%r3, %r4};\n"
     "ld.local.u64 %rd5, [%rd4+8]; st.global.u32 [%rd5], %r1;",
     "open: 0 written unknown/ids", "local memory"},
    {"a pointer exchanged in shared memory", ".shared .align 8 .b8 s[16];\n",
     "mov.u64 %rd4, s; st.shared.u64 [%rd4], %rd1; ld.global.u64 %rd5, [%rd2];\n"
     "atom.shared.exch.b64 %rd6, [%rd4], %rd5; ld.shared.u64 %rd8, [%rd4];\n"
     "st.global.u32 [%rd8], %r1;",
     "open: 0 written unknown/ids; 1 read ids/ids", "shared memory"},
    {"a pointer around a call",
     ".shared .align 8 .b8 s[16];\n.func f(.param .b64 i) { .reg .b64 %rd<2>;\n"
     "ld.param.u64 %rd1, [i]; st.shared.u64 [s], %rd1; ret; }\n",
     "st.shared.u64 [s], %rd1; { .param .b64 a; st.param.b64 [a], %rd2; call.uni f, (a); }\n"
     "ld.shared.u64 %rd8, [s]; st.global.u32 [%rd8], %r1;",
     "open: 0 written unknown/ids", "shared memory"},
    {"a variable", ".global .align 4 .b8 table[64];\n",
     "mov.u64 %rd4, table; add.s64 %rd5, %rd4, %rd3; ld.global.u32 %r3, [%rd5];\n"
     "mul.wide.u32 %rd6, %r3, 4; add.s64 %rd8, %rd1, %rd6; st.global.u32 [%rd8], %r1;",
     "closed: 0 written ids/ids", NULL},
    {"a variable that the kernel changes", ".global .align 4 .b8 table[64];\n",
     "mov.u64 %rd4, table; add.s64 %rd5, %rd4, %rd3; ld.global.u32 %r3, [%rd5];\n"
     "mul.wide.u32 %rd6, %r3, 4; add.s64 %rd8, %rd1, %rd6; st.global.u32 [%rd8], %r1;\n"
     "st.global.u32 [table], %r1;",
     "closed: 0 written data/ids", NULL},
    {"a pointer stored", "", "st.global.u64 [%rd2], %rd1; st.global.u32 [%rd1], %r1;",
     "open: 0 written ids/ids; 1 written ids/ids", "a pointer is stored to memory"},
    {"an integer stored", "", "st.global.u64 [%rd2], %rd1;", "closed: 1 written ids/ids", NULL},
    {"a pointer exchanged", "",
     "st.global.u32 [%rd1], %r1; atom.global.exch.b64 %rd5, [%rd2], %rd1;",
     "open: 0 written ids/ids; 1 atomic ids/ids", "a pointer is stored to memory"},
    {"an unknown instruction", "", "frobnicate.u32 %r3, %r1; st.global.u32 [%rd1], %r1;",
     "open: 0 written ids/ids", "an unknown instruction, frobnicate.u32"},
    {"an unknown form", "", "ld.global.u32 %r3, <%rd1>; st.global.u32 [%rd1], %r1;",
     "open: 0 written ids/ids", "an unknown instruction, ld.global.u32"},
    {"a call into nothing", ".extern .func f;\n", "call f;", "open:", "it calls f"},
    {"a call of a harmless function",
     ".func (.param .b32 o) f(.param .b32 i) { .reg .b32 %r<3>; ld.param.u32 %r1, [i];\n"
     "st.param.b32 [o], %r1; ret; }\n",
     "{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 b; call.uni (b), f, (a);\n"
     "ld.param.b32 %r3, [b]; } mul.wide.u32 %rd4, %r3, 4; add.s64 %rd5, %rd1, %rd4;\n"
     "st.global.u32 [%rd5], %r1;",
     "closed: 0 written unknown/ids", NULL},
    {"a call of one that stores",
     ".func f(.param .b64 i) { .reg .b64 %rd<3>; ld.param.u64 %rd1, [i];\n"
     "st.global.u32 [%rd1], 0; ret; }\n",
     "{ .param .b64 a; st.param.b64 [a], %rd1; call.uni f, (a); }", "open:", "it calls f"},
    {"a call of itself", ".func f() { call.uni f; ret; }\n", "call.uni f;", "open:", "it calls f"},
    {"a call through a pointer", "", "call (%r3), %rd1, (%r1), p;", "open:", "through a pointer"},
    {"printf", ".extern .func (.param .b32 o) vprintf(.param .b64 a, .param .b64 b);\n",
     "call.uni (%r3), vprintf, (%rd1, %rd2);", "closed:", NULL},
    {"a texture", "", "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];",
     "open:", "textures"},
    {"a bulk copy to shared memory", "",
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r1, [%r2];",
     "closed: 0 read ids/ids", NULL},
    {"a bulk copy of a length from memory", "",
     "ld.global.u32 %r3, [%rd2];\n"
     "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r3, [%r2];",
     "closed: 0 read data/ids; 1 read ids/ids", NULL},
    {"a pointer from what a bulk copy brings", ".shared .align 16 .b8 s[16];",
     "mov.u32 %r1, s;\n"
     "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];\n"
     "ld.shared.u64 %rd4, [s]; ld.global.u32 %r3, [%rd4];",
     "open: 0 read ids/ids", "an address that no parameter gives"},
    {"a bulk copy from shared memory", "",
     "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;", "open:", "bulk copies"},
    {"a bulk copy of a tensor", "",
     "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, "
     "{%r1}], [%r2];",
     "open:", "bulk copies"},
    {"a pointer in halves", "",
     "mov.b64 {%r3, %r4}, %rd1; mov.b64 %rd4, {%r3, %r4}; ld.global.u32 %r5, [%rd4];",
     "closed: 0 read ids/ids", NULL},
    {"halves in the wrong order", "",
     "mov.b64 {%r3, %r4}, %rd1; mov.b64 %rd4, {%r4, %r3}; ld.global.u32 %r5, [%rd4];",
     "open:", "an address that no parameter gives"},
    {"halves of two pointers", "",
     "mov.b64 {%r3, %r4}, %rd1; mov.b64 {%r5, %r6}, %rd2; mov.b64 %rd4, {%r3, %r6};\n"
     "ld.global.u32 %r7, [%rd4];",
     "open:", "an address that no parameter gives"},
    {"a wait", "", "A: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.s32 %p1, %r3, 0; @%p1 bra A;",
     "open: 0 read ids/unknown", "wait for another kernel"},
    {"a wait for the same word", "",
     "A: ld.global.u32 %r3, [%rd1]; setp.eq.s32 %p1, %r3, 0; @%p1 bra A;", "open: 0 read ids/data",
     "wait for another kernel"},
    {"a wait before a store to the word", "",
     "A: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.s32 %p1, %r3, 0; @%p1 bra A;\n"
     "st.global.u32 [%rd1], 0;",
     "open: 0 updated ids/unknown", "wait for another kernel"},
    {"a wait for other threads of the kernel", "",
     "red.global.add.u32 [%rd1], 1;\n"
     "A: ld.volatile.global.u32 %r3, [%rd1]; setp.lt.u32 %p1, %r3, 9; @%p1 bra A;\n"
     "st.global.u32 [%rd2], 0;",
     "closed: 0 atomic ids/unknown; 1 written ids/ids", NULL},
    {"a wait for a word that only some threads store to", "",
     "setp.eq.s32 %p2, %r1, 0; @%p2 bra B;\n"
     "A: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.s32 %p1, %r3, 0; @%p1 bra A;\n"
     "B: st.global.u32 [%rd1], 1;",
     "closed: 0 updated ids/unknown", NULL},
    {"a limit that is read in each round", "",
     "mov.u32 %r4, 0;\n"
     "A: st.global.u32 [%rd2], 0; add.u32 %r4, %r4, 1; ld.global.u32 %r3, [%rd1];\n"
     "setp.lt.s32 %p1, %r4, %r3; @%p1 bra A;",
     "closed: 0 read ids/data; 1 written ids/data", NULL},
    {"a limit, and a counter that is copied", "",
     "mov.u32 %r4, 0;\n"
     "A: ld.volatile.global.u32 %r3, [%rd1]; add.u32 %r5, %r4, %r1; mov.u32 %r4, %r5;\n"
     "setp.lt.s32 %p1, %r5, %r3; @%p1 bra A;",
     "closed: 0 read ids/unknown", NULL},
    {"numbers from a counter, up to a limit", "",
     "A: atom.global.add.u32 %r4, [%rd2], 1; ld.global.u32 %r3, [%rd1];\n"
     "setp.lt.s32 %p1, %r4, %r3; @%p1 bra A;",
     "closed: 0 read ids/unknown; 1 atomic ids/unknown", NULL},
    {"a counter that is only read", "",
     "A: atom.global.add.u32 %r4, [%rd2], 0; ld.global.u32 %r3, [%rd1];\n"
     "setp.lt.s32 %p1, %r4, %r3; @%p1 bra A;",
     "open: 0 read ids/unknown; 1 atomic ids/unknown", "wait for another kernel"},
    {"rounds until a result is small", "",
     "A: st.global.u32 [%rd1+4], %r1; ld.global.u32 %r3, [%rd1]; setp.gt.s32 %p1, %r3, 9;\n"
     "@%p1 bra A;",
     "closed: 0 updated ids/data", NULL},
    {"a wait that counts only some rounds", "",
     "mov.u32 %r4, 0;\n"
     "A: ld.volatile.global.u32 %r5, [%rd2]; setp.eq.s32 %p2, %r5, 0; @%p2 bra B;\n"
     "add.u32 %r4, %r4, 1;\n"
     "B: ld.global.u32 %r3, [%rd1]; setp.lt.s32 %p1, %r4, %r3; @%p1 bra A;",
     "open: 0 read ids/unknown; 1 read ids/unknown", "wait for another kernel"},
    {"a wait that gives up", "",
     "mov.u32 %r4, 0;\n"
     "A: ld.volatile.global.u32 %r3, [%rd1]; setp.ne.s32 %p1, %r3, 0; @%p1 bra B;\n"
     "add.u32 %r4, %r4, 1; setp.lt.s32 %p2, %r4, 100; @%p2 bra A;\nB: ",
     "open: 0 read ids/unknown", "wait for another kernel"},
    {"a lock", "",
     "A: atom.global.cas.b32 %r3, [%rd1], 0, 1; setp.ne.s32 %p1, %r3, 0; @%p1 bra A;\n"
     "st.global.u32 [%rd2], 0; atom.global.exch.b32 %r3, [%rd1], 0;",
     "closed: 0 atomic ids/unknown; 1 written ids/ids", NULL},
    {"shared memory of another block of the cluster", ".shared .b8 s[64];\n",
     "cvta.shared.u64 %rd4, s; mov.u32 %r3, %cluster_ctarank; xor.b32 %r3, %r3, 1;\n"
     "mapa.u64 %rd5, %rd4, %r3; add.s64 %rd5, %rd5, %rd3; ld.u32 %r4, [%rd5];\n"
     "st.global.u32 [%rd1], %r4;",
     "closed: 0 written ids/ids", NULL},
    {"the same of what is no address", "",
     "mov.u64 %rd4, 64; mapa.u64 %rd5, %rd4, %r1; ld.u32 %r4, [%rd5];", "open:", "computed"},
    {"a largest value that is exchanged", "",
     "ld.global.u32 %r3, [%rd1]; A: ld.global.u32 %r4, [%rd2]; max.u32 %r5, %r4, %r3;\n"
     "atom.global.cas.b32 %r6, [%rd1], %r3, %r5; setp.ne.s32 %p1, %r3, %r6; mov.u32 %r3, %r6;\n"
     "@%p1 bra A;",
     "closed: 0 atomic ids/unknown; 1 read ids/unknown", NULL},
    {"the same, once more after each that was stored", "",
     "ld.global.u32 %r3, [%rd1]; A: ld.global.u32 %r4, [%rd2]; max.u32 %r5, %r4, %r3;\n"
     "atom.global.cas.b32 %r6, [%rd1], %r3, %r5; setp.eq.s32 %p1, %r3, %r6; mov.u32 %r3, %r6;\n"
     "@%p1 bra A;",
     "open: 0 atomic ids/unknown; 1 read ids/unknown", "wait for another kernel"},
    {"a wait within a loop", "",
     "mov.u32 %r4, 0; C: add.u32 %r5, %r4, 1;\n"
     "A: ld.volatile.global.u32 %r3, [%rd1]; setp.le.s32 %p1, %r3, %r4; @%p1 bra A;\n"
     "st.global.u32 [%rd2], 0; mov.u32 %r4, %r5; setp.lt.s32 %p2, %r4, %r1; @%p2 bra C;",
     "open: 0 read ids/unknown; 1 written ids/ids", "wait for another kernel"},
    {"a wait within a loop that begins with it", "",
     "mov.u32 %r4, 0;\n"
     "A: ld.acquire.gpu.global.u32 %r3, [%rd1]; setp.le.s32 %p1, %r3, %r4; @%p1 bra A;\n"
     "st.global.u32 [%rd2], 0; add.u32 %r4, %r4, 1; setp.lt.s32 %p2, %r4, %r1; @%p2 bra A;",
     "open: 0 read ids/unknown; 1 written ids/ids", "wait for another kernel"},
    {"a product within a loop, until it is small", "",
     "mov.u32 %r4, 0; C: mov.f32 %f1, 0f3F800000;\n"
     "A: ld.global.f32 %f2, [%rd1]; mul.f32 %f1, %f1, %f2; st.global.f32 [%rd2], %f1;\n"
     "setp.gt.f32 %p1, %f1, 0f3A83126F; @%p1 bra A;\n"
     "add.u32 %r4, %r4, 1; setp.lt.s32 %p2, %r4, %r1; @%p2 bra C;",
     "closed: 0 read ids/unknown; 1 written ids/unknown", NULL},
    {"a wait within a loop, for other threads of the kernel", "",
     "mov.u32 %r4, 0; C: red.global.add.u32 [%rd1], 1;\n"
     "A: ld.volatile.global.u32 %r3, [%rd1]; setp.le.s32 %p1, %r3, %r4; @%p1 bra A;\n"
     "add.u32 %r4, %r4, 1; setp.lt.s32 %p2, %r4, %r1; @%p2 bra C;",
     "closed: 0 atomic ids/unknown", NULL},
    {"a wait for threads of the block", ".shared .b32 s;\n",
     "cvta.shared.u64 %rd4, s; A: ld.acquire.cta.u32 %r3, [%rd4]; setp.eq.s32 %p1, %r3, 0;\n"
     "@%p1 bra A; st.global.u32 [%rd1], %r3;",
     "closed: 0 written ids/ids", NULL},
    {"a wait for shared or other memory", ".shared .b32 s;\n",
     "cvta.shared.u64 %rd4, s; setp.eq.s32 %p2, %r1, 0; selp.b64 %rd5, %rd4, %rd1, %p2;\n"
     "A: ld.acquire.gpu.u32 %r3, [%rd5]; setp.eq.s32 %p1, %r3, 0; @%p1 bra A;",
     "open: 0 read ids/unknown", "wait for another kernel"},
    {"the barrier of a cooperative launch", "",
     "mov.u32 %r3, %envreg2; cvt.u64.u32 %rd4, %r3; mov.u32 %r3, %envreg1;\n"
     "cvt.u64.u32 %rd5, %r3; bfi.b64 %rd6, %rd5, %rd4, 32, 32;\n"
     "st.global.u32 [%rd1], 0; atom.add.release.gpu.u32 %r4, [%rd6+4], 1;\n"
     "A: ld.acquire.gpu.u32 %r5, [%rd6+4]; xor.b32 %r5, %r5, %r4; setp.gt.s32 %p1, %r5, -1;\n"
     "@%p1 bra A; ld.global.u32 %r6, [%rd2];",
     "closed: 0 written ids/ids; 1 read ids/ids", NULL},
    {"what a parameter moves away from it", "",
     "mov.u32 %r3, %envreg2; cvt.u64.u32 %rd4, %r3; add.s64 %rd4, %rd4, %rd3;\n"
     "mul.wide.u32 %rd5, %r1, 4; add.s64 %rd5, %rd4, %rd5; ld.global.u32 %r4, [%rd5];",
     "open:", "it depends on the barrier of a cooperative launch"},
    {"another register of the driver", "",
     "mov.u32 %r3, %envreg3; cvt.u64.u32 %rd4, %r3; ld.global.u32 %r4, [%rd4];",
     "open:", "it depends on a clock"},
    {"a loop that nothing leaves", "", "A: st.global.u32 [%rd1], %r1; bra A;",
     "open: 0 written ids/ids", "a loop that nothing leaves"},
    {"a table of targets", "",
     "T: .branchtargets A, B; brx.idx %r1, T; A: st.global.u32 [%rd1], %r1; ret;\n"
     "B: ld.global.u32 %r3, [%rd2];",
     "closed: 0 written ids/ids; 1 read ids/ids", NULL},
    {"a label that is not there", "", "bra NOWHERE;", "open:", "targets are not known"},
    {"two scopes with one label", "",
     "{ .reg .b64 a; mov.u64 a, %rd1; setp.eq.s32 %p1, %r1, 0; @%p1 bra L; st.global.u32 [a], 0; "
     "L: }\n"
     "{ .reg .b64 a; mov.u64 a, %rd2; setp.eq.s32 %p2, %r1, 1; @%p2 bra L; ld.global.u32 %r3, [a]; "
     "L: }",
     "closed: 0 written ids/ids; 1 read ids/ids", NULL},
    {"a generic address of shared memory, from 32 bits", ".shared .b8 s[64];",
     "mov.u32 %r3, s; cvt.u64.u32 %rd4, %r3; cvta.shared.u64 %rd5, %rd4; st.u32 [%rd5+32], %r1;",
     "closed:", NULL},
    {"an access by a warp", "",
     "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%f1, %f2}, %r1;",
     "closed: 0 written ids/ids", NULL},
    {"an access by a warp, with a stride from memory", "",
     "ld.global.u32 %r3, [%rd2];\n"
     "wmma.load.a.sync.aligned.col.m16n16k16.global.bf16 {%r4, %r5, %r6, %r7}, [%rd1], %r3;",
     "closed: 0 read data/ids; 1 read ids/ids", NULL},
    {"an access by a warp to items of less than a byte", "",
     "wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r4}, [%rd1], %r1;",
     "closed: 0 read unknown/ids", NULL},
    {"types without blanks", "",
     "{.reg.b64 t; .reg.b32 u, v; add.s64 t, %rd1, %rd3; ld.global.u32 u, [t]; }",
     "closed: 0 read ids/ids", NULL},
    {"line numbers", ".file 1 \"a b.cu\"\n",
     ".loc 1 2 3\n.loc 1 4 5, function_name $L__info, inlined_at 1 2 3\nst.global.u32 [%rd1], %r1;",
     "closed: 0 written ids/ids", NULL},
};

START_TEST(rules)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[4096];
        char got[ANALYSIS_TEXT_BYTES];
        struct error_text problem = {""};
        struct ptx_module module;
        struct kernels kernels;
        const struct kernel *kernel;
        int length = snprintf(text, sizeof(text),
                              ".version 8.0\n.target sm_80\n.address_size 64\n%s"
                              ".visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1, "
                              ".param .u32 k_param_2)\n{\n"
                              "%s%s\nret; }\n",
                              cases[i].before, REGISTERS, cases[i].body);

        ck_assert_int_lt(length, (int)sizeof(text));
        ck_assert_msg(ptx_parse(text, (size_t)length, &module, &problem) == CAPU_OK, "%s: %s",
                      cases[i].what, problem.text);
        ck_assert_int_eq(roles_find(&module, &kernels), CAPU_OK);
        ck_assert_uint_eq(kernels.count, 1);
        kernel = &kernels.kernels[0];
        analysis_text(kernel, got);
        ck_assert_msg(strcmp(got, cases[i].analysis) == 0, "%s: %s, expected %s (%s)",
                      cases[i].what, got, cases[i].analysis, kernel->reasons[0]);
        ck_assert_msg((cases[i].reason == NULL) == (kernel->reason_count == 0), "%s: %s",
                      cases[i].what, kernel->reasons[0]);
        ck_assert_msg(cases[i].reason == NULL ||
                          strstr(kernel->reasons[0], cases[i].reason) != NULL,
                      "%s: \"%s\"", cases[i].what, kernel->reasons[0]);
        roles_finish(&kernels);
        ptx_finish(&module);
    }
}
END_TEST

START_TEST(errors_name_the_line)
{
    static const struct {
        const char *text;
        capu_status status;
        const char *problem;
    } texts[] = {
        {"", CAPU_FILE_FAILED, "line 1: PTX begins with .version"},
        {".version x\n", CAPU_FILE_FAILED, "line 1: .version without a number"},
        {".version 8.0\n.address_size 32\n", CAPU_UNSUPPORTED, "line 2: addresses of 32 bits"},
        {".version 8.0\n\n.entry k() {\nret;\n", CAPU_FILE_FAILED, "the function does not end"},
        {".version 8.0\n.entry ()\n", CAPU_FILE_FAILED, "a function without a name"},
        {".version 8.0\n.entry k(.param .u64) { }\n", CAPU_FILE_FAILED,
         "line 2: a parameter that cannot be read"},
        {".version 8.0\nnonsense\n", CAPU_FILE_FAILED, "line 2: a directive was expected"},
        {".version 8.0\n.entry k() {\n+\n}\n", CAPU_FILE_FAILED,
         "line 3: a statement was expected"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct error_text problem = {""};
        struct ptx_module module;

        ck_assert_int_eq(ptx_parse(texts[i].text, strlen(texts[i].text), &module, &problem),
                         texts[i].status);
        ck_assert_msg(strstr(problem.text, texts[i].problem) != NULL, "%s: \"%s\"", texts[i].text,
                      problem.text);
        ck_assert_uint_eq(module.function_count, 0);
    }
}
END_TEST

/* The width of an asynchronous copy is an operand. */
START_TEST(copies_have_widths)
{
    static const char text[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n.shared .b8 s[64];\n"
        ".entry k(.param .u64 a) { .reg .b64 %rd<2>; .reg .b32 %r<2>; ld.param.u64 %rd1, [a];\n"
        "mov.u32 %r1, s; cp.async.ca.shared.global [%r1], [%rd1], 8; ret; }\n";
    struct error_text problem;
    struct ptx_module module;
    struct kernels kernels;

    ck_assert_int_eq(ptx_parse(text, strlen(text), &module, &problem), CAPU_OK);
    ck_assert_int_eq(roles_find(&module, &kernels), CAPU_OK);
    ck_assert_uint_eq(kernels.kernels[0].word_count, 1);
    ck_assert_uint_eq(kernels.kernels[0].words[0].read_bytes, 8);
    roles_finish(&kernels);
    ptx_finish(&module);
}
END_TEST

/* Offsets as the driver lays parameters out. */
START_TEST(parameters_have_their_places)
{
    static const char text[] =
        ".version 8.0\n.target sm_90a, debug\n.address_size 64\n"
        ".entry k(.param .u8 a, .param .align 8 .b8 b[20], .param .u64 .ptr .global .align 16 c,\n"
        ".param .f32 d, .param .align 16 .b8 e[16]) { ret; }\n";
    static const uint32_t offsets[] = {0, 8, 32, 40, 48};
    static const uint32_t bytes[] = {1, 20, 8, 4, 16};
    struct error_text problem;
    struct ptx_module module;
    struct kernels kernels;

    ck_assert_int_eq(ptx_parse(text, strlen(text), &module, &problem), CAPU_OK);
    ck_assert_uint_eq(module.architecture, 90);
    ck_assert_uint_eq(module.version, 80);
    ck_assert_int_eq(roles_find(&module, &kernels), CAPU_OK);
    ck_assert_uint_eq(kernels.kernels[0].parameter_count, 5);
    ck_assert_uint_eq(kernels.kernels[0].parameter_bytes, 64);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(kernels.kernels[0].parameters[i].offset, offsets[i]);
        ck_assert_uint_eq(kernels.kernels[0].parameters[i].bytes, bytes[i]);
        ck_assert_int_eq(kernels.kernels[0].parameters[i].is_marked_pointer, i == 2);
        ck_assert(!kernels.kernels[0].parameters[i].is_used);
    }
    roles_finish(&kernels);
    ptx_finish(&module);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interpose_roles");
    TCase *rows = tcase_create("roles");

    tcase_add_test(rows, rules);
    tcase_add_test(rows, errors_name_the_line);
    tcase_add_test(rows, copies_have_widths);
    tcase_add_test(rows, parameters_have_their_places);
    suite_add_tcase(suite, rows);
    return suite_run(suite);
}
