/*
 * The same loop, after: it now runs in less memory than it uses.
 *
 * What changed: memory comes from the library; kernels that were launched together became the
 * function of an op, which receives its stream and its arguments; each op declares what it reads
 * and writes; the beginning and the end of a step are marked; tensors have kinds, which say which
 * of them need not outlive a step. Try CAPUCHIN_BUDGET=160MiB: the losses are those of plain.cu,
 * bit for bit.
 */
#include "examples/drop_in_cuda/network.cuh"

#include "capuchin/drop_in.h"

#include <initializer_list>
#include <stdio.h>
#include <stdlib.h>

static cublasHandle_t blas;
static capu_context *context;

static void check(int error, const char *call)
{
    if (error != 0) {
        fprintf(stderr, "drop_in: %s: error %d%s%s\n", call, error, context != NULL ? ": " : "",
                context != NULL ? capu_last_error(context) : "");
        exit(1);
    }
}

#define CHECK(call) check((int)(call), #call)

static float *make(size_t bytes, capu_kind kind, const char *name)
{
    capu_tensor_info info = {};
    void *address = NULL;

    info.size = sizeof(info);
    info.kind = kind;
    info.name = name;
    CHECK(capu_drop_in_malloc(&address, bytes));
    CHECK(capu_tensor_describe(context, address, &info));
    return (float *)address;
}

template <typename Arguments>
static void run(const char *name, capu_run_function function, const Arguments &arguments,
                std::initializer_list<capu_operand> operands)
{
    capu_op op = {};

    op.size = sizeof(op);
    op.name = name;
    op.run = function;
    op.arguments = &arguments;
    op.argument_bytes = sizeof(arguments);
    op.operands = operands.begin();
    op.operand_count = operands.size();
    CHECK(capu_drop_in_run(&op));
}

struct layer {
    const float *input;
    float *weight;
    float *output;
    float *gradient;
    float *weight_gradient;
    float *input_gradient;
};

struct end {
    const float *output;
    const float *target;
    float *gradient;
    float *loss;
};

static capu_status status_of(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS && cudaGetLastError() == cudaSuccess
               ? CAPU_OK
               : CAPU_DEVICE_FAILED;
}

static capu_status forward(capu_stream stream, const void *arguments)
{
    const struct layer *layer = (const struct layer *)arguments;
    cublasStatus_t status = multiply_by_transposed(blas, layer->input, layer->weight, layer->output,
                                                   ROWS, WIDTH, WIDTH);

    bend<<<BLOCKS(BATCH_ITEMS), THREADS, 0, (cudaStream_t)stream>>>(layer->output);
    return status_of(status);
}

static capu_status compare(capu_stream stream, const void *arguments)
{
    const struct end *end = (const struct end *)arguments;

    measure<<<1, THREADS, 0, (cudaStream_t)stream>>>(end->output, end->target, end->gradient,
                                                     end->loss);
    return status_of(CUBLAS_STATUS_SUCCESS);
}

static capu_status backward(capu_stream stream, const void *arguments)
{
    const struct layer *layer = (const struct layer *)arguments;
    cublasStatus_t status;

    bend_back<<<BLOCKS(BATCH_ITEMS), THREADS, 0, (cudaStream_t)stream>>>(layer->output,
                                                                         layer->gradient);
    status = multiply_transposed(blas, layer->gradient, layer->input, layer->weight_gradient, WIDTH,
                                 WIDTH, ROWS);
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = multiply(blas, layer->gradient, layer->weight, layer->input_gradient, ROWS, WIDTH,
                          WIDTH);
    }
    return status_of(status);
}

static capu_status update(capu_stream stream, const void *arguments)
{
    const struct layer *layer = (const struct layer *)arguments;

    step_weight<<<BLOCKS(WEIGHT_ITEMS), THREADS, 0, (cudaStream_t)stream>>>(layer->weight,
                                                                            layer->weight_gradient);
    return status_of(CUBLAS_STATUS_SUCCESS);
}

