/* Which kernels do the same when they are launched again: each case shows one rule. */
#include "interpose/flow/roles.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *body; /* %rd1 and %rd2 are pointers, %r1 is a number */
    bool is_repeatable;
} cases[] = {
    {"", true},
    {"ld.global.u32 %r2, [%rd1]; add.s32 %r2, %r2, %r1; st.global.u32 [%rd2], %r2;", true},
    {"mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.y; mad.lo.s32 %r2, %r3, %ntid.x, %r2;", true},
    {"mov.u32 %r2, %laneid; mov.u32 %r3, %lanemask_lt; mov.u32 %r4, WARP_SZ;", true},
    {"A: add.s32 %r1, %r1, -1; setp.ne.s32 %p1, %r1, 0; @%p1 bra A; exit;", true},
    {"mov.u32 %r2, own; st.shared.u32 [%r2], %r1; bar.sync 0; ld.shared.u32 %r3, [%r2+4];", true},
    {"mov.u32 %r2, given; st.shared.u32 [%r2], %r1;", true},
    {"mov.u32 %r2, own; cp.async.ca.shared.global [%r2], [%rd1], 4; cp.async.wait_all;", true},
    {"mov.u32 %r2, own; cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], "
     "[%rd1], 16, [%r2];",
     false},
    {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [own];", true},
    {"shfl.sync.down.b32 %r2, %r1, 1, 31, -1; vote.sync.ballot.b32 %r3, %p1, -1;", true},
    {"ld.global.nc.L1::no_allocate.v2.u32 {%r2, %r3}, [%rd1]; fence.sc.cta; nanosleep.u32 8;",
     true},
    /* Clocks, and where and when threads run. */
    {"mov.u32 %r2, %clock;", false},
    {"mov.u64 %rd3, %clock64;", false},
    {"mov.u32 %r2, %clock_hi;", false},
    {"mov.u64 %rd3, %globaltimer;", false},
    {"mov.u32 %r2, %globaltimer_lo;", false},
    {"mov.u32 %r2, %smid;", false},
    {"mov.u32 %r2, %nsmid;", false},
    {"mov.u32 %r2, %warpid;", false},
    {"mov.u32 %r2, %nwarpid;", false},
    {"mov.u64 %rd3, %gridid;", false},
    {"mov.u32 %r2, %envreg3;", false},
    {"mov.u32 %r2, %pm0;", false},
    {"mov.u64 %rd3, %current_graph_exec;", false},
    {"activemask.b32 %r2;", false},
    {"vote.ballot.b32 %r2, %p1;", false},
    {"elect.sync %r2|%p1, -1;", false},
    /* Atomics, in any memory, and what is like them. */
    {"red.global.add.u32 [%rd1], 1;", false},
    {"atom.global.add.u32 %r2, [%rd1], 1;", false},
    {"atom.add.u32 %r2, [%rd1], 1;", false},
    {"mov.u32 %r2, own; atom.shared.add.u32 %r3, [%r2], 1;", false},
    {"mov.u32 %r2, own; red.shared.max.u32 [%r2], %r1;", false},
    {"ld.volatile.global.u32 %r2, [%rd1];", false},
    {"mov.u32 %r2, own; ld.volatile.shared.u32 %r3, [%r2];", false},
    {"ld.acquire.gpu.global.u32 %r2, [%rd1];", false},
    {"ld.relaxed.sys.global.u32 %r2, [%rd1];", false},
    {"ld.global.cv.u32 %r2, [%rd1];", false},
    {"st.release.gpu.global.u32 [%rd1], %r1;", false},
    {"discard.global.L2 [%rd1], 128;", false},
    {"mbarrier.arrive.shared.b64 %rd3, [own];", false},
    {"griddepcontrol.wait;", false},
    /* Variables of the module: also its constants. */
    {"ld.global.u32 %r2, [variable];", false},
    {"st.global.u32 [variable], %r1;", false},
    {"ld.const.u32 %r2, [constant];", false},
    {"mov.u64 %rd3, constant; cvta.const.u64 %rd3, %rd3; ld.u32 %r2, [%rd3];", false},
    {"mov.u64 %rd3, variable; setp.eq.s64 %p1, %rd3, %rd1;", false},
    /* What prints or stops, and what is not known. */
    {"call.uni harmless, ();", false},
    {"{ .param .b64 a; .param .b64 b; .param .b32 c;\n"
     "call.uni (c), vprintf, (a, b); }",
     false},
    {"@%p1 trap;", false},
    {"unheard.of.u32 %r2, %r1;", false},
    /* It waits for another block, which stores. */
    {"st.global.u32 [%rd1], %r1; A: ld.volatile.global.u32 %r2, [%rd1]; setp.ne.s32 %p1, %r2, 0;\n"
     "@%p1 bra A;",
     false},
};

START_TEST(rules)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[2048];
        struct error_text problem = {""};
        struct ptx_module module;
        struct kernels kernels;
        int length = snprintf(
            text, sizeof(text),
            ".version 8.0\n.target sm_90\n.address_size 64\n"
            ".global .u32 variable[4];\n.const .u32 constant[4];\n.shared .align 16 .b8 own[64];\n"
            ".extern .shared .align 16 .b8 given[];\n"
            ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
            ".func harmless() { ret; }\n"
            ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 c)\n{\n"
            ".reg .pred %%p<4>; .reg .b32 %%r<8>; .reg .b64 %%rd<8>;\n"
            "ld.param.u64 %%rd1, [a]; ld.param.u64 %%rd2, [b]; ld.param.u32 %%r1, [c];\n"
            "%s\nret; }\n",
            cases[i].body);

        ck_assert_int_lt(length, (int)sizeof(text));
        ck_assert_msg(ptx_parse(text, (size_t)length, &module, &problem) == CAPU_OK, "%s: %s",
                      cases[i].body, problem.text);
        ck_assert_int_eq(roles_find(&module, &kernels), CAPU_OK);
        ck_assert_uint_eq(kernels.count, 1);
        ck_assert_msg(kernels.kernels[0].is_repeatable == cases[i].is_repeatable, "%s",
                      cases[i].body);
        roles_finish(&kernels);
        ptx_finish(&module);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interpose_repeat");
    TCase *rows = tcase_create("repeat");

    tcase_add_test(rows, rules);
    suite_add_tcase(suite, rows);
    return suite_run(suite);
}
