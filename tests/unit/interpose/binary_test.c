/* Device code in files: every container in every packing, damaged files, and files of other kinds.
 */
#include "interpose/image/binary.h"

#include "tests/support/effort.h"
#include "tests/support/suite.h"
#include "tests/unit/interpose/device_code.h"

#include <string.h>

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry first(.param .u64 first_param_0) { ret; }\n";

static const struct written_kernel kernels[] = {
    {"second", {0}, false},
    {"first", {8, 8, 4}, false},
    {"third", {5000, 4}, true},
};

static struct bytes text(const char *string)
{
    return (struct bytes){(const unsigned char *)string, strlen(string)};
}

/* A program with two fat binaries: machine code and PTX, then machine code alone. */
static void write_sample(struct buffer *program, const char *section, enum packing packing,
                         const char *options)
{
    struct buffer cubin = {0};
    struct buffer fatbins = {0};

    write_cubin(&cubin, false, kernels, 3);
    write_fatbin(&fatbins,
                 (struct written_image[]){{2, 80, packing, buffer_bytes(&cubin), options, false},
                                          {1, 80, packing, text(ptx), options, false}},
                 2);
    write_fatbin(&fatbins,
                 (struct written_image[]){{2, 90, PACKING_NONE, buffer_bytes(&cubin), NULL, false}},
                 1);
    buffer_align(&fatbins, 32); /* as between sections of two objects */
    write_program(program, section, buffer_bytes(&fatbins));
    free(cubin.data);
    free(fatbins.data);
}

static void read_one(const struct buffer *file, struct binary *binary)
{
    struct error_text problem = {""};

    ck_assert_msg(binary_read_bytes(buffer_bytes(file), binary, &problem) == CAPU_OK, "%s",
                  problem.text);
}

static void check_kernels(const struct cubin *cubin)
{
    const struct cubin_kernel *first = cubin_find(cubin, "first");
    const struct cubin_kernel *third = cubin_find(cubin, "third");

    ck_assert_uint_eq(cubin->kernel_count, 3);
    ck_assert_ptr_nonnull(cubin_find(cubin, "second"));
    ck_assert_ptr_null(cubin_find(cubin, "fourth"));
    ck_assert_uint_eq(cubin_find(cubin, "second")->parameter_count, 0);
    ck_assert(cubin_find(cubin, "second")->has_parameters);
    ck_assert_ptr_nonnull(first);
    ck_assert_uint_eq(first->parameter_count, 3);
    ck_assert_uint_eq(first->parameter_bytes, 20);
    ck_assert_uint_eq(first->parameters[1].offset, 8);
    ck_assert_uint_eq(first->parameters[1].bytes, 8);
    ck_assert_uint_eq(first->parameters[2].offset, 16);
    ck_assert_uint_eq(first->parameters[2].bytes, 4);
    ck_assert_ptr_nonnull(third);
    ck_assert_uint_eq(third->parameters[0].bytes, 5000);
    ck_assert_uint_eq(third->parameters[1].offset, 5000);
}

static void check_sample(const struct binary *binary, enum packing packing)
{
    ck_assert(!binary->is_cut);
    ck_assert_uint_eq(binary->fatbin_count, 2);
    ck_assert_uint_eq(binary->image_count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_msg(binary->images[i].status == CAPU_OK, "image %zu: %s", i,
                      binary->images[i].problem.text);
    }
    ck_assert_int_eq(binary->images[0].image.kind, IMAGE_ELF);
    ck_assert_int_eq(binary->images[0].image.packing, packing);
    ck_assert_uint_eq(binary->images[0].image.architecture, 80);
    check_kernels(&binary->images[0].cubin);
    ck_assert_int_eq(binary->images[1].image.kind, IMAGE_PTX);
    ck_assert_uint_eq(binary->images[1].fatbin, 0);
    ck_assert_str_eq(binary->images[1].text, ptx);
    ck_assert_uint_eq(binary->images[1].text_bytes, strlen(ptx));
    ck_assert_uint_eq(binary->images[2].fatbin, 1);
    ck_assert_uint_eq(binary->images[2].image.architecture, 90);
    check_kernels(&binary->images[2].cubin);
}

START_TEST(programs_in_every_packing)
{
    for (enum packing packing = PACKING_NONE; packing <= PACKING_ZSTD; packing++) {
        struct buffer program = {0};
        struct binary binary;

#ifndef INTERPOSE_LZ4
        if (packing == PACKING_LZ4) {
            continue;
        }
#endif
#ifndef INTERPOSE_ZSTD
        if (packing == PACKING_ZSTD) {
            continue;
        }
#endif
        write_sample(&program, ".nv_fatbin", packing, NULL);
        read_one(&program, &binary);
        check_sample(&binary, packing);
        ck_assert(!binary.images[0].image.is_relocatable);
        ck_assert(!binary.images[1].image.is_relocatable);
        binary_finish(&binary);
        free(program.data);
    }
}
END_TEST

