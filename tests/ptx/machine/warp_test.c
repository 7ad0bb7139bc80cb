/* What threads do together: barriers, shuffles, votes, matches, reductions, tiles. */
#include "tests/ptx/machine/machine.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HEAD ".version 8.3\n.target sm_90\n.address_size 64\n"

/* Each thread leaves %r3 in its word of the output; %r0 is its number. */
#define KERNEL(body)                                                                    \
    HEAD ".visible .entry k(.param .u64 out)\n{\n.reg .pred %p<8>; .reg .b32 %r<32>;\n" \
         ".reg .b64 %d<8>; .shared .align 16 .b8 s[4096];\n"                            \
         "ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4;\n"    \
         "add.u64 %d1, %d1, %d0; mov.u32 %r1, %laneid; shl.b32 %r2, %r0, 2;\n" body     \
         "\nst.global.u32 [%d1], %r3; ret;\n}\n"

enum { THREADS_MOST = 256 };

static capu_status run(const char *text, uint32_t threads, uint32_t words[THREADS_MOST],
                       struct error_text *problem)
{
    struct machine_module *module = NULL;
    struct machine_launch launch = {
        .grid = {1, 1, 1}, .block = {threads, 1, 1}, .parameters = &words};
    capu_status status;

    problem->text[0] = '\0';
    ck_assert_msg(machine_open(text, strlen(text), &module, problem) == CAPU_OK, "%s",
                  problem->text);
    status = machine_run(machine_function_at(module, 0), &launch, problem);
    machine_close(module);
    return status;
}

static uint32_t lanes(uint32_t i)
{
    return i % 32;
}

