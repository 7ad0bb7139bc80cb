/* Memory: spaces, vectors, atomics, variables, calls, what an observer sees, and what fails. */
#include "tests/ptx/machine/machine.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HEAD ".version 8.3\n.target sm_90\n.address_size 64\n"
#define REGISTERS                                                      \
    ".reg .pred %p<8>; .reg .b16 %h<12>; .reg .b32 %r<16>; .reg .b64 " \
    "%d<16>;\nld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x;\n"
#define KERNEL(body) HEAD ".visible .entry k(.param .u64 out)\n{\n" REGISTERS body "\nret;\n}\n"

static struct machine_module *opened(const char *text)
{
    struct machine_module *module = NULL;
    struct error_text problem = {""};

    ck_assert_msg(machine_open(text, strlen(text), &module, &problem) == CAPU_OK, "%s",
                  problem.text);
    return module;
}

static capu_status run(const struct machine_module *module, uint32_t threads, void *out,
                       machine_observer observer, void *context, struct error_text *problem)
{
    struct machine_launch launch = {.grid = {1, 1, 1},
                                    .block = {threads, 1, 1},
                                    .parameters = &out,
                                    .observer = observer,
                                    .observer_context = context};

    problem->text[0] = '\0';
    return machine_run(machine_function_at(module, 0), &launch, problem);
}

/* The first words that a kernel leaves in its output, which begins as 1, 2, 3, ... */
enum { WORDS = 64 };

static void run_words(const char *text, uint32_t threads, uint32_t words[WORDS])
{
    struct machine_module *module = opened(text);
    struct error_text problem;

    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = i + 1;
    }
    ck_assert_msg(run(module, threads, words, NULL, NULL, &problem) == CAPU_OK, "%s", problem.text);
    machine_close(module);
}

