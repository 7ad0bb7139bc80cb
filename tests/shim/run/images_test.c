/*
 * capuchin run: programs by the device code that they have. PTX for what runs, for something else,
 * or machine code only, in the program or in a static library.
 */
#include "tests/shim/programs.h"
#include "tests/support/suite.h"
#include "tests/unit/interpose/device_code.h"

#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#define RUN ALONE "CAPUCHIN_DEVICE=host " CAPUCHIN_COMMAND " run "

static char alone[OUTPUT_BYTES];
static char output[OUTPUT_BYTES];

static void expect(const char *command, int code, const char *text)
{
    check_run(command, code, text, output);
}

static struct bytes read_kernels(void)
{
    static unsigned char text[65536];
    FILE *file = fopen(KERNELS_PTX, "r");
    struct bytes bytes;

    ck_assert_ptr_nonnull(file);
    bytes = (struct bytes){text, fread(text, 1, sizeof(text) - 1, file)};
    ck_assert_int_eq(fclose(file), 0);
    text[bytes.count] = '\0';
    return bytes;
}

static void write_images(const char *path, const struct written_image *images, size_t count)
{
    struct buffer fatbin = {NULL, 0};
    FILE *file = fopen(path, "w");

    write_fatbin(&fatbin, images, count);
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fwrite(fatbin.data, fatbin.count, 1, file), 1);
    ck_assert_int_eq(fclose(file), 0);
    free(fatbin.data);
}

/* Writes a fat binary with the PTX of kernels.ptx, for 8.0, and machine code of its kernels;
   "scale" has other parameters there if the last of them has another size. */
static void write_image(const char *path, unsigned architecture, unsigned last_bytes)
{
    const struct written_kernel kernels[] = {{"scale", {8, 8, 4, last_bytes}, false},
                                             {"add", {8, 8, 4}, false},
                                             {"through_table", {8, 4}, false},
                                             {"spin", {8}, false}};
    struct buffer cubin = {NULL, 0};
    struct written_image images[2] = {{.kind = 1, .architecture = 80},
                                      {.kind = 2, .architecture = architecture}};

    images[0].contents = read_kernels();
    images[0].contents.count++; /* with its end */
    write_cubin(&cubin, false, kernels, 4);
    images[1].contents = buffer_bytes(&cubin);
    write_images(path, images, 2);
    free(cubin.data);
}

