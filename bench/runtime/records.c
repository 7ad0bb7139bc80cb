/*
 * How much memory the records of iterations take per op: a steady loop of ops with four operands,
 * each of which updates a tensor of its own and reads three others, on sim, in passive mode and
 * under a plan that has nothing to do. The records are counted by their elements; what the process
 * holds more for each op in its resident memory also includes the marks on the compute stream and,
 * in guided mode, the plan. Two lengths give what one op more costs.
 */
#include "bench/runtime/bench.h"
#include "tools/output/progress.h"

#include "runtime/api/context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHORT = 50000, LONG = 150000, ITERATIONS = 16, PAGE = 1 << 12, OPERANDS = 4 };

static capu_status nothing(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}

struct result {
    double resident; /* more after the iterations than before */
    double recorded; /* of the newest record */
};

static struct result measure(uint32_t mode, size_t ops)
{
    capu_config config = CAPU_CONFIG_INIT;
    void **tensors = malloc(ops * sizeof(*tensors));
    struct result result;
    capu_context *context;

    config.device = "sim";
    config.mode = mode;
    config.budget_bytes = (uint64_t)1 << 30;
    config.page_bytes = PAGE;
    (void)capu_config_set(&config, "planner", "lru");
    config.wait_for_plan = 1;
    bench_expect(tensors != NULL && capu_context_create(&config, &context) == CAPU_OK, "context");
    for (size_t i = 0; i < ops; i++) {
        BENCH_OK(context, capu_malloc(context, PAGE, &tensors[i]));
    }
    result.resident = (double)bench_resident_bytes();
    for (size_t turn = 0; turn < ITERATIONS; turn++) {
        BENCH_OK(context, capu_iteration_begin(context, "train"));
        for (size_t i = 0; i < ops; i++) {
            capu_operand operands[OPERANDS];
            capu_op op = {.size = sizeof(op),
                          .name = "layer_forward",
                          .run = nothing,
                          .operands = operands,
                          .operand_count = OPERANDS};

            operands[0] = turn == 0 ? capu_writes(tensors[i]) : capu_updates(tensors[i]);
            for (size_t k = 1; k < OPERANDS; k++) {
                operands[k] = capu_reads(tensors[i >= k ? i - k : i]);
            }
            op.operand_count = i >= OPERANDS ? OPERANDS : 1;
            BENCH_OK(context, capu_run(context, &op));
        }
        BENCH_OK(context, capu_iteration_end(context));
        BENCH_OK(context, capu_synchronize(context));
    }
    result.resident = (double)bench_resident_bytes() - result.resident;
    result.recorded = (double)record_bytes(context->records.tracker.newest);
    capu_context_destroy(context);
    free(tensors);
    return result;
}

int main(int count, char **arguments)
{
    static const char *const modes[] = {"", "off", "passive", "guided"};
    bool wants_json = bench_wants_json(count, arguments,
                                       "bench_records [--json]: memory that records take per op\n");

    if (!wants_json) {
        printf("bytes per op of %d operands\n%-8s %10s %22s\n", OPERANDS, "mode", "one record",
               "resident in the process");
    }
    progress_begin("measuring", CAPU_MODE_GUIDED - CAPU_MODE_PASSIVE + 1, 0.0);
    for (uint32_t mode = CAPU_MODE_PASSIVE; mode <= CAPU_MODE_GUIDED && !progress_should_stop(NULL);
         mode++) {
        struct result few = measure(mode, SHORT);
        struct result many = measure(mode, LONG);

        progress_step();
        progress_clear();
        printf(wants_json ? "{\"bench\":\"records\",\"mode\":\"%s\",\"record_bytes_per_op\":%.1f,"
                            "\"resident_bytes_per_op\":%.1f}\n"
                          : "%-8s %10.1f %22.1f\n",
               modes[mode], (many.recorded - few.recorded) / (LONG - SHORT),
               (many.resident - few.resident) / (LONG - SHORT));
    }
    return progress_end() ? EXIT_STOPPED : EXIT_SUCCESS;
}