static const struct {
    const char *what;
    const char *text;
    uint32_t threads;
    uint32_t words[4];
} cases[] = {
    {"vectors",
     KERNEL("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0];\n"
            "st.global.v4.u32 [%d0], {%r4, %r3, %r2, %r1};"),
     1,
     {4, 3, 2, 1}},
    {"vectors with a sink and 64 bits",
     KERNEL("ld.global.v2.u64 {%d1, _}, [%d0]; st.global.v2.b64 [%d0], {0, %d1};"),
     1,
     {0, 0, 1, 2}},
    {"narrow accesses extend",
     KERNEL("mov.u32 %r1, 0xfedc; st.global.u16 [%d0], %r1; ld.global.s8 %r2, [%d0+1];\n"
            "ld.global.u8 %r3, [%d0+1]; ld.global.s16 %d1, [%d0]; st.global.u32 [%d0+4], %r2;\n"
            "st.global.u32 [%d0+8], %r3; st.global.u32 [%d0+12], %d1;"),
     1,
     {0xfedc, 0xfffffffe, 0xfe, 0xfffffedc}},
    {"caches and orders change nothing",
     KERNEL("ld.global.nc.L1::no_allocate.u32 %r1, [%d0]; ld.volatile.global.u32 %r2, [%d0+4];\n"
            "ld.acquire.gpu.global.u32 %r3, [%d0+8]; st.global.cs.u32 [%d0+4], %r1;\n"
            "st.relaxed.sys.u32 [%d0], %r3; fence.acq_rel.gpu; membar.gl;"),
     1,
     {3, 1, 3, 4}},
    {"generic addresses of all spaces",
     HEAD ".shared .align 4 .b8 s[16]; .const .align 4 .u32 c = 77;\n"
          ".visible .entry k(.param .u64 out)\n{ .local .align 8 .b8 depot[16];\n" REGISTERS
          "mov.u32 %r1, s; add.u32 %r1, %r1, 4; st.shared.u32 [%r1], 11;\n"
          "mov.u64 %d1, s; cvta.shared.u64 %d2, %d1; ld.u32 %r2, [%d2+4];\n"
          "mov.u64 %d3, depot; cvta.local.u64 %d4, %d3; st.u32 [%d4+8], 22;\n"
          "ld.local.u32 %r3, [depot+8]; mov.u64 %d5, c; cvta.const.u64 %d6, %d5;\n"
          "ld.u32 %r4, [%d6]; isspacep.shared %p0, %d2; isspacep.local %p1, %d4;\n"
          "isspacep.global %p2, %d0; isspacep.global %p3, %d2; cvta.to.shared.u64 %d7, %d2;\n"
          "sub.u64 %d7, %d7, %d1; cvt.u32.u64 %r5, %d7; @%p3 add.u32 %r5, %r5, 8;\n"
          "@%p0 add.u32 %r5, %r5, 1; @%p1 add.u32 %r5, %r5, 2; @%p2 add.u32 %r5, %r5, 4;\n"
          "st.global.v4.u32 [%d0], {%r2, %r3, %r4, %r5}; ret; }\n",
     1,
     {11, 22, 77, 7}},
    {"atomics return what was there",
     KERNEL("atom.global.add.u32 %r1, [%d0], 5; atom.global.max.s32 %r2, [%d0+4], -3;\n"
            "atom.cas.b32 %r3, [%d0+8], 3, 30; red.global.xor.b32 [%d0+12], 1;\n"
            "st.global.v2.u32 [%d0+16], {%r1, %r2}; st.global.u32 [%d0+24], %r3;"),
     1,
     {6, 2, 30, 5}},
    {"atomics of all threads",
     KERNEL("atom.global.add.u32 %r1, [%d0], 1; atom.global.inc.u32 %r2, [%d0+4], 9;\n"
            "red.global.or.b32 [%d0+8], %r0; red.global.add.u32 [%d0+12], %r0;"),
     32,
     {33, 4, 31, 4 + 496}},
    {"atomics on floats",
     KERNEL("mov.b32 %r1, 0f3F800000; st.global.u32 [%d0], %r1;\n"
            "atom.global.add.f32 %r2, [%d0], 0f40000000; mov.b64 %d1, 0d3FF0000000000000;\n"
            "st.global.u64 [%d0+8], %d1; red.global.add.f64 [%d0+8], %d1;"),
     1,
     {0x40400000, 2, 0, 0x40000000}},
    {"atomics on pairs of halves",
     KERNEL("mov.b32 %r1, 0x3c003c00; st.global.u32 [%d0], %r1;\n"
            "atom.global.add.noftz.f16x2 %r2, [%d0], %r1; mov.b32 %r3, 0x3f803f80;\n"
            "st.global.u32 [%d0+4], %r3; red.global.add.noftz.bf16x2 [%d0+4], %r3;"),
     1,
     {0x40004000, 0x40004000, 3, 4}},
    {"atomics in shared memory",
     HEAD ".visible .entry k(.param .u64 out)\n{ .shared .align 4 .u32 s;\n" REGISTERS
          "st.shared.u32 [s], 0; bar.sync 0; atom.shared.add.u32 %r1, [s], 2; bar.sync 0;\n"
          "ld.shared.u32 %r2, [s]; st.global.u32 [%d0], %r2; ret; }\n",
     40,
     {80, 2, 3, 4}},
    {"initialisers",
     HEAD ".global .align 4 .b8 bytes[8] = {1, 2, 3, 4, 5};\n.global .u64 at = generic(bytes)+4;\n"
          ".const .f32 f = 0f3F800000;\n.visible .entry k(.param .u64 out)\n{\n" REGISTERS
          "ld.global.u32 %r1, [bytes]; ld.global.u64 %d1, [at]; ld.global.u32 %r2, [%d1];\n"
          "ld.const.f32 %r3, [f]; st.global.v2.u32 [%d0], {%r1, %r2};\n"
          "st.global.u32 [%d0+8], %r3; ret; }\n",
     1,
     {0x04030201, 5, 0x3f800000, 4}},
    {"functions",
     HEAD ".func (.param .b32 sum) add(.param .b32 a, .param .align 8 .b8 b[16])\n"
          "{ .reg .b32 %r<4>; ld.param.u32 %r1, [a]; ld.param.u32 %r2, [b+8];\n"
          "add.u32 %r3, %r1, %r2; st.param.b32 [sum], %r3; ret; }\n"
          ".visible .entry k(.param .u64 out)\n{\n" REGISTERS
          "{ .param .b32 x; .param .align 8 .b8 y[16]; .param .b32 z;\n"
          "st.param.b32 [x], 7; st.param.b32 [y+8], 5; call.uni (z), add, (x, y);\n"
          "ld.param.b32 %r1, [z]; } st.global.u32 [%d0], %r1; ret; }\n",
     1,
     {12, 2, 3, 4}},
    {"the end of a thread within a function",
     HEAD ".func f(.param .b32 a) { .reg .pred %p1; .reg .b32 %r1; ld.param.u32 %r1, [a];\n"
          "setp.lt.u32 %p1, %r1, 3; @%p1 exit; ret; }\n"
          ".visible .entry k(.param .u64 out)\n{\n" REGISTERS
          "{ .param .b32 x; st.param.b32 [x], %r0; call.uni f, (x); }\n"
          "red.global.add.u32 [%d0], 1; ret; }\n",
     8,
     {6, 2, 3, 4}},
    {"structures of parameters",
     HEAD ".visible .entry k(.param .align 8 .b8 out[8])\n{ .reg .b64 %d<4>; .reg .b32 %r<4>;\n"
          "mov.b64 %d1, out; ld.param.u64 %d2, [%d1]; mov.u32 %r1, %ntid.x;\n"
          "st.global.u32 [%d2], %r1; ret; }\n",
     5,
     {5, 2, 3, 4}},
    {"asynchronous copies",
     HEAD ".visible .entry k(.param .u64 out)\n{ .shared .align 16 .b8 s[32];\n" REGISTERS
          "mov.u32 %r1, s; cp.async.ca.shared.global [%r1], [%d0], 16;\n"
          "cp.async.cg.shared.global.L2::128B [%r1+16], [%d0+16], 16, 4;\n"
          "cp.async.commit_group; cp.async.wait_group 0; ld.shared.u32 %r2, [s+12];\n"
          "ld.shared.v2.u32 {%r3, %r4}, [s+16]; st.global.v2.u32 [%d0], {%r2, %r3};\n"
          "st.global.u32 [%d0+8], %r4; ret; }\n",
     1,
     {4, 5, 0, 4}},
    /* The first phase ends with the bytes that thread 40 announces, the second with all threads. */
    {"bulk copies and mbarriers",
     HEAD
     ".visible .entry k(.param .u64 out)\n{ .shared .align 16 .b8 s[16];\n"
     ".shared .align 8 .b64 m, n;\n" REGISTERS
     "mov.u32 %r1, s; mov.u32 %r2, m; mov.u32 %r3, n; setp.ne.u32 %p1, %r0, 63;\n"
     "@%p1 bra READY; mbarrier.init.shared.b64 [%r2], 1;\n"
     "mbarrier.init.shared::cta.b64 [%r3], 64; fence.proxy.async.shared::cta;\n"
     "READY: bar.sync 0; setp.ne.u32 %p1, %r0, 40; @%p1 bra WAIT;\n"
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d0], 16, "
     "[%r2];\n"
     "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %d1, [%r2], 16;\n"
     "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra WAIT;\n"
     "ld.shared.u32 %r4, [s+12]; mbarrier.arrive.shared.b64 %d2, [%r3];\n"
     "ALL: mbarrier.test_wait.acquire.cta.shared.b64 %p3, [%r3], %d2; @!%p3 bra ALL;\n"
     "red.global.add.u32 [%d0], %r4; setp.ne.u32 %p1, %r0, 5; @%p1 bra DONE;\n"
     "mov.u64 %d3, m; cvta.shared.u64 %d3, %d3; mbarrier.expect_tx.relaxed.cta.b64 [%d3], 32;\n"
     "mbarrier.arrive.b64 %d4, [%d3]; mbarrier.test_wait.parity.b64 %p2, [%d3], 0;\n"
     "selp.u32 %r5, 7, 8, %p2; st.global.u32 [%d0+4], %r5; DONE: ret; }\n",
     64,
     {1 + 64 * 4, 7, 3, 4}},
};

