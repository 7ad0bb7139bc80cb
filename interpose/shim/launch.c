/*
 * Launches. The operands of a closed kernel are the allocations that its pointers lie in, read or
 * updated as its roles say. For an open kernel all allocations are made resident; if they do not
 * fit, the program gets the driver's error for too little memory. The kernel is then launched by
 * the driver, inside an access of these operands.
 */
#include "interpose/shim/code.h"
#include "interpose/shim/core.h"
#include "interpose/shim/handlers.h"
#include "interpose/shim/log.h"
#include "interpose/shim/operands.h"
#include "interpose/shim/real_calls.h"
#include "interpose/shim/symbol.h"
#include "interpose/shim/trust.h"

#include <inttypes.h>
#include <string.h>

/* A launch's parameters, in either of the two ways in which they are given. */
struct block {
    void **parameters;          /* one address per parameter, or NULL */
    const unsigned char *bytes; /* the whole block, if there is no such array */
    size_t byte_count;
};

static struct block block_of(void **parameters, void **extra)
{
    struct block block = {.parameters = parameters};

    for (size_t i = 0; parameters == NULL && extra != NULL && extra[i] != LAUNCH_END; i += 2) {
        if (extra[i] == LAUNCH_BUFFER) {
            block.bytes = extra[i + 1];
        } else if (extra[i] == LAUNCH_BUFFER_BYTES) {
            block.byte_count = *(const size_t *)extra[i + 1];
        }
    }
    return block;
}

/* The eight bytes at an offset of a parameter. False: they are not there. */
static bool read_word(const struct block *block, const struct kernel *roles, uint32_t parameter,
                      uint32_t offset, uint64_t *word)
{
    const struct kernel_parameter *place = &roles->parameters[parameter];

    if (offset + sizeof(*word) > place->bytes) {
        return false;
    }
    if (block->parameters != NULL) {
        memcpy(word, (const unsigned char *)block->parameters[parameter] + offset, sizeof(*word));
        return true;
    }
    if (block->bytes == NULL || place->offset + offset + sizeof(*word) > block->byte_count) {
        return false;
    }
    memcpy(word, block->bytes + place->offset + offset, sizeof(*word));
    return true;
}

static bool add_closed(const struct kernel *roles, const struct block *block,
                       struct operands *operands)
{
    for (size_t i = 0; i < roles->word_count; i++) {
        const struct kernel_word *word = &roles->words[i];
        bool is_any = word->offset == PTX_NONE;
        uint32_t offset = is_any ? 0 : word->offset;
        uint64_t address;

        if (!is_any && !read_word(block, roles, word->parameter, offset, &address)) {
            return false;
        }
        while (read_word(block, roles, word->parameter, offset, &address)) {
            operands_add_allocation(operands, address,
                                    word->is_written || word->is_atomic ? CAPU_UPDATE : CAPU_READ);
            if (!is_any) {
                break;
            }
            offset += (uint32_t)sizeof(address);
        }
    }
    return true;
}

/* Whether a kernel cannot run here; a line says why. */
static bool is_refused(const struct code_kernel *kernel)
{
    if (kernel->roles != NULL && kernel->roles->spins) {
        log_line("refused: the kernel %s waits for memory that another kernel or the host writes; "
                 "under a budget, kernels run one after the other",
                 kernel->name);
    } else if (code_is_stale(kernel)) {
        log_line("refused: the kernel %s may use variables of its module; under a budget, "
                 "cudaDeviceReset does not give them their first values again",
                 kernel->name);
    } else {
        return false;
    }
    symbol_note_refusal(kernel->name);
    return true;
}

/* Begins the access of a launch. Pre: entered. */
static CUresult begin(CUfunction function, struct code_kernel *kernel, const struct block *block)
{
    struct operands operands = {0};
    CUresult result;

    if (is_refused(kernel)) {
        return DRIVER_NOT_SUPPORTED;
    }
    if (kernel->reason != NULL) {
        kernel->is_trusted =
            trust_add(function, block->parameters, block->bytes, block->byte_count, &operands);
    }
    if (kernel->reason != NULL ? !kernel->is_trusted
                               : !add_closed(kernel->roles, block, &operands)) {
        operands_add_all(&operands);
    }
    if (operands.has_failed) {
        return DRIVER_OUT_OF_MEMORY;
    }
    result = core_begin(kernel->name);
    if (result == DRIVER_OUT_OF_MEMORY && kernel->reason != NULL && !kernel->is_trusted) {
        log_line("all %" PRIu64 " bytes are needed for the kernel %s, which is open: %s",
                 operands.bytes, kernel->name, kernel->reason);
    }
    if (result == DRIVER_SUCCESS) {
        if (kernel->reason != NULL || kernel->roles->writes_variables) {
            code_note_stored();
        }
        kernel->launch_count++;
        kernel->most_bytes =
            operands.bytes > kernel->most_bytes ? operands.bytes : kernel->most_bytes;
    }
    return result;
}

/* Begins a launch: takes the lock and begins its access. An error: neither. */
static CUresult begin_launch(CUfunction function, void **parameters, void **extra,
                             struct code_kernel **kernel)
{
    struct block block = block_of(parameters, extra);
    const char *name = NULL;
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    if (real_calls()->cuFuncGetName(&name, function) != DRIVER_SUCCESS || name == NULL) {
        name = "a kernel without a name";
    }
    *kernel = code_find(function, name);
    result = *kernel != NULL ? begin(function, *kernel, &block) : DRIVER_OUT_OF_MEMORY;
    if (result != DRIVER_SUCCESS) {
        if (*kernel != NULL) {
            (*kernel)->failed_count++;
        }
        core_leave();
    }
    return result;
}

static CUresult end_launch(CUresult result, const struct code_kernel *kernel)
{
    result = core_end(result, kernel->name);
    core_leave();
    return result;
}

CUresult on_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared_bytes, CUstream stream, void **parameters, void **extra)
{
    struct code_kernel *kernel;
    CUresult result = begin_launch(function, parameters, extra, &kernel);

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    return end_launch(real_calls()->cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x,
                                                   block_y, block_z, shared_bytes,
                                                   core_stream(stream), parameters, extra),
                      kernel);
}

CUresult on_cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                      unsigned grid_z, unsigned block_x, unsigned block_y,
                                      unsigned block_z, unsigned shared_bytes, CUstream stream,
                                      void **parameters)
{
    struct code_kernel *kernel;
    CUresult result = begin_launch(function, parameters, NULL, &kernel);

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    return end_launch(real_calls()->cuLaunchCooperativeKernel(
                          function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                          core_stream(stream), parameters),
                      kernel);
}

CUresult on_cuLaunchKernelEx(const struct launch_config *config, CUfunction function,
                             void **parameters, void **extra)
{
    struct launch_config folded;
    struct code_kernel *kernel;
    CUresult result;

    if (config == NULL) {
        return DRIVER_INVALID_VALUE;
    }
    result = begin_launch(function, parameters, extra, &kernel);
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    folded = *config;
    folded.stream = core_stream(config->stream);
    return end_launch(real_calls()->cuLaunchKernelEx(&folded, function, parameters, extra), kernel);
}
