/*
 * Planning time by number of ops, on networks of equal layers: three forward ops per layer (one
 * expensive, two cheap), four backward ops, one update. The budget is half of the peak.
 *
 *     bench_policy_growth [quick|default] [OPS_MAX] [PAGE]
 *
 * Besides the whole time, when the first plan is found, and how long the lower bound takes. With
 * PAGE the plans have place lines, in pages of that many bytes, and the time of placement is
 * printed as well.
 */
#include "policy/bound/bound_iteration.h"
#include "policy/model/timeline.h"
#include "policy/place/place.h"
#include "policy/search/planner.h"
#include "tools/output/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define OPS_PER_LAYER 8

static double cpu_seconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint32_t tensor(struct trace *trace, capu_kind kind, uint64_t bytes)
{
    struct tensor_description description = {.name = "t", .bytes = bytes, .kind = kind};
    uint32_t id = 0;

    trace_add_tensor(trace, &description, &id, NULL);
    return id;
}

/* Adds an op with reads, and at most one write and one update (UINT32_MAX: none). */
static void op(struct trace *trace, uint64_t ns, const uint32_t *reads, size_t read_count,
               uint32_t write, uint32_t update)
{
    struct op_description description = {.name = "op",
                                         .ns = ns,
                                         .reads = reads,
                                         .read_count = read_count,
                                         .writes = &write,
                                         .write_count = write != UINT32_MAX,
                                         .updates = &update,
                                         .update_count = update != UINT32_MAX,
                                         .replayable = update == UINT32_MAX};

    trace_add_op(trace, &description, NULL);
}

static bool build(struct trace *trace, uint32_t layers)
{
    const struct machine machine = {.name = "bench",
                                    .d2h_bytes_per_s = 12000000000,
                                    .h2d_bytes_per_s = 12000000000,
                                    .copy_latency_ns = 10000};
    uint32_t *made = malloc(((size_t)layers + 1) * 4 * sizeof(*made));
    uint32_t gradient;

    if (made == NULL || trace_init(trace, "growth", NULL) != CAPU_OK) {
        free(made);
        return false;
    }
    trace_set_machine(trace, &machine, NULL);
    made[3] = tensor(trace, CAPU_INPUT, 8 << 20);
    op(trace, 10000, NULL, 0, made[3], UINT32_MAX);
    for (uint32_t i = 1; i <= layers; i++) {
        uint32_t *own = made + (size_t)i * 4;

        own[0] = tensor(trace, CAPU_PARAMETER, 1 << 20);
        for (uint32_t j = 1; j < 4; j++) {
            own[j] = tensor(trace, CAPU_ACTIVATION, 8 << 20);
        }
        op(trace, 200000, (uint32_t[]){own[-1], own[0]}, 2, own[1], UINT32_MAX);
        op(trace, 20000, (uint32_t[]){own[1]}, 1, own[2], UINT32_MAX);
        op(trace, 20000, (uint32_t[]){own[2]}, 1, own[3], UINT32_MAX);
    }
    gradient = tensor(trace, CAPU_GRADIENT, 8 << 20);
    op(trace, 10000, (uint32_t[]){made[(size_t)layers * 4 + 3]}, 1, gradient, UINT32_MAX);
    for (uint32_t i = layers; i > 0; i--) {
        uint32_t *own = made + (size_t)i * 4;
        uint32_t weight = tensor(trace, CAPU_GRADIENT, 1 << 20);
        uint32_t next[3];

        for (uint32_t j = 0; j < 3; j++) {
            next[j] = tensor(trace, CAPU_GRADIENT, 8 << 20);
        }
        op(trace, 20000, (uint32_t[]){gradient, own[3]}, 2, next[0], UINT32_MAX);
        op(trace, 20000, (uint32_t[]){next[0], own[2]}, 2, next[1], UINT32_MAX);
        op(trace, 200000, (uint32_t[]){next[1], own[-1]}, 2, weight, UINT32_MAX);
        op(trace, 200000, (uint32_t[]){next[1], own[0]}, 2, next[2], UINT32_MAX);
        op(trace, 20000, &weight, 1, UINT32_MAX, own[0]);
        gradient = next[2];
    }
    free(made);
    return true;
}

