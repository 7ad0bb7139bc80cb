/*
 * What tracking costs when nothing is evicted: the same iterations in mode off and in passive mode,
 * in turns in one process, so that both see the same machine. Three kinds of op: of 50 us, a
 * realistic iteration, where the ratio counts; and empty ones on host and on sim, where the
 * difference is the cost of an op and of an access. After each run the last tensor's bytes are
 * compared.
 */
#include "bench/runtime/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPS = 500, TENSORS = 64, OPERANDS = 4, RUNS = 15, BYTES = 1 << 17, WARM_UP = 2 };

struct arguments {
    double seconds;
    unsigned char *output;
    unsigned char value;
};

/* Computes for as long as it was told, as an op that keeps its core busy. */
static capu_status work(capu_stream stream, const void *block)
{
    const struct arguments *arguments = block;
    double end = arguments->seconds > 0 ? bench_now() + arguments->seconds : 0;

    (void)stream;
    arguments->output[0] = arguments->value;
    while (arguments->seconds > 0 && bench_now() < end) {
    }
    return CAPU_OK;
}

struct loop {
    capu_context *context;
    void *tensors[TENSORS];
    double seconds; /* an op takes */
};

static void start(struct loop *loop, const char *device, capu_mode mode, double seconds)
{
    capu_config config = CAPU_CONFIG_INIT;
    char text[256] = "";

    config.device = device;
    config.mode = (uint32_t)mode;
    config.budget_bytes = (uint64_t)64 << 20;
    config.page_bytes = 1 << 16;
    config.error = text;
    config.error_bytes = sizeof(text);
    loop->seconds = seconds;
    if (capu_context_create(&config, &loop->context) != CAPU_OK) {
        fprintf(stderr, "context: %s\n", text);
        exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < TENSORS; i++) {
        BENCH_OK(loop->context, capu_malloc(loop->context, BYTES, &loop->tensors[i]));
        BENCH_OK(loop->context, capu_zero(loop->context, loop->tensors[i], 0));
    }
}

/* One iteration, waited for; seconds. */
static double iterate(struct loop *loop, unsigned char value)
{
    double begin = bench_now();
    bool is_sim = strcmp(capu_context_device(loop->context), "sim") == 0;
    unsigned char byte = 0;
    double end;

    BENCH_OK(loop->context, capu_iteration_begin(loop->context, "train"));
    for (size_t i = 0; i < OPS; i++) {
        struct arguments arguments = {loop->seconds, loop->tensors[i % TENSORS], value};
        capu_operand operands[OPERANDS];
        capu_op op = {.size = sizeof(op),
                      .name = "layer_forward",
                      .run = work,
                      .arguments = &arguments,
                      .argument_bytes = sizeof(arguments),
                      .operands = operands,
                      .operand_count = OPERANDS,
                      .duration_ns = 1000};

        operands[0] = capu_updates(loop->tensors[i % TENSORS]);
        for (size_t k = 1; k < OPERANDS; k++) {
            operands[k] = capu_reads(loop->tensors[(i + 7 * k) % TENSORS]);
        }
        BENCH_OK(loop->context, capu_run(loop->context, &op));
    }
    BENCH_OK(loop->context, capu_iteration_end(loop->context));
    BENCH_OK(loop->context, capu_synchronize(loop->context));
    end = bench_now();
    BENCH_OK(loop->context,
             capu_download(loop->context, &byte, loop->tensors[(OPS - 1) % TENSORS], 1));
    bench_expect(is_sim || byte == value, "the last op's output");
    return end - begin;
}

struct result {
    const char *name;
    struct bench_numbers off;
    struct bench_numbers passive;
    struct bench_numbers ratio; /* of pairs */
};

static struct result measure(const char *name, const char *device, double seconds)
{
    struct result result = {.name = name};
    double off[RUNS];
    double passive[RUNS];
    double ratio[RUNS];
    struct loop loops[2];

    start(&loops[0], device, CAPU_MODE_OFF, seconds);
    start(&loops[1], device, CAPU_MODE_PASSIVE, seconds);
    for (unsigned i = 0; i < RUNS + WARM_UP; i++) {
        size_t at = i < WARM_UP ? 0 : i - WARM_UP;

        off[at] = iterate(&loops[0], (unsigned char)i);
        passive[at] = iterate(&loops[1], (unsigned char)i);
        ratio[at] = passive[at] / off[at];
    }
    result.off = bench_summary(off, RUNS);
    result.passive = bench_summary(passive, RUNS);
    result.ratio = bench_summary(ratio, RUNS);
    capu_context_destroy(loops[0].context);
    capu_context_destroy(loops[1].context);
    return result;
}

static void print_table(const struct result *results, size_t count)
{
    printf("%d ops of %d operands an iteration, %d pairs of runs\n", OPS, OPERANDS, RUNS);
    printf("%-18s %12s %12s %10s %14s %14s\n", "ops", "off ms", "passive ms", "overhead",
           "ns an op more", "ns an access");
    for (size_t i = 0; i < count; i++) {
        double more = (results[i].passive.minimum - results[i].off.minimum) / OPS * 1e9;

        printf("%-18s %12.3f %12.3f %9.2f%% %14.0f %14.0f\n", results[i].name,
               results[i].off.median * 1e3, results[i].passive.median * 1e3,
               (results[i].ratio.median - 1) * 100, more, more / OPERANDS);
    }
}

static void print_json(const struct result *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf("{\"bench\":\"tracking\",\"ops\":\"%s\",\"runs\":%d,\"op_count\":%d,"
               "\"operands\":%d,\"off_median_s\":%.9f,\"off_minimum_s\":%.9f,"
               "\"passive_median_s\":%.9f,\"passive_minimum_s\":%.9f,\"ratio_median\":%.6f,"
               "\"ratio_minimum\":%.6f}\n",
               results[i].name, RUNS, OPS, OPERANDS, results[i].off.median, results[i].off.minimum,
               results[i].passive.median, results[i].passive.minimum, results[i].ratio.median,
               results[i].ratio.minimum);
    }
}

int main(int count, char **arguments)
{
    bool wants_json = bench_wants_json(
        count, arguments,
        "bench_tracking [--json]: iterations in mode off against passive, nothing evicted\n");
    struct result results[] = {
        measure("host, 50 us", "host", 50e-6),
        measure("host, empty", "host", 0),
        measure("sim", "sim", 0),
    };

    (wants_json ? print_json : print_table)(results, sizeof(results) / sizeof(results[0]));
    return EXIT_SUCCESS;
}