/* The library runs ops on its own stream; what cuBLAS needs there is allocated before. */
static void open_context(void)
{
    static char error[256];
    capu_config config = {};

    config.size = sizeof(config);
    config.device = "cuda";
    config.error = error;
    config.error_bytes = sizeof(error);
    if (capu_context_create(&config, &context) != CAPU_OK) {
        fprintf(stderr, "drop_in: %s\n", error);
        exit(1);
    }
    capu_context_make_current(context);
    CHECK(cublasCreate(&blas));
    CHECK(cublasSetStream(blas, (cudaStream_t)capu_context_stream(context)));
}

int main(void)
{
    static float values[BATCH_ITEMS];
    float *activation[LAYERS + 1];
    float *weight[LAYERS];
    float *gradient[2];
    float *weight_gradient;
    float *target;
    float *loss;

    open_context();
    weight_gradient = make(WEIGHT_BYTES, CAPU_GRADIENT, "weight_gradient");
    target = make(BATCH_BYTES, CAPU_INPUT, "target");
    loss = make(sizeof(float), CAPU_ACTIVATION, "loss");
    gradient[0] = make(BATCH_BYTES, CAPU_GRADIENT, "gradient.0");
    gradient[1] = make(BATCH_BYTES, CAPU_GRADIENT, "gradient.1");
    for (int i = 0; i <= LAYERS; i++) {
        activation[i] = make(BATCH_BYTES, CAPU_ACTIVATION, "activation");
    }
    for (int i = 0; i < LAYERS; i++) {
        weight[i] = make(WEIGHT_BYTES, CAPU_PARAMETER, "weight");
        fill(values, WEIGHT_ITEMS, 0.05f, (unsigned)i);
        CHECK(capu_drop_in_memcpy(weight[i], values, WEIGHT_BYTES, CAPU_HOST_TO_DEVICE));
    }
    for (int step = 1; step <= STEPS; step++) {
        float result;

        CHECK(capu_iteration_begin(context, NULL));
        fill(values, BATCH_ITEMS, 1.0f, 100);
        CHECK(capu_drop_in_memcpy(activation[0], values, BATCH_BYTES, CAPU_HOST_TO_DEVICE));
        fill(values, BATCH_ITEMS, 0.5f, 200);
        CHECK(capu_drop_in_memcpy(target, values, BATCH_BYTES, CAPU_HOST_TO_DEVICE));
        for (int i = 0; i < LAYERS; i++) {
            struct layer layer = {activation[i], weight[i], activation[i + 1], NULL, NULL, NULL};

            run("forward", forward, layer,
                {capu_reads(layer.input), capu_reads(layer.weight), capu_writes(layer.output)});
        }
        struct end end = {activation[LAYERS], target, gradient[0], loss};
        run("compare", compare, end,
            {capu_reads(end.output), capu_reads(end.target), capu_writes(end.gradient),
             capu_writes(end.loss)});
        for (int i = LAYERS; i-- > 0;) {
            struct layer layer = {activation[i],     weight[i],
                                  activation[i + 1], gradient[(LAYERS - 1 - i) % 2],
                                  weight_gradient,   gradient[(LAYERS - i) % 2]};

            run("backward", backward, layer,
                {capu_reads(layer.input), capu_reads(layer.weight), capu_reads(layer.output),
                 capu_updates(layer.gradient), capu_writes(layer.weight_gradient),
                 capu_writes(layer.input_gradient)});
            run("update", update, layer,
                {capu_updates(layer.weight), capu_reads(layer.weight_gradient)});
        }
        CHECK(capu_drop_in_memcpy(&result, loss, sizeof(result), CAPU_DEVICE_TO_HOST));
        CHECK(capu_iteration_end(context));
        printf("step %d  loss %a\n", step, (double)result);
    }
    capu_context_destroy(context);
    return 0;
}