START_TEST(memory_is_that_of_a_gpu)
{
    uint32_t words[WORDS] __attribute__((aligned(16)));

    run_words(cases[_i].text, cases[_i].threads, words);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_msg(words[i] == cases[_i].words[i],
                      "%s: word %zu is %" PRIx32 ", should be %" PRIx32, cases[_i].what, i,
                      words[i], cases[_i].words[i]);
    }
}
END_TEST

/* What a module says of itself. */
START_TEST(modules_are_described)
{
    struct machine_module *module =
        opened(HEAD ".extern .shared .align 16 .b8 dynamic[];\n.global .align 4 .b8 g[12];\n"
                    ".const .u64 c;\n.shared .align 8 .b8 other[800];\n"
                    ".visible .entry k(.param .u64 a, .param .u8 b, .param .align 8 .b8 c_[24])\n"
                    ".maxntid 64, 2, 1\n{ .shared .align 4 .b8 s[100]; .local .b8 l[40];\n"
                    ".reg .b32 %r1; ld.shared.u32 %r1, [dynamic]; ret; }\n"
                    ".visible .entry m() { .reg .b32 %r1; ld.shared.u32 %r1, [other]; ret; }\n");
    const struct machine_function *first = machine_function_at(module, 0);
    const struct machine_function *second = machine_function_find(module, "m");
    const struct machine_variable *global = machine_variable_find(module, "g");

    ck_assert_str_eq(first->name, "k");
    ck_assert_uint_eq(first->parameter_count, 3);
    ck_assert_uint_eq(first->parameter_bytes, 40);
    ck_assert_uint_eq(first->parameters[1].offset, 8);
    ck_assert_uint_eq(first->parameters[1].bytes, 1);
    ck_assert_uint_eq(first->parameters[2].offset, 16);
    ck_assert_uint_eq(first->threads_most, 128);
    ck_assert_uint_eq(first->shared_bytes, 100);
    ck_assert_uint_eq(first->local_bytes, 40);
    ck_assert_uint_eq(second->shared_bytes, 800);
    ck_assert_uint_eq(second->threads_most, 1024);
    ck_assert_ptr_null(machine_function_at(module, 2));
    ck_assert_ptr_null(machine_function_find(module, "x"));
    ck_assert_uint_eq(global->bytes, 12);
    ck_assert_uint_eq((uintptr_t)global->address % 256, 0);
    ck_assert_int_eq(machine_variable_find(module, "c")->space, MACHINE_CONST);
    ck_assert_ptr_null(machine_variable_find(module, "dynamic"));
    ck_assert_ptr_null(machine_variable_at(module, 2));
    machine_close(module);
}
END_TEST

