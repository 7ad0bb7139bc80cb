/*
 * A program that does what is handled with care, or not at all:
 * limits refused SYMBOL...: calls functions of the driver, by their symbols and as cuGetProcAddress
 *     gives them, asks for a second device, and then goes on.
 * limits image: only the last.
 * limits packed: the same, but the launch's parameters are a block of bytes.
 * limits library: the same, but the code is loaded as a library.
 * limits kernels, limits functions: the same, but the kernel is found among all of the library, or
 * of the module. limits early: the same, but that is done before there is a context, twice. It goes
 * on with a kernel of the device code in the file that the variable IMAGE names.
 */
#include "shim/driver/driver_calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 1 << 16, BYTES = ELEMENTS * 4, TENSORS = 4 };

typedef CUresult (*any_function)(void *, void *, void *, void *, void *, void *);

static void *library;

static void *find(const char *name)
{
    void *function = dlsym(library, name);

    if (function == NULL) {
        printf("%s\n", dlerror());
        exit(3);
    }
    return function;
}

#define CALL(name, parameters, ...) check(((CUresult(*) parameters)find(#name))(__VA_ARGS__), #name)

static void check(CUresult result, const char *what)
{
    if (result != DRIVER_SUCCESS) {
        printf("%s: error %d\n", what, result);
        exit(1);
    }
}

static CUfunction early; /* the kernel, if it was loaded before there was a context */

static CUfunction load_library(const void *image, CUlibrary *loaded)
{
    CUfunction scale = NULL;

    CALL(cuLibraryLoadData,
         (CUlibrary *, const void *, int *, void **, unsigned, int *, void **, unsigned), loaded,
         image, NULL, NULL, 0, NULL, NULL, 0);
    CALL(cuLibraryGetKernel, (CUkernel *, CUlibrary, const char *), (CUkernel *)&scale, *loaded,
         "scale");
    return scale;
}

static const char *name_of(CUfunction function, int is_kernel)
{
    const char *name = "";

    if (is_kernel) {
        CALL(cuKernelGetName, (const char **, CUkernel), &name, (CUkernel)function);
    } else {
        CALL(cuFuncGetName, (const char **, CUfunction), &name, function);
    }
    return name;
}

/* The kernel "scale" among all of a library or a module. */
static CUfunction find_scale(CUlibrary loaded, CUmodule module)
{
    enum { MOST = 16 };
    CUfunction functions[MOST] = {NULL};
    unsigned count = 0;

    if (module == NULL) {
        CALL(cuLibraryGetKernelCount, (unsigned *, CUlibrary), &count, loaded);
        CALL(cuLibraryEnumerateKernels, (CUkernel *, unsigned, CUlibrary), (CUkernel *)functions,
             MOST, loaded);
    } else {
        CALL(cuModuleGetFunctionCount, (unsigned *, CUmodule), &count, module);
        CALL(cuModuleEnumerateFunctions, (CUfunction *, unsigned, CUmodule), functions, MOST,
             module);
    }
    for (unsigned i = 0; i < count && i < MOST; i++) {
        if (strcmp(name_of(functions[i], module == NULL), "scale") == 0) {
            return functions[i];
        }
    }
    printf("no scale among %u\n", count);
    exit(1);
}

static void load_early(const void *image)
{
    CUcontext context = NULL;
    CUlibrary loaded = NULL;

    (void)load_library(image, &loaded);
    CALL(cuLibraryUnload, (CUlibrary), loaded);
    early = load_library(image, &loaded);
    CALL(cuCtxGetCurrent, (CUcontext *), &context);
    printf("context %d\n", context != NULL);
}

