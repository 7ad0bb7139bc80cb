/*
 * Several ranks whose ops take fixed times and whose links have limited rates: iterations without a
 * limit, in passive mode and guided, with the same budget on all ranks, and with a budget on the
 * last rank only, for which the others wait. Apart: waiting for other ranks, waiting for memory,
 * and exchanging gradients. Each case runs five times in turns; the numbers are medians over them,
 * with the smallest and largest iteration time. The weights of all cases and ranks are compared.
 *
 * Start it with scripts/ranks.sh 2 build/bin/bench_parallel.
 */
#include "bench/parallel/network.h"

#include "bench/runtime/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 5, WARM_UP = 3, ITERATIONS = 8, RANKS_MAX = 64 };

/* What is measured of a run, in ms: medians over its iterations. */
enum { TIME, OTHERS, MEMORY, EXCHANGE, MEASURES };

static const struct {
    const char *name;
    capu_mode mode;
    unsigned first_percent; /* of what all but the last rank need; 0: no limit */
    unsigned last_percent;
} cases[] = {
    {"passive", CAPU_MODE_PASSIVE, 0, 0}, /* evicts nothing */
    {"passive", CAPU_MODE_PASSIVE, 50, 50}, {"guided", CAPU_MODE_GUIDED, 50, 50},
    {"passive", CAPU_MODE_PASSIVE, 0, 50},  {"guided", CAPU_MODE_GUIDED, 0, 50},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

struct bench {
    int rank;
    int ranks;
    uint64_t peak_bytes; /* what an iteration needs without a limit */
    float *weights;      /* of the newest run */
    float *wanted;       /* of the first run of rank 0; NULL: there was none */
    double values[CASES][RUNS][RANKS_MAX][MEASURES]; /* on rank 0 */
};

static const size_t all_weights = (size_t)NETWORK_LAYERS * NETWORK_WEIGHT_FLOATS;

static double in_ms(uint64_t ns)
{
    return (double)ns * 1e-6;
}

/* Once the weights of the first run are known, all others have the same. */
static void check_weights(struct bench *bench, struct network *network)
{
    network_weights(network, bench->weights);
    if (bench->wanted == NULL) {
        bench->wanted = malloc(all_weights * sizeof(float));
        bench_expect(bench->wanted != NULL, "no memory");
        memcpy(bench->wanted, bench->weights, all_weights * sizeof(float));
        MPI_Bcast(bench->wanted, (int)all_weights, MPI_FLOAT, 0, MPI_COMM_WORLD);
    }
    bench_expect(memcmp(bench->wanted, bench->weights, all_weights * sizeof(float)) == 0,
                 "weights differ from those of the first run of rank 0");
}

static void run_case(struct bench *bench, size_t index, size_t run)
{
    bool is_last = bench->rank == bench->ranks - 1;
    unsigned percent = is_last ? cases[index].last_percent : cases[index].first_percent;
    uint64_t budget = percent > 0 ? bench->peak_bytes * percent / 100 : 2 * bench->peak_bytes;
    double measured[MEASURES][ITERATIONS];
    double medians[MEASURES];
    double all[RANKS_MAX][MEASURES];
    struct network network;

    network_start(&network, cases[index].mode, budget);
    for (size_t i = 0; i < WARM_UP + ITERATIONS; i++) {
        struct report report = network_iterate(&network, i);

        if (i >= WARM_UP) {
            measured[TIME][i - WARM_UP] = in_ms(report.time_ns);
            measured[OTHERS][i - WARM_UP] = in_ms(report.waited_ns);
            measured[MEMORY][i - WARM_UP] = report.timed != 0 ? in_ms(report.stall_ns) : 0;
            measured[EXCHANGE][i - WARM_UP] = in_ms(report.exchange_ns);
            bench_expect(percent == 0 || cases[index].mode != CAPU_MODE_GUIDED ||
                             report.mode == CAPU_MODE_GUIDED,
                         "an iteration was not guided");
        }
    }
    check_weights(bench, &network);
    network_finish(&network);
    for (size_t m = 0; m < MEASURES; m++) {
        medians[m] = bench_summary(measured[m], ITERATIONS).median;
    }
    MPI_Gather(medians, MEASURES, MPI_DOUBLE, all, MEASURES, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    memcpy(bench->values[index][run], all, sizeof(all));
}

/* What an iteration needs without a limit. */
static void measure_peak(struct bench *bench)
{
    struct network network;

    network_start(&network, CAPU_MODE_PASSIVE, (uint64_t)1 << 30);
    bench->peak_bytes = network_iterate(&network, 0).live_peak_bytes;
    network_finish(&network);
}

/* Over the runs of a case. */
static struct bench_numbers summarise(const struct bench *bench, size_t index, size_t rank,
                                      size_t measure, double *maximum)
{
    double values[RUNS];
    struct bench_numbers numbers;

    for (size_t run = 0; run < RUNS; run++) {
        values[run] = bench->values[index][run][rank][measure];
    }
    numbers = bench_summary(values, RUNS);
    *maximum = values[RUNS - 1];
    return numbers;
}

static const char *budget_text(unsigned percent, char text[16])
{
    if (percent == 0) {
        return "no limit";
    }
    snprintf(text, 16, "%u %%", percent);
    return text;
}

static void print_case(const struct bench *bench, size_t index, bool as_json)
{
    for (size_t rank = 0; rank < (size_t)bench->ranks; rank++) {
        bool is_last = rank + 1 == (size_t)bench->ranks;
        unsigned percent = is_last ? cases[index].last_percent : cases[index].first_percent;
        double most;
        double ignored;
        struct bench_numbers time = summarise(bench, index, rank, TIME, &most);
        double others = summarise(bench, index, rank, OTHERS, &ignored).median;
        double memory = summarise(bench, index, rank, MEMORY, &ignored).median;
        double exchange = summarise(bench, index, rank, EXCHANGE, &ignored).median;
        char text[16];

        if (as_json) {
            printf("{\"bench\":\"parallel\",\"mode\":\"%s\",\"rank\":%zu,\"budget_percent\":%u,"
                   "\"runs\":%d,\"median_ms\":%.3f,\"minimum_ms\":%.3f,\"maximum_ms\":%.3f,"
                   "\"others_ms\":%.3f,\"memory_ms\":%.3f,\"exchange_ms\":%.3f}\n",
                   cases[index].name, rank, percent, RUNS, time.median, time.minimum, most, others,
                   memory, exchange);
        } else {
            printf("%-8s %4zu %9s | %9.1f %9.1f %9.1f | %9.1f %9.1f %9.1f\n", cases[index].name,
                   rank, budget_text(percent, text), time.median, time.minimum, most, others,
                   memory, exchange);
        }
    }
}

static void print_results(const struct bench *bench, bool as_json)
{
    if (!as_json) {
        printf(
            "%d ranks, %.1f MiB each without a limit; links of %.2f GB/s; gradients of %.1f MiB; "
            "medians of %d runs of %d iterations in ms, all weights equal\n"
            "%-8s %4s %9s | %9s %9s %9s | %9s %9s %9s\n",
            bench->ranks, (double)bench->peak_bytes / 1048576,
            (double)network_link_bytes_per_s() / 1e9, (double)all_weights * sizeof(float) / 1048576,
            RUNS, ITERATIONS, "mode", "rank", "budget", "iteration", "smallest", "largest",
            "others", "memory", "exchange");
    }
    for (size_t index = 0; index < CASES; index++) {
        print_case(bench, index, as_json);
    }
}

int main(int count, char **arguments)
{
    static struct bench bench;
    bool as_json = bench_wants_json(count, arguments,
                                    "bench_parallel [--json], started by scripts/ranks.sh 2: "
                                    "iterations of several ranks without "
                                    "a limit, in passive mode and guided\n");
    int provided;

    MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench.ranks);
    bench_expect(bench.ranks <= RANKS_MAX, "too many ranks");
    bench.weights = malloc(all_weights * sizeof(float));
    bench_expect(bench.weights != NULL, "no memory");
    measure_peak(&bench);
    for (size_t run = 0; run < RUNS; run++) {
        for (size_t index = 0; index < CASES; index++) {
            run_case(&bench, index, run);
        }
    }
    if (bench.rank == 0) {
        print_results(&bench, as_json);
    }
    free(bench.weights);
    free(bench.wanted);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
