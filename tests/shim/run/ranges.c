/*
 * A program whose kernels access parts of few large allocations, in the way that its argument
 * names. It prints what it computes, so that a run under a budget can be compared with one without.
 * The kernels are in the file that the macro RANGES_PTX names.
 */
#include "shim/driver/driver.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS(X)                                                                               \
    X(cuInit, (unsigned flags))                                                                \
    X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                        \
    X(cuCtxSetCurrent, (CUcontext context))                                                    \
    X(cuModuleLoadData, (CUmodule * module, const void *image))                                \
    X(cuModuleUnload, (CUmodule module))                                                       \
    X(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))         \
    X(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))                                    \
    X(cuMemFree_v2, (CUdeviceptr address))                                                     \
    X(cuMemsetD8_v2, (CUdeviceptr address, unsigned char value, size_t count))                 \
    X(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes))                       \
    X(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))                             \
    X(cuCtxSynchronize, (void))                                                                \
    X(cuLaunchKernel, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, \
                       unsigned block_x, unsigned block_y, unsigned block_z,                   \
                       unsigned shared_bytes, CUstream stream, void **parameters, void **extra))
#define MEMBER(name, parameters) CUresult(*name) parameters;
static struct {
    CALLS(MEMBER)
} cu;

enum { THREADS = 128, PART = 1 << 17, PART_BYTES = PART * 4, PARTS = 16 };

static CUmodule module;

static void check(CUresult result, const char *what)
{
    if (result != DRIVER_SUCCESS) {
        printf("%s: error %d\n", what, result);
        exit(1);
    }
}

#define CU(name, ...) check(cu.name(__VA_ARGS__), #name)

static void start(void)
{
    static char ptx[65536];
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    FILE *file = fopen(RANGES_PTX, "r");
    CUcontext context = NULL;

    if (library == NULL || file == NULL || fread(ptx, 1, sizeof(ptx) - 1, file) == 0) {
        printf("no driver, or no %s\n", RANGES_PTX);
        exit(3);
    }
    (void)fclose(file);
#define FIND(name, parameters) cu.name = (CUresult(*) parameters)dlsym(library, #name);
    CALLS(FIND)
    CU(cuInit, 0);
    CU(cuDevicePrimaryCtxRetain, &context, 0);
    CU(cuCtxSetCurrent, context);
    CU(cuModuleLoadData, &module, ptx);
}

static CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr address = 0;

    CU(cuMemAlloc_v2, &address, bytes);
    return address;
}

static CUresult launch(const char *name, unsigned threads, void **parameters, void **extra)
{
    CUfunction function = NULL;

    CU(cuModuleGetFunction, &function, module, name);
    return cu.cuLaunchKernel(function, (threads + THREADS - 1) / THREADS, 1, 1, THREADS, 1, 1, 0,
                             NULL, parameters, extra);
}

static void line(CUdeviceptr to, CUdeviceptr from, float a, float b, int n)
{
    check(launch("line", (unsigned)n, (void *[]){&to, &from, &a, &b, &n}, NULL), "line");
}

static void fill(CUdeviceptr to, float value, unsigned count)
{
    check(launch("fill", count, (void *[]){&to, &value}, NULL), "fill");
}

static void print_sum(const char *name, CUdeviceptr address, size_t bytes)
{
    unsigned char *host = malloc(bytes);
    uint64_t sum = 1469598103934665603u;

    CU(cuMemcpyDtoH_v2, host, address, bytes);
    for (size_t i = 0; i < bytes; i++) {
        sum = (sum ^ host[i]) * 1099511628211u;
    }
    free(host);
    printf("%s %016llx\n", name, (unsigned long long)sum);
}

/* One allocation, larger than budgets. Kernels are the first to touch its parts. */
static void run_blob(void)
{
    CUdeviceptr blob = allocate((size_t)PARTS * PART_BYTES);

    for (unsigned i = 0; i < PARTS; i++) {
        fill(blob + (CUdeviceptr)i * PART_BYTES, (float)i, PART);
    }
    for (unsigned i = 1; i < PARTS; i++) {
        line(blob + (CUdeviceptr)i * PART_BYTES, blob + (CUdeviceptr)(i - 1) * PART_BYTES, 0.5f,
             (float)i, PART);
    }
    for (unsigned i = 0; i < PARTS; i++) {
        print_sum("part", blob + (CUdeviceptr)i * PART_BYTES, PART_BYTES);
    }
}

/* Memsets of zeros first; and both operands of the first launch are parts of one allocation, with
   borders inside pages. */
