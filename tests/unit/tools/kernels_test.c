/* capuchin kernels, run on files that the test writes. */
#include "tests/unit/tools/fixture.h"

#include "tests/unit/interpose/device_code.h"

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry scale(.param .u64 a, .param .f32 b) {\n"
                          ".reg .b64 %rd<2>; .reg .f32 %f<2>; ld.param.u64 %rd1, [a];\n"
                          "ld.param.f32 %f1, [b]; st.global.f32 [%rd1], %f1; ret; }\n";

static const struct written_kernel kernels[] = {{"scale", {8, 4}, false}};

static struct bytes text(const char *string)
{
    return (struct bytes){(const unsigned char *)string, strlen(string)};
}

static void save(const char *name, const struct buffer *buffer)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(buffer->data, 1, buffer->count, file), buffer->count);
    ck_assert_int_eq(fclose(file), 0);
}

/* "program" has machine code and PTX, "machine" machine code only. */
static void write_programs(void)
{
    struct buffer cubin = {0};
    struct buffer fatbins = {0};
    struct buffer program = {0};

    write_cubin(&cubin, false, kernels, 1);
    write_fatbin(&fatbins,
                 (struct written_image[]){{2, 80, PACKING_NONE, buffer_bytes(&cubin), NULL, false},
                                          {1, 80, PACKING_NONE, text(ptx), NULL, false}},
                 2);
    write_program(&program, ".nv_fatbin", buffer_bytes(&fatbins));
    save("program", &program);
    free(program.data);
    free(fatbins.data);
    program = fatbins = (struct buffer){0};
    write_fatbin(&fatbins,
                 (struct written_image[]){{2, 90, PACKING_NONE, buffer_bytes(&cubin), NULL, false}},
                 1);
    write_program(&program, ".nv_fatbin", buffer_bytes(&fatbins));
    save("machine", &program);
    free(program.data);
    free(fatbins.data);
    program = fatbins = (struct buffer){0};
    write_fatbin(&fatbins, (struct written_image[]){{1, 80, PACKING_NONE, text(ptx), NULL, false}},
                 1);
    write_program(&program, "__nv_relfatbin", buffer_bytes(&fatbins));
    save("relocatable", &program);
    free(program.data);
    free(fatbins.data);
    program = fatbins = (struct buffer){0};
    write_fatbin(&fatbins,
                 (struct written_image[]){{2, 90, PACKING_NONE, buffer_bytes(&cubin), NULL, false},
                                          {1, 80, PACKING_NONE, text(ptx), NULL, false}},
                 2);
    write_program(&program, ".nv_fatbin", buffer_bytes(&fatbins));
    save("other", &program);
    free(program.data);
    program = (struct buffer){0};
    write_program(&program, ".data", text("no device code"));
    save("plain", &program);
    save("cubin", &cubin);
    free(program.data);
    free(fatbins.data);
    free(cubin.data);
    write_file("text", "int main(void)\n");
}

START_TEST(programs_are_listed)
{
    write_programs();
    RUN_COMMANDS(
        {"kernels program",
         0,
         {"elf", "sm_80", "ptx", "compute_80", "scale: closed", "written", "ids",
          "1 kernels closed, 0 open, 0 with"}},
        {"kernels --json program",
         0,
         {"\"type\":\"image\"", "\"kind\":\"ptx\"", "\"architecture\":80", "\"type\":\"kernel\"",
          "\"name\":\"scale\"", "\"closed\":true", "\"role\":\"written\"", "\"write_bytes\":4",
          "\"address\":\"ids\"", "\"type\":\"summary\",\"closed\":1"}});
    ck_assert_ptr_null(strstr(output, "rebuild"));
}
END_TEST

/* PTX that is not what runs proves nothing. */
START_TEST(doubts_make_kernels_open)
{
    write_programs();
    RUN_COMMANDS({"kernels other",
                  0,
                  {"scale: open", "no machine code of the PTX's architecture", "written",
                   "0 kernels closed, 1 open"}},
                 {"kernels relocatable",
                  0,
                  {"relocatable", "scale: open", "-rdc=true", "0 kernels closed, 1 open"}},
                 {"kernels --json machine",
                  0,
                  {"\"code\":\"elf\"", "\"closed\":false", "\"machine_only\":1"}});
}
END_TEST

START_TEST(errors_say_what_to_do)
{
    write_programs();
    RUN_COMMANDS(
        {"kernels machine", 0, {"sm_90", "-gencode arch=compute_90,code=[sm_90,compute_90]"}},
        {"kernels plain", 2, {"plain: no device code"}},
        {"kernels text", 2, {"text: not a program"}},
        {"kernels cubin", 0, {"scale", "-gencode arch=compute_XX"}},
        {"kernels nothing", 2, {"nothing: No such file or directory"}},
        {"kernels", 2, {"BINARY is missing"}},
        {"kernels program plain", 2, {"more than one BINARY: plain"}},
        {"kernels --wrong program", 2, {"--wrong"}});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools_kernels");
    TCase *cases = tcase_create("kernels");

    tcase_add_unchecked_fixture(cases, make_folder, remove_folder);
    tcase_add_test(cases, programs_are_listed);
    tcase_add_test(cases, doubts_make_kernels_open);
    tcase_add_test(cases, errors_say_what_to_do);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