#define CASES(X)                                                                                   \
    X("shfl.sync.bfly.b32 %r3, %r0, 5, 31, -1;", 64, (i & ~31u) | (lanes(i) ^ 5))                  \
    X("shfl.sync.idx.b32 %r3, %r0, 7, 31, -1;", 64, (i & ~31u) | 7)                                \
    X("shfl.sync.up.b32 %r3|%p1, %r0, 3, 0, -1; @!%p1 mov.u32 %r3, 99;", 64,                       \
      lanes(i) >= 3 ? i - 3 : 99)                                                                  \
    X("shfl.sync.down.b32 %r3|%p1, %r0, 2, 0x181f, -1; @!%p1 mov.u32 %r3, 99;", 64,                \
      i % 8 < 6 ? i + 2 : 99)                                                                      \
    X("shfl.sync.idx.b32 %r3, %r0, %r1, 0x181f, -1;", 32, i)                                       \
    X("setp.lt.u32 %p1, %r1, 9; vote.sync.ballot.b32 %r3, %p1, -1;", 32, 0x1ff)                    \
    X("setp.lt.u32 %p1, %r0, 40; vote.sync.all.pred %p2, %p1, -1; selp.u32 %r3, 1, 0, %p2;", 64,   \
      i < 32)                                                                                      \
    X("setp.eq.u32 %p1, %r0, 40; vote.sync.any.pred %p2, %p1, -1; selp.u32 %r3, 1, 0, %p2;", 64,   \
      i >= 32)                                                                                     \
    X("setp.lt.u32 %p1, %r0, 40; vote.sync.uni.pred %p2, !%p1, -1; selp.u32 %r3, 1, 0, %p2;", 96,  \
      i < 32 || i >= 64)                                                                           \
    X("and.b32 %r4, %r1, 3; match.any.sync.b32 %r3, %r4, -1;", 32, 0x11111111u << i % 4)           \
    X("shr.u32 %r4, %r0, 5; match.all.sync.b32 %r3|%p1, %r4, -1;", 64, UINT32_MAX)                 \
    X("match.all.sync.b32 %r3|%p1, %r0, -1; selp.u32 %r3, 1, %r3, %p1;", 32, 0)                    \
    X("redux.sync.add.s32 %r3, %r1, -1;", 32, 496)                                                 \
    X("sub.s32 %r4, %r1, 9; redux.sync.min.s32 %r3, %r4, -1;", 32, (uint32_t)-9)                   \
    X("sub.s32 %r4, %r1, 9; redux.sync.max.u32 %r3, %r4, -1;", 32, UINT32_MAX)                     \
    X("redux.sync.xor.b32 %r3, %r0, 0xffffffff;", 32, 0)                                           \
    X("elect.sync %r3|%p1, -1; @%p1 add.u32 %r3, %r3, 5;", 32, i == 0 ? 5 : 0)                     \
    /* Half of the warp among themselves, then the other half. */                                  \
    X("setp.lt.u32 %p1, %r1, 16; @%p1 bra A; redux.sync.add.u32 %r3, %r1, 0xffff0000; bra B;\n"    \
      "A: redux.sync.add.u32 %r3, %r1, 0x0000ffff; B:",                                            \
      32, i < 16 ? 120 : 376)                                                                      \
    /* Lanes that have ended are not waited for. */                                                \
    X("mov.u32 %r3, 1; setp.lt.u32 %p1, %r1, 8; @%p1 bra A; bra B;\n"                              \
      "A: st.global.u32 [%d1], 7; exit; B: redux.sync.add.u32 %r3, %r3, 0xffffffff;",              \
      32, i < 8 ? 7 : 24)                                                                          \
    X("activemask.b32 %r4; shr.u32 %r4, %r4, %r1; and.b32 %r3, %r4, 1;", 40, 1)                    \
    X("mov.u32 %r4, %lanemask_lt; mov.u32 %r5, %lanemask_ge; xor.b32 %r3, %r4, %r5;", 32,          \
      UINT32_MAX)                                                                                  \
    X("mov.u32 %r4, %warpid; mov.u32 %r5, %nwarpid; mad.lo.u32 %r3, %r4, 10, %r5;", 70,            \
      i / 32 * 10 + 3)                                                                             \
    /* Through shared memory, in reverse. */                                                       \
    X("mov.u32 %r4, s; add.u32 %r5, %r4, %r2; st.shared.u32 [%r5], %r0; bar.sync 0;\n"             \
      "mov.u32 %r6, %ntid.x; sub.u32 %r6, %r6, %r0; shl.b32 %r6, %r6, 2; add.u32 %r5, %r4, %r6;\n" \
      "ld.shared.u32 %r3, [%r5+-4];",                                                              \
      200, 199 - i)                                                                                \
    X("setp.lt.u32 %p1, %r0, 50; bar.red.popc.u32 %r3, 0, %p1;", 100, 50)                          \
    X("setp.lt.u32 %p1, %r0, 50; barrier.cta.red.and.aligned.pred %p2, 1, %p1;\n"                  \
      "selp.u32 %r3, 1, 0, %p2;",                                                                  \
      100, 0)                                                                                      \
    X("setp.eq.u32 %p1, %r0, 50; bar.red.or.pred %p2, 0, %p1; selp.u32 %r3, 1, 0, %p2;", 100, 1)   \
    /* One warp produces, the other waits for it. */                                               \
    X("mov.u32 %r3, 5; setp.lt.u32 %p1, %r0, 32; @%p1 bra A;\n"                                    \
      "bar.sync 2, 64; ld.shared.u32 %r3, [s]; bra B; A: st.shared.u32 [s], 42; bar.arrive 2, "    \
      "64;\n"                                                                                      \
      "B:",                                                                                        \
      64, i < 32 ? 5 : 42)                                                                         \
    /* Shared memory of the system: not that of the kernel. */                                     \
    X("st.shared.u32 [s], 5; mov.u32 %r4, %reserved_smem_offset_1; cvt.u64.u32 %d2, %r4;\n"        \
      "cvta.shared.u64 %d2, %d2; mov.u32 %r5, 0; st.u32 [%d2+1020], %r5; bar.sync 0;\n"            \
      "red.add.u32 [%d2+1020], 2; bar.sync 0; ld.u32 %r6, [%d2+1020]; ld.shared.u32 %r3, [s];\n"   \
      "mad.lo.u32 %r3, %r3, 1000, %r6; isspacep.shared %p1, %d2; @!%p1 mov.u32 %r3, 1;",           \
      40, 5080)                                                                                    \
    /* Each thread but the last waits in a loop for the one after it. */                           \
    X("mov.u32 %r3, 99; sub.u32 %r3, %r3, %r0;\n"                                                  \
      "setp.eq.u32 %p1, %r3, 0; @%p1 st.shared.u32 [s], 0;\n"                                      \
      "A: ld.volatile.shared.u32 %r5, [s]; setp.ne.u32 %p2, %r5, %r3; @%p2 bra A;\n"               \
      "add.u32 %r6, %r3, 1; st.shared.u32 [s], %r6; bar.sync 0;",                                  \
      100, 99 - i)                                                                                 \
    X("setp.eq.u32 %p1, %r1, 3; @%p1 st.shared.u32 [s], 8; bar.warp.sync 0xffffffff;\n"            \
      "ld.shared.u32 %r3, [s];",                                                                   \
      32, 8)                                                                                       \
    /* A sum by halves, with a barrier per step. */                                                \
    X("mov.u32 %r4, s; add.u32 %r5, %r4, %r2; st.shared.u32 [%r5], %r0; mov.u32 %r6, 64;\n"        \
      "A: barrier.sync 0; setp.ge.u32 %p1, %r0, %r6; @%p1 bra B; shl.b32 %r7, %r6, 2;\n"           \
      "add.u32 %r7, %r7, %r5; ld.shared.u32 %r8, [%r7]; ld.shared.u32 %r9, [%r5];\n"               \
      "add.u32 %r9, %r9, %r8; st.shared.u32 [%r5], %r9;\n"                                         \
      "B: shr.u32 %r6, %r6, 1; setp.ne.u32 %p2, %r6, 0; @%p2 bra A; bar.sync 0;\n"                 \
      "ld.shared.u32 %r3, [s];",                                                                   \
      128, 127 * 64)

