/* Modules, libraries and functions: which code is behind the handles of the driver. The driver's
   own calls come first; only what it has accepted is noted. */
#include "shim/core/code.h"
#include "shim/core/core.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/driver/settings.h"
#include "shim/launch/reach.h"

/* The architecture of the current device; before there is one, of the first. */
static unsigned architecture(void)
{
    CUdevice device = 0;

    if (real_calls()->cuCtxGetDevice(&device) != DRIVER_SUCCESS) {
        device = 0;
    }
    return core_architecture(device);
}

/* Code may be loaded before there is a context, so these need the lock only. What cannot be noted
   has open kernels; the driver's result stays. */
static CUresult note_image(CUresult result, const void *handle, const void *image)
{
    if (result == DRIVER_SUCCESS) {
        core_lock();
        code_add_image(handle, image, architecture());
        core_unlock();
    }
    return result;
}

static CUresult note_file(CUresult result, const void *handle, const char *path)
{
    if (result == DRIVER_SUCCESS) {
        core_lock();
        code_add_file(handle, path, architecture());
        core_unlock();
    }
    return result;
}

static CUresult forget_code(CUresult result, const void *handle)
{
    if (result == DRIVER_SUCCESS) {
        core_lock();
        code_remove(handle);
        core_unlock();
        reach_unload();
    }
    return result;
}

/* With --jit: the PTX that is to be compiled in place of what was loaded; NULL: none. */
static const char *text_of(const void *handle)
{
    const char *text = NULL;

    if (settings_get()->compiles) {
        core_lock();
        text = code_text(handle, architecture());
        core_unlock();
    }
    return text;
}

static void log_compiled(CUresult result)
{
    if (result == DRIVER_SUCCESS) {
        log_line("--jit: the driver compiles PTX in place of machine code for another "
                 "architecture; results may differ in their last bits from those without it");
    } else {
        log_line("--jit: the driver does not compile the PTX, error %d; its machine code runs",
                 result);
    }
}

/* What was loaded is noted; with --jit, something else may take its place. */
static CUresult compile_module(CUresult result, CUmodule *module)
{
    const char *text = result == DRIVER_SUCCESS ? text_of(*module) : NULL;
    CUmodule compiled = NULL;
    CUresult loaded;

    if (text == NULL) {
        return result;
    }
    loaded = real_calls()->cuModuleLoadData(&compiled, text);
    log_compiled(loaded);
    if (loaded != DRIVER_SUCCESS) {
        return result;
    }
    result = forget_code(real_calls()->cuModuleUnload(*module), *module);
    *module = compiled;
    return note_image(result, compiled, text);
}

static CUresult compile_library(CUresult result, CUlibrary *library)
{
    const char *text = result == DRIVER_SUCCESS ? text_of(*library) : NULL;
    CUlibrary compiled = NULL;
    CUresult loaded;

    if (text == NULL) {
        return result;
    }
    loaded = real_calls()->cuLibraryLoadData(&compiled, text, NULL, NULL, 0, NULL, NULL, 0);
    log_compiled(loaded);
    if (loaded != DRIVER_SUCCESS) {
        return result;
    }
    result = forget_code(real_calls()->cuLibraryUnload(*library), *library);
    *library = compiled;
    return note_image(result, compiled, text);
}

CUresult on_cuModuleLoad(CUmodule *module, const char *path)
{
    CUresult result = real_calls()->cuModuleLoad(module, path);

    result = result == DRIVER_SUCCESS ? note_file(result, *module, path) : result;
    return compile_module(result, module);
}

CUresult on_cuModuleLoadData(CUmodule *module, const void *image)
{
    CUresult result = real_calls()->cuModuleLoadData(module, image);

    result = result == DRIVER_SUCCESS ? note_image(result, *module, image) : result;
    return compile_module(result, module);
}

CUresult on_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options,
                               void **values)
{
    CUresult result = real_calls()->cuModuleLoadDataEx(module, image, count, options, values);

    result = result == DRIVER_SUCCESS ? note_image(result, *module, image) : result;
    return compile_module(result, module);
}