START_TEST(relocatable_code_by_section_option_and_type)
{
    struct buffer program = {0};
    struct buffer cubin = {0};
    struct binary binary;

    write_sample(&program, "__nv_relfatbin", PACKING_NONE, NULL);
    read_one(&program, &binary);
    ck_assert(binary.images[0].image.is_relocatable);
    ck_assert(binary.images[1].image.is_relocatable);
    binary_finish(&binary);
    free(program.data);

    program = (struct buffer){0};
    write_sample(&program, ".nv_fatbin", PACKING_NONE, "-O3 --compile-only ");
    read_one(&program, &binary);
    ck_assert(binary.images[1].image.is_relocatable);
    ck_assert(!binary.images[2].image.is_relocatable);
    binary_finish(&binary);
    free(program.data);

    write_cubin(&cubin, true, kernels, 3);
    read_one(&cubin, &binary);
    ck_assert(binary.images[0].image.is_relocatable);
    binary_finish(&binary);
    free(cubin.data);
}
END_TEST

START_TEST(files_of_one_image)
{
    struct buffer file = {0};
    struct binary binary;

    write_cubin(&file, false, kernels, 3);
    read_one(&file, &binary);
    ck_assert_uint_eq(binary.image_count, 1);
    check_kernels(&binary.images[0].cubin);
    binary_finish(&binary);
    free(file.data);

    file = (struct buffer){0};
    buffer_put(&file, ptx, strlen(ptx));
    read_one(&file, &binary);
    ck_assert_str_eq(binary.images[0].text, ptx);
    binary_finish(&binary);
    free(file.data);

    file = (struct buffer){0};
    write_fatbin(&file, (struct written_image[]){{1, 75, PACKING_NONE, text(ptx), NULL, false}}, 1);
    read_one(&file, &binary);
    ck_assert_uint_eq(binary.images[0].image.architecture, 75);
    /* Padding after the text is not part of it. */
    ck_assert_uint_eq(binary.images[0].text_bytes, strlen(ptx));
    binary_finish(&binary);
    free(file.data);
}
END_TEST

START_TEST(files_of_other_kinds_are_refused)
{
    static const struct {
        const char *contents;
        size_t count;
        capu_status status;
        const char *reason;
    } files[] = {
        {"int main(void)\n", 15, CAPU_FILE_FAILED, "not a program"},
        {"", 0, CAPU_FILE_FAILED, "not a program"},
        {"!<arch>\n/               0", 24, CAPU_UNSUPPORTED, "archive"},
        {"\177ELF", 4, CAPU_FILE_FAILED, "cut short"},
        {"\177ELF\1\1\1\0\0\0\0\0\0\0\0\0\2\0\3\0\1\0\0\0\0\0\0\0\0\0\0\0"
         "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
         64, CAPU_FILE_FAILED, "64-bit"},
        {"\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\76\0\1\0\0\0\0\0\0\0\0\0\0\0"
         "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
         64, CAPU_FILE_FAILED, "no section headers"},
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct error_text problem = {""};
        struct binary binary;
        struct bytes bytes = {(const unsigned char *)files[i].contents, files[i].count};

        ck_assert_int_eq(binary_read_bytes(bytes, &binary, &problem), files[i].status);
        ck_assert_msg(strstr(problem.text, files[i].reason) != NULL, "%s", problem.text);
        ck_assert_uint_eq(binary.image_count, 0);
    }
}
END_TEST

START_TEST(files_that_cannot_be_read)
{
    struct error_text problem = {""};
    struct binary binary;

    ck_assert_int_eq(binary_read("/nonexistent", &binary, &problem), CAPU_FILE_FAILED);
    ck_assert_msg(strstr(problem.text, "No such file") != NULL, "%s", problem.text);
    ck_assert_int_eq(binary_read("/", &binary, &problem), CAPU_FILE_FAILED);
    ck_assert_msg(strstr(problem.text, "not a regular file") != NULL, "%s", problem.text);
}
END_TEST

