/*
 * Turns an operation into an op of the library: selects the run function for the context's device,
 * passes the operands, and estimates the time on the machine that the sim device simulates.
 */
#ifndef CAPU_KERNELS_LAUNCH_H
#define CAPU_KERNELS_LAUNCH_H

#include "capuchin/op.h"

/* What is made on cuda before the first op of a stream that needs it (blas.h). */
enum launch_needs { LAUNCH_NEEDS_NOTHING, LAUNCH_NEEDS_SCRATCH, LAUNCH_NEEDS_PRODUCTS };

struct launch {
    const char *name;
    capu_run_function host;
    capu_run_function host_replay; /* NULL: host */
    capu_run_function cuda;
    capu_run_function cuda_replay; /* NULL: cuda */
    const void *arguments;
    size_t argument_bytes;
    const capu_operand *operands;
    size_t operand_count;
    uint32_t flags; /* capu_op_flag */
    uint64_t flops;
    enum launch_needs needs;
};

/*
 * Runs the operation. Errors: those of capu_run; INVALID if there are no items; UNSUPPORTED if
 * there is no function for the device.
 */
capu_status launch_run(capu_context *context, const struct launch *launch);

/*
 * Why launch_run fails with UNSUPPORTED or INVALID on the device of the context before it calls
 * capu_run: which library or function is missing, or which variable is wrong. An empty text: that
 * is not why.
 */
void launch_reason(capu_context *context, char *text, size_t text_bytes);

/* A roofline estimate: the longer of arithmetic and memory traffic, plus a fixed cost. */
uint64_t launch_duration_ns(uint64_t flops, uint64_t bytes);

/* In builds with CUDA, every operation has a run function of this name in its .cu file. */
#ifdef KERNELS_CUDA
#define LAUNCH_CUDA(function) function
#else
#define LAUNCH_CUDA(function) NULL
#endif

#define LAUNCH_READ(address, bytes) capu_operand_of((address), (bytes), CAPU_READ)
#define LAUNCH_WRITE(address, bytes) capu_operand_of((address), (bytes), CAPU_WRITE)
#define LAUNCH_UPDATE(address, bytes) capu_operand_of((address), (bytes), CAPU_UPDATE)
#define LAUNCH_WRITE_REST_ZERO(address, bytes) \
    capu_operand_of((address), (bytes), CAPU_WRITE_REST_ZERO)

/* Runs the operation `function_` with its argument struct and operands. */
#define LAUNCH(context_, function_, arguments_, flops_, ...) \
    LAUNCH_WITH(LAUNCH_NEEDS_NOTHING, context_, function_, arguments_, flops_, __VA_ARGS__)
#define LAUNCH_WITH(needs_, context_, function_, arguments_, flops_, ...)                     \
    launch_run((context_), &(const struct launch){                                            \
                               .name = #function_,                                            \
                               .host = function_##_host,                                      \
                               .cuda = LAUNCH_CUDA(function_##_cuda),                         \
                               .arguments = (arguments_),                                     \
                               .argument_bytes = sizeof(*(arguments_)),                       \
                               .operands = (const capu_operand[]){__VA_ARGS__},               \
                               .operand_count = sizeof((const capu_operand[]){__VA_ARGS__}) / \
                                                sizeof(capu_operand),                         \
                               .flops = (flops_),                                             \
                               .needs = (needs_),                                             \
                           })

#endif
