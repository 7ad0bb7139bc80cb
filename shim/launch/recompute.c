/* Launches that may be repeated, see launch.h. */
#include "shim/launch/launch.h"

#include "shim/core/capture.h"
#include "shim/core/core.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/driver/settings.h"

#include <stdlib.h>
#include <string.h>

enum { PARAMETERS_MOST = 256 };

/* An op's arguments: this, the parameters, and the text of --operands. */
struct repeatable {
    uint64_t number; /* of the op */
    struct code_kernel *kernel;
    CUfunction function;
    CUcontext context; /* that it is launched in */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    bool has_text;
    size_t text_at;
    unsigned char bytes[];
};

/* The first launch of the newest op. Guarded by the core's lock, but for what is atomic. */
static struct {
    uint64_t number; /* atomic: of the op, until it is launched; else 0 */
    CUresult result; /* the driver's; set by the thread that launches, for which the owner of the
                        lock waits */
    uint64_t newest;
} first;

static bool writes_only_whole(const struct operands *operands)
{
    bool has_written = false;

    for (size_t i = 0; i < operands->count; i++) {
        if (operands->list[i].role != CAPU_READ && operands->list[i].role != CAPU_WRITE) {
            return false;
        }
        has_written |= operands->list[i].role == CAPU_WRITE;
    }
    return has_written;
}

bool recompute_takes(const struct code_kernel *kernel, const struct launch *launch,
                     const struct operands *operands)
{
    return settings_get()->recomputes && kernel->reason == NULL && kernel->roles->is_closed &&
           kernel->roles->is_repeatable && kernel->roles->parameter_count <= PARAMETERS_MOST &&
           launch->is_plain && !launch->is_cooperative && !operands->has_others &&
           writes_only_whole(operands);
}

/* On the host device, this is a thread of the library's. */
static CUresult launch_on_host(const struct repeatable *op, void **parameters)
{
    const struct real_calls *real = real_calls();
    CUstream stream = core_stream(NULL);
    CUresult result = real->cuCtxSetCurrent(op->context);

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    capture_relax();
    result = real->cuLaunchKernel(op->function, op->grid[0], op->grid[1], op->grid[2], op->block[0],
                                  op->block[1], op->block[2], op->shared_bytes, stream, parameters,
                                  NULL);
    if (result == DRIVER_SUCCESS) {
        result = real->cuStreamSynchronize(stream);
    }
    capture_restore();
    return result;
}

static CUresult launch_op(capu_stream stream, const struct repeatable *op)
{
    const struct kernel *roles = op->kernel->roles;
    void *parameters[PARAMETERS_MOST + 1] = {NULL};
    CUresult result;

    for (size_t i = 0; i < roles->parameter_count; i++) {
        parameters[i] = (void *)(op->bytes + roles->parameters[i].offset);
    }
    if (op->has_text) {
        operands_write_begin(op->kernel->name, (const char *)op->bytes + op->text_at);
    }
    if (core_is_host()) {
        result = launch_on_host(op, parameters);
    } else {
        result = real_calls()->cuLaunchKernel(op->function, op->grid[0], op->grid[1], op->grid[2],
                                              op->block[0], op->block[1], op->block[2],
                                              op->shared_bytes, (CUstream)stream, parameters, NULL);
    }
    if (op->has_text) {
        operands_write_end();
    }
    return result;
}

/* An error of the first launch is the launch's own, and on the host device would end the context.
 */
static capu_status run_op(capu_stream stream, const void *arguments)
{
    const struct repeatable *op = arguments;
    bool is_first = __atomic_load_n(&first.number, __ATOMIC_ACQUIRE) == op->number;
    CUresult result;

    if (is_first) {
        __atomic_store_n(&first.number, 0, __ATOMIC_RELEASE);
        first.result = launch_op(stream, op);
        return first.result == DRIVER_SUCCESS || core_is_host() ? CAPU_OK : CAPU_DEVICE_FAILED;
    }
    result = launch_op(stream, op);
    if (result != DRIVER_SUCCESS) {
        log_line("--recompute: the driver does not launch the kernel %s again: error %d",
                 op->kernel->name, result);
        return CAPU_DEVICE_FAILED;
    }
    (void)__atomic_add_fetch(&op->kernel->repeat_count, 1, __ATOMIC_RELAXED);
    return CAPU_OK;
}

/* The arguments of an op, to be freed. NULL: no host memory. */
static struct repeatable *make_op(CUfunction function, struct code_kernel *kernel,
                                  const struct launch *launch, const struct operands *operands,
                                  size_t *bytes)
{
    static unsigned char block[PARAMETERS_BYTES_MOST]; /* guarded by the core's lock */
    char *text = operands_text(operands->list, operands->count);
    size_t text_bytes = text != NULL ? strlen(text) + 1 : 0;
    size_t parameter_bytes = kernel->roles->parameter_bytes;
    struct repeatable *op = NULL;

    memset(block, 0, parameter_bytes);
    *bytes = sizeof(*op) + parameter_bytes + text_bytes;
    if (parameters_block(&launch->parameters, kernel->roles, block) &&
        (op = calloc(1, *bytes)) != NULL) {
        *op = (struct repeatable){.number = ++first.newest,
                                  .kernel = kernel,
                                  .function = function,
                                  .shared_bytes = launch->shared_bytes,
                                  .has_text = text != NULL,
                                  .text_at = parameter_bytes};
        memcpy(op->grid, launch->grid, sizeof(op->grid));
        memcpy(op->block, launch->block, sizeof(op->block));
        memcpy(op->bytes, block, parameter_bytes);
        if (text != NULL) {
            memcpy(op->bytes + parameter_bytes, text, text_bytes);
        }
    }
    free(text);
    return op;
}

CUresult recompute_run(CUfunction function, struct code_kernel *kernel, const struct launch *launch,
                       const struct operands *operands, bool *was_begun)
{
    size_t bytes;
    struct repeatable *arguments = make_op(function, kernel, launch, operands, &bytes);
    capu_op op = {
        .name = kernel->name, .run = run_op, .arguments = arguments, .argument_bytes = bytes};
    CUresult result;

    *was_begun = false;
    if (arguments == NULL) {
        return DRIVER_OUT_OF_MEMORY;
    }
    first.result = DRIVER_SUCCESS;
    result = real_calls()->cuCtxGetCurrent(&arguments->context);
    if (result == DRIVER_SUCCESS) {
        __atomic_store_n(&first.number, arguments->number, __ATOMIC_RELEASE);
        result = core_run(operands, &op);
        *was_begun = __atomic_exchange_n(&first.number, 0, __ATOMIC_ACQ_REL) == 0;
        kernel->kept_count += *was_begun;
    }
    free(arguments);
    return first.result != DRIVER_SUCCESS ? first.result : result;
}
