/*
 * Calls into the CUDA runtime per iteration, with and without graphs: iterations call by call,
 * captured anew each time, and launched. Over the fake runtime, so that calls are counted; times
 * mean nothing there. The network's activations do not fit, so each iteration also copies tensors
 * out and back. After each way the bytes of the last result are checked.
 */
#include "bench/runtime/bench.h"

#include "tests/fake_cudart/fake_cudart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS_MOST = 256, BYTES = 4 << 16, PAGE = 1 << 16, PATIENCE = 2000, RUNS = 8 };

/* Kinds of calls, in the order of the columns. */
enum kind { LAUNCHES, COPIES, EVENTS, CHECKS, GRAPHS, OTHERS, KINDS };

static const char *const kind_names[KINDS] = {"kernels", "copies", "events",
                                              "checks",  "graphs", "others"};

struct counts {
    uint64_t of[KINDS];
};

/* An op's arguments: on a GPU, a launch copies them. Here they stay as long as the program. */
struct arguments {
    unsigned char *to;
    const unsigned char *from;
};

static uint64_t launches; /* kernels */

static capu_status increment_kernel(capu_stream stream, const void *block)
{
    const struct arguments *arguments = block;

    (void)stream;
    memset(arguments->to, arguments->from[0] + 1, 64);
    return CAPU_OK;
}

static capu_status increment(capu_stream stream, const void *block)
{
    launches++;
    return fake_cudart_launch(stream, increment_kernel, *(const struct arguments *const *)block);
}

struct net {
    capu_context *context;
    capu_graph *graph;
    size_t layers;
    void *input;
    void *output;
    void *activations[LAYERS_MOST];
    struct arguments arguments[2 * LAYERS_MOST];
};

static void run(struct net *net, size_t number, void *to, const void *from)
{
    struct arguments *kept = &net->arguments[number];

    *kept = (struct arguments){to, from};
    BENCH_OK(net->context,
             CAPU_RUN(net->context, increment, &kept, capu_reads(from), capu_writes(to)));
}

static void run_iteration(struct net *net)
{
    const void *from = net->input;

    for (size_t i = 0; i < net->layers; i++) {
        run(net, i, net->activations[i], from);
        from = net->activations[i];
    }
    for (size_t i = net->layers; i-- > 0;) {
        run(net, net->layers + i, net->output, net->activations[i]);
    }
}

static void upload(struct net *net, unsigned char value)
{
    unsigned char bytes[64];

    memset(bytes, value, sizeof(bytes));
    BENCH_OK(net->context, capu_upload(net->context, net->input, bytes, sizeof(bytes), 0));
}

/* The last op reads the first activation. */
static void expect_result(struct net *net, unsigned char value)
{
    unsigned char byte = 0;

    BENCH_OK(net->context, capu_download(net->context, &byte, net->output, 1, 0));
    bench_expect(byte == (unsigned char)(value + 2), "the last op's output");
}

static enum kind kind_of(enum fake_cudart_call call)
{
    const char *name = fake_cudart_name(call);

    if (call == FAKE_cudaStreamIsCapturing) {
        return CHECKS;
    }
    if (call == FAKE_cudaMemcpyAsync) {
        return COPIES;
    }
    return strstr(name, "Event") != NULL                                      ? EVENTS
           : strstr(name, "Graph") != NULL || strstr(name, "Capture") != NULL ? GRAPHS
                                                                              : OTHERS;
}

static struct counts count(void)
{
    struct counts counts = {.of = {[LAUNCHES] = launches}};

    for (int call = 0; call < FAKE_CUDART_CALL_COUNT; call++) {
        counts.of[kind_of((enum fake_cudart_call)call)] +=
            fake_cudart_calls_of((enum fake_cudart_call)call);
    }
    return counts;
}

/* The three ways of running an iteration. False: not now. */
static bool run_calls(struct net *net)
{
    BENCH_OK(net->context, capu_iteration_begin(net->context, "train"));
    run_iteration(net);
    BENCH_OK(net->context, capu_iteration_end(net->context));
    return true;
}

static bool run_capture(struct net *net)
{
    if (capu_graph_begin(net->graph, "train") != CAPU_OK) {
        return false;
    }
    run_iteration(net);
    BENCH_OK(net->context, capu_graph_end(net->graph));
    return true;
}

static bool run_launch(struct net *net)
{
    return capu_graph_launch(net->graph) == CAPU_OK;
}

