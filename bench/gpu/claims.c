/*
 * gpu_claims: checks the library's claims on a GPU, each with a number. Device memory, as the
 * driver reports it, stays within the budget; steady iterations call no memory function; copies
 * overlap kernels; guided mode costs nothing if nothing is evicted, and otherwise what the plan
 * predicts. It trains one GPT, with the shape of the smallest GPT-2, within several budgets.
 *
 * Prints one line per claim; JSON lines with --json. Exit codes: 1 if a claim does not hold, 77 if
 * there is no GPU.
 */
#include "bench/gpu/judge.h"
#include "examples/common/try.h"
#include "examples/train_gpt/gpt.h"

#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NO_GPU 77
#define STEPS_MAX 200
#define SAMPLE_US 300

struct settings {
    struct gpt_shape shape;
    unsigned batch;
    struct judge judge; /* without a plan, as many uncounted steps come before those that count */
    unsigned percent;
    bool wants_json;
    cudaStream_t stream;
    int32_t *tokens; /* followed by the targets */
};

/* One training run. */
struct run {
    uint32_t mode;
    const char *planner;
    uint64_t budget_bytes; /* 0: none */
    const char *trace_path;
    bool is_recorded; /* reports exist */
    bool is_sampled;  /* a thread samples the memory all the time */
};

/* The minimum of free memory that was sampled. */
struct sampler {
    pthread_t thread;
    atomic_bool is_ending;
    size_t before;
    size_t least;
    uint64_t samples;
};

static bool all_hold = true;

static size_t free_memory(void)
{
    size_t available = 0;
    size_t total = 0;

    return cudaMemGetInfo(&available, &total) == cudaSuccess ? available : 0;
}

static void *sample(void *argument)
{
    struct sampler *sampler = argument;

    (void)cudaSetDevice(0);
    while (!atomic_load(&sampler->is_ending)) {
        size_t available = free_memory();

        if (available < sampler->least) {
            sampler->least = available;
        }
        sampler->samples++;
        usleep(SAMPLE_US);
    }
    return NULL;
}

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return (left > right) - (left < right);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return count == 0 ? 0.0 : values[count / 2];
}

/* Values of the counted iterations. */
struct series {
    double wall[STEPS_MAX];
    double predicted[STEPS_MAX];
    double evicted[STEPS_MAX];
    double prefetched[STEPS_MAX];
    size_t count;
};

static void note(const capu_report *report, struct series *series, struct outcome *outcome)
{
    size_t at = series->count;

    series->predicted[at] = (double)report->predicted_ns;
    series->evicted[at] = (double)report->evicted_bytes;
    series->prefetched[at] = (double)report->prefetched_bytes;
    outcome->live_peak_bytes = report->live_peak_bytes;
    outcome->map_count += report->map_count;
    outcome->evict_count += report->eviction_count;
}

static void start_again(struct series *series, struct outcome *outcome)
{
    series->count = 0;
    outcome->map_count = 0;
    outcome->evict_count = 0;
}

/* Trains until enough iterations in a row count. */
static capu_status train(struct gpt *gpt, capu_context *context, const struct settings *settings,
                         const struct run *run, struct series *series, struct outcome *outcome)
{
    struct gpt_step gpt_step = {.accumulate = 1, .is_asap = true, .rate = 1e-4f};
    size_t count = (size_t)settings->batch * settings->shape.length;
    size_t before = 0;
    bool is_guided = run->mode == CAPU_MODE_GUIDED;
    unsigned most = is_guided ? settings->judge.settle : 2 * settings->judge.steps;

    TRY(gpt_init(gpt, context, &settings->shape, 1));
    TRY(gpt_resize(gpt, settings->batch, settings->shape.length));
    for (unsigned step = 0; step < most && series->count < settings->judge.steps; step++) {
        capu_report report = CAPU_REPORT_INIT;
        double begin = now_ns();
        float loss;

        gpt_step.step = step + 1;
        TRY(gpt_train(gpt, settings->tokens, settings->tokens + count, &gpt_step, &loss));
        begin = now_ns() - begin;
        if (run->is_recorded) {
            capu_status status = capu_report_get(context, &report);

            if (status != CAPU_NOT_READY) { /* as it is after the first iteration */
                TRY(status);
            }
        }
        if (report.timed != 0) {
            outcome->compute_ns = (double)report.compute_ns;
            outcome->stall_ns = (double)report.stall_ns;
        }
        outcome->begun = step + 1;
        if (!(is_guided ? judge_is_steady(&report) : step >= settings->judge.steps)) {
            start_again(series, outcome);
            before = free_memory();
            continue;
        }
        series->wall[series->count] = begin;
        note(&report, series, outcome);
        series->count++;
    }
    outcome->steady = (unsigned)series->count;
    outcome->is_steady = series->count == settings->judge.steps;
    capu_memory_usage(context, NULL, NULL, &outcome->host_bytes);
    outcome->grown_bytes = (int64_t)before - (int64_t)free_memory();
    return CAPU_OK;
}

