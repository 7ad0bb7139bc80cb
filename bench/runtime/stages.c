/*
 * How soon training is guided when it does not wait for plans, and how plans improve in stages:
 *
 *     bench_stages [--json] [TRACE...]
 *
 * Traces, or all networks of the zoo, of at most 5,000 ops run through the library on sim. An
 * iteration takes as long as a nap, since sim does not compute, so the planner has the processor's
 * other core. Planning time is CPU time: of the process without this thread.
 *
 * Target: the third iteration is guided, or the first that begins after 200 ms of planning CPU
 * time, whichever is later.
 */
#include "bench/runtime/bench.h"
#include "tools/output/progress.h"

#include "models/driver.h"
#include "models/zoo.h"
#include "policy/format/trace.h"
#include "policy/search/planner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES ((uint64_t)2 << 20)

/* PATIENCE: iterations, whose naps become longer: far longer than any plan takes. */
enum { OPS_MOST = 5000, PATIENCE = 400, TARGET_ITERATION = 3 };
#define TARGET_S 0.2
#define NAP_S 0.01
#define NAP_PART 0.05 /* of the time so far */

struct result {
    const char *name;
    uint32_t op_count;
    unsigned percent;
    size_t first;         /* iteration that is guided; 0: none */
    double first_cpu_s;   /* planning until it began */
    double passive_cpu_s; /* planning until the last one before it began */
    double cpu_s;         /* all planning */
    uint64_t stages;
    uint64_t first_ns; /* predicted for the first stage and the last */
    uint64_t last_ns;
    bool is_done;
};

static double cpu_of(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* CPU time of all threads but this one. */
static double planning_cpu(void)
{
    double thread = cpu_of(CLOCK_THREAD_CPUTIME_ID);

    return cpu_of(CLOCK_PROCESS_CPUTIME_ID) - thread;
}

static void nap(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&time, NULL);
}

static void expect_ok(capu_status status, const struct error_text *error)
{
    bench_expect(status == CAPU_OK, error->text);
}

/* Trains until planning has ended. */
static void train(struct driver *driver, struct result *result)
{
    static struct report reports[PATIENCE];
    static double cpu_s[PATIENCE];
    struct error_text error = {""};
    double begin = bench_now();
    double base = planning_cpu();

    for (size_t i = 0; i < PATIENCE && !result->is_done; i++) {
        const struct report *report = &reports[i];

        cpu_s[i] = planning_cpu() - base;
        expect_ok(driver_iterate(driver, &error), &error);
        expect_ok(driver_settle(driver, &error), &error);
        expect_ok(driver_reports(driver, reports, i + 1, &error), &error);
        if (report->mode == CAPU_MODE_GUIDED && result->first == 0) {
            result->first = i + 1;
            result->first_ns = report->predicted_ns;
            result->first_cpu_s = cpu_s[i];
            result->passive_cpu_s = i > 0 ? cpu_s[i - 1] : 0;
        }
        if (report->mode == CAPU_MODE_GUIDED) {
            result->stages = report->plan_stage;
            result->last_ns = report->predicted_ns;
        }
        result->cpu_s = cpu_s[i];
        result->is_done = i > 0 && report->planning_ns == 0;
        if (!result->is_done) {
            double part = (bench_now() - begin) * NAP_PART;

            nap(part > NAP_S ? part : NAP_S);
        }
    }
}

static void measure(const struct trace *trace, struct result *result)
{
    char path[] = "/tmp/capuchin-stages-XXXXXX";
    int file = mkstemp(path);
    struct error_text error = {""};
    struct trace_index trace_index;
    struct driver_options options = {.machine = &trace->machine,
                                     .mode = CAPU_MODE_GUIDED,
                                     .effort = EFFORT_DEFAULT,
                                     .trains_on = true,
                                     .report_path = path};
    struct driver *driver;

    bench_expect(file >= 0, "a temporary file");
    close(file);
    expect_ok(trace_index_init(&trace_index, trace, PAGE_BYTES, &error), &error);
    result->op_count = trace->op_count;
    options.budget_bytes = (uint64_t)((double)trace_index.peak_bytes * result->percent / 100);
    if (options.budget_bytes >= trace_index.floor_bytes) {
        expect_ok(driver_create(&trace_index, &options, &driver, &error), &error);
        train(driver, result);
        driver_destroy(driver);
    }
    trace_index_finish(&trace_index);
    unlink(path);
}

/* Whether no iteration that should have been guided was not. */
static bool meets_target(const struct result *result)
{
    return result->first != 0 &&
           (result->first <= TARGET_ITERATION || result->passive_cpu_s < TARGET_S);
}

