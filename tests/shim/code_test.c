/* Which kernels are closed, as the device becomes known. */
#include "shim/core/code.h"
#include "tests/support/suite.h"
#include "tests/unit/interpose/device_code.h"

#include <stdlib.h>

static const char ptx[] = ".version 7.0\n"
                          ".target sm_80\n"
                          ".address_size 64\n"
                          ".visible .entry store(.param .u64 to)\n"
                          "{\n"
                          "  .reg .b64 %rd<3>;\n"
                          "  .reg .b32 %r<2>;\n"
                          "  mov.u32 %r1, 7;\n"
                          "  ld.param.u64 %rd1, [to];\n"
                          "  cvta.to.global.u64 %rd2, %rd1;\n"
                          "  st.global.u32 [%rd2], %r1;\n"
                          "  ret;\n"
                          "}\n";

/* Code of a library may be loaded before there is a context, and then for the wrong device. */
START_TEST(test_code_for_another_device_is_open)
{
    static const char handles[4];

    code_add_image(&handles[0], ptx, 80);
    code_note(&handles[1], &handles[0], true, "store");
    ck_assert_ptr_null(code_find(&handles[1])->reason);
    code_settle(80);
    ck_assert_ptr_null(code_find(&handles[1])->reason);
    code_settle(90);
    ck_assert_str_eq(code_find(&handles[1])->reason,
                     "loaded before the device was chosen, which is not the first one");
    code_note(&handles[2], &handles[0], true, "store");
    ck_assert_ptr_nonnull(code_find(&handles[2])->reason);
    code_add_image(&handles[3], ptx, 80); /* the device that is known counts */
    code_note(&handles[1], &handles[3], true, "store");
    ck_assert_ptr_null(code_find(&handles[1])->reason);
}
END_TEST

/* PTX that is there and cannot be unpacked is not "machine code only". */
START_TEST(test_ptx_that_cannot_be_unpacked_is_named)
{
    static const char handles[2];
    const struct written_image image = {.kind = 1,
                                        .architecture = 80,
                                        .packing = PACKING_ZSTD,
                                        .contents = {(const unsigned char *)"packed?", 7},
                                        .is_damaged = true};
    struct buffer fatbin = {NULL, 0};
    const char *reason;

    write_fatbin(&fatbin, &image, 1);
    code_add_image(&handles[0], fatbin.data, 80);
    code_note(&handles[1], &handles[0], true, "store");
    reason = code_find(&handles[1])->reason;
    ck_assert_msg(strcmp(reason, "damaged (zstd)") == 0 ||
                      strstr(reason, "install libzstd-dev and build again") != NULL,
                  "%s", reason);
    free(fatbin.data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("code");
    TCase *cases = tcase_create("code");

    tcase_add_test(cases, test_code_for_another_device_is_open);
    tcase_add_test(cases, test_ptx_that_cannot_be_unpacked_is_named);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