START_TEST(dynamic_shared_memory_follows)
{
    struct machine_module *module = opened(
        HEAD ".extern .shared .align 16 .b8 dynamic[];\n.visible .entry k(.param .u64 out)\n"
             "{ .shared .align 4 .b8 s[20];\n" REGISTERS
             "mov.u32 %r1, dynamic; mad.lo.u32 %r1, %r0, 4, %r1; st.shared.u32 [%r1], %r0;\n"
             "bar.sync 0; mov.u32 %r2, %dynamic_smem_size; ld.shared.u32 %r3, [dynamic+12];\n"
             "st.global.v2.u32 [%d0], {%r2, %r3}; ret; }\n");
    uint32_t words[2];
    void *out = words;
    struct machine_launch launch = {
        .grid = {1, 1, 1}, .block = {4, 1, 1}, .shared_bytes = 16, .parameters = &out};
    struct error_text problem = {""};

    ck_assert_msg(machine_run(machine_function_at(module, 0), &launch, &problem) == CAPU_OK, "%s",
                  problem.text);
    ck_assert_uint_eq(words[0], 16);
    ck_assert_uint_eq(words[1], 3);
    for (uint32_t bytes = 8; bytes < 16; bytes += 2) { /* the last thread is beyond it */
        launch.shared_bytes = bytes;
        ck_assert_int_eq(machine_run(machine_function_at(module, 0), &launch, &problem),
                         CAPU_DEVICE_FAILED);
        ck_assert_ptr_nonnull(strstr(problem.text, "shared memory beyond its end"));
    }
    launch.shared_bytes = 300 << 10;
    ck_assert_int_eq(machine_run(machine_function_at(module, 0), &launch, &problem), CAPU_INVALID);
    launch.shared_bytes = 0;
    launch.block[0] = 2000;
    ck_assert_int_eq(machine_run(machine_function_at(module, 0), &launch, &problem), CAPU_INVALID);
    launch.block[0] = 4;
    launch.grid[1] = 0;
    ck_assert_int_eq(machine_run(machine_function_at(module, 0), &launch, &problem), CAPU_INVALID);
    machine_close(module);
}
END_TEST

