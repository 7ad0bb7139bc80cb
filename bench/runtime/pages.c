/*
 * What small pages cost in time, and what large ones cost in memory: the same iterations in pages
 * of several sizes, in turns in one process, in passive and in guided mode, under a budget of half
 * of what is live.
 *
 * Mapping is what depends on the page size, so everything else is kept cheap: ops do no more than
 * read and write their operands once, and copies are not throttled. Tensors have many sizes, so
 * that the free pages are scattered, and each page may need a mapping of its own. They are split
 * from one allocation, as those of ported programs are, so neighbours share pages. Contents are
 * compared at the end.
 */
#include "bench/runtime/bench.h"
#include "tools/output/progress.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* REFERENCE: ratios are to this page. */
enum { TENSORS = 96, WARM_UP = 4, RUNS = 15, PAGES = 4, REFERENCE = 2, KIB = 1024 };

static const uint64_t page_sizes[PAGES] = {4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB};

/* From 32 KiB to 4 MiB, few of them whole pages; 128 MiB in all. */
static size_t tensor_bytes(size_t index)
{
    size_t doubled = (size_t)32 * KIB << index % 7;

    return doubled + (index * 2654435761u >> 4) % doubled / 64 * 64;
}

static uint64_t total_bytes(void)
{
    uint64_t total = 0;

    for (size_t i = 0; i < TENSORS; i++) {
        total += tensor_bytes(i);
    }
    return total;
}

struct block {
    const uint64_t *input;
    size_t input_words;
    uint64_t *output;
    size_t output_words;
    bool adds; /* to what the output contains */
};

static capu_status mix(capu_stream stream, const void *arguments)
{
    const struct block *block = arguments;
    uint64_t sum = 1;

    (void)stream;
    for (size_t i = 0; i < block->input_words; i++) {
        sum += block->input[i];
    }
    for (size_t i = 0; i < block->output_words; i++) {
        block->output[i] = (block->adds ? block->output[i] : 0) + sum + i;
    }
    return CAPU_OK;
}

struct loop {
    capu_context *context;
    void *tensors[TENSORS];
};

static void start(struct loop *loop, capu_mode mode, uint64_t page_bytes)
{
    capu_config config = CAPU_CONFIG_INIT;
    char text[256] = "";
    void *blob = NULL;
    size_t offset = 0;

    config.device = "host";
    config.mode = (uint32_t)mode;
    config.budget_bytes = total_bytes() / 2;
    config.page_bytes = page_bytes;
    config.wait_for_plan = 1;
    config.error = text;
    config.error_bytes = sizeof(text);
    if (capu_context_create(&config, &loop->context) != CAPU_OK) {
        fprintf(stderr, "context: %s\n", text);
        exit(EXIT_FAILURE);
    }
    BENCH_OK(loop->context, capu_malloc(loop->context, total_bytes(), &blob));
    for (size_t i = 0; i < TENSORS; i++) {
        char name[32];

        snprintf(name, sizeof(name), "tensor.%zu", i);
        loop->tensors[i] = (char *)blob + offset;
        offset += tensor_bytes(i);
        BENCH_OK(loop->context, capu_split(loop->context, loop->tensors[i], tensor_bytes(i)));
        BENCH_OK(loop->context, CAPU_DESCRIBE(loop->context, loop->tensors[i], .name = name,
                                              .kind = CAPU_ACTIVATION));
    }
}

static void run(struct loop *loop, size_t input, size_t output, bool adds)
{
    struct block block = {.input = loop->tensors[input],
                          .input_words = tensor_bytes(input) / sizeof(uint64_t),
                          .output = loop->tensors[output],
                          .output_words = tensor_bytes(output) / sizeof(uint64_t),
                          .adds = adds};

    if (adds) {
        BENCH_OK(loop->context, CAPU_RUN(loop->context, mix, &block, capu_reads(block.input),
                                         capu_updates(block.output)));
    } else {
        BENCH_OK(loop->context, CAPU_RUN(loop->context, mix, &block, capu_reads(block.input),
                                         capu_writes(block.output)));
    }
}

/* Each tensor is computed from the one before, and then updated from the one after, as gradients
   are. Returns the seconds of all threads together. */
static double iterate(struct loop *loop)
{
    struct timespec begin;
    struct timespec end;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    BENCH_OK(loop->context, capu_iteration_begin(loop->context, "train"));
    BENCH_OK(loop->context, capu_zero(loop->context, loop->tensors[0], 0));
    for (size_t i = 1; i < TENSORS; i++) {
        run(loop, i - 1, i, false);
    }
    for (size_t i = TENSORS - 1; i-- > 0;) {
        run(loop, i + 1, i, true);
    }
    BENCH_OK(loop->context, capu_iteration_end(loop->context));
    BENCH_OK(loop->context, capu_synchronize(loop->context));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
}

