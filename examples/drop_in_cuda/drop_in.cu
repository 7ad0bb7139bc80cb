/*
 * The same loop, after: it now runs in less memory than it uses.
 *
 * What changed: memory comes from the library; kernels that are launched together became the lambda
 * of an op, which says what it reads and writes and launches on the stream that it is given; the
 * beginning and the end of a step are marked; tensors have kinds, which say which of them need not
 * outlive a step. Try CAPUCHIN_BUDGET=160MiB: the losses are those of plain.cu, bit for bit.
 */
#include "examples/drop_in_cuda/network.cuh"

#include "capuchin/capuchin.hpp"
#include "capuchin/drop_in.h"

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
    void *address = NULL;

    CHECK(capu_drop_in_malloc(&address, bytes));
    CHECK(capu::describe(context, address, name, kind));
    return (float *)address;
}

/* Whether all that an op enqueued was accepted. */
static capu_status status_of(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS && cudaGetLastError() == cudaSuccess
               ? CAPU_OK
               : CAPU_DEVICE_FAILED;
}

static void forward(const float *input, const float *weight, float *output)
{
    check(capu::run(context, "forward",
                    {capu::reads(input), capu::reads(weight), capu::writes(output)},
                    [=](capu_stream stream) {
                        cublasStatus_t status =
                            multiply_by_transposed(blas, input, weight, output, ROWS, WIDTH, WIDTH);

                        bend<<<BLOCKS(BATCH_ITEMS), THREADS, 0, (cudaStream_t)stream>>>(output);
                        return status_of(status);
                    }),
          "capu::run");
}

static void compare(const float *output, const float *target, float *gradient, float *loss)
{
    check(capu::run(context, "compare",
                    {capu::reads(output), capu::reads(target), capu::writes(gradient),
                     capu::writes(loss)},
                    [=](capu_stream stream) {
                        measure<<<1, THREADS, 0, (cudaStream_t)stream>>>(output, target, gradient,
                                                                         loss);
                        return status_of(CUBLAS_STATUS_SUCCESS);
                    }),
          "capu::run");
}

static void backward(const float *input, const float *weight, const float *output, float *gradient,
                     float *weight_gradient, float *input_gradient)
{
    check(
        capu::run(
            context, "backward",
            {capu::reads(input), capu::reads(weight), capu::reads(output), capu::updates(gradient),
             capu::writes(weight_gradient), capu::writes(input_gradient)},
            [=](capu_stream stream) {
                cublasStatus_t status;

                bend_back<<<BLOCKS(BATCH_ITEMS), THREADS, 0, (cudaStream_t)stream>>>(output,
                                                                                     gradient);
                status =
                    multiply_transposed(blas, gradient, input, weight_gradient, WIDTH, WIDTH, ROWS);
                if (status == CUBLAS_STATUS_SUCCESS) {
                    status = multiply(blas, gradient, weight, input_gradient, ROWS, WIDTH, WIDTH);
                }
                return status_of(status);
            }),
        "capu::run");
}

static void update(float *weight, const float *weight_gradient)
{
    check(capu::run(context, "update", {capu::updates(weight), capu::reads(weight_gradient)},
                    [=](capu_stream stream) {
                        step_weight<<<BLOCKS(WEIGHT_ITEMS), THREADS, 0, (cudaStream_t)stream>>>(
                            weight, weight_gradient);
                        return status_of(CUBLAS_STATUS_SUCCESS);
                    }),
          "capu::run");
}

int main(void)
{
    static float values[BATCH_ITEMS];
    float *activation[LAYERS + 1];
    float *weight[LAYERS];
    float *gradient[2];
    capu_config config = CAPU_CONFIG_INIT;

    config.device = "cuda";
    capu::context owner(config);
    if (owner.status() != CAPU_OK) {
        fprintf(stderr, "drop_in: %s\n", owner.error());
        return 1;
    }
    context = owner;
    capu_context_make_current(context);
    float *weight_gradient = make(WEIGHT_BYTES, CAPU_GRADIENT, "weight_gradient");
    float *target = make(BATCH_BYTES, CAPU_INPUT, "target");
    float *loss = make(sizeof(float), CAPU_ACTIVATION, "loss");

    /* Ops run on the library's stream; what cuBLAS needs there is allocated here. */
    CHECK(cublasCreate(&blas));
    CHECK(cublasSetStream(blas, (cudaStream_t)capu_context_stream(context)));
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
        capu::iteration iteration(context);
        float result;

        CHECK(iteration.status());
        fill(values, BATCH_ITEMS, 1.0f, 100);
        CHECK(capu_drop_in_memcpy(activation[0], values, BATCH_BYTES, CAPU_HOST_TO_DEVICE));
        fill(values, BATCH_ITEMS, 0.5f, 200);
        CHECK(capu_drop_in_memcpy(target, values, BATCH_BYTES, CAPU_HOST_TO_DEVICE));
        for (int i = 0; i < LAYERS; i++) {
            forward(activation[i], weight[i], activation[i + 1]);
        }
        compare(activation[LAYERS], target, gradient[0], loss);
        for (int i = LAYERS; i-- > 0;) {
            float *from = gradient[(LAYERS - 1 - i) % 2];
            float *to = gradient[(LAYERS - i) % 2];

            backward(activation[i], weight[i], activation[i + 1], from, weight_gradient, to);
            update(weight[i], weight_gradient);
        }
        CHECK(capu_drop_in_memcpy(&result, loss, sizeof(result), CAPU_DEVICE_TO_HOST));
        CHECK(iteration.end());
        printf("step %d  loss %a\n", step, (double)result);
    }
    return 0;
}
