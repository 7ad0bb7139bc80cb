/* What of the parameters a slice depends on (interpose/slice/slice.h), one kernel per way of using
 * them.
 */
#include "interpose/slice/slice.h"

#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Two pointers, %a0 and %a1, and a number of 32 bits, %n, at offsets 0, 8 and 16; then a pointer in
   an array, at 24. The inputs are sorted by offset: v: value, n: null, l: low bits with a mask. */
static const struct {
    const char *what;
    const char *body;
    const char *inputs;
} cases[] = {
    {"a fixed address", "st.global.u32 [%a0], 1;", ""},
    {"a number that is not used in an address", "st.global.u32 [%a0], %n;", ""},
    {"an index", "mul.wide.u32 %d0, %n, 4; add.s64 %d1, %a0, %d0; st.global.u32 [%d1+8], 1;",
     "v16+4"},
    {"the pointer second",
     "mul.wide.u32 %d0, %n, 4; add.s64 %d1, %d0, %a0; st.global.u32 [%d1], 1;", "v16+4"},
    {"a sum of products",
     "mov.u32 %r0, %tid.x; mad.wide.u32 %d0, %r0, %n, %a0;\n"
     "st.global.u32 [%d0], 1;",
     "v16+4"},
    {"a difference", "cvt.u64.u32 %d0, %n; sub.s64 %d1, %a0, %d0; st.global.u32 [%d1], 1;",
     "v16+4"},
    {"an optional pointer",
     "setp.eq.s64 %p0, %a1, 0; @%p0 bra END; st.global.u32 [%a1], 1; END:", "n8"},
    {"a predicated access", "setp.ne.u64 %p0, %a1, 0; @%p0 st.global.u32 [%a1], 1;", "n8"},
    {"a word that is no address", "setp.ne.u64 %p0, %a1, 0; @%p0 st.global.u32 [%a0], 1;", "v8+8"},
    {"a sum that is null",
     "add.s64 %d0, %a1, 4; setp.ne.u64 %p0, %d0, 0;\n"
     "@%p0 st.global.u32 [%a1], 1;",
     "v8+8"},
    {"alignment", "and.b64 %d0, %a0, 15; setp.ne.s64 %p0, %d0, 0; @%p0 st.global.u32 [%a0], 1;",
     "l0:15"},
    {"bits that are not the lowest",
     "and.b64 %d0, %a0, 8; setp.ne.s64 %p0, %d0, 0; @%p0 st.global.u32 [%a0], 1;", "l0:8"},
    {"bits of a sum",
     "add.s64 %d1, %a0, 4; and.b64 %d0, %d1, 8; setp.ne.s64 %p0, %d0, 0;\n"
     "@%p0 st.global.u32 [%a0], 1;",
     "l0:15"},
    {"the lower half",
     "cvt.u32.u64 %r0, %a0; and.b32 %r1, %r0, 3; setp.ne.s32 %p0, %r1, 0;\n"
     "@%p0 st.global.u32 [%a0], 1;",
     "l0:3"},
    {"the lower half, compared",
     "cvt.u32.u64 %r0, %a0; setp.ne.s32 %p0, %r0, 0; @%p0 st.global.u32 [%a0], 1;", "v0+8"},
    {"a pointer as floating point",
     "cvt.rn.f64.u64 %f0, %a0; setp.gt.f64 %p0, %f0, 0d0000000000000000;\n"
     "@%p0 st.global.u32 [%a0], 1;",
     "v0+8"},
    {"cleared low bits", "and.b64 %d0, %a0, -16; st.global.u32 [%d0], 1;", "l0:15"},
    {"a large mask",
     "and.b64 %d0, %a0, 1048575; setp.ne.s64 %p0, %d0, 0;\n"
     "@%p0 st.global.u32 [%a0], 1;",
     "v0+8"},
    {"pointers compared", "setp.lt.u64 %p0, %a0, %a1; @%p0 st.global.u32 [%a0], 1;", "v0+8 v8+8"},
    {"one of two pointers",
     "setp.gt.s32 %p0, %n, 3; selp.b64 %d0, %a0, %a1, %p0; st.global.u32 [%d0], 1;",
     "v0+8 v8+8 v16+4"},
    {"a pointer or null",
     "setp.gt.s32 %p0, %n, 3; selp.b64 %d0, %a0, 0, %p0;\n"
     "st.global.u32 [%d0], 1;",
     "v0+8 v16+4"},
    {"the sum of two pointers", "add.s64 %d0, %a0, %a1; st.global.u32 [%d0], 1;", "v0+8 v8+8"},
    {"a distance", "sub.s64 %d0, %a1, %a0; add.s64 %d1, %a0, %d0; st.global.u32 [%d1], 1;",
     "v0+8 v8+8"},
    {"steps of a loop",
     "mov.b64 %d0, %a0; mov.u32 %r0, 0;\n"
     "LOOP: st.global.u32 [%d0], 1; add.s64 %d0, %d0, 4; add.s32 %r0, %r0, 1;\n"
     "setp.lt.u32 %p0, %r0, %n; @%p0 bra LOOP;",
     "v16+4"},
    {"an end",
     "mul.wide.u32 %d1, %n, 4; add.s64 %d1, %a0, %d1; mov.b64 %d0, %a0;\n"
     "LOOP: st.global.u32 [%d0], 1; add.s64 %d0, %d0, 4;\n"
     "setp.lt.u64 %p0, %d0, %d1; @%p0 bra LOOP;",
     "v0+8 v16+4"},
    {"half of a vector",
     "ld.param.v2.u32 {%r0, %r1}, [c]; mul.wide.u32 %d0, %r1, 4;\n"
     "add.s64 %d1, %a0, %d0; st.global.u32 [%d1], %r0;",
     "v28+4"},
    {"any of an array",
     "mov.b64 %d0, c; mul.wide.u32 %d1, %n, 8; add.s64 %d2, %d0, %d1; ld.param.u64 %d3, [%d2];\n"
     "setp.ne.s64 %p0, %d3, 0; @%p0 st.global.u32 [%a0], 1;",
     "v16+4 v24+16"},
};

