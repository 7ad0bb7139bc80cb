/*
 * How long planning blocks the training thread: the longest single call into the library while
 * another thread makes plans, and the longest one while none is made. Iterations of a network of
 * equal layers in half of the memory it needs, on sim, where no call waits for work. It is measured
 * by the clock and as CPU time of the thread: if planner and training share a core, they differ by
 * the time slices of the kernel.
 */
#include "bench/runtime/bench.h"
#include "tools/output/progress.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TENSOR_BYTES = 16 << 20, ITERATIONS = 20, ROUNDS = 5 };

/* How long training may continue without a plan: far longer than making one takes. */
#define PATIENCE 100000

static capu_status nothing(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}

/* Seconds by the clock and of CPU time of the thread; each is of the call that was longest by it.
 */
struct pause {
    double wall;
    double cpu;
};

static struct pause now(void)
{
    struct timespec cpu;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return (struct pause){bench_now(), (double)cpu.tv_sec + (double)cpu.tv_nsec * 1e-9};
}

static void extend(struct pause *longest, struct pause taken)
{
    longest->wall = taken.wall > longest->wall ? taken.wall : longest->wall;
    longest->cpu = taken.cpu > longest->cpu ? taken.cpu : longest->cpu;
}

static void note(struct pause *longest, struct pause begin)
{
    struct pause end = now();

    extend(longest, (struct pause){end.wall - begin.wall, end.cpu - begin.cpu});
}

struct loop {
    capu_context *context;
    size_t layers;
    void **outputs;
    void *gradients[2];
    struct pause begin; /* the longest capu_iteration_begin, and the longest other call */
    struct pause call;
};

static void start(struct loop *loop, capu_mode mode, uint64_t budget_bytes)
{
    capu_config config = CAPU_CONFIG_INIT;
    char text[256] = "";

    config.device = "sim";
    config.mode = (uint32_t)mode;
    config.budget_bytes = budget_bytes;
    config.error = text;
    config.error_bytes = sizeof(text);
    if (capu_context_create(&config, &loop->context) != CAPU_OK) {
        fprintf(stderr, "context: %s\n", text);
        exit(EXIT_FAILURE);
    }
    loop->outputs = calloc(loop->layers + 1, sizeof(*loop->outputs));
    bench_expect(loop->outputs != NULL, "no memory");
    for (size_t i = 0; i <= loop->layers; i++) {
        BENCH_OK(loop->context, capu_malloc(loop->context, TENSOR_BYTES, &loop->outputs[i]));
        BENCH_OK(loop->context,
                 CAPU_DESCRIBE(loop->context, loop->outputs[i], .kind = CAPU_ACTIVATION));
    }
    for (size_t i = 0; i < 2; i++) {
        BENCH_OK(loop->context, capu_malloc(loop->context, TENSOR_BYTES, &loop->gradients[i]));
        BENCH_OK(loop->context,
                 CAPU_DESCRIBE(loop->context, loop->gradients[i], .kind = CAPU_GRADIENT));
    }
}

static void finish(struct loop *loop)
{
    capu_context_destroy(loop->context);
    free(loop->outputs);
}

static void run(struct loop *loop, const char *name, const capu_operand *operands, size_t count)
{
    struct pause begin = now();

    BENCH_OK(loop->context, capu_run(loop->context, &(capu_op){.size = sizeof(capu_op),
                                                               .name = name,
                                                               .run = nothing,
                                                               .operands = operands,
                                                               .operand_count = count,
                                                               .duration_ns = 2000000}));
    note(&loop->call, begin);
}

static void iterate(struct loop *loop)
{
    struct pause begin = now();
    void *gradient = loop->gradients[0];
    void *next = loop->gradients[1];

    BENCH_OK(loop->context, capu_iteration_begin(loop->context, "train"));
    note(&loop->begin, begin);
    run(loop, "input", (capu_operand[]){capu_writes(loop->outputs[0])}, 1);
    for (size_t i = 0; i < loop->layers; i++) {
        run(loop, "forward",
            (capu_operand[]){capu_reads(loop->outputs[i]), capu_writes(loop->outputs[i + 1])}, 2);
    }
    run(loop, "loss",
        (capu_operand[]){capu_reads(loop->outputs[loop->layers]), capu_writes(gradient)}, 2);
    for (size_t i = loop->layers; i-- > 0;) {
        void *made = next;

        run(loop, "backward",
            (capu_operand[]){capu_reads(loop->outputs[i]), capu_reads(gradient), capu_writes(made)},
            3);
        next = gradient;
        gradient = made;
    }
    begin = now();
    BENCH_OK(loop->context, capu_iteration_end(loop->context));
    BENCH_OK(loop->context, capu_synchronize(loop->context)); /* records are processed here */
    note(&loop->call, begin);
}

struct result {
    size_t op_count;
    struct pause passive_begin;
    struct pause passive_call;
    struct pause planning_begin;
    struct pause planning_call;
    struct pause install; /* the begin that installed the plan */
    double until_guided;  /* from the first iteration on */
};

/* Passive, including the first iteration. */
static void measure_passive(size_t layers, uint64_t budget_bytes, struct result *result)
{
    struct loop loop = {.layers = layers};

    start(&loop, CAPU_MODE_PASSIVE, budget_bytes);
    for (size_t i = 0; i < ITERATIONS; i++) {
        iterate(&loop);
    }
    result->passive_begin = loop.begin;
    result->passive_call = loop.call;
    finish(&loop);
}

