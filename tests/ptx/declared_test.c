/* The comparison of what work touches with what was declared for it: every rule of
   driver/declared.h, kept and broken. The test plays the part of the library that declares. */
#include "tests/ptx/include/cudart_types.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* to[i] = from[i], and to[i] += 1, for words. */
static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                           ".visible .entry move(.param .u64 to, .param .u64 from)\n"
                           "{\n"
                           "    .reg .b32 %r<3>;\n"
                           "    .reg .b64 %rd<4>;\n"
                           "    ld.param.u64 %rd1, [to];\n"
                           "    ld.param.u64 %rd2, [from];\n"
                           "    mov.u32 %r1, %tid.x;\n"
                           "    mul.wide.u32 %rd3, %r1, 4;\n"
                           "    add.s64 %rd1, %rd1, %rd3;\n"
                           "    add.s64 %rd2, %rd2, %rd3;\n"
                           "    ld.global.u32 %r2, [%rd2];\n"
                           "    st.global.u32 [%rd1], %r2;\n"
                           "    ret;\n"
                           "}\n"
                           ".visible .entry bump(.param .u64 to, .param .u64 unused)\n"
                           "{\n"
                           "    .reg .b32 %r<2>;\n"
                           "    .reg .b64 %rd<3>;\n"
                           "    ld.param.u64 %rd1, [to];\n"
                           "    mov.u32 %r1, %tid.x;\n"
                           "    mul.wide.u32 %rd2, %r1, 4;\n"
                           "    add.s64 %rd1, %rd1, %rd2;\n"
                           "    red.global.add.u32 [%rd1], 1;\n"
                           "    ret;\n"
                           "}\n";

enum { BYTES = 1 << 16, EXIT_DIFFERENT = 99 };

static char path[] = "/tmp/ptx-declared-XXXXXX";
static FILE *list;
static unsigned char *memory; /* that the driver does not know: its addresses must be declared */
static CUmodule module;
static CUdeviceptr own;