static capu_status measure_placing(const struct trace_index *trace_index, struct plan *plan,
                                   double *ms)
{
    struct place_result result;
    double begin = cpu_seconds();
    capu_status status = place_plan(trace_index, NULL, plan, &result, NULL);

    *ms = 1e3 * (cpu_seconds() - begin);
    return status;
}

/* When the first plan was found. */
struct first {
    double begin;
    double seconds; /* 0: none yet */
};

static void note_plan(void *user, const struct program *program, uint64_t predicted_ns)
{
    struct first *first = user;

    (void)program;
    (void)predicted_ns;
    if (first->seconds == 0.0) {
        first->seconds = cpu_seconds() - first->begin;
    }
}

static double measure_bound(const struct trace_index *trace_index, uint64_t budget_bytes)
{
    double begin = cpu_seconds();

    bound_iteration(trace_index, &trace_index->trace->machine, budget_bytes);
    return 1e3 * (cpu_seconds() - begin);
}

static bool measure(uint32_t ops, enum plan_effort effort, uint64_t page_bytes)
{
    struct planner_request request = {.host_bytes = UINT64_MAX, .effort = effort};
    struct timeline timeline = {0};
    struct error_text error = {""};
    struct rusage usage;
    struct trace trace;
    struct trace_index trace_index = {0};
    struct plan plan = {0};
    struct first first = {0};
    double seconds = 0.0;
    double bound_ms = 0.0;
    double placing_ms = 0.0;
    capu_status status = CAPU_NO_HOST_MEMORY;

    if (build(&trace, ops / OPS_PER_LAYER)) {
        status = trace_index_init(&trace_index, &trace, page_bytes > 0 ? page_bytes : 1, &error);
    }
    if (status == CAPU_OK) {
        request.trace_index = &trace_index;
        request.budget_bytes = trace_index.peak_bytes / 2;
        request.place = page_bytes > 0;
        request.improved = note_plan;
        request.user = &first;
        bound_ms = measure_bound(&trace_index, request.budget_bytes);
        first.begin = cpu_seconds();
        status = planner_run(&planners[0], &request, &plan, &error);
        seconds = cpu_seconds() - first.begin;
    }
    if (status == CAPU_OK) {
        status = timeline_init(&timeline, &trace_index, &plan, NULL, false, &error);
    }
    if (status == CAPU_OK && page_bytes > 0) {
        status = measure_placing(&trace_index, &plan, &placing_ms);
    }
    getrusage(RUSAGE_SELF, &usage);
    progress_clear();
    if (status == CAPU_OK) {
        printf("| %u | %.1f | %.3f | %.1f | %.1f | %.1f | %ld |", trace.op_count,
               1e3 * first.seconds, seconds, 1e6 * seconds / trace.op_count, bound_ms,
               100.0 * timeline_overhead(&timeline),
               usage.ru_maxrss * 1024 / (long)(trace.op_count + trace.tensor_count));
        if (page_bytes > 0) {
            printf(" %.1f |", placing_ms);
        }
        printf("\n");
        fflush(stdout);
    } else {
        fprintf(stderr, "%u ops: %s\n", ops, error.text);
    }
    timeline_finish(&timeline);
    plan_finish(&plan);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
    return status == CAPU_OK;
}

int main(int argc, char **argv)
{
    enum plan_effort effort =
        argc > 1 && strcmp(argv[1], "default") == 0 ? EFFORT_DEFAULT : EFFORT_QUICK;
    uint32_t most = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 100000;
    uint64_t page_bytes = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    uint64_t total = 0;
    bool is_fine = true;

    printf(
        "| ops | first plan, ms | seconds | us per op | bound, ms | overhead %% | bytes of memory "
        "per op and tensor |%s\n",
        page_bytes > 0 ? " placement alone, ms |" : "");
    printf("| --- | --- | --- | --- | --- | --- | --- |%s\n", page_bytes > 0 ? " --- |" : "");
    for (uint32_t ops = 100; ops <= most; ops = ops * 10 / 3) {
        total += ops;
    }
    /* A step per op: planning takes about as long per op, however many there are. */
    progress_begin("planning", total, 0.0);
    for (uint32_t ops = 100; is_fine && ops <= most && !progress_should_stop(NULL);
         ops = ops * 10 / 3) {
        is_fine = measure(ops, effort, page_bytes);
        progress_steps(ops);
    }
    return progress_end() ? EXIT_STOPPED : is_fine ? 0 : 1;
}