static void run_cleared(void)
{
    CUdeviceptr blob = allocate((size_t)PARTS * PART_BYTES);

    CU(cuMemsetD8_v2, blob, 0, (size_t)PARTS * PART_BYTES);
    for (unsigned i = 1; i < PARTS; i++) {
        line(blob + (CUdeviceptr)i * PART_BYTES + 400,
             blob + (CUdeviceptr)(i - 1) * PART_BYTES + 400, 0.5f, (float)i, PART - 100);
    }
    for (unsigned i = 0; i < PARTS; i++) {
        print_sum("part", blob + (CUdeviceptr)i * PART_BYTES, PART_BYTES);
    }
}

/* Launches that depend on the same, and others. */
static void run_repeats(void)
{
    CUdeviceptr first = allocate(PART_BYTES);
    CUdeviceptr second = allocate(PART_BYTES);

    for (int i = 0; i < 10; i++) { /* one slice: a and b do not matter */
        line(first, second, 1.5f, (float)i, PART);
    }
    for (int i = 0; i < 10; i++) { /* none: the same at other addresses */
        line(second, first, 0.5f, 1.0f, PART);
    }
    for (int i = 0; i < 10; i++) { /* three: a number that matters */
        line(second, first, 0.25f, 1.0f, PART - 1 - i % 3);
    }
    for (int i = 0; i < 10; i++) { /* none: memory that is new each time */
        CUdeviceptr third = allocate(PART_BYTES + (size_t)i * 4096);

        line(third + 4 * (CUdeviceptr)i, first, 0.125f, 1.0f, PART - 16);
        line(third + 4 * (CUdeviceptr)i, second, 0.125f, 1.0f, PART);
        line(first, third + 4 * (CUdeviceptr)i, 0.125f, 1.0f, PART);
        CU(cuMemFree_v2, third);
    }
    for (unsigned i = 1; i <= 10; i++) { /* ten: another grid each time */
        fill(second, (float)i, i * 10 * THREADS);
    }
    print_sum("first", first, PART_BYTES);
    print_sum("second", second, PART_BYTES);
}

/* One of two pointers, into one allocation or into two. */
static void run_either(void)
{
    CUdeviceptr blob = allocate((size_t)PARTS * PART_BYTES);
    CUdeviceptr other = allocate((size_t)PARTS * PART_BYTES);
    unsigned count = PART / 4;

    for (unsigned i = 0; i < PARTS; i++) {
        fill(blob + (CUdeviceptr)i * PART_BYTES, (float)i, PART);
        fill(other + (CUdeviceptr)i * PART_BYTES, (float)-i, PART);
    }
    for (unsigned way = 0; way < 3; way++) {
        CUdeviceptr from[] = {blob + PART_BYTES, blob + 2 * PART_BYTES};
        CUdeviceptr to = blob + (CUdeviceptr)(way + 3) * PART_BYTES;

        check(launch("either", count, (void *[]){&to, &from[0], &from[1], &way}, NULL), "either");
        to += PART_BYTES / 2;
        from[1] = other;
        /* Between two allocations, all of both are needed. */
        printf("way %u: %d\n", way,
               launch("either", count, (void *[]){&to, &from[0], &from[1], &way}, NULL));
    }
    for (unsigned i = 0; i < PARTS; i++) {
        print_sum("part", blob + (CUdeviceptr)i * PART_BYTES, PART_BYTES);
    }
}

/* All pointers of a structure, of which a block takes one. */
static void run_each(void)
{
    struct {
        CUdeviceptr of[6];
    } all;
    float value = 3.0f;

    for (int i = 0; i < 6; i++) {
        all.of[i] = allocate(PART_BYTES);
    }
    all.of[4] = all.of[3] + 4096;
    check(launch("each", 6 * THREADS, (void *[]){&all, &value}, NULL), "each");
    for (int i = 0; i < 6; i++) {
        print_sum("memory", all.of[i], PART_BYTES / 2);
    }
}

/* A kernel that has no slice. */
static void run_carried(void)
{
    CUdeviceptr memory = allocate(PART_BYTES);
    float value = 9.0f;

    fill(memory, 1.0f, PART / 2);
    check(launch("carried", THREADS, (void *[]){&memory, &value}, NULL), "carried");
    print_sum("memory", memory, PART_BYTES);
}

/* Code that comes and goes, with its slices. */
static void run_reload(void)
{
    CUdeviceptr memory = allocate(PART_BYTES);

    for (unsigned i = 0; i < 3; i++) {
        fill(memory, (float)i, PART);
        line(memory, memory, 2.0f, 1.0f, PART);
        CU(cuModuleUnload, module);
        start();
    }
    print_sum("memory", memory, PART_BYTES);
}

/* A launch that touches everything. */
static void run_all(void)
{
    fill(allocate((size_t)PARTS * PART_BYTES), 1.0f, PARTS * PART);
}

