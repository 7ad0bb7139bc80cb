/*
 * The cost of a call with 10^2 to 10^5 live tensors: capu_malloc and capu_free of small tensors and
 * of whole pages, and capu_run with empty ops, per access. It runs on sim, so that no device is in
 * the way, in passive mode with everything resident. Querying tensors afterwards checks the state.
 *
 * The last three columns are whole iterations in which every op updates one tensor and reads two
 * others: per op, with the tensors in the order of allocation, with operands that begin inside a
 * tensor, and with the tensors in a random order, the same in each iteration. The last line is the
 * ratio of 10^5 to 10^3 tensors there.
 */
#include "bench/runtime/bench.h"
#include "tools/output/progress.h"

#include <stdio.h>
#include <stdlib.h>

enum { OPERANDS = 8, RUNS = 7, OPS = 2000, TURNS = 2000, PAGE = 1 << 12, LAYER_OPERANDS = 3 };

static capu_status nothing(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}

struct result {
    size_t live;
    struct bench_numbers malloc_page;
    struct bench_numbers free_page;
    struct bench_numbers malloc_small;
    struct bench_numbers free_small;
    struct bench_numbers access;
    struct bench_numbers op; /* without operands */
    struct bench_numbers in_order;
    struct bench_numbers inside;
    struct bench_numbers shuffled;
};

static capu_context *create(void)
{
    capu_config config = CAPU_CONFIG_INIT;
    char text[256] = "";
    capu_context *context = NULL;

    config.device = "sim";
    config.mode = CAPU_MODE_PASSIVE;
    config.budget_bytes = (uint64_t)1 << 30;
    config.page_bytes = PAGE;
    config.error = text;
    config.error_bytes = sizeof(text);
    if (capu_context_create(&config, &context) != CAPU_OK) {
        fprintf(stderr, "context: %s\n", text);
        exit(EXIT_FAILURE);
    }
    return context;
}

/* TURNS allocations and frees in addition to the live tensors; returns seconds per call. */
static void measure_malloc(capu_context *context, size_t bytes, double *allocate, double *release)
{
    static void *made[TURNS];
    double begin;

    BENCH_OK(context, capu_iteration_begin(context, "allocate"));
    begin = bench_now();
    for (size_t i = 0; i < TURNS; i++) {
        BENCH_OK(context, capu_malloc(context, bytes, &made[i]));
    }
    *allocate = (bench_now() - begin) / TURNS;
    begin = bench_now();
    for (size_t i = 0; i < TURNS; i++) {
        BENCH_OK(context, capu_free(context, made[i]));
    }
    *release = (bench_now() - begin) / TURNS;
    BENCH_OK(context, capu_iteration_end(context));
    BENCH_OK(context, capu_synchronize(context));
}

/* Empty ops on tensors chosen all over the list; returns seconds per op. */
static double measure_run(capu_context *context, void **tensors, size_t live, size_t operand_count)
{
    double begin;
    uint64_t random = 1;

    BENCH_OK(context, capu_iteration_begin(context, "run"));
    begin = bench_now();
    for (size_t i = 0; i < OPS; i++) {
        capu_operand operands[OPERANDS];
        capu_op op = {.size = sizeof(op),
                      .name = "layer_forward",
                      .run = nothing,
                      .operands = operands,
                      .operand_count = operand_count};

        for (size_t k = 0; k < operand_count; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            operands[k] = capu_updates(tensors[(random >> 33) % live]);
        }
        BENCH_OK(context, capu_run(context, &op));
    }
    begin = (bench_now() - begin) / OPS;
    BENCH_OK(context, capu_iteration_end(context));
    BENCH_OK(context, capu_synchronize(context));
    return begin;
}

/* Some iterations over all tensors; returns seconds per op of the fastest. */
static double measure_iteration(capu_context *context, void **tensors, size_t live, size_t offset)
{
    static const size_t steps[LAYER_OPERANDS] = {0, 1, 10};
    double least = 1e9;

    for (size_t turn = 0; turn < 3 + OPS / live; turn++) {
        double begin = bench_now();

        BENCH_OK(context, capu_iteration_begin(context, "iterate"));
        for (size_t i = 0; i < live; i++) {
            capu_operand operands[LAYER_OPERANDS];
            capu_op op = {.size = sizeof(op),
                          .name = "layer_forward",
                          .run = nothing,
                          .operands = operands,
                          .operand_count = LAYER_OPERANDS};

            for (size_t k = 0; k < LAYER_OPERANDS; k++) {
                operands[k] = capu_operand_of((char *)tensors[(i + steps[k]) % live] + offset,
                                              PAGE - offset, k == 0 ? CAPU_UPDATE : CAPU_READ);
            }
            BENCH_OK(context, capu_run(context, &op));
        }
        BENCH_OK(context, capu_iteration_end(context));
        begin = (bench_now() - begin) / (double)live;
        BENCH_OK(context, capu_synchronize(context));
        least = begin < least ? begin : least;
    }
    return least;
}

static void shuffle(void **tensors, size_t live)
{
    uint64_t random = 7;

    for (size_t i = live - 1; i > 0; i--) {
        void *tensor = tensors[i];
        size_t other;

        random = random * 6364136223846793005u + 1442695040888963407u;
        other = (random >> 33) % (i + 1);
        tensors[i] = tensors[other];
        tensors[other] = tensor;
    }
}