CUresult on_cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    CUresult result = real_calls()->cuModuleLoadFatBinary(module, image);

    result = result == DRIVER_SUCCESS ? note_image(result, *module, image) : result;
    return compile_module(result, module);
}

CUresult on_cuLibraryLoadData(CUlibrary *library, const void *image, int *options, void **values,
                              unsigned count, int *library_options, void **library_values,
                              unsigned library_count)
{
    CUresult result = real_calls()->cuLibraryLoadData(
        library, image, options, values, count, library_options, library_values, library_count);

    result = result == DRIVER_SUCCESS ? note_image(result, *library, image) : result;
    return compile_library(result, library);
}

CUresult on_cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *options, void **values,
                                  unsigned count, int *library_options, void **library_values,
                                  unsigned library_count)
{
    CUresult result = real_calls()->cuLibraryLoadFromFile(
        library, path, options, values, count, library_options, library_values, library_count);

    result = result == DRIVER_SUCCESS ? note_file(result, *library, path) : result;
    return compile_library(result, library);
}

/* Whether unloading does nothing, since launches of the code may be repeated. */
static bool is_kept(const void *handle)
{
    bool is_known = false;

    if (settings_get()->recomputes) {
        core_lock();
        is_known = code_has(handle);
        core_unlock();
    }
    return is_known;
}

/* Without the lock: the driver may wait for work. */
CUresult on_cuModuleUnload(CUmodule module)
{
    return forget_code(is_kept(module) ? DRIVER_SUCCESS : real_calls()->cuModuleUnload(module),
                       module);
}

CUresult on_cuLibraryUnload(CUlibrary library)
{
    return forget_code(is_kept(library) ? DRIVER_SUCCESS : real_calls()->cuLibraryUnload(library),
                       library);
}

CUresult on_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUresult result = real_calls()->cuModuleGetFunction(function, module, name);

    if (result == DRIVER_SUCCESS) {
        core_lock();
        code_note(*function, module, false, name);
        core_unlock();
    }
    return result;
}

CUresult on_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    CUresult result = real_calls()->cuLibraryGetKernel(kernel, library, name);

    if (result == DRIVER_SUCCESS) {
        core_lock();
        code_note(*kernel, library, true, name);
        core_unlock();
    }
    return result;
}

CUresult on_cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    CUresult result = real_calls()->cuLibraryGetModule(module, library);

    if (result == DRIVER_SUCCESS) {
        core_lock();
        code_add_handle(*module, library);
        core_unlock();
    }
    return result;
}

CUresult on_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    CUresult result = real_calls()->cuKernelGetFunction(function, kernel);

    if (result == DRIVER_SUCCESS) {
        core_lock();
        code_note_same(*function, kernel);
        core_unlock();
    }
    return result;
}

/* Kernels that were not asked for by their names. */
CUresult on_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library)
{
    const struct real_calls *real = real_calls();
    CUresult result = real->cuLibraryEnumerateKernels(kernels, count, library);
    unsigned there = 0;
    const char *name;

    if (result != DRIVER_SUCCESS ||
        real->cuLibraryGetKernelCount(&there, library) != DRIVER_SUCCESS) {
        return result;
    }
    for (unsigned i = 0; i < count && i < there; i++) {
        if (real->cuKernelGetName(&name, kernels[i]) == DRIVER_SUCCESS) {
            core_lock();
            code_note(kernels[i], library, true, name);
            core_unlock();
        }
    }
    return result;
}

CUresult on_cuModuleEnumerateFunctions(CUfunction *functions, unsigned count, CUmodule module)
{
    const struct real_calls *real = real_calls();
    CUresult result = real->cuModuleEnumerateFunctions(functions, count, module);
    unsigned there = 0;
    const char *name;

    if (result != DRIVER_SUCCESS ||
        real->cuModuleGetFunctionCount(&there, module) != DRIVER_SUCCESS) {
        return result;
    }
    for (unsigned i = 0; i < count && i < there; i++) {
        if (real->cuFuncGetName(&name, functions[i]) == DRIVER_SUCCESS) {
            core_lock();
            code_note(functions[i], module, false, name);
            core_unlock();
        }
    }
    return result;
}
