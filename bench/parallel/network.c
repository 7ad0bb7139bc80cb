/*
 * The network on the host device. Ops compute on real data and then sleep until their time is over,
 * as the host does while an accelerator works, so that copies and exchanges have the cores to
 * themselves and a busy machine changes little.
 */
#include "bench/parallel/network.h"

#include "bench/runtime/bench.h"
#include "capuchin/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The times of ops. The backward pass of a layer has two products. */
enum { FORWARD_US = 4000, BACKWARD_US = 8000, UPDATE_US = 300 };

static const size_t tensor_bytes = NETWORK_FLOATS * sizeof(float);
static const size_t weight_bytes = NETWORK_WEIGHT_FLOATS * sizeof(float);

uint64_t network_link_bytes_per_s(void)
{
    return tensor_bytes * 1000000 / (2 * FORWARD_US);
}

struct layer {
    const float *input;
    float *output;   /* backward: the gradient, from that of the output to that of the input */
    float *weight;   /* backward: its gradient */
    const float *to; /* backward: the gradient of the output */
    uint32_t duration_us;
    uint64_t seed;
};

static void sleep_until(double end)
{
    struct timespec at = {.tv_sec = (time_t)end,
                          .tv_nsec = (long)((end - (double)(time_t)end) * 1e9)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {
    }
}

/* Numbers of both signs, not zeros. */
static void draw(float *to, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        to[i] = (float)(uint32_t)(seed >> 40) * 0x1p-23f - 1.0f;
    }
}

static capu_status draw_input(capu_stream stream, const void *arguments)
{
    const struct layer *layer = arguments;

    (void)stream;
    draw(layer->output, NETWORK_FLOATS, layer->seed);
    return CAPU_OK;
}

static capu_status forward(capu_stream stream, const void *arguments)
{
    const struct layer *layer = arguments;
    double end = bench_now() + layer->duration_us * 1e-6;

    (void)stream;
    for (size_t i = 0; i < NETWORK_FLOATS; i++) {
        layer->output[i] = 0.5f * layer->input[i] + layer->weight[i % NETWORK_WEIGHT_FLOATS];
    }
    sleep_until(end);
    return CAPU_OK;
}

static capu_status backward(capu_stream stream, const void *arguments)
{
    const struct layer *layer = arguments;
    double end = bench_now() + layer->duration_us * 1e-6;

    (void)stream;
    memset(layer->weight, 0, weight_bytes);
    for (size_t i = 0; i < NETWORK_FLOATS; i++) {
        layer->weight[i % NETWORK_WEIGHT_FLOATS] += layer->input[i] * layer->to[i];
        layer->output[i] = 0.5f * layer->to[i];
    }
    sleep_until(end);
    return CAPU_OK;
}

static capu_status update(capu_stream stream, const void *arguments)
{
    const struct layer *layer = arguments;
    double end = bench_now() + layer->duration_us * 1e-6;

    (void)stream;
    for (size_t i = 0; i < NETWORK_WEIGHT_FLOATS; i++) {
        layer->weight[i] -= 1e-3f * layer->input[i];
    }
    sleep_until(end);
    return CAPU_OK;
}

static float *make(struct network *network, size_t bytes, capu_kind kind, const char *what,
                   size_t index)
{
    void *address = NULL;
    char name[32];

    snprintf(name, sizeof(name), "%s.%zu", what, index);
    BENCH_OK(network->context, capu_malloc(network->context, bytes, &address));
    BENCH_OK(network->context,
             CAPU_DESCRIBE(network->context, address, .name = name, .kind = kind));
    return address;
}

