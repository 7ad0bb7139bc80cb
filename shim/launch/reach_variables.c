/*
 * Variables of the program's modules that slices read. Their addresses are the driver's; they do
 * not change while the module is loaded. A constant is copied before each launch of a slice: its
 * address may be used for copies, and nothing says that a kernel can load from it.
 */
#include "shim/core/alloc.h"
#include "shim/core/outside.h"
#include "shim/driver/real.h"
#include "shim/launch/reach_parts.h"

#include <stdlib.h>
#include <string.h>

static CUresult find(const struct code_kernel *kernel, const struct slice_source *source,
                     struct reach_variable *variable)
{
    const struct real_calls *real = real_calls();
    CUresult result = kernel->is_in_library
                          ? real->cuLibraryGetGlobal(&variable->address, &variable->bytes,
                                                     (CUlibrary)kernel->handle, source->variable)
                          : real->cuModuleGetGlobal_v2(&variable->address, &variable->bytes,
                                                       (CUmodule)kernel->handle, source->variable);

    if (result == DRIVER_SUCCESS && source->is_constant) {
        result = outside_count_call(real->cuMemAlloc_v2(&variable->copy, variable->bytes),
                                    "cuMemAlloc_v2 for slices", variable->bytes);
    }
    return result;
}

static void forget(struct reach *reach)
{
    for (size_t i = 0; i < reach->slice.source_count; i++) {
        if (reach->variables[i].copy != 0) {
            (void)real_calls()->cuMemFree_v2(reach->variables[i].copy);
        }
    }
    free(reach->variables);
    reach->variables = NULL;
}

CUresult reach_find_variables(const struct code_kernel *kernel, struct reach *reach)
{
    const struct slice *slice = &reach->slice;
    CUresult result = DRIVER_SUCCESS;

    reach->variables = calloc(slice->source_count + 1, sizeof(*reach->variables));
    if (reach->variables == NULL) {
        return DRIVER_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < slice->source_count && result == DRIVER_SUCCESS; i++) {
        if (slice->sources[i].variable != NULL) {
            result = find(kernel, &slice->sources[i], &reach->variables[i]);
        }
    }
    if (result != DRIVER_SUCCESS) {
        forget(reach);
    }
    return result;
}

CUresult reach_set_variables(const struct reach *reach, CUstream stream, unsigned char *block)
{
    CUresult result = DRIVER_SUCCESS;

    for (size_t i = 0; i < reach->slice.source_count && result == DRIVER_SUCCESS; i++) {
        const struct reach_variable *variable = &reach->variables[i];
        CUdeviceptr from = variable->copy != 0 ? variable->copy : variable->address;
        CUdeviceptr bounds[] = {from, from + variable->bytes};

        if (reach->slice.sources[i].variable == NULL) {
            continue;
        }
        memcpy(block + reach->slice.sources[i].offset, bounds, sizeof(bounds));
        if (variable->copy != 0) {
            result = real_calls()->cuMemcpyDtoDAsync_v2(variable->copy, variable->address,
                                                        variable->bytes, stream);
        }
    }
    return result;
}

bool reach_stores_elsewhere(const struct kernel *roles, const unsigned char *block)
{
    for (size_t i = 0; i < roles->word_count; i++) {
        const struct kernel_word *word = &roles->words[i];
        uint32_t offset = 0;
        uint64_t pointer;

        while ((word->is_written || word->is_atomic) &&
               parameters_next(block, roles, word, &offset, &pointer)) {
            if (pointer != 0 && alloc_find_pointer(pointer) == NULL) {
                return true;
            }
        }
    }
    return roles->writes_variables;
}
