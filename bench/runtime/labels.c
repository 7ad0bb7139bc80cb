/*
 * The cost of changing between two labels: "train", the forward and backward pass of a network of
 * equal layers in half of the memory it needs, and "validate", the forward pass on the same
 * tensors, each with a plan of its own. All work has completed before each capu_iteration_begin, so
 * its time is that of removing one plan and installing the other, without waiting for the previous
 * iteration. It is measured by the clock and as CPU time of the thread; for comparison, the begin
 * of an iteration whose plan is already active.
 *
 * On sim the calls of the device take no time, so what remains is the library's own. On host,
 * mapping is the kernel's mmap, once per run of neighbouring pages.
 */
#include "bench/runtime/bench.h"
#include "capuchin/private.h"
#include "tools/output/progress.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAGES_EACH = 8, WARM_UP = 40, CHANGES = 60, OP_NS = 2000000 };

static capu_status nothing(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}

struct loop {
    capu_context *context;
    size_t layers;
    void **outputs;
    void *gradients[2];
};

struct spent {
    double wall;
    double cpu;
};

static struct spent now(void)
{
    struct timespec cpu;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return (struct spent){bench_now(), (double)cpu.tv_sec + (double)cpu.tv_nsec * 1e-9};
}

static void *make(struct loop *loop, uint64_t bytes, capu_kind kind)
{
    void *address = NULL;

    BENCH_OK(loop->context, capu_malloc(loop->context, bytes, &address));
    BENCH_OK(loop->context, CAPU_DESCRIBE(loop->context, address, .kind = (uint32_t)kind));
    return address;
}

static void start(struct loop *loop, const char *device, uint64_t page_bytes)
{
    capu_config config = CAPU_CONFIG_INIT;
    uint64_t bytes = PAGES_EACH * page_bytes;
    char text[256] = "";

    config.device = device;
    config.mode = CAPU_MODE_GUIDED;
    config.wait_for_plan = 1;
    config.page_bytes = page_bytes;
    config.budget_bytes = (loop->layers + 3) / 2 * bytes;
    config_set_number(&config, "d2h", UINT64_C(10000000000));
    config_set_number(&config, "h2d", UINT64_C(10000000000));
    config.error = text;
    config.error_bytes = sizeof(text);
    if (capu_context_create(&config, &loop->context) != CAPU_OK) {
        fprintf(stderr, "context: %s\n", text);
        exit(EXIT_FAILURE);
    }
    loop->outputs = calloc(loop->layers + 1, sizeof(*loop->outputs));
    bench_expect(loop->outputs != NULL, "no memory");
    for (size_t i = 0; i <= loop->layers; i++) {
        loop->outputs[i] = make(loop, bytes, CAPU_ACTIVATION);
    }
    for (size_t i = 0; i < 2; i++) {
        loop->gradients[i] = make(loop, bytes, CAPU_GRADIENT);
    }
}

static void finish(struct loop *loop)
{
    capu_context_destroy(loop->context);
    free(loop->outputs);
}

static void run(struct loop *loop, const char *name, const capu_operand *operands, size_t count)
{
    BENCH_OK(loop->context, capu_run(loop->context, &(capu_op){.size = sizeof(capu_op),
                                                               .name = name,
                                                               .run = nothing,
                                                               .operands = operands,
                                                               .operand_count = count,
                                                               .duration_ns = OP_NS}));
}

/* Runs one iteration after the previous one has completed; returns the time of its begin. */
static struct spent iterate(struct loop *loop, bool is_training, struct report *report)
{
    void *gradient = loop->gradients[0];
    void *next = loop->gradients[1];
    struct spent begin = now();
    struct spent end;

    BENCH_OK(loop->context,
             capu_iteration_begin(loop->context, is_training ? "train" : "validate"));
    end = now();
    run(loop, "input", (capu_operand[]){capu_writes(loop->outputs[0])}, 1);
    for (size_t i = 0; i < loop->layers; i++) {
        run(loop, "forward",
            (capu_operand[]){capu_reads(loop->outputs[i]), capu_writes(loop->outputs[i + 1])}, 2);
    }
    run(loop, "loss",
        (capu_operand[]){capu_reads(loop->outputs[loop->layers]), capu_writes(gradient)}, 2);
    for (size_t i = loop->layers; is_training && i-- > 0;) {
        void *made = next;

        run(loop, "backward",
            (capu_operand[]){capu_reads(loop->outputs[i]), capu_reads(gradient), capu_writes(made)},
            3);
        next = gradient;
        gradient = made;
    }
    BENCH_OK(loop->context, capu_iteration_end(loop->context));
    BENCH_OK(loop->context, capu_synchronize(loop->context));
    *report = bench_report(loop->context);
    return (struct spent){end.wall - begin.wall, end.cpu - begin.cpu};
}