static const struct way {
    const char *name;
    bool (*run)(struct net *net);
} ways[] = {{"call by call", run_calls}, {"captured", run_capture}, {"launched", run_launch}};

static int compare_totals(const void *left, const void *right)
{
    const struct counts *both[] = {left, right};
    uint64_t totals[2] = {0};

    for (int side = 0; side < 2; side++) {
        for (int kind = 0; kind < KINDS; kind++) {
            totals[side] += both[side]->of[kind];
        }
    }
    return (totals[0] > totals[1]) - (totals[0] < totals[1]);
}

/* The median of some iterations in steady state: neither timed nor with a new plan. */
static struct counts measure(struct net *net, const struct way *way)
{
    struct counts taken[RUNS];
    size_t done = 0;

    for (unsigned i = 0; i < PATIENCE && done < RUNS; i++) {
        capu_report report = CAPU_REPORT_INIT;
        struct counts before;
        struct counts after;
        bool has_run;

        upload(net, (unsigned char)i);
        before = count();
        has_run = way->run(net);
        after = count();
        if (!has_run) {
            run_calls(net);
            (void)run_capture(net);
            continue;
        }
        expect_result(net, (unsigned char)i);
        BENCH_OK(net->context, capu_synchronize(net->context));
        BENCH_OK(net->context, capu_report_get(net->context, &report));
        if (report.timed != 0 || report.mode != CAPU_MODE_GUIDED || report.install_ns != 0 ||
            report.prefetched_bytes == 0) {
            continue;
        }
        for (int kind = 0; kind < KINDS; kind++) {
            taken[done].of[kind] = after.of[kind] - before.of[kind];
        }
        done++;
    }
    bench_expect(done == RUNS, "too few steady iterations");
    qsort(taken, RUNS, sizeof(taken[0]), compare_totals);
    return taken[RUNS / 2];
}

static void print(bool as_json, size_t ops, const char *way, const struct counts *counts)
{
    uint64_t total = 0;

    printf(as_json ? "{\"ops\":%zu,\"way\":\"%s\"" : "| %zu | %s |", ops, way);
    for (int kind = 0; kind < KINDS; kind++) {
        total += counts->of[kind];
        if (as_json) {
            printf(",\"%s\":%llu", kind_names[kind], (unsigned long long)counts->of[kind]);
        } else {
            printf(" %llu |", (unsigned long long)counts->of[kind]);
        }
    }
    printf(as_json ? ",\"total\":%llu}\n" : " %llu |\n", (unsigned long long)total);
}

static void measure_net(size_t layers, bool as_json)
{
    const struct fake_cudart_machine machine = {.memory_bytes = (uint64_t)512 << 20};
    struct net net = {.layers = layers};
    capu_config config = CAPU_CONFIG_INIT;

    fake_cudart_reset(&machine);
    config.device = "cuda";
    config.mode = CAPU_MODE_GUIDED;
    (void)capu_config_set(&config, "planner", "swap");
    config.page_bytes = PAGE;
    config.budget_bytes = (uint64_t)BYTES * (layers * 2 / 3 + 4);
    (void)capu_config_set(&config, "d2h", "2000000000");
    (void)capu_config_set(&config, "h2d", "2000000000");
    config.wait_for_plan = 1;
    bench_expect(capu_context_create(&config, &net.context) == CAPU_OK, "no context");
    BENCH_OK(net.context, capu_malloc(net.context, 64, &net.input));
    BENCH_OK(net.context, capu_malloc(net.context, 64, &net.output));
    for (size_t i = 0; i < layers; i++) {
        BENCH_OK(net.context, capu_malloc(net.context, BYTES, &net.activations[i]));
        BENCH_OK(net.context, CAPU_DESCRIBE(net.context, net.activations[i], .name = "activation",
                                            .kind = CAPU_ACTIVATION));
    }
    BENCH_OK(net.context, capu_graph_create(net.context, &net.graph));
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct counts counts = measure(&net, &ways[i]);

        print(as_json, 2 * layers, ways[i].name, &counts);
    }
    capu_context_destroy(net.context);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {16, 64, 256};
    bool as_json = bench_wants_json(argc, argv,
                                    "bench_graphs [--json]: calls into the CUDA runtime per "
                                    "iteration, with and without graphs");

    if (!as_json) {
        printf("| ops | iterations are | kernels | copies | events | checks | graphs | others | "
               "total |\n"
               "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        measure_net(sizes[i], as_json);
    }
    return EXIT_SUCCESS;
}