static uint64_t checksum(struct loop *loop)
{
    size_t bytes = tensor_bytes(0);
    unsigned char *contents = malloc(bytes);
    uint64_t sum = 0;

    bench_expect(contents != NULL, "no memory");
    BENCH_OK(loop->context, capu_download(loop->context, contents, loop->tensors[0], bytes, 0));
    for (size_t i = 0; i < bytes; i++) {
        sum = sum * 31 + contents[i];
    }
    free(contents);
    return sum;
}

/* The kernel's mappings in this process. */
static size_t mapping_count(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    size_t count = 0;
    int byte;

    while (file != NULL && (byte = fgetc(file)) != EOF) {
        count += byte == '\n';
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

struct result {
    struct bench_numbers seconds;
    struct report report; /* of the last iteration */
    uint64_t install_ns;
    size_t mappings;
};

/* Destroys the loop; returns how many mappings go with it. */
static size_t finish(struct loop *loop)
{
    size_t before = mapping_count();
    size_t after;

    capu_context_destroy(loop->context);
    after = mapping_count();
    return before > after ? before - after : 0;
}

static void measure(capu_mode mode, struct result results[PAGES])
{
    static double seconds[PAGES][RUNS];
    struct loop loops[PAGES] = {0};

    for (size_t page = 0; page < PAGES; page++) {
        start(&loops[page], mode, page_sizes[page]);
    }
    for (size_t i = 0; i < WARM_UP + RUNS; i++) {
        for (size_t page = 0; page < PAGES; page++) {
            double taken = iterate(&loops[page]);

            results[page].report = bench_report(loops[page].context);
            results[page].install_ns += results[page].report.install_ns;
            if (i >= WARM_UP) {
                seconds[page][i - WARM_UP] = taken;
            }
        }
    }
    for (size_t page = 0; page < PAGES; page++) {
        bench_expect(results[page].report.mode == (uint32_t)mode, "an iteration had no plan");
        bench_expect(checksum(&loops[page]) == checksum(&loops[0]), "contents differ");
        results[page].seconds = bench_summary(seconds[page], RUNS);
    }
    for (size_t page = 0; page < PAGES; page++) {
        results[page].mappings = finish(&loops[page]);
    }
}

static void print(capu_mode mode, size_t page, const struct result *results, bool is_json)
{
    const char *name = mode == CAPU_MODE_GUIDED ? "guided" : "passive";
    const struct result *result = &results[page];

    if (is_json) {
        printf("{\"bench\":\"pages\",\"mode\":\"%s\",\"page_bytes\":%llu,\"median_s\":%.6f,"
               "\"minimum_s\":%.6f,\"map_count\":%llu,\"mappings\":%zu,\"install_s\":%.6f,"
               "\"edge_bytes\":%llu,\"floor_bytes\":%llu}\n",
               name, (unsigned long long)page_sizes[page], result->seconds.median,
               result->seconds.minimum, (unsigned long long)result->report.map_count,
               result->mappings, (double)result->install_ns * 1e-9,
               (unsigned long long)result->report.floor_edges_bytes,
               (unsigned long long)result->report.floor_bytes);
    } else {
        printf("%8s %6llu | %9.1f %8.3f | %9.1f %8.3f | %6llu %8zu | %8.1f | %8.1f %8.1f\n", name,
               (unsigned long long)page_sizes[page] / KIB, result->seconds.median * 1e3,
               result->seconds.median / results[REFERENCE].seconds.median,
               result->seconds.minimum * 1e3,
               result->seconds.minimum / results[REFERENCE].seconds.minimum,
               (unsigned long long)result->report.map_count, result->mappings,
               (double)result->install_ns * 1e-6,
               (double)result->report.floor_edges_bytes / 1048576,
               (double)result->report.floor_bytes / 1048576);
    }
}

int main(int count, char **arguments)
{
    static const capu_mode modes[] = {CAPU_MODE_PASSIVE, CAPU_MODE_GUIDED};
    bool wants_json = bench_wants_json(count, arguments,
                                       "bench_pages [--json]: CPU time of iterations in pages of "
                                       "several sizes\n");

    if (!wants_json) {
        printf("%d tensors, %.1f MiB, and a budget of half of that; CPU time of %d iterations\n"
               "%8s %6s | %9s %8s | %9s %8s | %6s %8s | %8s | %8s %8s\n",
               TENSORS, (double)total_bytes() / 1048576, RUNS, "mode", "KiB", "median ms", "ratio",
               "minimum", "ratio", "maps", "mappings", "install", "edges", "floor MiB");
    }
    progress_begin("measuring", sizeof(modes) / sizeof(modes[0]), 0.0);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]) && !progress_should_stop(NULL); i++) {
        struct result results[PAGES] = {0};

        measure(modes[i], results);
        progress_step();
        progress_clear();
        for (size_t page = 0; page < PAGES; page++) {
            print(modes[i], page, results, wants_json);
        }
        fflush(stdout);
    }
    return progress_end() ? EXIT_STOPPED : EXIT_SUCCESS;
}