/* PTX is evidence only if what runs was made from it. */
START_TEST(test_images)
{
    static const struct {
        unsigned architecture, last_bytes;
        bool is_closed;
        const char *text;
    } rows[] = {
        {80, 4, true, "kernel scale: closed"},
        {90, 4, false, "kernel scale: open: no PTX of the architecture whose machine code runs"},
        {70, 4, false, "kernel scale: open: no machine code of the PTX's architecture"},
        {80, 8, false, "kernel scale: open: the machine code has other kernels or parameters"},
    };
    char path[] = "/tmp/capuchin-run-image-XXXXXX";
    char command[2048];
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(close(file), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_image(path, rows[i].architecture, rows[i].last_bytes);
        snprintf(command, sizeof(command),
                 "IMAGE=%s " RUN "--budget %s --report /dev/stdout " LIMITS " image", path,
                 rows[i].is_closed ? "700KiB" : "2MiB");
        expect(command, 0, "launch 0: 298\n");
        check_contains(output, rows[i].text);
    }
    snprintf(command, sizeof(command), "IMAGE=%s " RUN "--budget 700KiB " LIMITS " image", path);
    expect(command, 0, "launch 2: 99\n");
    check_contains(output, "the kernel scale, which is open: ");
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* Slices are PTX: where the driver cannot compile that, launches need whole allocations. */
START_TEST(test_no_compiler)
{
    char path[] = "/tmp/capuchin-run-image-XXXXXX";
    char command[2048];
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(close(file), 0);
    write_image(path, 80, 4);
    snprintf(command, sizeof(command),
             "IMAGE=%s PTX_DRIVER_NO_COMPILER=1 " RUN "--budget 700KiB --report /dev/stdout " LIMITS
             " image",
             path);
    expect(command, 0, "launch 0: 298\n");
    check_contains(output, "capuchin: the driver's compiler for PTX is not installed, so launches "
                           "are taken to reach over whole allocations (docs/unmodified.md)\n");
    check_contains(output, "slice of scale: none: ");
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* With trust, an open kernel needs what its parameters lead to, and nothing else is lost. */
START_TEST(test_trust)
{
    static const char *const forms[] = {"image", "packed"};
    char path[] = "/tmp/capuchin-run-image-XXXXXX";
    char list[] = "/tmp/capuchin-run-list-XXXXXX";
    char command[2048];
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(close(file), 0);
    ck_assert_ptr_nonnull(mkdtemp(list));
    write_image(path, 90, 4);
    for (size_t i = 0; i < 2; i++) {
        snprintf(command, sizeof(command),
                 "IMAGE=%s PTX_DRIVER_OPERANDS=%s/%zu " RUN "--budget 700KiB --trust-parameters "
                 "--operands %s/%zu --report /dev/stdout " LIMITS " %s",
                 path, list, i, list, i, forms[i]);
        expect(command, 0, "launch 0: 298\n");
        check_contains(output, "kernel scale: open: no PTX of the architecture whose machine code "
                               "runs (its parameters are trusted), 1 launches, at most 524288 ");
        ck_assert_ptr_null(strstr(output, "capuchin: "));
    }
    /* Pointers in memory are not found. */
    snprintf(command, sizeof(command),
             "PTX_DRIVER_OPERANDS=%s/2 " RUN
             "--budget 2MiB --trust-parameters --operands %s/2 " WORK " open 12",
             list, list);
    expect(command, 99, "through_table, line 75, block 0,0,0, thread 0,0,0 stores to what is not");
    snprintf(command, sizeof(command), "rm -r %s %s", path, list);
    ck_assert_int_eq(run_command(command, output), 0);
}
END_TEST

/* Code that runs is made from other PTX, or that is not certain: with --jit it is made from this.
 */
START_TEST(test_jit)
{
    static const struct {
        unsigned architecture, last_bytes;
        bool is_compiled;
        const char *form;
    } rows[] = {{90, 4, true, "image"},
                {90, 4, true, "library"},
                {70, 4, true, "image"},
                {80, 8, true, "library"},
                {80, 4, false, "image"}};
    char path[] = "/tmp/capuchin-run-image-XXXXXX";
    char command[2048];
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(close(file), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_image(path, rows[i].architecture, rows[i].last_bytes);
        snprintf(command, sizeof(command),
                 "PTX_DRIVER_MACHINE_CODE=1 IMAGE=%s " RUN
                 "--jit --budget 700KiB --report /dev/stdout " LIMITS " %s",
                 path, rows[i].form);
        expect(command, 0, "launch 0: 298\n");
        check_contains(output, "kernel scale: closed, 1 launches");
        ck_assert_int_eq(rows[i].is_compiled,
                         strstr(output, "capuchin: --jit: the driver compiles PTX in place") !=
                             NULL);
    }
    /* Without it, the driver takes the machine code. */
    write_image(path, 90, 4);
    snprintf(command, sizeof(command), "PTX_DRIVER_MACHINE_CODE=1 IMAGE=%s " RUN LIMITS " image",
             path);
    expect(command, 1, "cuModuleGetFunction: error 500\n");
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* A program without PTX. The launch touches two of four tensors of 256 KiB. */
START_TEST(test_machine_code_only)
{
    static const struct {
        const char *options, *line, *report;
    } rows[] = {
        {"--budget 2MiB", "launch 0: 298\n",
         "kernel scale: open: machine code only, 1 launches, at most 1048576 bytes of operands, 0 "
         "launches failed\n"},
        {"--budget 700KiB", "launch 2: 99\n",
         "capuchin: all 1048576 bytes are needed for the kernel scale, which is open: machine code "
         "only; what to do: docs/unmodified.md\n"},
        {"--budget 700KiB", "launch 2: 99\n",
         "kernel scale: open: machine code only, 0 launches, at most 0 bytes of operands, 1 "
         "launches failed\n"},
        {"--budget 700KiB --trust-parameters", "launch 0: 298\n",
         "kernel scale: open: machine code only (its parameters are trusted), 1 launches, at most "
         "524288 bytes of operands, 0 launches failed\n"},
        {"--budget 700KiB --jit", "launch 2: 99\n", "which is open: machine code only; what"},
    };
    char path[] = "/tmp/capuchin-run-image-XXXXXX";
    char command[2048];
    struct buffer cubin = {NULL, 0};
    struct written_image image = {.kind = 2, .architecture = 90};
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(close(file), 0);
    write_machine_code(&cubin, read_kernels());
    image.contents = buffer_bytes(&cubin);
    write_images(path, &image, 1);
    free(cubin.data);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(command, sizeof(command), "IMAGE=%s " RUN "%s --report /dev/stdout " LIMITS " %s",
                 path, rows[i].options, i % 2 == 0 ? "image" : "library");
        expect(command, 0, rows[i].line);
        check_contains(output, rows[i].report);
    }
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* A static cuBLAS: its functions are the program's own, so that no call is seen, and its kernels
   have no PTX. Its workspace is memory like any other. */
START_TEST(test_static_library)
{
    static const char *const parts[] = {"", "lt"};
    char command[2048];

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(command, sizeof(command), ALONE PRODUCTS_STATIC " %s", parts[i]);
        ck_assert_int_eq(run_command(command, alone), 0);
        snprintf(command, sizeof(command), RUN "--budget 1MiB " PRODUCTS_STATIC " %s", parts[i]);
        ck_assert_int_eq(run_command(command, output), 0);
        ck_assert_str_eq(output, alone);
    }
    expect(RUN "--budget 1MiB --report /dev/stdout " PRODUCTS_STATIC, 0,
           "kernel capuchin_gemm: open: machine code only, ");
    check_contains(output, "launches: 0 of closed kernels, 37 of open ones\n");
    ck_assert_ptr_null(strstr(output, "passed through"));
    expect(RUN "--budget 272KiB " PRODUCTS_STATIC, 1, "cublasSgemm_v2: error 13\n");
    check_contains(output, " bytes are needed for the kernel capuchin_gemm, which is open: machine "
                           "code only; what to do: docs/unmodified.md\n");
    expect(RUN "--budget 272KiB --trust-parameters " PRODUCTS_STATIC, 0, "stream 1\n");
    (void)run_command(ALONE PRODUCTS_STATIC, alone);
    ck_assert_str_eq(output, alone);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("images");
    TCase *cases = tcase_create("images");

    tcase_add_test(cases, test_images);
    tcase_add_test(cases, test_no_compiler);
    tcase_add_test(cases, test_trust);
    tcase_add_test(cases, test_jit);
    tcase_add_test(cases, test_machine_code_only);
    tcase_add_test(cases, test_static_library);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