static void start(void)
{
    CUcontext context;
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    ck_assert_int_ge(dup2(fileno(tmpfile()), STDERR_FILENO), 0);
    list = fdopen(file, "w");
    ck_assert_ptr_nonnull(list);
    ck_assert_int_eq(setenv("PTX_DRIVER_OPERANDS", path, 1), 0);
    ck_assert_int_eq(setenv("PTX_DRIVER_FOREIGN", "1", 1), 0);
    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
    ck_assert_int_eq(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ck_assert_int_eq(cuModuleLoadData(&module, text), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemAlloc_v2(&own, BYTES), CUDA_SUCCESS);
}

/* Adds to the list; each '@' of the text becomes the address of the memory plus the number that
   follows it. */
static void declare(const char *line)
{
    for (; *line != '\0'; line++) {
        if (*line == '@') {
            char *end;

            fprintf(list, "0x%lx", (unsigned long)(uintptr_t)memory + strtoul(line + 1, &end, 10));
            line = end - 1;
        } else {
            fputc(*line, list);
        }
    }
    ck_assert_int_eq(fflush(list), 0);
}

static CUdeviceptr at(unsigned offset)
{
    return (CUdeviceptr)(uintptr_t)memory + offset;
}

static CUresult launch(const char *name, CUdeviceptr to, CUdeviceptr from, unsigned threads)
{
    void *parameters[] = {&to, &from};
    CUfunction function;

    ck_assert_int_eq(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
    return cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL);
}

/* What the driver has printed. */
static const char *messages(void)
{
    static char printed[4096];
    ssize_t count = pread(STDERR_FILENO, printed, sizeof(printed) - 1, 0);

    ck_assert_int_ge(count, 0);
    printed[count] = '\0';
    return printed;
}

static CUresult run(const char *line, const char *name, CUdeviceptr to, CUdeviceptr from,
                    unsigned threads)
{
    CUresult result;

    declare(line);
    result = launch(name, to, from, threads);
    if (result == CUDA_SUCCESS) {
        result = cuCtxSynchronize();
    }
    if (result == CUDA_SUCCESS && *line != '\0') {
        declare("1 done\n");
        result = cuMemsetD8_v2(own, 0, 1); /* reports what the access has left out */
    }
    ck_assert_int_eq(unlink(path), 0);
    return result;
}

/* 16 threads move or bump 64 bytes; @4096 is the source, @0 the destination. */
struct row {
    const char *line;
    const char *name;
    unsigned to, from;
    const char *problem; /* NULL: nothing is wrong */
};

static const struct row kept_rows[] = {
    {"1 move: read @4096 64, update @0 64\n", "move", 0, 4096, NULL},
    {"1 move: read @4096 64, write @0 64 of @0 128\n", "move", 0, 4096, NULL},
    {"1 move: update @0 8192\n", "move", 0, 4096, NULL},
    {"1 move: read @4096 32, read @4128 32, write @32 32, write @0 32\n", "move", 0, 4096, NULL},
    {"1 bump: update @0 64\n", "bump", 0, 0, NULL},
    {"1 in place: read @0 64, write @0 64\n", "move", 0, 0, NULL},
    /* Vectors beyond the end of an allocation, to the end of the page. */
    {"1 move: read @4096 60 of @4096 60, update @0 64\n", "move", 0, 4096, NULL},
};

static const struct row broken_rows[] = {
    {"1 move: read @4096 60 of @4096 64, update @0 64\n", "move", 0, 4096,
     "loads what is not declared: 4 bytes"},
    {"1 move: read @4096 4096 of @4096 4096, update @0 64\n", "move", 0, 8188,
     "loads what is not declared: 4 bytes"},
    {"1 move: read @4096 64, update @0 60 of @0 60\n", "move", 0, 4096,
     "stores to what is declared to be read"},
    /* Extents that are too short, at either end; roles that are wrong. */
    {"1 move: read @4096 60, update @0 64\n", "move", 0, 4096, "loads what is not declared"},
    {"1 move: read @4100 60, update @0 64\n", "move", 0, 4096, "loads what is not declared"},
    {"1 move: read @4096 62, update @0 64\n", "move", 0, 4096, "loads what is not declared"},
    {"1 move: read @4096 64, update @0 60\n", "move", 0, 4096, "stores to what is not declared"},
    {"1 move: update @0 64\n", "move", 0, 4096, "loads what is not declared"},
    {"1 move: read @4096 64\n", "move", 0, 4096, "stores to what is not declared"},
    {"1 move: read @4096 64, read @0 64\n", "move", 0, 4096, "stores to what is declared to be"},
    {"1 move: write @4096 64, update @0 64\n", "move", 0, 4096,
     "loads from what is declared to be"},
    {"1 bump: write @0 64\n", "bump", 0, 0, "loads from what is declared to be written"},
    {"1 bump: read @0 64\n", "bump", 0, 0, "stores to what is declared to be read"},
    {"1 bump:\n", "bump", 0, 0, "updates what is not declared"},
    {"1 in place: write @0 64\n", "move", 0, 0, "loads from what is declared to be written"},
    /* Writes that are not whole, at either end. */
    {"1 move: read @4096 64, write @0 65\n", "move", 0, 4096, "does not store 1 bytes of it"},
    {"1 move: read @4096 64, write @0 68\n", "move", 4, 4096, "does not store 4 bytes of it"},
    {"1 move: read @4096 64, update @0 64, write @64 8\n", "move", 0, 4096,
     "does not store 8 bytes of it"},
    /* Outside accesses, only the driver's own memory. */
    {"", "bump", 0, 0, "updates what is not declared"},
    {"1 other: update @0 8192\n1 done\n", "bump", 0, 0, "updates what is not declared"},
    /* Lists that are not understood. */
    {"1 move: read @4096 64, written @0 64\n", "move", 0, 4096, "not understood"},
    {"1 move: read @4096 64 update @0 64\n", "move", 0, 4096, "not understood"},
    {"1 move: read @4096 0, update @0 64\n", "move", 0, 4096, "not understood"},
    {"1 move: read @4096 64 of @4096 32, update @0 64\n", "move", 0, 4096, "not understood"},
    {"1 a: update @0 8192\n2 b: update @0 8192\n", "move", 0, 4096, "begun inside another"},
    {"2 done\n", "move", 0, 4096, "not begun"},
};

static void check_row(const struct row *row)
{
    CUresult result;

    start();
    result = run(row->line, row->name, at(row->to), at(row->from), 16);
    ck_assert_msg(result == (row->problem == NULL ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED),
                  "%s%s: %d: %s", row->line, row->name, result, messages());
    ck_assert_msg(row->problem == NULL ? messages()[0] == '\0'
                                       : strstr(messages(), row->problem) != NULL,
                  "%s%s: %s", row->line, row->name, messages());
}

START_TEST(kept_rules)
{
    check_row(&kept_rows[_i]);
}
END_TEST

START_TEST(broken_rules)
{
    check_row(&broken_rows[_i]);
}
END_TEST

START_TEST(own_memory_need_not_be_declared)
{
    CUdeviceptr pinned;
    void *block;

    start();
    ck_assert_int_eq(cuMemAllocHost_v2(&block, 64), CUDA_SUCCESS);
    pinned = (CUdeviceptr)(uintptr_t)block;
    ck_assert_int_eq(launch("move", own, pinned, 16), CUDA_SUCCESS);
    ck_assert_int_eq(launch("bump", pinned, 0, 16), CUDA_SUCCESS);
    ck_assert_int_eq(run("1 move: write @0 64\n", "move", at(0), own, 16), CUDA_SUCCESS);
}
END_TEST

/* Pieces of one access complete a write together, and may load what earlier ones have stored. */
START_TEST(pieces_of_an_access)
{
    start();
    declare("1 three: write @0 64, read @4096 64, write @128 64\n");
    ck_assert_int_eq(launch("move", at(0), at(4096), 8), CUDA_SUCCESS);
    ck_assert_int_eq(launch("bump", at(0), 0, 8), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyDtoDAsync_v2(at(32), at(4096), 32, NULL), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemsetD8Async(at(128), 1, 64, NULL), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSynchronize(), CUDA_SUCCESS);
    declare("1 done\n");
    declare("2 one: read @0 64\n");
    ck_assert_int_eq(run("", "move", own, at(0), 16), CUDA_SUCCESS);
}
END_TEST

/* A launch that is still waiting when its access is done, or the next one has begun. */
START_TEST(work_keeps_its_access)
{
    start();
    declare("1 first: write @0 64, read @4096 64\n");
    ck_assert_int_eq(launch("move", at(0), at(4096), 16), CUDA_SUCCESS);
    declare("1 done\n2 second: update @64 64\n");
    ck_assert_int_eq(launch("bump", at(64), 0, 16), CUDA_SUCCESS);
    declare("2 done\n");
    ck_assert_int_eq(cuCtxSynchronize(), CUDA_SUCCESS);
    ck_assert_int_eq(run("", "move", own, own, 1), CUDA_SUCCESS);
}
END_TEST

START_TEST(copies_and_fills_are_compared)
{
    static const char *const problems[] = {
        "a copy or fill stores to what is declared to be read: 32 bytes",
        "a copy or fill loads from what is declared to be written: 64 bytes"};

    start();
    declare(_i == 0 ? "1 fill: read @0 64\n" : "1 copy: write @0 64\n");
    if (_i == 0) {
        ck_assert_int_eq(cuMemsetD8Async(at(32), 1, 32, NULL), CUDA_SUCCESS);
    } else {
        ck_assert_int_eq(cuMemcpyDtoDAsync_v2(own, at(0), 64, NULL), CUDA_SUCCESS);
    }
    ck_assert_int_eq(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
    ck_assert_ptr_nonnull(strstr(messages(), problems[_i]));
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* What the last access has left out ends the process. */
START_TEST(the_last_access_is_checked)
{
    start();
    declare("1 move: read @4096 64, write @0 65\n");
    ck_assert_int_eq(launch("move", at(0), at(4096), 16), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSynchronize(), CUDA_SUCCESS);
    declare("1 done\n");
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ptx_declared");
    TCase *tcase = tcase_create("declared");

    tcase_add_loop_test(tcase, kept_rules, 0, sizeof(kept_rows) / sizeof(kept_rows[0]));
    tcase_add_loop_exit_test(tcase, broken_rules, EXIT_DIFFERENT, 0,
                             sizeof(broken_rows) / sizeof(broken_rows[0]));
    tcase_add_test(tcase, own_memory_need_not_be_declared);
    tcase_add_test(tcase, pieces_of_an_access);
    tcase_add_test(tcase, work_keeps_its_access);
    tcase_add_loop_exit_test(tcase, copies_and_fills_are_compared, EXIT_DIFFERENT, 0, 2);
    tcase_add_exit_test(tcase, the_last_access_is_checked, EXIT_DIFFERENT);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