static void check(capu_context *context, void **tensors, size_t live)
{
    for (size_t i = 0; i < live; i += 1 + live / 1000) {
        capu_tensor_state state = {.size = sizeof(state)};

        BENCH_OK(context, capu_tensor_query(context, (char *)tensors[i] + PAGE - 1, &state));
        bench_expect(state.address == tensors[i] && state.is_defined && state.is_resident,
                     "a tensor is not where it was");
    }
}

static struct result measure(size_t live)
{
    struct result result = {.live = live};
    double numbers[9][RUNS];
    capu_context *context = create();
    void **tensors = malloc(live * sizeof(*tensors));

    bench_expect(tensors != NULL, "no memory");
    for (size_t i = 0; i < live; i++) {
        BENCH_OK(context, capu_malloc(context, PAGE, &tensors[i]));
        BENCH_OK(context, capu_zero(context, tensors[i], 0));
        BENCH_OK(
            context,
            capu_run(context, &(capu_op){.size = sizeof(capu_op),
                                         .name = "touch",
                                         .run = nothing,
                                         .operands = (capu_operand[]){capu_updates(tensors[i])},
                                         .operand_count = 1}));
    }
    for (size_t i = 0; i < RUNS + 2; i++) {
        size_t at = i < 2 ? 0 : i - 2;

        measure_malloc(context, PAGE, &numbers[0][at], &numbers[1][at]);
        measure_malloc(context, 500, &numbers[2][at], &numbers[3][at]);
        numbers[5][at] = measure_run(context, tensors, live, 0);
        numbers[4][at] =
            (measure_run(context, tensors, live, OPERANDS) - numbers[5][at]) / OPERANDS;
        numbers[6][at] = measure_iteration(context, tensors, live, 0);
        numbers[8][at] = measure_iteration(context, tensors, live, PAGE / 4);
    }
    shuffle(tensors, live);
    for (size_t i = 0; i < RUNS + 2; i++) {
        numbers[7][i < 2 ? 0 : i - 2] = measure_iteration(context, tensors, live, 0);
    }
    check(context, tensors, live);
    capu_context_destroy(context);
    free(tensors);
    result.malloc_page = bench_summary(numbers[0], RUNS);
    result.free_page = bench_summary(numbers[1], RUNS);
    result.malloc_small = bench_summary(numbers[2], RUNS);
    result.free_small = bench_summary(numbers[3], RUNS);
    result.access = bench_summary(numbers[4], RUNS);
    result.op = bench_summary(numbers[5], RUNS);
    result.in_order = bench_summary(numbers[6], RUNS);
    result.inside = bench_summary(numbers[8], RUNS);
    result.shuffled = bench_summary(numbers[7], RUNS);
    return result;
}

static void print(const struct result *result, bool wants_json)
{
    if (wants_json) {
        printf("{\"bench\":\"calls\",\"live\":%zu,\"runs\":%d,\"malloc_page_ns\":%.1f,"
               "\"free_page_ns\":%.1f,\"malloc_small_ns\":%.1f,\"free_small_ns\":%.1f,"
               "\"access_ns\":%.1f,\"access_minimum_ns\":%.1f,\"op_ns\":%.1f,"
               "\"in_order_minimum_ns\":%.1f,\"inside_minimum_ns\":%.1f,\"shuffled_minimum_ns\":%."
               "1f}\n",
               result->live, RUNS, result->malloc_page.median * 1e9, result->free_page.median * 1e9,
               result->malloc_small.median * 1e9, result->free_small.median * 1e9,
               result->access.median * 1e9, result->access.minimum * 1e9, result->op.median * 1e9,
               result->in_order.minimum * 1e9, result->inside.minimum * 1e9,
               result->shuffled.minimum * 1e9);
    } else {
        printf("%8zu %12.0f %12.0f %12.0f %12.0f %12.0f %12.0f %12.0f %12.0f %12.0f\n",
               result->live, result->malloc_page.median * 1e9, result->free_page.median * 1e9,
               result->malloc_small.median * 1e9, result->free_small.median * 1e9,
               result->access.median * 1e9, result->op.median * 1e9, result->in_order.minimum * 1e9,
               result->inside.minimum * 1e9, result->shuffled.minimum * 1e9);
    }
}

int main(int count, char **arguments)
{
    enum { SIZES = 4 };
    struct result results[SIZES];
    size_t live = 100;
    bool wants_json = bench_wants_json(
        count, arguments, "bench_calls [--json]: cost of calls with 10^2 to 10^5 live tensors\n");

    if (!wants_json) {
        printf("ns per call, medians of %d runs; of the last three columns minima\n"
               "%8s %12s %12s %12s %12s %12s %12s %12s %12s %12s\n",
               RUNS, "live", "malloc page", "free page", "malloc small", "free small", "access",
               "empty op", "op in order", "op inside", "op shuffled");
    }
    progress_begin("measuring", SIZES, 0.0);
    for (size_t i = 0; i < SIZES && !progress_should_stop(NULL); i++) {
        results[i] = measure(live);
        progress_step();
        progress_clear();
        print(&results[i], wants_json);
        live *= 10;
    }
    if (progress_end()) {
        return EXIT_STOPPED;
    }
    if (!wants_json) {
        printf("10^5 over 10^3 tensors: %.2f in order, %.2f inside, %.2f shuffled\n",
               results[3].in_order.minimum / results[1].in_order.minimum,
               results[3].inside.minimum / results[1].inside.minimum,
               results[3].shuffled.minimum / results[1].shuffled.minimum);
    }
    return EXIT_SUCCESS;
}