/* One image that is damaged does not hide the others. */
START_TEST(damaged_images_are_named)
{
    struct buffer cubin = {0};
    struct buffer fatbins = {0};
    struct buffer program = {0};
    struct binary binary;

    write_cubin(&cubin, false, kernels, 3);
    write_fatbin(&fatbins,
                 (struct written_image[]){{2, 80, PACKING_NONE, text("no cubin"), NULL, false},
                                          {1, 80, PACKING_NONE, text(ptx), NULL, false},
                                          {64, 80, PACKING_NONE, text("?"), NULL, false},
                                          {2, 90, PACKING_NONE, buffer_bytes(&cubin), NULL, false}},
                 4);
    buffer_put(&fatbins, "garbage", 7);
    write_program(&program, ".nv_fatbin", buffer_bytes(&fatbins));
    read_one(&program, &binary);
    ck_assert_uint_eq(binary.image_count, 4);
    ck_assert_int_eq(binary.images[0].status, CAPU_FILE_FAILED);
    ck_assert_msg(strstr(binary.images[0].problem.text, "not an ELF file") != NULL, "%s",
                  binary.images[0].problem.text);
    ck_assert_ptr_nonnull(binary.images[1].text);
    ck_assert_int_eq(binary.images[2].image.kind, IMAGE_UNKNOWN);
    ck_assert_uint_eq(binary.images[2].image.kind_number, 64);
    check_kernels(&binary.images[3].cubin);
    ck_assert(binary.is_cut);
    ck_assert_msg(strstr(binary.problem.text, "no fat binary") != NULL, "%s", binary.problem.text);
    binary_finish(&binary);
    free(cubin.data);
    free(fatbins.data);
    free(program.data);
}
END_TEST

#if !defined(INTERPOSE_ZSTD) || !defined(INTERPOSE_LZ4)
START_TEST(missing_packages_are_named)
{
    unsigned char *out;
    struct error_text problem;
    struct bytes bytes = {(const unsigned char *)"x", 1};

#ifndef INTERPOSE_ZSTD
    ck_assert_int_eq(unpack(bytes, PACKING_ZSTD, 1, &out, &problem), CAPU_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(problem.text, "libzstd-dev"));
#endif
#ifndef INTERPOSE_LZ4
    ck_assert_int_eq(unpack(bytes, PACKING_LZ4, 1, &out, &problem), CAPU_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(problem.text, "liblz4-dev"));
#endif
}
END_TEST
#endif

/* Reads a copy of exactly that size, so that ASan sees each byte that is read past its end. */
static void read_damaged(const unsigned char *data, size_t count)
{
    unsigned char *copy = malloc(count == 0 ? 1 : count);
    struct error_text problem;
    struct binary binary;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, data, count);
    if (binary_read_bytes((struct bytes){copy, count}, &binary, &problem) == CAPU_OK) {
        for (size_t i = 0; i < binary.image_count; i++) {
            (void)cubin_find(&binary.images[i].cubin, "first");
        }
        binary_finish(&binary);
    } else {
        ck_assert_uint_gt(strlen(problem.text), 0);
    }
    free(copy);
}

/* Whoever copied half a program is told that it is half of one. */
START_TEST(a_cut_program_is_named_as_such)
{
    struct buffer program = {0};

    write_sample(&program, ".nv_fatbin", PACKING_NONE, "-x");
    for (size_t i = 1; i < 8; i++) {
        size_t count = program.count * i / 8;
        struct error_text problem = {""};
        struct binary binary;

        ck_assert_int_eq(binary_read_bytes((struct bytes){program.data, count}, &binary, &problem),
                         CAPU_FILE_FAILED);
        ck_assert_msg(strstr(problem.text, "cut short") != NULL, "%zu bytes: %s", count,
                      problem.text);
    }
    free(program.data);
}
END_TEST

START_TEST(cut_and_changed_files_do_no_harm)
{
    struct buffer program = {0};
    uint64_t state = 17;

#ifdef INTERPOSE_ZSTD
    write_sample(&program, ".nv_fatbin", PACKING_ZSTD, "-x");
#else
    write_sample(&program, ".nv_fatbin", PACKING_NONE, "-x");
#endif
    for (size_t count = 0; count < program.count;
         count += program.count / effort_share(program.count)) {
        read_damaged(program.data, count);
    }
    for (unsigned i = 0; i < effort_share(20000); i++) {
        unsigned char saved[4];
        size_t at;

        state = state * 6364136223846793005u + 1442695040888963407u;
        at = (size_t)(state >> 33) % (program.count - sizeof(saved));
        memcpy(saved, program.data + at, sizeof(saved));
        for (size_t j = 0; j < sizeof(saved); j++) {
            program.data[at + j] = (unsigned char)(state >> (5 * j));
            if (state >> 60 == j) {
                break;
            }
        }
        read_damaged(program.data, program.count);
        memcpy(program.data + at, saved, sizeof(saved));
    }
    free(program.data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interpose_binary");
    TCase *cases = tcase_create("binary");

    tcase_add_test(cases, programs_in_every_packing);
    tcase_add_test(cases, relocatable_code_by_section_option_and_type);
    tcase_add_test(cases, files_of_one_image);
    tcase_add_test(cases, files_of_other_kinds_are_refused);
    tcase_add_test(cases, files_that_cannot_be_read);
    tcase_add_test(cases, damaged_images_are_named);
#if !defined(INTERPOSE_ZSTD) || !defined(INTERPOSE_LZ4)
    tcase_add_test(cases, missing_packages_are_named);
#endif
    tcase_add_test(cases, a_cut_program_is_named_as_such);
    tcase_add_test(cases, cut_and_changed_files_do_no_harm);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