static void open_kernel(const char *body, struct ptx_module *module, struct kernels *kernels)
{
    static char text[4096];
    struct error_text problem = {""};
    int count = snprintf(
        text, sizeof(text),
        ".version 7.5\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param "
        ".u64 b, .param .u32 n, .param .align 8 .b8 c[16])\n{\n.reg .b64 %%d<8>, %%a<2>;\n"
        ".reg .b32 %%r<8>, %%n;\n.reg .f64 %%f<2>;\n.reg .pred %%p<2>;\n"
        "ld.param.u64 %%a0, [a];\nld.param.u64 %%a1, [b];\n"
        "ld.param.u32 %%n, [n];\n%s\nret;\n}\n",
        body);

    ck_assert_int_lt(count, (int)sizeof(text));
    ck_assert_msg(ptx_parse(text, (size_t)count, module, &problem) == CAPU_OK, "%s", problem.text);
    ck_assert_int_eq(roles_find(module, kernels), CAPU_OK);
}

static void inputs_text(const struct slice *slice, char *text, size_t bytes)
{
    size_t length = 0;

    text[0] = '\0';
    for (uint32_t at = 0; at < slice->parameter_bytes; at++) {
        for (size_t i = 0; i < slice->input_count; i++) {
            const struct slice_input *input = &slice->inputs[i];
            const char *blank = length == 0 ? "" : " ";

            if (input->offset != at) {
                continue;
            }
            if (input->kind == SLICE_INPUT_VALUE) {
                length += (size_t)snprintf(text + length, bytes - length, "%sv%" PRIu32 "+%" PRIu32,
                                           blank, at, input->bytes);
            } else if (input->kind == SLICE_INPUT_NULL) {
                length += (size_t)snprintf(text + length, bytes - length, "%sn%" PRIu32, blank, at);
            } else {
                length += (size_t)snprintf(text + length, bytes - length, "%sl%" PRIu32 ":%" PRIu64,
                                           blank, at, input->mask);
            }
            ck_assert_uint_lt(length, bytes);
        }
    }
}

START_TEST(inputs_are_what_results_depend_on)
{
    struct error_text problem = {""};
    struct ptx_module module;
    struct kernels kernels;
    struct slice slice;
    char got[256];

    open_kernel(cases[_i].body, &module, &kernels);
    ck_assert_msg(slice_emit(&module, &kernels.kernels[0], &slice, &problem) == CAPU_OK, "%s: %s",
                  cases[_i].what, problem.text);
    inputs_text(&slice, got, sizeof(got));
    ck_assert_msg(strcmp(got, cases[_i].inputs) == 0, "%s: %s, expected %s", cases[_i].what, got,
                  cases[_i].inputs);
    slice_finish(&slice);
    roles_finish(&kernels);
    ptx_finish(&module);
}
END_TEST

static size_t count_differing(const unsigned char *one, const unsigned char *other, size_t bytes)
{
    size_t count = 0;

    for (size_t i = 0; i < bytes; i++) {
        count += one[i] != other[i];
    }
    return count;
}

START_TEST(keys_have_the_inputs_only)
{
    struct {
        uint64_t pointers[2];
        uint32_t number, unused;
        uint64_t last[2];
    } launch = {{0x1000, 0x2008}, 7, 1, {1, 2}};
    enum { KEY_BYTES = 8 + 1 + 4 };
    unsigned char key[KEY_BYTES + 1];
    unsigned char other[KEY_BYTES];
    struct error_text problem = {""};
    struct ptx_module module;
    struct kernels kernels;
    struct slice slice;

    open_kernel("and.b64 %d0, %a0, 15; setp.ne.s64 %p0, %d0, 0; @%p0 bra END;\n"
                "setp.ne.s64 %p1, %a1, 0; @%p1 bra END; mul.wide.u32 %d1, %n, 4;\n"
                "add.s64 %d2, %a0, %d1; st.global.u32 [%d2], 1; st.global.u32 [%a1], 1; END:",
                &module, &kernels);
    ck_assert_int_eq(slice_emit(&module, &kernels.kernels[0], &slice, &problem), CAPU_OK);
    ck_assert_uint_eq(slice_key_bytes(&slice), KEY_BYTES);
    key[KEY_BYTES] = 0xa5;
    slice_key(&slice, (const unsigned char *)&launch, key);
    ck_assert_uint_eq(key[KEY_BYTES], 0xa5);
    launch.pointers[0] += 0x120; /* the same low bits */
    launch.pointers[1] += 1;
    launch.unused = 9;
    slice_key(&slice, (const unsigned char *)&launch, other);
    ck_assert_mem_eq(key, other, KEY_BYTES);
    launch.pointers[0]++;
    launch.pointers[1] = 0;
    launch.number = 8;
    slice_key(&slice, (const unsigned char *)&launch, other);
    ck_assert_uint_eq(count_differing(key, other, KEY_BYTES), 3);
    ck_assert_uint_eq(
        slice_base(&kernels.kernels[0], &slice.reports[0], (const unsigned char *)&launch),
        launch.pointers[0]);
    slice_finish(&slice);
    roles_finish(&kernels);
    ptx_finish(&module);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slice_input");
    TCase *tests = tcase_create("inputs");

    tcase_add_loop_test(tests, inputs_are_what_results_depend_on, 0,
                        sizeof(cases) / sizeof(cases[0]));
    tcase_add_test(tests, keys_have_the_inputs_only);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