/* Observers. */

struct seen {
    char text[1024];
    uint64_t base;
    uint64_t end; /* what lies beyond is refused */
};

static bool see(void *context, const struct machine_access *access)
{
    static const char kinds[] = "rwa";
    struct seen *seen = context;
    size_t length = strlen(seen->text);

    if (access->address + access->bytes > seen->end) {
        return false;
    }
    snprintf(seen->text + length, sizeof(seen->text) - length,
             "%c%" PRIu64 "+%" PRIu32 "@%" PRIu32 ".%" PRIu32 " ", kinds[access->kind],
             access->address - seen->base, access->bytes, access->line, access->thread[0]);
    return true;
}

static const char observed[] = KERNEL("mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d1, %d0;\n"
                                      "ld.global.u16 %h1, [%d1];\n"
                                      "st.global.v2.u32 [%d0+16], {%r0, %r0};\n"
                                      "atom.add.u32 %r1, [%d0+24], 1;");

START_TEST(observers_see_each_access)
{
    struct machine_module *module = opened(observed);
    uint32_t words[16] __attribute__((aligned(16))) = {0};
    struct seen seen = {"", (uint64_t)(uintptr_t)words, (uint64_t)(uintptr_t)(words + 16)};
    struct error_text problem;

    ck_assert_msg(run(module, 2, words, see, &seen, &problem) == CAPU_OK, "%s", problem.text);
    ck_assert_str_eq(seen.text, "r0+2@9.0 w16+8@10.0 a24+4@11.0 r4+2@9.1 w16+8@10.1 a24+4@11.1 ");
    machine_close(module);
}
END_TEST

/* A refused access is not carried out, and is reported with kernel, line and address. */
START_TEST(refused_accesses_fail)
{
    struct machine_module *module = opened(observed);
    uint32_t words[16] __attribute__((aligned(16))) = {0};
    struct seen seen = {"", (uint64_t)(uintptr_t)words, (uint64_t)(uintptr_t)(words + 6)};
    struct error_text problem;
    char address[32];

    ck_assert_int_eq(run(module, 2, words, see, &seen, &problem), CAPU_DEVICE_FAILED);
    snprintf(address, sizeof(address), "0x%" PRIx64, (uint64_t)(uintptr_t)(words + 6));
    ck_assert_ptr_nonnull(strstr(problem.text, "k: line 11: an atomic that was not expected"));
    ck_assert_ptr_nonnull(strstr(problem.text, address));
    ck_assert_uint_eq(words[6], 0);
    ck_assert_ptr_null(machine_where());
    machine_close(module);
}
END_TEST