static void print_table(const struct result *result)
{
    if (result->first == 0) {
        printf("%-18s %6" PRIu32 " %4u %% %9s\n", result->name, result->op_count, result->percent,
               "no plan");
        return;
    }
    printf("%-18s %6" PRIu32 " %4u %% %9zu %7.0f %s %9.0f%s %7" PRIu64 " %9.1f %9.1f\n",
           result->name, result->op_count, result->percent, result->first,
           result->first_cpu_s * 1e3, meets_target(result) ? "  " : " !", result->cpu_s * 1e3,
           result->is_done ? " " : "+", result->stages, (double)result->first_ns * 1e-6,
           (double)result->last_ns * 1e-6);
}

static void print_json(const struct result *result)
{
    printf("{\"bench\":\"stages\",\"name\":\"%s\",\"op_count\":%" PRIu32
           ",\"budget_percent\":%u,\"first_guided\":%zu,\"first_cpu_s\":%.6f,"
           "\"meets_target\":%s,\"planning_cpu_s\":%.6f,\"is_done\":%s,\"stages\":%" PRIu64
           ",\"first_predicted_ns\":%" PRIu64 ",\"last_predicted_ns\":%" PRIu64 "}\n",
           result->name, result->op_count, result->percent, result->first, result->first_cpu_s,
           meets_target(result) ? "true" : "false", result->cpu_s,
           result->is_done ? "true" : "false", result->stages, result->first_ns, result->last_ns);
}

static const unsigned percents[] = {70, 50}; /* of the peak */

enum { BUDGETS = sizeof(percents) / sizeof(percents[0]) };

/* False: a plan was late. */
static bool run(const char *name, const struct trace *trace, bool wants_json)
{
    bool is_fine = true;

    for (size_t i = 0; trace->op_count <= OPS_MOST && i < BUDGETS && !progress_should_stop(NULL);
         i++) {
        struct result result = {.name = name, .percent = percents[i]};

        measure(trace, &result);
        progress_step();
        progress_clear();
        (wants_json ? print_json : print_table)(&result);
        fflush(stdout);
        is_fine = is_fine && (result.first == 0 || meets_target(&result));
    }
    return is_fine;
}

static bool run_zoo(bool wants_json)
{
    struct hardware hardware;
    struct error_text error = {""};
    uint64_t count = 0;
    bool is_fine = true;

    bench_expect(hardware_load(&hardware, "p100", NULL) == CAPU_OK, "the machine");
    for (const struct zoo_model *model = zoo_models; model->name != NULL; model++) {
        count += BUDGETS;
    }
    progress_begin("measuring", count, 0.0);
    for (const struct zoo_model *model = zoo_models;
         model->name != NULL && !progress_should_stop(NULL); model++) {
        struct zoo_options options = {.batch = 32};
        struct trace trace;

        expect_ok(zoo_build(model, &options, &hardware, &trace, NULL, &error), &error);
        is_fine = run(model->name, &trace, wants_json) && is_fine;
        trace_finish(&trace);
    }
    return is_fine;
}

static bool run_file(const char *path, bool wants_json)
{
    const char *slash = strrchr(path, '/');
    struct error_text error = {""};
    struct trace trace;
    bool is_fine;

    expect_ok(trace_load(&trace, path, &error), &error);
    is_fine = run(slash != NULL ? slash + 1 : path, &trace, wants_json);
    trace_finish(&trace);
    return is_fine;
}

int main(int count, char **arguments)
{
    bool wants_json = count > 1 && strcmp(arguments[1], "--json") == 0;
    int first = wants_json ? 2 : 1;
    bool is_fine = true;

    if (count > first && arguments[first][0] == '-') {
        printf("bench_stages [--json] [TRACE...]: how soon training is guided; without traces, on "
               "networks of the zoo\n");
        return strcmp(arguments[first], "--help") == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (!wants_json) {
        printf("first guided iteration, and planning before it and in all, in ms of CPU time; "
               "predicted ms of the first stage and the last; !: later than the target\n"
               "%-18s %6s %6s %9s %7s    %9s  %7s %9s %9s\n",
               "name", "ops", "budget", "iteration", "plan", "planning", "stages", "first", "last");
    }
    progress_begin("measuring", (uint64_t)(count - first) * BUDGETS, 0.0);
    for (int i = first; i < count && !progress_should_stop(NULL); i++) {
        is_fine = run_file(arguments[i], wants_json) && is_fine;
    }
    if (first == count) {
        is_fine = run_zoo(wants_json);
    }
    return progress_end() ? EXIT_STOPPED : is_fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