/* From the first iteration, whose end starts the planning, until one is guided. */
static void measure_planning(size_t layers, uint64_t budget_bytes, struct result *result)
{
    struct loop loop = {.layers = layers};
    double begin = bench_now();
    struct report report = {0};

    start(&loop, CAPU_MODE_GUIDED, budget_bytes);
    for (size_t i = 0; i < PATIENCE && report.mode != CAPU_MODE_GUIDED; i++) {
        extend(&result->planning_begin, loop.begin);
        loop.begin = (struct pause){0};
        iterate(&loop);
        report = bench_report(loop.context);
    }
    bench_expect(report.mode == CAPU_MODE_GUIDED && report.evict_count > 0,
                 "there is no active plan");
    result->until_guided = bench_now() - begin;
    result->op_count = (size_t)report.op_count;
    result->planning_call = loop.call;
    result->install = loop.begin;
    finish(&loop);
}

/* The median of each number over some rounds. */
static struct pause middle(const struct result *rounds, size_t offset)
{
    double wall[ROUNDS];
    double cpu[ROUNDS];

    for (size_t i = 0; i < ROUNDS; i++) {
        const struct pause *pause = (const void *)((const char *)&rounds[i] + offset);

        wall[i] = pause->wall;
        cpu[i] = pause->cpu;
    }
    return (struct pause){bench_summary(wall, ROUNDS).median, bench_summary(cpu, ROUNDS).median};
}

static struct result measure(size_t layers)
{
    uint64_t budget_bytes = (uint64_t)(layers + 3) / 2 * TENSOR_BYTES;
    struct result rounds[ROUNDS] = {0};
    struct result result = {0};
    double until[ROUNDS];

    for (size_t i = 0; i < ROUNDS; i++) {
        measure_passive(layers, budget_bytes, &rounds[i]);
        measure_planning(layers, budget_bytes, &rounds[i]);
        until[i] = rounds[i].until_guided;
    }
    result.op_count = rounds[0].op_count;
    result.passive_begin = middle(rounds, offsetof(struct result, passive_begin));
    result.passive_call = middle(rounds, offsetof(struct result, passive_call));
    result.planning_begin = middle(rounds, offsetof(struct result, planning_begin));
    result.planning_call = middle(rounds, offsetof(struct result, planning_call));
    result.install = middle(rounds, offsetof(struct result, install));
    result.until_guided = bench_summary(until, ROUNDS).median;
    return result;
}

static void print_table(const struct result *result)
{
    const struct pause *pauses[] = {&result->passive_begin, &result->passive_call,
                                    &result->planning_begin, &result->planning_call,
                                    &result->install};

    printf("%6zu |", result->op_count);
    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        printf(" %8.0f %8.0f |", pauses[i]->wall * 1e6, pauses[i]->cpu * 1e6);
    }
    printf(" %12.1f\n", result->until_guided * 1e3);
}

static void print_json(const struct result *result)
{
    printf("{\"bench\":\"planning\",\"op_count\":%zu,\"rounds\":%d,"
           "\"passive_begin_s\":%.9f,\"passive_begin_cpu_s\":%.9f,"
           "\"passive_call_s\":%.9f,\"passive_call_cpu_s\":%.9f,"
           "\"planning_begin_s\":%.9f,\"planning_begin_cpu_s\":%.9f,"
           "\"planning_call_s\":%.9f,\"planning_call_cpu_s\":%.9f,"
           "\"install_s\":%.9f,\"install_cpu_s\":%.9f,\"until_guided_s\":%.9f}\n",
           result->op_count, ROUNDS, result->passive_begin.wall, result->passive_begin.cpu,
           result->passive_call.wall, result->passive_call.cpu, result->planning_begin.wall,
           result->planning_begin.cpu, result->planning_call.wall, result->planning_call.cpu,
           result->install.wall, result->install.cpu, result->until_guided);
}

int main(int count, char **arguments)
{
    static const size_t layers[] = {50, 200, 800};
    bool wants_json = bench_wants_json(
        count, arguments, "bench_planning [--json]: how long calls take while plans are made\n");

    if (!wants_json) {
        printf("microseconds of the longest single call of a round, by the clock and of CPU time; "
               "medians "
               "of %d rounds\n"
               "%6s | %17s | %17s | %17s | %17s | %17s | %12s\n"
               "%6s |%s%s%s%s%s %12s\n",
               ROUNDS, "", "begin, passive", "others, passive", "begin, planning",
               "others, planning", "begin, installing", "until guided", "ops",
               "    clock      cpu |", "    clock      cpu |", "    clock      cpu |",
               "    clock      cpu |", "    clock      cpu |", "ms");
    }
    progress_begin("measuring", sizeof(layers) / sizeof(layers[0]), 0.0);
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]) && !progress_should_stop(NULL); i++) {
        struct result result = measure(layers[i]);

        progress_step();
        progress_clear();
        (wants_json ? print_json : print_table)(&result);
        fflush(stdout);
    }
    return progress_end() ? EXIT_STOPPED : EXIT_SUCCESS;
}
