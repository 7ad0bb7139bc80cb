/* Opens cuBLAS and finds its functions and those of cublasLt. */
#include "kernels/blas_library.cuh"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_OF(number) #number
#define LIBRARY_OF(version) "libcublas.so." TEXT_OF(version)

/* Looking a name up in a library also searches those it depends on. */
static bool find_all(void *library, struct blas_functions *functions)
{
#define FIND(field, name)                                                 \
    functions->field = (decltype(functions->field))dlsym(library, #name); \
    if (functions->field == NULL) {                                       \
        return false;                                                     \
    }
    BLAS_FUNCTIONS(FIND)
#undef FIND
    return true;
}

/* The loader names the library, or the function, and what is wrong with it. */
static capu_status refuse(char *reason)
{
    const char *text = dlerror();

    snprintf(reason, BLAS_REASON_BYTES, "%s", text != NULL ? text : "libcublas cannot be loaded");
    return CAPU_UNSUPPORTED;
}

capu_status blas_library_load(struct blas_functions *functions, char *reason)
{
    const char *path = secure_getenv("KERNELS_CUBLAS");
    struct blas_functions found;
    void *library;

    (void)dlerror(); /* of earlier calls */
    if (path == NULL || *path == '\0') {
        path = LIBRARY_OF(CUBLAS_VER_MAJOR);
    }
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return refuse(reason);
    }
    if (!find_all(library, &found)) {
        capu_status status = refuse(reason);

        dlclose(library);
        return status;
    }
    *functions = found;
    return CAPU_OK;
}
