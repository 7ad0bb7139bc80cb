/*
 * The cost of a budget in passive and in guided mode: the same training-like iterations without a
 * limit, paged on demand, and with a plan, in turns in one process. Next to the measured times:
 * what the plan predicted.
 *
 * The network has equal layers, each with an expensive product and a cheap function whose outputs
 * are kept for the backward pass, on the host device. Ops compute on real data and then sleep until
 * their time is over, as the host does while an accelerator works; so copies have the cores to
 * themselves. The links are so slow that only half of the activations can leave during the forward
 * pass. All weights are compared at the end.
 */
#include "bench/runtime/bench.h"
#include "capuchin/private.h"
#include "tools/output/progress.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LAYERS = 12, FLOATS = 1 << 18, WEIGHT_FLOATS = 1 << 16, WARM_UP = 3, MODES = 3, RUNS = 15 };

/* The times of ops. The backward pass of a product has two products. */
enum { PRODUCT_US = 4000, CHEAP_US = 400, UPDATE_US = 300 };

static const size_t tensor_bytes = FLOATS * sizeof(float);
static const size_t weight_bytes = WEIGHT_FLOATS * sizeof(float);

/* Rate of both links: all activations take twice the time of the forward pass. */
static uint64_t link_bytes_per_s(void)
{
    return (uint64_t)2 * LAYERS * FLOATS * sizeof(float) * 1000000 /
           (2 * LAYERS * (PRODUCT_US + CHEAP_US));
}

struct block {
    const float *input;
    const float *other;
    float *output;
    float *weight;
    uint32_t duration_us;
    uint64_t seed;
};

/* Numbers of both signs, not zeros. */
static void draw(float *to, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        to[i] = (float)(uint32_t)(seed >> 40) * 0x1p-23f - 1.0f;
    }
}

static double until(const struct block *block)
{
    return bench_now() + block->duration_us * 1e-6;
}