#define TEXT(body, threads, expected) {KERNEL(body), threads},
static const struct {
    const char *text;
    uint32_t threads;
} cases[] = {CASES(TEXT)};

static uint32_t expected_of(int index, uint32_t i)
{
    int at = 0;

#define EXPECT(body, threads, expected) \
    if (at++ == index) {                \
        return (uint32_t)(expected);    \
    }
    CASES(EXPECT)
    return 0;
}

START_TEST(threads_meet)
{
    uint32_t words[THREADS_MOST] = {0};
    struct error_text problem;

    ck_assert_msg(run(cases[_i].text, cases[_i].threads, words, &problem) == CAPU_OK, "%s",
                  problem.text);
    for (uint32_t i = 0; i < cases[_i].threads; i++) {
        ck_assert_msg(words[i] == expected_of(_i, i),
                      "%s\nthread %" PRIu32 ": %" PRIx32 ", should be %" PRIx32, cases[_i].text, i,
                      words[i], expected_of(_i, i));
    }
}
END_TEST

static const struct {
    const char *text;
    uint32_t threads;
    const char *problem;
} failures[] = {
    {KERNEL("setp.eq.u32 %p1, %r0, 3; @%p1 bra A; bar.sync 1;\nA: bar.sync 0;"), 64,
     "threads wait for each other"},
    {KERNEL("setp.eq.u32 %p1, %r0, 3;\n@%p1 shfl.sync.idx.b32 %r3, %r0, 0, 31, -1;\nbar.sync 0;"),
     64, "k: threads wait for each other: 0 at line 12, 3 at line 11"},
    {KERNEL("bar.sync 0, 96;"), 64, "waits for threads that do not come"},
    {KERNEL("shfl.sync.idx.b32 %r3, %r0, 0, 31, 1;"), 32, "its own mask does not name"},
    {KERNEL("mov.u32 %r4, 77; bar.sync %r4;"), 32, "a barrier beyond the last"},
    {KERNEL(".shared .align 8 .b64 m; mov.u32 %r4, m; mbarrier.init.shared.b64 [%r4], 33;\n"
            "bar.sync 0; mbarrier.arrive.shared.b64 %d1, [%r4];\n"
            "mbarrier.try_wait.shared.b64 %p1, [%r4], %d1;"),
     32, "waits for threads that do not come"},
    {KERNEL(".shared .align 8 .b64 m; mov.u32 %r4, m; mbarrier.init.shared.b64 [%r4], 31;\n"
            "bar.sync 0; mbarrier.arrive.shared.b64 %d1, [%r4], 32;"),
     32, "more arrivals than the mbarrier takes"},
};

START_TEST(threads_that_do_not_meet_fail)
{
    uint32_t words[THREADS_MOST] = {0};
    struct error_text problem;

    ck_assert_int_eq(run(failures[_i].text, failures[_i].threads, words, &problem),
                     CAPU_DEVICE_FAILED);
    ck_assert_msg(strstr(problem.text, failures[_i].problem) != NULL, "%s", problem.text);
}
END_TEST

/* ldmatrix: tiles of 8 by 8 items of 16 bits, each item its row times 8 plus its column. */
static const char tiles[] =
    KERNEL("shl.b32 %r4, %r1, 4; mov.u32 %r5, s; add.u32 %r4, %r4, %r5; mov.u32 %r6, 0;\n"
           "A: shl.b32 %r7, %r6, 1; add.u32 %r7, %r7, %r4; shl.b32 %r8, %r1, 3;\n"
           "add.u32 %r8, %r8, %r6; st.shared.u16 [%r7], %r8; add.u32 %r6, %r6, 1;\n"
           "setp.lt.u32 %p1, %r6, 8; @%p1 bra A; bar.sync 0;\n"
           "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10, %r11}, [%r4];\n"
           "ldmatrix.sync.aligned.m8n8.x1.trans.shared::cta.b16 {%r12}, [%r4];\n"
           "sub.u32 %r11, %r11, %r10; mad.lo.u32 %r3, %r12, 3, %r10; add.u32 %r3, %r3, %r11;");

