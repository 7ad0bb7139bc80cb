/* Selects the function for the device of a context: the only place that knows which one it is. */
#include "kernels/launch.h"

#include "kernels/blas.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/*
 * A GPU of the Pascal class on PCIe 3, whose link is the sim device's default: well-written kernels
 * reach 10 TFLOP/s and 500 GB/s there, and a launch costs 5 us.
 */
#define FLOPS_PER_US UINT64_C(10000000)
#define BYTES_PER_US UINT64_C(500000)
#define LAUNCH_NS UINT64_C(5000)

uint64_t launch_duration_ns(uint64_t flops, uint64_t bytes)
{
    /* Dividing first avoids overflow. The loss is below one percent of LAUNCH_NS for everything
       whose time matters. */
    uint64_t arithmetic_ns = flops / (FLOPS_PER_US / 1000);
    uint64_t traffic_ns = bytes / (BYTES_PER_US / 1000);

    return LAUNCH_NS + (arithmetic_ns > traffic_ns ? arithmetic_ns : traffic_ns);
}

static uint64_t traffic_of(const struct launch *launch)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < launch->operand_count; i++) {
        const capu_operand *operand = &launch->operands[i];

        bytes += operand->bytes;
        if (operand->role == CAPU_UPDATE) {
            bytes += operand->bytes;
        }
    }
    return bytes;
}

/* To capu_run 0 bytes mean all that follow, which an operation without items does not touch. */
static bool has_work(const struct launch *launch)
{
    for (size_t i = 0; i < launch->operand_count; i++) {
        if (launch->operands[i].bytes == 0 && launch->operands[i].role != CAPU_SCRATCH) {
            return false;
        }
    }
    return true;
}

/* Not inside an op: handles and memory must exist before the first one runs. */
static capu_status prepare_device(capu_context *context, enum launch_needs needs)
{
#ifdef KERNELS_CUDA
    return needs == LAUNCH_NEEDS_NOTHING
               ? CAPU_OK
               : blas_prepare(capu_context_stream(context), needs == LAUNCH_NEEDS_PRODUCTS);
#else
    (void)context;
    (void)needs;
    return CAPU_UNSUPPORTED;
#endif
}

void launch_reason(capu_context *context, char *text, size_t text_bytes)
{
    text[0] = '\0';
    if (strcmp(capu_context_device(context), "cuda") != 0) {
        return;
    }
#ifdef KERNELS_CUDA
    if (blas_find(text, text_bytes) == CAPU_OK) {
        text[0] = '\0';
    }
#else
    snprintf(text, text_bytes, "the operations were built without nvcc");
#endif
}

capu_status launch_run(capu_context *context, const struct launch *launch)
{
    int is_cuda = strcmp(capu_context_device(context), "cuda") == 0;
    capu_status status = CAPU_OK;
    capu_op op = {
        .size = sizeof(op),
        .name = launch->name,
        /* The sim device does not call the function, but requires one. */
        .run = is_cuda ? launch->cuda : launch->host,
        .replay = is_cuda ? launch->cuda_replay : launch->host_replay,
        .arguments = launch->arguments,
        .argument_bytes = launch->argument_bytes,
        .operands = launch->operands,
        .operand_count = launch->operand_count,
        .flags = launch->flags,
        .duration_ns = launch_duration_ns(launch->flops, traffic_of(launch)),
    };

    if (!has_work(launch)) {
        return CAPU_INVALID;
    }
    if (is_cuda) {
        status = prepare_device(context, launch->needs);
    }
    if (status != CAPU_OK || op.run == NULL) {
        return status != CAPU_OK ? status : CAPU_UNSUPPORTED;
    }
    return capu_run(context, &op);
}
