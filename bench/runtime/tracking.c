/*
 * The cost of the library if nothing is evicted: the same iterations in the mode off, in passive
 * mode, and with a plan that has nothing to do: normally, with the counters offered to `capuchin
 * top`, and with the ops of every iteration timed. They run in turns in one process, so that all
 * see the same machine. There are three kinds of op: ops of 50 us, a realistic iteration, where the
 * ratio counts; and empty ones on host and on sim, where the difference is the cost of an op and of
 * an access. After each run the bytes of the last tensor are compared.
 */
#include "bench/runtime/bench.h"
#include "capuchin/private.h"
#include "tools/output/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPS = 500, TENSORS = 64, OPERANDS = 4, RUNS = 15, BYTES = 1 << 17 };

/* By then the first review of the plan has passed. */
enum { WARM_UP = 12 };

struct arguments {
    double seconds;
    unsigned char *output;
    unsigned char value;
};

/* Computes for a given time, as an op that keeps its core busy. */
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
    double seconds; /* per op */
};

/* Modes in the order of the numbers in a result. */
static const struct mode {
    const char *name;
    capu_mode mode;
    uint64_t sample_every;
    uint32_t top;
} modes[] = {
    {"off", CAPU_MODE_OFF, 0, 0},       {"passive", CAPU_MODE_PASSIVE, 0, 0},
    {"guided", CAPU_MODE_GUIDED, 0, 0}, {"top", CAPU_MODE_GUIDED, 0, 1},
    {"timed", CAPU_MODE_GUIDED, 1, 0},
};

enum { MODES = sizeof(modes) / sizeof(modes[0]) };

static void start(struct loop *loop, const char *device, const struct mode *mode, double seconds)
{
    capu_config config = CAPU_CONFIG_INIT;
    char text[256] = "";

    config.device = device;
    config.mode = (uint32_t)mode->mode;
    config_set_number(&config, "sample_every", mode->sample_every);
    config_set_number(&config, "top", mode->top);
    config.budget_bytes = (uint64_t)64 << 20;
    config.page_bytes = 1 << 16;
    config.wait_for_plan = 1;
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

/* Runs one iteration and waits for it; returns seconds. */
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
             capu_download(loop->context, &byte, loop->tensors[(OPS - 1) % TENSORS], 1, 0));
    bench_expect(is_sim || byte == value, "the last op's output");
    return end - begin;
}

struct result {
    const char *name;
    struct bench_numbers seconds[MODES];
    struct bench_numbers ratio[MODES]; /* to the mode off, of consecutive runs */
};

static void expect_guided(const struct loop *loop)
{
    capu_report report = CAPU_REPORT_INIT;

    BENCH_OK(loop->context, capu_report_get(loop->context, &report));
    bench_expect(report.mode == CAPU_MODE_GUIDED && report.diverged == 0 &&
                     report.eviction_count == 0,
                 "an iteration was not under a plan with nothing to do");
}

static struct result measure(const char *name, const char *device, double seconds)
{
    struct result result = {.name = name};
    double taken[MODES][RUNS];
    double ratio[MODES][RUNS];
    struct loop loops[MODES];

    for (size_t mode = 0; mode < MODES; mode++) {
        start(&loops[mode], device, &modes[mode], seconds);
    }
    for (unsigned i = 0; i < RUNS + WARM_UP; i++) {
        size_t at = i < WARM_UP ? 0 : i - WARM_UP;

        for (size_t mode = 0; mode < MODES; mode++) {
            taken[mode][at] = iterate(&loops[mode], (unsigned char)i);
            ratio[mode][at] = taken[mode][at] / taken[0][at];
        }
        if (i >= WARM_UP) {
            for (size_t mode = 2; mode < MODES; mode++) {
                expect_guided(&loops[mode]);
            }
        }
    }
    for (size_t mode = 0; mode < MODES; mode++) {
        result.seconds[mode] = bench_summary(taken[mode], RUNS);
        result.ratio[mode] = bench_summary(ratio[mode], RUNS);
        capu_context_destroy(loops[mode].context);
    }
    return result;
}

/* The additional cost of an op compared with the mode off, by the fastest runs. */
static double more_ns(const struct result *result, size_t mode)
{
    return (result->seconds[mode].minimum - result->seconds[0].minimum) / OPS * 1e9;
}

static void print_table(const struct result *results, size_t count)
{
    printf("%d ops of %d operands per iteration, %d runs in turns; overhead over the mode off, and "
           "additional ns per op\n%-12s %9s",
           OPS, OPERANDS, RUNS, "ops", "off ms");
    for (size_t mode = 1; mode < MODES; mode++) {
        printf(" | %8s ms %9s %8s", modes[mode].name, "over", "ns more");
    }
    printf("\n");
    for (size_t i = 0; i < count; i++) {
        const struct result *result = &results[i];

        printf("%-12s %9.3f", result->name, result->seconds[0].median * 1e3);
        for (size_t mode = 1; mode < MODES; mode++) {
            printf(" | %11.3f %8.2f%% %8.0f", result->seconds[mode].median * 1e3,
                   (result->ratio[mode].median - 1) * 100, more_ns(result, mode));
        }
        printf("\n");
    }
}

static void print_json(const struct result *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf("{\"bench\":\"tracking\",\"ops\":\"%s\",\"runs\":%d,\"op_count\":%d,"
               "\"operands\":%d",
               results[i].name, RUNS, OPS, OPERANDS);
        for (size_t mode = 0; mode < MODES; mode++) {
            printf(",\"%s_median_s\":%.9f,\"%s_minimum_s\":%.9f,\"%s_ratio_median\":%.6f",
                   modes[mode].name, results[i].seconds[mode].median, modes[mode].name,
                   results[i].seconds[mode].minimum, modes[mode].name,
                   results[i].ratio[mode].median);
        }
        printf("}\n");
    }
}

int main(int count, char **arguments)
{
    bool wants_json =
        bench_wants_json(count, arguments,
                         "bench_tracking [--json]: passive and guided iterations compared with "
                         "the mode off, with nothing evicted\n");
    static const struct {
        const char *name;
        const char *device;
        double seconds;
    } subjects[] = {{"host, 50 us", "host", 50e-6}, {"host, empty", "host", 0}, {"sim", "sim", 0}};
    enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]) };
    struct result results[SUBJECTS];
    size_t done = 0;

    progress_begin("measuring", SUBJECTS, 0.0);
    while (done < SUBJECTS && !progress_should_stop(NULL)) {
        results[done] = measure(subjects[done].name, subjects[done].device, subjects[done].seconds);
        progress_step();
        done++;
    }
    progress_clear();
    (wants_json ? print_json : print_table)(results, done);
    return progress_end() ? EXIT_STOPPED : EXIT_SUCCESS;
}
