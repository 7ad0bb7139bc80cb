/*
 * Device code: modules and libraries from PTX text and from fat binaries, of which the newest PTX
 * that the device can run is taken, or machine code if there is none. Machine code is that of this
 * driver: a cubin with a section that has PTX. Any other is refused. A library's text is translated
 * when something of it is first asked for, a module's at once, as CUDA does.
 *
 * The lock guards the list of modules and what is made on demand; it is held while a module is
 * translated.
 */
#include "interpose/image/elf_file.h"
#include "interpose/image/fatbin.h"
#include "tests/ptx/driver/code.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRAPPER_MAGIC 0x466243b1u

/* What nvcc passes for a fat binary. */
struct wrapper {
    uint32_t magic;
    uint32_t version;
    const void *fatbin;
};

struct CUmod_st {
    struct CUmod_st *next;
    char *text; /* PTX */
    size_t text_bytes;
    struct machine_module *machine; /* NULL: not translated yet */
    struct CUfunc_st *functions;
    size_t function_count;
};

/* A library is a module of its own; its kernels are names for the module's functions. */
struct CUlib_st {
    struct CUmod_st module;
    struct CUkern_st *kernels;
};

struct CUkern_st {
    uint32_t magic;
    struct CUfunc_st *function;
    struct CUlib_st *library;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUmod_st *modules;

struct CUfunc_st *function_of(CUfunction handle)
{
    struct CUkern_st *kernel = (struct CUkern_st *)handle;

