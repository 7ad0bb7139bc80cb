/*
 * A client that finds the driver as NVIDIA's runtime does: dlopen("libcuda.so.1"), one dlsym, and
 * everything else from cuGetProcAddress, by version and flags. Prints what the functions answer and
 * who has given them; the test compares the lines.
 *
 * "client symbols" takes the exported symbols instead, also one that the driver does not have.
 */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int (*find_function)(const char *, void **, int, uint64_t, int *);
typedef int (*launch_function)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, void *, void **, void **);

/* "driver", "shim", or another file. */
static const char *owner(const void *address)
{
    Dl_info info;

    if (address == NULL || dladdr(address, &info) == 0) {
        return "nothing";
    }
    return strstr(info.dli_fname, "libcapuchin-interpose") != NULL ||
                   strstr(info.dli_fname, "/lib/capuchin/") != NULL
               ? "shim"
           : strstr(info.dli_fname, "libcuda.so.1") != NULL ? "driver"
                                                            : info.dli_fname;
}

/* Asks for a function and says what came. */
static void *ask(find_function find, const char *name, int version, uint64_t flags)
{
    void *function = NULL;
    int status = -1;
    int result = find(name, &function, version, flags, &status);

    printf("%s %d %d: %d %d %s\n", name, version, (int)flags, result, status, owner(function));
    return function;
}

static int from_runtime(void *library)
{
    find_function find = (find_function)dlsym(library, "cuGetProcAddress_v2");
    int (*query)(void *);
    int (*wait)(void *, unsigned long long, uint32_t, unsigned);
    int (*info)(size_t *, size_t *);
    int (*retain)(void **, int);
    int (*create)(void **, unsigned, int);
    int (*find_old)(const char *, void **, int, uint64_t);
    size_t sizes[2] = {0, 0};
    void *context = NULL;
    void *old = NULL;
    int results[4];

    printf("cuGetProcAddress_v2 by name: %s\n", owner((void *)find));
    find = (find_function)ask(find, "cuGetProcAddress", 12000, 1);
    find_old =
        (int (*)(const char *, void **, int, uint64_t))ask(find, "cuGetProcAddress", 11030, 1);
    results[0] = find_old("cuInit", &old, 2000, 1);
    printf("old cuGetProcAddress: %d %s\n", results[0], owner(old));
    (void)ask(find, "cuInit", 2000, 1);
    query = (int (*)(void *))ask(find, "cuStreamQuery", 2000, 1);
    printf("query %d\n", query(NULL));
    query = (int (*)(void *))ask(find, "cuStreamQuery", 7000, 2);
    printf("query per thread %d\n", query(NULL));
    info = (int (*)(size_t *, size_t *))ask(find, "cuMemGetInfo", 3020, 1);
    results[0] = info(&sizes[0], &sizes[1]);
    printf("info %d %zu %zu\n", results[0], sizes[0], sizes[1]);
    wait = (int (*)(void *, unsigned long long, uint32_t, unsigned))ask(find, "cuStreamWaitValue32",
                                                                        12000, 1);
    results[0] = wait(NULL, 0, 0, 0);
    results[1] = wait(NULL, 0, 0, 0);
    printf("wait %d %d\n", results[0], results[1]);
    create = (int (*)(void **, unsigned, int))ask(find, "cuCtxCreate", 3020, 1);
    printf("create %d\n", create(&context, 0, 0));
    retain = (int (*)(void **, int))ask(find, "cuDevicePrimaryCtxRetain", 7000, 1);
    results[0] = retain(&context, 7);
    results[1] = retain(&context, 0);
    results[2] = retain(&context, 0);
    results[3] = retain(&context, 1);
    printf("retain %d %d %d %d\n", results[0], results[1], results[2], results[3]);
    info = (int (*)(size_t *, size_t *))ask(find, "cuMemGetInfo", 2000, 1);
    printf("old info %d\n", info(&sizes[0], &sizes[1]));
    (void)ask(find, "cuDriverGetVersion", 2020, 1);
    (void)ask(find, "cuDevicePrimaryCtxRetain", 6000, 1);
    (void)ask(find, "cuNoSuchFunction", 13000, 1);
    return 0;
}

static int by_symbols(void *library)
{
    int (*initialise)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int (*bias)(void *, float) =
        (int (*)(void *, float))dlsym(library, "cuTexRefSetMipmapLevelBias");
    int (*clamp)(void *, float, float) =
        (int (*)(void *, float, float))dlsym(library, "cuTexRefSetMipmapLevelClamp");
    launch_function launch = (launch_function)dlsym(library, "cuLaunchKernel");
    int (*missing)(void) = (int (*)(void))dlsym(library, "cuMemPrefetchAsync_v2");
    int some = 0;
    void *pointers[1] = {&some};

    printf("init %d %d\n", initialise(0), initialise(5));
    printf("bias %d %d\n", bias(NULL, 1.5F), bias(NULL, -2.25F));
    printf("clamp %d\n", clamp(NULL, 3.5F, 7.0F));
    for (int i = 0; i < 2; i++) { /* the first call looks the function up */
        printf("launch %d\n", launch(&some, 1, 2, 3, 4, 5, 6, 7, &some, pointers, pointers));
    }
    printf("missing %d\n", missing());
    printf("unknown %s\n", owner(dlsym(library, "cuNoSuchFunction")));
    return 0;
}

/* Who gives functions to another library, and what this one gets. */
static int from_library(void *library, const char *path)
{
    void *other = dlopen(path, RTLD_NOW);
    void *(*ask_from)(void *, const char *, int, uint64_t) = NULL;
    void *find = dlsym(library, "cuGetProcAddress_v2");

    if (other != NULL) {
        ask_from = (void *(*)(void *, const char *, int, uint64_t))dlsym(other, "ask_from");
    }
    if (ask_from == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    printf("wrapped %s\n", owner(ask_from(find, "cuDevicePrimaryCtxRetain", 7000, 1)));
    printf("refused %s\n", owner(ask_from(find, "cuStreamWaitValue32", 12000, 1)));
    printf("shared %s\n", owner(ask_from(find, "cuIpcGetMemHandle", 4010, 1)));
    printf("old %s\n", owner(ask_from(find, "cuMemGetInfo", 2000, 1)));
    printf("itself %s\n", owner(ask_from(find, "cuGetProcAddress", 12000, 1)));
    return 0;
}

int main(int argc, char **argv)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    if (library == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "symbols") == 0) {
        return by_symbols(library);
    }
    if (argc > 1) {
        return from_library(library, argv[1]);
    }
    return from_runtime(library);
}