static const struct {
    const char *text;
    const char *problem;
} failures[] = {
    {KERNEL("trap;"), "k: line 8: a trap"},
    {KERNEL("ld.global.u32 %r1, [%d0+2];"), "misaligned"},
    {KERNEL("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0+8];"), "misaligned"},
    {KERNEL("mov.u32 %r1, 5; ld.local.u8 %r2, [%r1];"), "local memory beyond its end"},
    {KERNEL("bar.sync 0; trap;"), "a trap"},
    {KERNEL("wgmma.fence.sync.aligned;"),
     "k: line 8: the instruction is not supported: wgmma.fence.sync.aligned"},
    {KERNEL("\nfrobnicate.u32 %r1, %r2;"), "line 9"},
    {KERNEL("add.frob.u32 %r1, %r2, %r3;"), "add.frob.u32"},
    {KERNEL("add.u32 %r1, %r2;"), "add.u32"},
    {KERNEL("add.u32 %r1, %r2, %d3;\nadd.u32 %d1, %r2, %h3;"), "line 9"},
    {KERNEL("ld.global.frob.u32 %r1, [%d0];"), "ld.global.frob.u32"},
    {KERNEL("atom.global.add.b32 %r1, [%d0], 1;"), "atom.global.add.b32"},
    {KERNEL("cvt.f32.f64 %r1, %d0;"), "cvt.f32.f64"},
    {KERNEL("mov.u32 %r1, %envreg3;"), "special register"},
    {KERNEL("call.uni nothing;"), "not in the module"},
    {KERNEL("bra NOWHERE;"), "label"},
    {KERNEL("brx.idx %r0, T; T: .branchtargets A; A: mov.u32 %r1, 5; brx.idx %r1, T;"),
     "a branch beyond its table"},
    {HEAD ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d,\n"
          ".param .b64 e);\n.global .align 1 .b8 m[4] = {120, 62, 48, 0};\n"
          ".visible .entry k(.param .u64 out)\n{\n" REGISTERS
          "mov.u64 %d1, m; { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d;\n"
          ".param .b64 e; st.param.b64 [a], %d1; st.param.b64 [b], %d1; st.param.b32 [c], 17;\n"
          "st.param.b64 [d], %d1; st.param.b64 [e], 1;\n"
          "call.uni __assertfail, (a, b, c, d, e); } ret; }\n",
     "k: x>0:17: x>0: assertion `x>0' failed, block 0,0,0, thread 0,0,0"},
};

/* And the next launch works. */
START_TEST(failures_name_their_place)
{
    struct machine_module *module = opened(failures[_i].text);
    struct machine_module *other = opened(KERNEL("bar.sync 0; st.global.u32 [%d0], 9;"));
    uint32_t words[16] __attribute__((aligned(16))) = {0};
    struct error_text problem;

    ck_assert_int_eq(run(module, 2, words, NULL, NULL, &problem), CAPU_DEVICE_FAILED);
    ck_assert_msg(strstr(problem.text, failures[_i].problem) != NULL, "%s", problem.text);
    ck_assert_int_eq(run(other, 2, words, NULL, NULL, &problem), CAPU_OK);
    ck_assert_uint_eq(words[0], 9);
    machine_close(module);
    machine_close(other);
}
END_TEST