/* Median times of the begins of iterations of one label. */
struct medians {
    double wall[CHANGES];
    double cpu[CHANGES];
    size_t count;
};

static void note(struct medians *medians, struct spent spent)
{
    medians->wall[medians->count] = spent.wall;
    medians->cpu[medians->count++] = spent.cpu;
}

struct result {
    const char *device;
    uint64_t page_bytes;
    size_t layers;
    size_t op_count;
    struct spent train;    /* begin after a change */
    struct spent validate; /* likewise */
    struct spent same;     /* no change */
};

static struct spent median(struct medians *medians)
{
    return (struct spent){bench_summary(medians->wall, medians->count).median,
                          bench_summary(medians->cpu, medians->count).median};
}

static void measure(struct result *result)
{
    static struct medians train;
    static struct medians validate;
    static struct medians same;
    struct loop loop = {.layers = result->layers};
    struct report report;

    train.count = validate.count = same.count = 0;
    start(&loop, result->device, result->page_bytes);
    for (size_t i = 0; i < WARM_UP; i++) {
        iterate(&loop, i % 2 == 0, &report); /* plans are reviewed, and may be made anew */
    }
    for (size_t i = 0; i < CHANGES; i++) {
        note(&train, iterate(&loop, true, &report));
        bench_expect(report.mode == CAPU_MODE_GUIDED && report.diverged == 0 &&
                         report.evict_count > 0,
                     "training has no active plan");
        result->op_count = (size_t)report.op_count;
        note(&same, iterate(&loop, true, &report));
        bench_expect(report.mode == CAPU_MODE_GUIDED && report.install_ns == 0,
                     "an iteration of the same label installed a plan");
        note(&validate, iterate(&loop, false, &report));
        bench_expect(report.mode == CAPU_MODE_GUIDED && report.diverged == 0,
                     "validation has no active plan");
    }
    result->train = median(&train);
    result->validate = median(&validate);
    result->same = median(&same);
    finish(&loop);
}

static void print_table(const struct result *result)
{
    printf("%-5s %6zu %6zu %6zu | %9.0f %9.0f | %9.0f %9.0f | %9.1f %9.1f\n", result->device,
           result->op_count, result->layers + 3, (result->layers + 3) * PAGES_EACH,
           result->train.wall * 1e6, result->train.cpu * 1e6, result->validate.wall * 1e6,
           result->validate.cpu * 1e6, result->same.wall * 1e6, result->same.cpu * 1e6);
}

static void print_json(const struct result *result)
{
    printf("{\"bench\":\"labels\",\"device\":\"%s\",\"op_count\":%zu,\"tensors\":%zu,"
           "\"pages\":%zu,\"page_bytes\":%llu,\"train_s\":%.9f,\"train_cpu_s\":%.9f,"
           "\"validate_s\":%.9f,\"validate_cpu_s\":%.9f,\"same_s\":%.9f,\"same_cpu_s\":%.9f}\n",
           result->device, result->op_count, result->layers + 3, (result->layers + 3) * PAGES_EACH,
           (unsigned long long)result->page_bytes, result->train.wall, result->train.cpu,
           result->validate.wall, result->validate.cpu, result->same.wall, result->same.cpu);
}

int main(int count, char **arguments)
{
    static struct result results[] = {
        {.device = "sim", .page_bytes = 2 << 20, .layers = 50},
        {.device = "sim", .page_bytes = 2 << 20, .layers = 200},
        {.device = "sim", .page_bytes = 2 << 20, .layers = 800},
        {.device = "host", .page_bytes = 64 << 10, .layers = 50},
        {.device = "host", .page_bytes = 64 << 10, .layers = 200},
        {.device = "host", .page_bytes = 64 << 10, .layers = 800},
    };
    bool wants_json = bench_wants_json(
        count, arguments,
        "bench_labels [--json]: the cost of changing between two labels, each with a plan\n");

    if (!wants_json) {
        printf("microseconds per capu_iteration_begin, medians of %d\n"
               "%26s | %19s | %19s | %19s\n%5s %6s %6s %6s | %9s %9s | %9s %9s | %9s %9s\n",
               CHANGES, "", "to training", "to validation", "no change", "", "ops", "tensors",
               "pages", "clock", "cpu", "clock", "cpu", "clock", "cpu");
    }
    progress_begin("measuring", sizeof(results) / sizeof(results[0]), 0.0);
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]) && !progress_should_stop(NULL);
         i++) {
        measure(&results[i]);
        progress_step();
        progress_clear();
        (wants_json ? print_json : print_table)(&results[i]);
        fflush(stdout);
    }
    return progress_end() ? EXIT_STOPPED : EXIT_SUCCESS;
}