static void summarise(struct series *series, struct outcome *outcome)
{
    outcome->wall_ns = median(series->wall, series->count);
    outcome->predicted_ns = median(series->predicted, series->count);
    outcome->evicted_bytes = median(series->evicted, series->count);
    outcome->prefetched_bytes = median(series->prefetched, series->count);
}

/* False: the run failed, and an error has been printed. */
static bool carry_out(const struct settings *settings, const struct run *run,
                      struct outcome *outcome)
{
    static struct series series;
    char error[512] = "";
    struct sampler sampler = {.before = free_memory()};
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context = NULL;
    struct gpt gpt = {0};
    capu_status status;

    memset(&series, 0, sizeof(series));
    *outcome = (struct outcome){0};
    config.device = "cuda";
    config.mode = run->mode;
    (void)capu_config_set(&config, "planner", run->planner);
    (void)capu_config_set(&config, "effort", "quick");
    config.wait_for_plan = 1;
    config.budget_bytes = run->budget_bytes;
    config.trace_path = run->trace_path;
    config.report_path = run->is_recorded ? "/dev/null" : NULL;
    config.stream = settings->stream;
    config.error = error;
    config.error_bytes = sizeof(error);
    sampler.least = sampler.before;
    if (run->is_sampled && pthread_create(&sampler.thread, NULL, sample, &sampler) != 0) {
        fprintf(stderr, "gpu_claims: cannot start the thread that samples the memory\n");
        return false;
    }
    status = capu_context_create(&config, &context);
    if (status == CAPU_OK) {
        status = train(&gpt, context, settings, run, &series, outcome);
        gpt_finish(&gpt);
        summarise(&series, outcome);
    }
    if (run->is_sampled) {
        atomic_store(&sampler.is_ending, true);
        pthread_join(sampler.thread, NULL);
        outcome->used_bytes = (int64_t)sampler.before - (int64_t)sampler.least;
        outcome->samples = sampler.before > 0 && sampler.least > 0 ? sampler.samples : 0;
    }
    if (status != CAPU_OK) {
        fprintf(stderr, "gpu_claims: mode %" PRIu32 ", planner %s, budget %" PRIu64 ": %s: %s\n",
                run->mode, run->planner, run->budget_bytes, capu_status_text(status),
                context != NULL ? capu_last_error(context) : error);
    }
    capu_context_destroy(context);
    return status == CAPU_OK;
}