/* Stores outside of allocations, or none, and the work that goes on. */
static void fill_three(int is_beyond)
{
    CUdeviceptr memory = allocate(PART_BYTES);
    CUdeviceptr others[2] = {allocate(PART_BYTES), allocate(PART_BYTES)};
    float value = 1.0f;

    fill(memory, 2.0f, PART);
    fill(others[0], 3.0f, PART);
    fill(others[1], 4.0f, PART);
    if (is_beyond) {
        CUdeviceptr after = memory + 4;
        CUdeviceptr before = memory - 64;

        printf("after the end %d\n", launch("fill", PART, (void *[]){&after, &value}, NULL));
        printf("before the start %d\n", launch("fill", PART, (void *[]){&before, &value}, NULL));
    }
    print_sum("memory", memory, PART_BYTES);
    print_sum("other", others[0], PART_BYTES);
    print_sum("other", others[1], PART_BYTES);
}

/* Loads so far beyond the end that nothing is there. */
static void run_far(void)
{
    CUdeviceptr to = allocate(PART_BYTES);
    CUdeviceptr from = allocate(PART_BYTES); /* the one with the highest address */

    printf("far %d\n", launch("ends", PART / 3, (void *[]){&to, &from}, NULL));
}

static void run_beyond(void)
{
    fill_three(1);
}

static void run_filled(void)
{
    fill_three(0);
}

/* Whole vectors are loaded, although the memory ends in the last one. */
static void run_vectors(void)
{
    size_t bytes = PART_BYTES - 4;
    CUdeviceptr from = allocate(bytes);
    CUdeviceptr to = allocate(PART);

    line(from, from, 0.0f, 1.0f, PART - 1);
    check(launch("ends", PART / 4, (void *[]){&to, &from}, NULL), "ends");
    print_sum("ends", to, PART - 4);
}

/* Accesses that depend on data, in a grid that is larger than the memory. */
static void run_may(void)
{
    static int flags[PART];
    CUdeviceptr blob = allocate(PART_BYTES * 3);
    CUdeviceptr chosen = allocate(PART_BYTES);
    CUdeviceptr to = blob + 2 * PART_BYTES + PART_BYTES / 2; /* half of the grid would be outside */
    CUdeviceptr from = blob;

    for (int i = 0; i < PART / 2; i++) {
        flags[i] = i % 3 == 0;
    }
    CU(cuMemcpyHtoD_v2, chosen, flags, sizeof(flags));
    fill(blob, 5.0f, PART);
    check(launch("choose", PART, (void *[]){&to, &from, &chosen}, NULL), "choose");
    for (int i = 0; i < 3; i++) {
        print_sum("part", blob + (CUdeviceptr)i * PART_BYTES, PART_BYTES);
    }
}

/* A structure of pointers and numbers, as a parameter and in a block of all parameters. */
static void run_structure(void)
{
    struct {
        CUdeviceptr to;
        int first;
        float value;
        CUdeviceptr from;
        int count;
    } all = {.first = PART, .value = 1.0f, .count = PART};
    size_t bytes = sizeof(all);
    CUdeviceptr blob = allocate((size_t)PARTS * PART_BYTES);

    all.to = all.from = blob;
    for (int i = 1; i < PARTS; i++) {
        all.first = i * PART;
        all.from = blob + (CUdeviceptr)(i - 1) * PART_BYTES;
        if (i % 2 == 0) {
            check(launch("structure", PART, (void *[]){&all}, NULL), "structure");
        } else {
            check(launch("structure", PART, NULL,
                         (void *[]){LAUNCH_BUFFER, &all, LAUNCH_BUFFER_BYTES, &bytes, LAUNCH_END}),
                  "structure");
        }
    }
    bytes = 16;
    printf("too few bytes %d\n",
           launch("structure", PART, NULL,
                  (void *[]){LAUNCH_BUFFER, &all, LAUNCH_BUFFER_BYTES, &bytes, LAUNCH_END}));
    for (unsigned i = 0; i < PARTS; i++) {
        print_sum("part", blob + (CUdeviceptr)i * PART_BYTES, PART_BYTES);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"blob", run_blob},       {"cleared", run_cleared},
                 {"repeats", run_repeats}, {"beyond", run_beyond},
                 {"filled", run_filled},   {"all", run_all},
                 {"carried", run_carried}, {"far", run_far},
                 {"either", run_either},   {"each", run_each},
                 {"reload", run_reload},   {"vectors", run_vectors},
                 {"may", run_may},         {"structure", run_structure}};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (argc > 1 && strcmp(argv[1], parts[i].name) == 0) {
            start();
            parts[i].run();
            check(cu.cuCtxSynchronize(), "cuCtxSynchronize");
            return 0;
        }
    }
    printf("no such part\n");
    return 2;
}