/* Blocks count the thread that comes first of each, meet, and read how many there are. */
static const char meeting[] =
    HEAD ".visible .entry k(.param .u64 out)\n{\n.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 "
         "%d<9>;\n"
         "ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;\n"
         "mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %d1, %r3, 4;\n"
         "add.u64 %d1, %d0, %d1; mov.u32 %r4, %envreg1; cvt.u64.u32 %d2, %r4; shl.b64 %d2, %d2, "
         "32;\n"
         "mov.u32 %r4, %envreg2; cvt.u64.u32 %d3, %r4; or.b64 %d2, %d2, %d3;\n"
         "setp.eq.u64 %p1, %d2, 0; @%p1 trap; setp.ne.u32 %p1, %r0, 0; @%p1 bra B;\n"
         "red.release.gpu.global.add.u32 [%d2+4], 1;\n"
         "A: ld.acquire.gpu.global.u32 %r5, [%d2+4]; mov.u32 %r6, %nctaid.x;\n"
         "setp.lt.u32 %p2, %r5, %r6; @%p2 bra A;\n"
         "B: bar.sync 0; ld.global.u32 %r7, [%d2+4]; st.global.u32 [%d1], %r7; ret;\n}\n";

static bool is_own_word(void *context, const struct machine_access *access)
{
    return access->address - (uintptr_t)context < THREADS_MOST * sizeof(uint32_t);
}

START_TEST(blocks_of_a_cooperative_launch_meet)
{
    uint32_t words[THREADS_MOST] = {0};
    uint32_t *parameters[] = {words};
    struct machine_module *module = NULL;
    struct machine_launch launch = {.grid = {5, 1, 1},
                                    .block = {40, 1, 1},
                                    .parameters = parameters,
                                    .observer = is_own_word,
                                    .observer_context = words,
                                    .is_cooperative = true};
    struct error_text problem;

    ck_assert_msg(machine_open(meeting, strlen(meeting), &module, &problem) == CAPU_OK, "%s",
                  problem.text);
    for (unsigned round = 0; round < 2; round++) {
        memset(words, 0, sizeof(words));
        ck_assert_msg(machine_run(machine_function_at(module, 0), &launch, &problem) == CAPU_OK,
                      "%s", problem.text);
        for (unsigned i = 0; i < 200; i++) {
            ck_assert_uint_eq(words[i], 5);
        }
    }
    launch.is_cooperative = false;
    ck_assert_int_eq(machine_run(machine_function_at(module, 0), &launch, &problem),
                     CAPU_DEVICE_FAILED);
    ck_assert_ptr_nonnull(strstr(problem.text, "a trap"));
    launch.is_cooperative = true;
    launch.grid[0] = MACHINE_THREADS_MOST / 40 + 1;
    ck_assert_int_eq(machine_run(machine_function_at(module, 0), &launch, &problem), CAPU_INVALID);
    machine_close(module);
}
END_TEST

START_TEST(tiles_are_shared_out)
{
    uint32_t words[THREADS_MOST] = {0};
    struct error_text problem;

    ck_assert_msg(run(tiles, 32, words, &problem) == CAPU_OK, "%s", problem.text);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t row = i / 4, column = i % 4 * 2;
        uint32_t one = row * 8 + column;
        uint32_t plain = one | (one + 1) << 16;
        uint32_t turned = (column * 8 + row) | ((column + 1) * 8 + row) << 16;

        ck_assert_uint_eq(words[i], turned * 3 + plain + (64 | 64 << 16));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ptx_warp");
    TCase *threads = tcase_create("threads");

    tcase_add_loop_test(threads, threads_meet, 0, sizeof(cases) / sizeof(cases[0]));
    tcase_add_loop_test(threads, threads_that_do_not_meet_fail, 0,
                        sizeof(failures) / sizeof(failures[0]));
    tcase_add_test(threads, blocks_of_a_cooperative_launch_meet);
    tcase_add_test(threads, tiles_are_shared_out);
    suite_add_tcase(suite, threads);
    return suite_run(suite);
}