static const struct {
    const char *text;
    capu_status status;
    const char *problem;
} refused[] = {
    {"int main(void) { return 0; }", CAPU_FILE_FAILED, "line 1"},
    {HEAD ".global .texref t;\n.visible .entry k() { ret; }", CAPU_UNSUPPORTED, ": t"},
    {HEAD ".extern .global .u32 x;\n.visible .entry k() { ret; }", CAPU_UNSUPPORTED, ": x"},
    {HEAD ".func f() { call.uni g, (); ret; }\n.func g() { call.uni f, (); ret; }\n"
          ".visible .entry k() { call.uni f, (); ret; }",
     CAPU_UNSUPPORTED, "recursion"},
};

START_TEST(unsupported_modules_name_the_line)
{
    struct machine_module *module = NULL;
    struct error_text problem = {""};
    capu_status status =
        machine_open(refused[_i].text, strlen(refused[_i].text), &module, &problem);

    ck_assert_msg(status == refused[_i].status, "%d: %s", status, problem.text);
    ck_assert_msg(strstr(problem.text, refused[_i].problem) != NULL, "%s", problem.text);
    ck_assert_ptr_null(module);
}
END_TEST

/* printf of device code, read back from a pipe. */
START_TEST(prints_reach_the_output)
{
    struct machine_module *module = opened(
        HEAD ".extern .func (.param .b32 n) vprintf(.param .b64 a, .param .b64 b);\n"
             ".global .align 1 .b8 f[24] = {37, 100, 32, 37, 108, 108, 117, 32, 37, 46, 49,\n"
             "102, 32, 37, 115, 37, 37, 10, 0};\n" /* "%d %llu %.1f %s%%\n" */
             ".visible .entry k(.param .u64 out)\n{ .local .align 8 .b8 l[32];\n" REGISTERS
             "mov.u64 %d1, l; cvta.local.u64 %d2, %d1; mov.u64 %d3, f;\n"
             "st.local.u32 [l], -5; st.local.u64 [l+8], 0x100000000;\n"
             "mov.b64 %d4, 0d3FF8000000000000; st.local.u64 [l+16], %d4;\n"
             "st.local.u64 [l+24], %d3; { .param .b64 a; .param .b64 b; .param .b32 n;\n"
             "st.param.b64 [a], %d3; st.param.b64 [b], %d2;\n"
             "call.uni (n), vprintf, (a, b); ld.param.b32 %r1, [n]; }\n"
             "st.global.u32 [%d0], %r1; ret; }\n");
    uint32_t words[1] = {0};
    struct error_text problem;
    char line[128] = "";
    int ends[2];
    int saved;

    fflush(stdout);
    ck_assert_int_eq(pipe(ends), 0);
    saved = dup(STDOUT_FILENO);
    ck_assert_int_ge(dup2(ends[1], STDOUT_FILENO), 0);
    ck_assert_int_eq(run(module, 1, words, NULL, NULL, &problem), CAPU_OK);
    fflush(stdout);
    ck_assert_int_ge(dup2(saved, STDOUT_FILENO), 0);
    ck_assert_int_gt(read(ends[0], line, sizeof(line) - 1), 0);
    ck_assert_str_eq(line, "-5 4294967296 1.5 %d %llu %.1f %s%%\n%\n");
    ck_assert_uint_eq(words[0], 4);
    machine_close(module);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ptx_memory");
    TCase *memory = tcase_create("memory");

    tcase_add_loop_test(memory, memory_is_that_of_a_gpu, 0, sizeof(cases) / sizeof(cases[0]));
    tcase_add_test(memory, modules_are_described);
    tcase_add_test(memory, dynamic_shared_memory_follows);
    tcase_add_test(memory, observers_see_each_access);
    tcase_add_test(memory, refused_accesses_fail);
    tcase_add_loop_test(memory, failures_name_their_place, 0,
                        sizeof(failures) / sizeof(failures[0]));
    tcase_add_loop_test(memory, unsupported_modules_name_the_line, 0,
                        sizeof(refused) / sizeof(refused[0]));
    tcase_add_test(memory, prints_reach_the_output);
    suite_add_tcase(suite, memory);
    return suite_run(suite);
}
