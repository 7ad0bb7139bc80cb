/* The one place that knows which device an operation runs on. */
#include "kernels/launch.h"

#include "kernels/blas.h"

#include <stdbool.h>
#include <string.h>

/*
 * A Pascal-class card on PCIe 3, the machine whose link the sim device has by default: 10 TFLOP/s
 * and 500 GB/s are what well-written kernels reach there, 5 us is what a launch costs.
 */
#define FLOPS_PER_US UINT64_C(10000000)
#define BYTES_PER_US UINT64_C(500000)
#define LAUNCH_NS UINT64_C(5000)

uint64_t launch_duration_ns(uint64_t flops, uint64_t bytes)
{
    /* Divided before multiplied: no overflow, and what is lost is below a percent of LAUNCH_NS
       wherever it could matter. */
    uint64_t arithmetic_ns = flops / (FLOPS_PER_US / 1000);
    uint64_t traffic_ns = bytes / (BYTES_PER_US / 1000);

    return LAUNCH_NS + (arithmetic_ns > traffic_ns ? arithmetic_ns : traffic_ns);
}

static uint64_t traffic(const struct launch *launch)
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

/* To capu_run no bytes are all that follow, which an operation on nothing does not touch. */
static bool has_work(const struct launch *launch)
{
    for (size_t i = 0; i < launch->operand_count; i++) {
        if (launch->operands[i].bytes == 0 && launch->operands[i].role != CAPU_SCRATCH) {
            return false;
        }
    }
    return true;
}

/* Outside of any op: handles and memory are made before the first one, not inside it. */
static capu_status prepare(capu_context *context)
{
#ifdef KERNELS_CUDA
    return blas_prepare(capu_context_stream(context));
#else
    (void)context;
    return CAPU_UNSUPPORTED;
#endif
}

capu_status launch_run(capu_context *context, const struct launch *launch)
{
    int is_cuda = strcmp(capu_context_device(context), "cuda") == 0;
    capu_status status = CAPU_OK;
    capu_op op = {
        .size = sizeof(op),
        .name = launch->name,
        /* The sim device calls neither, but wants one. */
        .run = is_cuda ? launch->cuda : launch->host,
        .replay = is_cuda ? launch->cuda_replay : launch->host_replay,
        .arguments = launch->arguments,
        .argument_bytes = launch->argument_bytes,
        .operands = launch->operands,
        .operand_count = launch->operand_count,
        .flags = launch->flags,
        .duration_ns = launch_duration_ns(launch->flops, traffic(launch)),
    };

    if (!has_work(launch)) {
        return CAPU_INVALID;
    }
    if (is_cuda) {
        status = prepare(context);
    }
    if (status != CAPU_OK || op.run == NULL) {
        return status != CAPU_OK ? status : CAPU_UNSUPPORTED;
    }
    return capu_run(context, &op);
}