/* Several tensors, of which the kernel "scale" reads one and writes another. */
static void launch(const void *image, const char *form)
{
    int is_packed = strcmp(form, "packed") == 0;
    static float host[ELEMENTS];
    CUdeviceptr tensors[TENSORS];
    CUmodule module = NULL;
    CUlibrary loaded = NULL;
    CUfunction scale = NULL;
    float factor = 3.0f;
    int count = ELEMENTS;
    CUresult result;
    struct {
        CUdeviceptr to, from;
        float factor;
        int count;
    } packed;
    size_t bytes = sizeof(packed);
    void *extra[] = {LAUNCH_BUFFER, &packed, LAUNCH_BUFFER_BYTES, &bytes, LAUNCH_END};
    void *parameters[] = {&tensors[1], &tensors[0], &factor, &count};

    if (early != NULL) {
        scale = early;
    } else if (strcmp(form, "library") == 0) {
        scale = load_library(image, &loaded);
    } else if (strcmp(form, "kernels") == 0) {
        CALL(cuLibraryLoadData,
             (CUlibrary *, const void *, int *, void **, unsigned, int *, void **, unsigned),
             &loaded, image, NULL, NULL, 0, NULL, NULL, 0);
        scale = find_scale(loaded, NULL);
    } else if (strcmp(form, "functions") == 0) {
        CALL(cuModuleLoadData, (CUmodule *, const void *), &module, image);
        scale = find_scale(NULL, module);
    } else {
        CALL(cuModuleLoadData, (CUmodule *, const void *), &module, image);
        CALL(cuModuleGetFunction, (CUfunction *, CUmodule, const char *), &scale, module, "scale");
    }
    for (int i = 0; i < ELEMENTS; i++) {
        host[i] = (float)(i % 100);
    }
    for (int i = 0; i < TENSORS; i++) {
        CALL(cuMemAlloc_v2, (CUdeviceptr *, size_t), &tensors[i], BYTES);
        CALL(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t), tensors[i], host, BYTES);
    }
    packed.to = tensors[1];
    packed.from = tensors[0];
    packed.factor = factor;
    packed.count = count;
    result = ((CUresult(*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, CUstream, void **, void **))find("cuLaunchKernel"))(
        scale, ELEMENTS / 64, 1, 1, 64, 1, 1, 0, NULL, is_packed ? NULL : parameters,
        is_packed ? extra : NULL);
    CALL(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), host, tensors[1], BYTES);
    printf("launch %d: %g\n", result, (double)host[99]);
}

/* The name without its version. */
static const char *base_of(const char *symbol, char base[128])
{
    char *end;

    snprintf(base, 128, "%s", symbol);
    end = strrchr(base, '_');
    if (end != NULL && end[1] == 'v') {
        *end = '\0';
    }
    return base;
}

static void refuse(const char *symbol)
{
    CUresult (*get)(const char *, void **, int, uint64_t, int *) =
        (CUresult(*)(const char *, void **, int, uint64_t, int *))find("cuGetProcAddress_v2");
    char base[128];
    void *given = NULL;
    int status = 0;
    CUresult by_symbol = ((any_function)find(symbol))(NULL, NULL, NULL, NULL, NULL, NULL);

    if (get(base_of(symbol, base), &given, 13000, 1, &status) != DRIVER_SUCCESS || given == NULL) {
        printf("%s %d, not given\n", symbol, by_symbol);
        return;
    }
    printf("%s %d %d\n", symbol, by_symbol,
           ((any_function)given)(NULL, NULL, NULL, NULL, NULL, NULL));
}

static void refuse_all(char **symbols, int count, const void *image)
{
    CUcontext context = NULL;

    for (int i = 0; i < count; i++) {
        refuse(symbols[i]);
    }
    printf("second device %d\n",
           ((CUresult(*)(CUcontext *, CUdevice))find("cuDevicePrimaryCtxRetain"))(&context, 1));
    launch(image, "image");
}

int main(int argc, char **argv)
{
    static char image[65536];
    const char *path = getenv("IMAGE");
    FILE *file = path != NULL ? fopen(path, "r") : NULL;
    CUcontext context = NULL;

    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (argc < 2 || library == NULL || file == NULL ||
        fread(image, 1, sizeof(image) - 1, file) == 0 || fclose(file) != 0) {
        printf("wrong arguments, no driver, or no IMAGE\n");
        return 3;
    }
    CALL(cuInit, (unsigned), 0);
    if (strcmp(argv[1], "early") == 0) {
        load_early(image);
    }
    CALL(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice), &context, 0);
    CALL(cuCtxSetCurrent, (CUcontext), context);
    if (strcmp(argv[1], "refused") == 0) {
        refuse_all(argv + 2, argc - 2, image);
    } else {
        launch(image, argv[1]);
    }
    return 0;
}