static void sleep_until(double end)
{
    struct timespec at = {.tv_sec = (time_t)end,
                          .tv_nsec = (long)((end - (double)(time_t)end) * 1e9)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {
    }
}

static capu_status draw_input(capu_stream stream, const void *arguments)
{
    const struct block *block = arguments;
    double end = until(block);

    (void)stream;
    draw(block->output, FLOATS, block->seed);
    sleep_until(end);
    return CAPU_OK;
}

static capu_status product_forward(capu_stream stream, const void *arguments)
{
    const struct block *block = arguments;
    double end = until(block);

    (void)stream;
    for (size_t i = 0; i < FLOATS; i++) {
        block->output[i] = 0.5f * block->input[i] + block->weight[i % WEIGHT_FLOATS];
    }
    sleep_until(end);
    return CAPU_OK;
}

static capu_status cheap_forward(capu_stream stream, const void *arguments)
{
    const struct block *block = arguments;
    double end = until(block);

    (void)stream;
    for (size_t i = 0; i < FLOATS; i++) {
        block->output[i] = block->input[i] > 0.0f ? block->input[i] : 0.125f * block->input[i];
    }
    sleep_until(end);
    return CAPU_OK;
}

/* In place: `output` is the gradient, `input` the input of the forward op. */
static capu_status cheap_backward(capu_stream stream, const void *arguments)
{
    const struct block *block = arguments;
    double end = until(block);

    (void)stream;
    for (size_t i = 0; i < FLOATS; i++) {
        block->output[i] = block->input[i] > 0.0f ? block->output[i] : 0.125f * block->output[i];
    }
    sleep_until(end);
    return CAPU_OK;
}

/* `other`: the gradient of the product; `weight`: the weight's gradient, written. */
static capu_status product_backward(capu_stream stream, const void *arguments)
{
    const struct block *block = arguments;
    double end = until(block);

    (void)stream;
    memset(block->weight, 0, WEIGHT_FLOATS * sizeof(*block->weight));
    for (size_t i = 0; i < FLOATS; i++) {
        block->weight[i % WEIGHT_FLOATS] += block->input[i] * block->other[i];
        block->output[i] = 0.5f * block->other[i];
    }
    sleep_until(end);
    return CAPU_OK;
}

static capu_status weight_update(capu_stream stream, const void *arguments)
{
    const struct block *block = arguments;
    double end = until(block);

    (void)stream;
    for (size_t i = 0; i < WEIGHT_FLOATS; i++) {
        block->weight[i] -= 1e-3f * block->input[i];
    }
    sleep_until(end);
    return CAPU_OK;
}

struct loop {
    capu_context *context;
    uint64_t budget_bytes;
    float *weights[LAYERS];
    float *weight_gradient;
    float *products[LAYERS];    /* results of the products */
    float *outputs[LAYERS + 1]; /* inputs of the layers, and the output of the last one */
    float *gradients[2];
};

static float *make(struct loop *loop, size_t bytes, capu_kind kind, const char *what, size_t index)
{
    void *address = NULL;
    char name[32];

    snprintf(name, sizeof(name), "%s.%zu", what, index);
    BENCH_OK(loop->context, capu_malloc(loop->context, bytes, &address));
    BENCH_OK(loop->context, CAPU_DESCRIBE(loop->context, address, .name = name, .kind = kind));
    return address;
}

static void fill(struct loop *loop, float *to, size_t count, uint64_t seed)
{
    float *values = malloc(count * sizeof(*values));

    bench_expect(values != NULL, "no memory");
    draw(values, count, seed);
    BENCH_OK(loop->context, capu_upload(loop->context, to, values, count * sizeof(*values), 0));
    free(values);
}

static void start(struct loop *loop, capu_mode mode, uint64_t budget_bytes)
{
    capu_config config = CAPU_CONFIG_INIT;
    char text[256] = "";

    config.device = "host";
    config.mode = (uint32_t)mode;
    config.budget_bytes = budget_bytes;
    config.page_bytes = 1 << 16;
    config_set_number(&config, "d2h", link_bytes_per_s());
    config_set_number(&config, "h2d", link_bytes_per_s());
    config.wait_for_plan = 1;
    config.error = text;
    config.error_bytes = sizeof(text);
    if (capu_context_create(&config, &loop->context) != CAPU_OK) {
        fprintf(stderr, "context: %s\n", text);
        exit(EXIT_FAILURE);
    }
    loop->weight_gradient = make(loop, weight_bytes, CAPU_GRADIENT, "weight.gradient", 0);
    for (size_t i = 0; i < 2; i++) {
        loop->gradients[i] = make(loop, tensor_bytes, CAPU_GRADIENT, "gradient", i);
    }
    for (size_t i = 0; i <= LAYERS; i++) {
        loop->outputs[i] = make(loop, tensor_bytes, CAPU_ACTIVATION, "output", i);
    }
    for (size_t i = 0; i < LAYERS; i++) {
        loop->products[i] = make(loop, tensor_bytes, CAPU_ACTIVATION, "product", i);
        loop->weights[i] = make(loop, weight_bytes, CAPU_PARAMETER, "weight", i);
        fill(loop, loop->weights[i], WEIGHT_FLOATS, i);
    }
}

static void forward_backward(struct loop *loop)
{
    capu_context *context = loop->context;
    float *gradient = loop->gradients[0];
    float *next = loop->gradients[1];

    for (size_t i = 0; i < LAYERS; i++) {
        struct block product = {.input = loop->outputs[i],
                                .output = loop->products[i],
                                .weight = loop->weights[i],
                                .duration_us = PRODUCT_US};
        struct block cheap = {
            .input = loop->products[i], .output = loop->outputs[i + 1], .duration_us = CHEAP_US};

        BENCH_OK(context, CAPU_RUN(context, product_forward, &product, capu_reads(product.input),
                                   capu_reads(product.weight), capu_writes(product.output)));
        BENCH_OK(context, CAPU_RUN(context, cheap_forward, &cheap, capu_reads(cheap.input),
                                   capu_writes(cheap.output)));
    }
    BENCH_OK(context, capu_copy(context, gradient, loop->outputs[LAYERS], tensor_bytes));
    for (size_t i = LAYERS; i-- > 0;) {
        struct block cheap = {
            .input = loop->products[i], .output = gradient, .duration_us = CHEAP_US};
        struct block product = {.input = loop->outputs[i],
                                .other = gradient,
                                .output = next,
                                .weight = loop->weight_gradient,
                                .duration_us = 2 * PRODUCT_US};
        struct block update = {
            .input = loop->weight_gradient, .weight = loop->weights[i], .duration_us = UPDATE_US};

        BENCH_OK(context, CAPU_RUN(context, cheap_backward, &cheap, capu_reads(cheap.input),
                                   capu_updates(cheap.output)));
        BENCH_OK(context, CAPU_RUN(context, product_backward, &product, capu_reads(product.input),
                                   capu_reads(product.other), capu_writes(product.output),
                                   capu_writes(product.weight)));
        BENCH_OK(context, CAPU_RUN(context, weight_update, &update, capu_reads(update.input),
                                   capu_updates(update.weight)));
        next = gradient;
        gradient = product.output;
    }
}

/* Runs one iteration and waits for it; returns seconds. The input differs each time. */
static double iterate(struct loop *loop, uint64_t number)
{
    struct block input = {.output = loop->outputs[0], .duration_us = CHEAP_US, .seed = number};
    double begin = bench_now();

    BENCH_OK(loop->context, capu_iteration_begin(loop->context, "train"));
    BENCH_OK(loop->context, CAPU_RUN(loop->context, draw_input, &input, capu_writes(input.output)));
    forward_backward(loop);
    BENCH_OK(loop->context, capu_iteration_end(loop->context));
    BENCH_OK(loop->context, capu_synchronize(loop->context));
    return bench_now() - begin;
}

/* What an iteration needs without a limit, and the smallest possible budget. */
static void measure_needs(uint64_t *peak, uint64_t *floor)
{
    struct loop loop = {0};
    struct report report;

    start(&loop, CAPU_MODE_PASSIVE, (uint64_t)1 << 30);
    iterate(&loop, 0);
    report = bench_report(loop.context);
    *peak = report.live_peak_bytes;
    *floor = report.floor_bytes;
    capu_context_destroy(loop.context);
}

static void expect_equal_weights(struct loop *loops)
{
    static float wanted[WEIGHT_FLOATS];
    static float got[WEIGHT_FLOATS];

    for (size_t i = 0; i < LAYERS; i++) {
        BENCH_OK(loops[0].context,
                 capu_download(loops[0].context, wanted, loops[0].weights[i], weight_bytes, 0));
        for (size_t mode = 1; mode < MODES; mode++) {
            BENCH_OK(loops[mode].context, capu_download(loops[mode].context, got,
                                                        loops[mode].weights[i], weight_bytes, 0));
            bench_expect(memcmp(wanted, got, weight_bytes) == 0,
                         "weights differ from those of the mode off");
        }
    }
}

struct result {
    uint64_t budget_bytes;
    double percent;                      /* that is of the peak */
    struct bench_numbers seconds[MODES]; /* off, passive, guided */
    struct report passive;
    struct report guided;
};

static struct result measure(uint64_t budget_bytes, uint64_t peak, size_t runs)
{
    static const capu_mode modes[MODES] = {CAPU_MODE_OFF, CAPU_MODE_PASSIVE, CAPU_MODE_GUIDED};
    struct result result = {.budget_bytes = budget_bytes,
                            .percent = 100.0 * (double)budget_bytes / (double)peak};
    struct loop loops[MODES] = {0};
    struct report report;
    double *seconds = calloc(MODES * runs, sizeof(*seconds));

    bench_expect(seconds != NULL, "no memory");
    for (size_t mode = 0; mode < MODES; mode++) {
        start(&loops[mode], modes[mode], mode == 0 ? 2 * peak : result.budget_bytes);
    }
    for (size_t i = 0; i < runs + WARM_UP; i++) {
        for (size_t mode = 0; mode < MODES; mode++) {
            double taken = iterate(&loops[mode], i);

            if (i >= WARM_UP) {
                seconds[mode * runs + i - WARM_UP] = taken;
            }
        }
        report = bench_report(loops[2].context);
        bench_expect(i == 0 || (report.mode == CAPU_MODE_GUIDED && !report.diverged),
                     "an iteration was not guided");
        if (report.timed == 1) { /* as the first of each plan are, so this is the newest plan's */
            result.guided = report;
        }
    }
    result.passive = bench_report(loops[1].context);
    expect_equal_weights(loops);
    for (size_t mode = 0; mode < MODES; mode++) {
        result.seconds[mode] = bench_summary(seconds + mode * runs, runs);
        capu_context_destroy(loops[mode].context);
    }
    free(seconds);
    return result;
}

static double over(const struct result *result, double seconds)
{
    return (seconds / result->seconds[0].median - 1) * 100;
}

static void print_table_head(uint64_t peak, uint64_t floor, size_t runs)
{
    printf(
        "%d layers, %.1f MiB without a limit, floor %.1f MiB; links of %.2f GB/s; medians of %zu "
        "iterations, all weights equal\n"
        "%6s %8s | %8s %8s | %8s %8s | %9s %8s | %8s %8s %8s %8s %8s %8s\n",
        LAYERS, (double)peak / 1048576, (double)floor / 1048576, (double)link_bytes_per_s() / 1e9,
        runs, "budget", "off ms", "passive", "over", "guided", "over", "predicted", "over",
        "out MiB", "in MiB", "replays", "of ms", "stall ms", "maps");
}

static void print_table(const struct result *result)
{
    const struct report *guided = &result->guided;
    double predicted = (double)guided->predicted_ns * 1e-9;

    printf("%5.1f%% %8.1f | %8.1f %+7.1f%% | %8.1f %+7.1f%% | %9.1f %+7.1f%% | %8.1f %8.1f %8llu "
           "%8.1f "
           "%8.1f %8llu\n",
           result->percent, result->seconds[0].median * 1e3, result->seconds[1].median * 1e3,
           over(result, result->seconds[1].median), result->seconds[2].median * 1e3,
           over(result, result->seconds[2].median), predicted * 1e3, over(result, predicted),
           (double)guided->evicted_bytes / 1048576, (double)guided->prefetched_bytes / 1048576,
           (unsigned long long)guided->replay_count, (double)guided->recompute_ns * 1e-6,
           (double)guided->stall_ns * 1e-6,
           (unsigned long long)(guided->map_count + guided->unmap_count));
}

static void print_json(const struct result *result, size_t runs)
{
    printf(
        "{\"bench\":\"guided\",\"budget_percent\":%.1f,\"budget_bytes\":%llu,\"link_bytes_per_s\":"
        "%llu,"
        "\"runs\":%zu,\"off_median_s\":%.6f,\"off_minimum_s\":%.6f,\"passive_median_s\":%.6f,"
        "\"passive_minimum_s\":%.6f,\"guided_median_s\":%.6f,\"guided_minimum_s\":%.6f,"
        "\"predicted_s\":%.6f,\"evicted_bytes\":%llu,\"prefetched_bytes\":%llu,"
        "\"replay_count\":%llu,\"recompute_s\":%.6f,\"stall_s\":%.6f,\"unplaced\":%llu,"
        "\"map_count\":%llu,\"unmap_count\":%llu}\n",
        result->percent, (unsigned long long)result->budget_bytes,
        (unsigned long long)link_bytes_per_s(), runs, result->seconds[0].median,
        result->seconds[0].minimum, result->seconds[1].median, result->seconds[1].minimum,
        result->seconds[2].median, result->seconds[2].minimum,
        (double)result->guided.predicted_ns * 1e-9,
        (unsigned long long)result->guided.evicted_bytes,
        (unsigned long long)result->guided.prefetched_bytes,
        (unsigned long long)result->guided.replay_count, (double)result->guided.recompute_ns * 1e-9,
        (double)result->guided.stall_ns * 1e-9, (unsigned long long)result->guided.unplaced,
        (unsigned long long)result->guided.map_count,
        (unsigned long long)result->guided.unmap_count);
}

int main(int count, char **arguments)
{
    uint64_t budgets[4];
    bool wants_json =
        bench_wants_json(count, arguments,
                         "bench_guided [--json]: iterations without a limit, paged on demand and "
                         "guided by a plan, under budgets, the last of them 2 % above the "
                         "smallest\n");
    uint64_t peak;
    uint64_t floor;

    measure_needs(&peak, &floor);
    budgets[0] = peak / 100 * 70;
    budgets[1] = peak / 100 * 50;
    budgets[2] = peak / 100 * 40;
    budgets[3] = floor / 100 * 102;
    if (!wants_json) {
        print_table_head(peak, floor, RUNS);
    }
    progress_begin("measuring", sizeof(budgets) / sizeof(budgets[0]), 0.0);
    for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]) && !progress_should_stop(NULL);
         i++) {
        struct result result = measure(budgets[i], peak, RUNS);

        progress_step();
        progress_clear();
        if (wants_json) {
            print_json(&result, RUNS);
        } else {
            print_table(&result);
        }
        fflush(stdout);
    }
    return progress_end() ? EXIT_STOPPED : EXIT_SUCCESS;
}