static void open_context(struct network *network, capu_mode mode, uint64_t budget_bytes)
{
    capu_parallel_options options = CAPU_PARALLEL_OPTIONS_INIT;
    capu_config config = CAPU_CONFIG_INIT;
    char text[512] = "";

    config.device = "host";
    config.mode = (uint32_t)mode;
    config.budget_bytes = budget_bytes;
    config.page_bytes = 1 << 16;
    config_set_number(&config, "d2h", network_link_bytes_per_s());
    config_set_number(&config, "h2d", network_link_bytes_per_s());
    config.wait_for_plan = 1;
    (void)capu_config_set(&config, "sample_every", "1");
    config.error = text;
    config.error_bytes = sizeof(text);
    options.error = text;
    options.error_bytes = sizeof(text);
    if (capu_parallel_config(MPI_COMM_WORLD, &config) != CAPU_OK ||
        capu_context_create(&config, &network->context) != CAPU_OK ||
        capu_parallel_create(network->context, MPI_COMM_WORLD, &options, &network->group) !=
            CAPU_OK) {
        fprintf(stderr, "bench_parallel: %s\n", text);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
}

void network_start(struct network *network, capu_mode mode, uint64_t budget_bytes)
{
    float *values = malloc(weight_bytes);

    bench_expect(values != NULL, "no memory");
    *network = (struct network){0};
    open_context(network, mode, budget_bytes);
    network->seed = (uint64_t)capu_parallel_rank(network->group) << 32;
    for (size_t i = 0; i < 2; i++) {
        network->gradients[i] = make(network, tensor_bytes, CAPU_GRADIENT, "gradient", i);
    }
    for (size_t i = 0; i <= NETWORK_LAYERS; i++) {
        network->outputs[i] = make(network, tensor_bytes, CAPU_ACTIVATION, "output", i);
    }
    for (size_t i = 0; i < NETWORK_LAYERS; i++) {
        network->weights[i] = make(network, weight_bytes, CAPU_PARAMETER, "weight", i);
        network->weight_gradients[i] =
            make(network, weight_bytes, CAPU_GRADIENT, "weight.gradient", i);
        draw(values, NETWORK_WEIGHT_FLOATS, i);
        BENCH_OK(network->context,
                 capu_upload(network->context, network->weights[i], values, weight_bytes, 0));
    }
    free(values);
}

void network_finish(struct network *network)
{
    capu_parallel_destroy(network->group);
    capu_context_destroy(network->context);
}

static void run_forward(struct network *network)
{
    capu_context *context = network->context;

    for (size_t i = 0; i < NETWORK_LAYERS; i++) {
        struct layer layer = {.input = network->outputs[i],
                              .output = network->outputs[i + 1],
                              .weight = network->weights[i],
                              .duration_us = FORWARD_US};

        BENCH_OK(context, CAPU_RUN(context, forward, &layer, capu_reads(layer.input),
                                   capu_reads(layer.weight), capu_writes(layer.output)));
    }
    BENCH_OK(context, capu_copy(context, network->gradients[0], network->outputs[NETWORK_LAYERS],
                                tensor_bytes));
}

/* Each weight is updated as soon as its gradient has been added up. */
static void run_backward(struct network *network)
{
    capu_context *context = network->context;

    for (size_t i = NETWORK_LAYERS, turn = 0; i-- > 0; turn = 1 - turn) {
        float *gradient = network->weight_gradients[i];
        struct layer layer = {.input = network->outputs[i],
                              .to = network->gradients[turn],
                              .output = network->gradients[1 - turn],
                              .weight = gradient,
                              .duration_us = BACKWARD_US};
        struct layer change = {
            .input = gradient, .weight = network->weights[i], .duration_us = UPDATE_US};

        BENCH_OK(context,
                 CAPU_RUN(context, backward, &layer, capu_reads(layer.input), capu_reads(layer.to),
                          capu_writes(layer.output), capu_writes(layer.weight)));
        BENCH_OK(context, capu_parallel_allreduce(network->group, "gradient", gradient,
                                                  NETWORK_WEIGHT_FLOATS, CAPU_PARALLEL_F32));
        BENCH_OK(context, CAPU_RUN(context, update, &change, capu_reads(change.input),
                                   capu_updates(change.weight)));
    }
}

struct report network_iterate(struct network *network, uint64_t number)
{
    capu_context *context = network->context;
    struct layer input = {.output = network->outputs[0], .seed = network->seed + number};

    BENCH_OK(context, capu_iteration_begin(context, "train"));
    BENCH_OK(context, CAPU_RUN(context, draw_input, &input, capu_writes(input.output)));
    run_forward(network);
    run_backward(network);
    BENCH_OK(context, capu_iteration_end(context));
    BENCH_OK(context, capu_synchronize(context));
    return bench_report(context);
}

void network_weights(struct network *network, float *weights)
{
    for (size_t i = 0; i < NETWORK_LAYERS; i++) {
        BENCH_OK(network->context,
                 capu_download(network->context, weights + i * NETWORK_WEIGHT_FLOATS,
                               network->weights[i], weight_bytes, 0));
    }
}