    if (handle == NULL) {
        return NULL;
    }
    if (kernel->magic == KERNEL_MAGIC) {
        return kernel->function;
    }
    return handle->magic == FUNCTION_MAGIC ? handle : NULL;
}

static CUresult complain(CUresult result, const struct error_text *problem)
{
    fprintf(stderr, "test driver: %s\n", problem->text);
    return result;
}

/* Whether the device can run machine code: of its major architecture, and not newer. */
static bool is_for_device(const struct image *image)
{
    unsigned capability = (unsigned)driver_settings()->capability;

    return image->kind == IMAGE_ELF && image->architecture / 10 == capability / 10 &&
           image->architecture <= capability;
}

/* The newest images of a fat binary that the device can run; of kind IMAGE_UNKNOWN: none. */
static void find_newest(struct bytes bytes, struct image *ptx, struct image *machine_code)
{
    struct fatbin_reader reader = {.bytes = bytes};
    struct error_text problem;
    struct image image;

    *ptx = *machine_code = (struct image){.kind = IMAGE_UNKNOWN};
    while (fatbin_next(&reader, &image, &problem) == CAPU_OK && reader.count == 1) {
        if (image.kind == IMAGE_PTX && image.architecture >= ptx->architecture &&
            (int)image.architecture <= driver_settings()->capability) {
            *ptx = image;
        } else if (is_for_device(&image) && image.architecture >= machine_code->architecture) {
            *machine_code = image;
        }
    }
}

/* The PTX that machine code of this driver has. Null: it is other machine code. */
static char *text_of_machine_code(struct bytes bytes)
{
    struct elf_file elf;
    struct elf_section section;
    struct error_text problem;

    if (elf_file_open(bytes, &elf, &problem) != CAPU_OK) {
        return NULL;
    }
    for (uint32_t i = 0; i < elf.section_count; i++) {
        if (elf_file_section(&elf, i, &section) && section.name != NULL &&
            strcmp(section.name, ".capuchin.ptx") == 0) {
            return strndup((const char *)section.contents.data, section.contents.count);
        }
    }
    return NULL;
}

static CUresult read_machine_code(const struct image *image, char **text, size_t *count)
{
    unsigned char *unpacked;
    struct error_text problem;

    if (fatbin_unpack(image, &unpacked, count, &problem) != CAPU_OK) {
        return complain(CUDA_ERROR_INVALID_IMAGE, &problem);
    }
    *text = text_of_machine_code((struct bytes){unpacked, *count});
    free(unpacked);
    *count = *text != NULL ? strlen(*text) : 0;
    return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* What the device runs of a fat binary. */
static CUresult choose_ptx(struct bytes bytes, char **text, size_t *count)
{
    struct error_text problem;
    struct image ptx;
    struct image machine_code;
    unsigned char *unpacked;

    find_newest(bytes, &ptx, &machine_code);
    if (machine_code.kind == IMAGE_ELF &&
        (ptx.kind != IMAGE_PTX || driver_settings()->with_machine_code)) {
        CUresult result = read_machine_code(&machine_code, text, count);

        if (result != CUDA_ERROR_NO_BINARY_FOR_GPU || ptx.kind != IMAGE_PTX) {
            return result;
        }
        *text = strdup(".version 7.0\n.target sm_80\n.address_size 64\n"); /* no functions */
        *count = *text != NULL ? strlen(*text) : 0;
        return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (ptx.kind != IMAGE_PTX) {
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    if (fatbin_unpack(&ptx, &unpacked, count, &problem) != CAPU_OK) {
        return complain(CUDA_ERROR_INVALID_IMAGE, &problem);
    }
    *text = (char *)unpacked;
    return CUDA_SUCCESS;
}

/* The PTX of an image in memory, whose size its header says. */
static CUresult read_image(const void *image, char **text, size_t *count)
{
    static const unsigned char elf[] = {0x7f, 'E', 'L', 'F'};
    enum { HEADER_BYTES = 16 };
    const struct wrapper *wrapper = image;
    struct bytes bytes;

    if (image == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (wrapper->magic == WRAPPER_MAGIC) {
        return read_image(wrapper->fatbin, text, count);
    }
    bytes = (struct bytes){image, HEADER_BYTES};
    if (fatbin_is_one(bytes)) {
        bytes.count = (size_t)(bytes_u16(bytes, 6) + bytes_u64(bytes, 8));
        return choose_ptx(bytes, text, count);
    }
    if (memcmp(image, elf, sizeof(elf)) == 0) {
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    if (driver_settings()->without_compiler) {
        return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    }
    *text = strdup(image);
    *count = *text != NULL ? strlen(*text) : 0;
    return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult read_file(const char *path, char **image)
{
    FILE *file = path != NULL ? fopen(path, "rb") : NULL;
    long bytes;

    if (file == NULL) {
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    *image = NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (bytes = ftell(file)) > 0 &&
        fseek(file, 0, SEEK_SET) == 0) {
        *image = calloc(1, (size_t)bytes + 1);
        if (*image != NULL && fread(*image, 1, (size_t)bytes, file) != (size_t)bytes) {
            free(*image);
            *image = NULL;
        }
    }
    fclose(file);
    return *image != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

/* Translates the module, if that has not happened yet. Pre: the lock is held. */
static CUresult translate(struct CUmod_st *module)
{
    struct error_text problem;
    capu_status status;
    size_t count = 0;

    if (module->machine != NULL) {
        return CUDA_SUCCESS;
    }
    status = machine_open(module->text, module->text_bytes, &module->machine, &problem);
    if (status != CAPU_OK) {
        return complain(status == CAPU_NO_HOST_MEMORY ? CUDA_ERROR_OUT_OF_MEMORY
                                                      : CUDA_ERROR_INVALID_PTX,
                        &problem);
    }
    while (machine_function_at(module->machine, count) != NULL) {
        count++;
    }
    module->functions = calloc(count + 1, sizeof(*module->functions));
    if (module->functions == NULL) {
        machine_close(module->machine);
        module->machine = NULL;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        module->functions[i] =
            (struct CUfunc_st){.magic = FUNCTION_MAGIC,
                               .machine = machine_function_at(module->machine, i),
                               .module = module,
                               .dynamic_bytes_most = SHARED_BYTES_DEFAULT};
    }
    module->function_count = count;
    return CUDA_SUCCESS;
}

static CUresult translate_locked(struct CUmod_st *module)
{
    CUresult result;

    pthread_mutex_lock(&lock);
    result = translate(module);
    pthread_mutex_unlock(&lock);
    return result;
}

static void publish(struct CUmod_st *module)
{
    pthread_mutex_lock(&lock);
    module->next = modules;
    modules = module;
    pthread_mutex_unlock(&lock);
}

/* Waits for all work, and frees what the module has. */
static void discard(struct CUmod_st *module)
{
    struct CUmod_st **at = &modules;

    (void)queue_wait(queue_last_issued());
    pthread_mutex_lock(&lock);
    while (*at != NULL && *at != module) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = module->next;
    }
    pthread_mutex_unlock(&lock);
    machine_close(module->machine);
    free(module->functions);
    free(module->text);
}

void module_reset(void)
{
    struct error_text problem;

    pthread_mutex_lock(&lock);
    for (struct CUmod_st *module = modules; module != NULL; module = module->next) {
        if (module->machine != NULL) {
            (void)machine_reset(module->machine,
                                &problem); /* as it was when the module was opened */
        }
    }
    pthread_mutex_unlock(&lock);
}

bool module_find_variable(uint64_t address, struct memory_block *block)
{
    bool is_found = false;

    pthread_mutex_lock(&lock);
    for (const struct CUmod_st *module = modules; module != NULL && !is_found;
         module = module->next) {
        const struct machine_variable *variable;

        for (size_t i = 0; module->machine != NULL && !is_found &&
                           (variable = machine_variable_at(module->machine, i)) != NULL;
             i++) {
            uint64_t base = (uintptr_t)variable->address;

            is_found = address >= base && address < base + variable->bytes;
            if (is_found) {
                *block = (struct memory_block){base, variable->bytes, base, false, false};
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return is_found;
}

static struct CUfunc_st *find_function(struct CUmod_st *module, const char *name)
{
    for (size_t i = 0; name != NULL && i < module->function_count; i++) {
        if (strcmp(module->functions[i].machine->name, name) == 0) {
            return &module->functions[i];
        }
    }
    return NULL;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    struct CUmod_st made = {.next = NULL};
    CUresult result;

    DRIVER_ENTER(driver_enter_context);
    if (module == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = read_image(image, &made.text, &made.text_bytes);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *module = malloc(sizeof(made));
    if (*module == NULL) {
        free(made.text);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    **module = made;
    result = translate_locked(*module);
    if (result != CUDA_SUCCESS) {
        free(made.text);
        free(*module);
        return result;
    }
    publish(*module);
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            CUjit_option *options, void **values)
{
    (void)count;
    (void)options;
    (void)values;
    return cuModuleLoadData(module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return cuModuleLoadData(module, image);
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    char *image = NULL;
    CUresult result = read_file(path, &image);

    if (result == CUDA_SUCCESS) {
        result = cuModuleLoadData(module, image);
    }
    free(image);
    return result;
}

CUresult cuModuleUnload(CUmodule module)
{
    DRIVER_ENTER(driver_enter_context);
    if (module == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    discard(module);
    free(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    DRIVER_ENTER(driver_enter_context);
    if (function == NULL || module == NULL || name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *function = find_function(module, name);
    return *function != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module,
                              const char *name)
{
    const struct machine_variable *variable;
    CUresult result;

    DRIVER_ENTER(driver_enter_context);
    if (module == NULL || name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = translate_locked(module);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    variable = machine_variable_find(module->machine, name);
    if (variable == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (address != NULL) {
        *address = (uintptr_t)variable->address;
    }
    if (bytes != NULL) {
        *bytes = variable->bytes;
    }
    return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    enum { LAZY = 2 };

    DRIVER_ENTER(driver_enter);
    *mode = LAZY;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module)
{
    DRIVER_ENTER(driver_enter_context);
    *count = (unsigned)module->function_count;
    return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned count, CUmodule module)
{
    DRIVER_ENTER(driver_enter_context);
    for (unsigned i = 0; i < count && i < module->function_count; i++) {
        functions[i] = &module->functions[i];
    }
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options,
                           void **values, unsigned count, CUlibraryOption *library_options,
                           void **library_values, unsigned library_count)
{
    CUlibrary made;
    CUresult result;

    (void)options;
    (void)values;
    (void)count;
    (void)library_options;
    (void)library_values;
    (void)library_count;
    DRIVER_ENTER(driver_enter);
    if (library == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = read_image(image, &made->module.text, &made->module.text_bytes);
    if (result != CUDA_SUCCESS) {
        free(made);
        return result;
    }
    publish(&made->module);
    *library = made;
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options,
                               void **values, unsigned count, CUlibraryOption *library_options,
                               void **library_values, unsigned library_count)
{
    char *image = NULL;
    CUresult result = read_file(path, &image);

    if (result == CUDA_SUCCESS) {
        result = cuLibraryLoadData(library, image, options, values, count, library_options,
                                   library_values, library_count);
    }
    free(image);
    return result;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    DRIVER_ENTER(driver_enter);
    if (library == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    discard(&library->module);
    free(library->kernels);
    free(library);
    return CUDA_SUCCESS;
}

/* Translates the library and names its kernels. */
static CUresult open_library(CUlibrary library)
{
    CUresult result;

    DRIVER_ENTER(driver_enter);
    if (library == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    pthread_mutex_lock(&lock);
    result = translate(&library->module);
    if (result == CUDA_SUCCESS && library->kernels == NULL) {
        library->kernels = calloc(library->module.function_count + 1, sizeof(*library->kernels));
        for (size_t i = 0; library->kernels != NULL && i < library->module.function_count; i++) {
            library->kernels[i] =
                (struct CUkern_st){KERNEL_MAGIC, &library->module.functions[i], library};
        }
        result = library->kernels != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    CUresult result = open_library(library);
    const struct CUfunc_st *function;

    if (result != CUDA_SUCCESS) {
        return result;
    }
    function = find_function(&library->module, name);
    if (kernel == NULL || function == NULL) {
        return kernel == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
    }
    *kernel = &library->kernels[function - library->module.functions];
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    CUresult result = open_library(library);

    if (result == CUDA_SUCCESS) {
        *module = &library->module;
    }
    return result;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                            const char *name)
{
    DRIVER_ENTER(driver_enter_context);
    return library != NULL ? cuModuleGetGlobal_v2(address, bytes, &library->module, name)
                           : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library)
{
    CUresult result = open_library(library);

    if (result == CUDA_SUCCESS) {
        *count = (unsigned)library->module.function_count;
    }
    return result;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library)
{
    CUresult result = open_library(library);

    for (unsigned i = 0; result == CUDA_SUCCESS && i < count && i < library->module.function_count;
         i++) {
        kernels[i] = &library->kernels[i];
    }
    return result;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    DRIVER_ENTER(driver_enter_context);
    if (function == NULL || kernel == NULL || kernel->magic != KERNEL_MAGIC) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *function = kernel->function;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
    DRIVER_ENTER(driver_enter);
    *library = kernel->library;
    return CUDA_SUCCESS;
}