/* The rates of the link that the library measured, taken from the trace that it recorded. */
static bool read_rates(const char *path, double *d2h, double *h2d)
{
    FILE *file = fopen(path, "r");
    char line[4096];
    bool is_found = false;

    while (file != NULL && !is_found && fgets(line, sizeof(line), file) != NULL) {
        const char *out = strstr(line, "\"d2h_bytes_per_s\":");
        const char *in = strstr(line, "\"h2d_bytes_per_s\":");

        if (out != NULL && in != NULL) {
            *d2h = strtod(strchr(out, ':') + 1, NULL);
            *h2d = strtod(strchr(in, ':') + 1, NULL);
            is_found = *d2h > 0.0 && *h2d > 0.0;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return is_found;
}

/* Prints one line. */
static void show(const struct settings *settings, struct claim claim)
{
    if (settings->wants_json) {
        printf("{\"claim\":\"%s\",\"value\":%.6g,\"limit\":%.6g,\"unit\":\"%s\",\"verdict\":\"%s\","
               "\"detail\":\"%s\"}\n",
               claim.name, claim.value, claim.limit, claim.unit, judge_verdict(&claim),
               claim.detail);
    } else {
        printf("%-52s %10.4g %s (at %s %.4g): %s; %s\n", claim.name, claim.value, claim.unit,
               claim.wants_more ? "least" : "most", claim.limit, judge_verdict(&claim),
               claim.detail);
    }
    fflush(stdout);
    all_hold = all_hold && judge_holds(&claim);
}

static bool check_all(const struct settings *settings, const char *trace)
{
    struct outcome recorded;
    struct outcome off[2];
    struct outcome roomy;
    struct outcome sampled;
    struct outcome swapped;
    struct outcome hybrid;
    uint64_t budget;
    double d2h = 0.0;
    double h2d = 0.0;

    if (!carry_out(settings,
                   &(struct run){.mode = CAPU_MODE_OFF, .is_recorded = true, .trace_path = trace},
                   &recorded)) {
        return false;
    }
    budget = recorded.live_peak_bytes / 100 * settings->percent;
    /* Memory first: it needs no quiet machine, and its failure says the most. */
    if (!carry_out(settings,
                   &(struct run){.mode = CAPU_MODE_GUIDED,
                                 .budget_bytes = budget,
                                 .is_recorded = true,
                                 .is_sampled = true},
                   &sampled)) {
        return false;
    }
    show(settings, judge_memory(budget, &sampled));
    show(settings, judge_steady(&settings->judge, "guided mode becomes steady", &sampled));
    show(settings, judge_calls(&sampled));
    show(settings, judge_growth(&sampled));
    if (!carry_out(settings, &(struct run){.mode = CAPU_MODE_OFF}, &off[0]) ||
        !carry_out(settings, &(struct run){.mode = CAPU_MODE_GUIDED, .is_recorded = true},
                   &roomy) ||
        !carry_out(settings, &(struct run){.mode = CAPU_MODE_OFF}, &off[1])) {
        return false;
    }
    show(settings,
         judge_steady(&settings->judge, "guided with nothing evicted becomes steady", &roomy));
    show(settings, judge_no_overhead(&settings->judge, off, &roomy));
    if (!carry_out(
            settings,
            &(struct run){.mode = CAPU_MODE_GUIDED, .budget_bytes = budget, .is_recorded = true},
            &hybrid)) {
        return false;
    }
    show(settings, judge_steady(&settings->judge, "planner hybrid becomes steady", &hybrid));
    show(settings,
         judge_prediction(&settings->judge, "overhead beside its prediction, planner hybrid", off,
                          &hybrid));
    if (!carry_out(settings,
                   &(struct run){.mode = CAPU_MODE_GUIDED,
                                 .planner = "swap",
                                 .budget_bytes = budget,
                                 .is_recorded = true},
                   &swapped) ||
        !read_rates(trace, &d2h, &h2d)) {
        return false;
    }
    show(settings, judge_steady(&settings->judge, "planner swap becomes steady", &swapped));
    show(settings, judge_overlap(&settings->judge, off, &swapped, d2h, h2d));
    show(settings, judge_prediction(&settings->judge,
                                    "overhead beside its prediction, planner swap", off, &swapped));
    return true;
}

static bool make_tokens(struct settings *settings)
{
    size_t count = 2 * (size_t)settings->batch * settings->shape.length;
    uint32_t random = 1;

    settings->tokens = calloc(count, sizeof(*settings->tokens));
    for (size_t i = 0; settings->tokens != NULL && i < count; i++) {
        random = random * 1664525u + 1013904223u;
        settings->tokens[i] = (int32_t)(random >> 24);
    }
    return settings->tokens != NULL;
}

static bool read_arguments(int argc, char **argv, struct settings *settings)
{
    for (int i = 1; i < argc; i++) {
        const struct {
            const char *name;
            unsigned *number;
            unsigned most;
        } numbers[] = {{"--batch", &settings->batch, 4096},
                       {"--layers", &settings->shape.layers, 256},
                       {"--channels", &settings->shape.channels, 4096},
                       {"--heads", &settings->shape.heads, 256},
                       {"--seq", &settings->shape.length, 4096},
                       {"--vocab", &settings->shape.vocabulary, 1 << 20},
                       {"--steps", &settings->judge.steps, STEPS_MAX},
                       {"--settle", &settings->judge.settle, 10 * STEPS_MAX},
                       {"--percent", &settings->percent, 100}};
        bool is_known = true;

        if (strcmp(argv[i], "--json") == 0) {
            settings->wants_json = true;
        } else if (strcmp(argv[i], "--untimed") == 0) {
            settings->judge.is_untimed = true;
        } else {
            is_known = false;
            for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++) {
                if (strcmp(argv[i], numbers[n].name) == 0 && i + 1 < argc) {
                    long number = strtol(argv[++i], NULL, 10);

                    *numbers[n].number = (unsigned)number;
                    is_known = number > 0 && number <= (long)numbers[n].most;
                    break;
                }
            }
        }
        if (!is_known) {
            fprintf(stderr,
                    "usage: %s [--json] [--untimed] [--layers N] [--channels N] [--heads N] "
                    "[--seq N] [--vocab N] [--batch N] [--steps N] [--settle N] [--percent N]\n",
                    argv[0]);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct settings settings = {.shape = {.layers = 12,
                                          .channels = 768,
                                          .heads = 12,
                                          .length = 1024,
                                          .align = 64,
                                          .vocabulary = 50304},
                                .batch = 8,
                                .judge = {.steps = 10, .settle = 120},
                                .percent = 60};
    char trace[] = "/tmp/gpu_claims.XXXXXX";
    int count = 0;
    int file;
    bool is_through;

    if (!read_arguments(argc, argv, &settings)) {
        return 2;
    }
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        printf("skipped: there is no GPU\n");
        return NO_GPU;
    }
    file = mkstemp(trace);
    if (file < 0 || !make_tokens(&settings) || cudaSetDevice(0) != cudaSuccess ||
        cudaStreamCreateWithFlags(&settings.stream, cudaStreamNonBlocking) != cudaSuccess) {
        fprintf(stderr, "gpu_claims: cannot create a file or a stream, or out of memory\n");
        return 1;
    }
    is_through = check_all(&settings, trace);
    close(file);
    unlink(trace);
    (void)cudaStreamDestroy(settings.stream);
    free(settings.tokens);
    return is_through && all_hold ? 0 : 1;
}
