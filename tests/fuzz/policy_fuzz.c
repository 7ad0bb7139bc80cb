/*
 * Feeds bytes to the readers, and what they accept to everything after them. With libFuzzer (clang,
 * -DCAPUCHIN_FUZZ=ON) a fuzz target; otherwise a program that replays the files named, which the
 * test does with the corpus. The first byte selects the reader: 't' a trace, anything else a plan.
 */
#include "policy/bound/bound_iteration.h"
#include "policy/format/trace.h"
#include "policy/model/timeline.h"
#include "policy/model/validate.h"
#include "policy/search/planner.h"

#include "tests/unit/policy/fixture.h"

#include <stdio.h>

#define OPS_MAX 64 /* larger traces cost time and find nothing more */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void plan_trace(const struct trace *trace, const struct trace_index *trace_index, bool place)
{
    struct planner_request request = {.trace_index = trace_index,
                                      .budget_bytes =
                                          trace_index->floor_bytes +
                                          (trace_index->peak_bytes - trace_index->floor_bytes) / 3,
                                      .host_bytes = UINT64_MAX,
                                      .place = place,
                                      .effort = EFFORT_QUICK};

    for (const struct planner *planner = planners; planner->name != NULL; planner++) {
        struct error_text error = {""};
        struct plan plan;
        capu_status status = planner_run(planner, &request, &plan, &error);

        /* A planner whose plan is not valid returns INVALID with a place; that is a finding. */
        if (status == CAPU_INVALID && trace->has_machine) {
            fprintf(stderr, "%s: %s\n", planner->name, error.text);
            abort();
        }
        plan_finish(&plan);
    }
}

static void read_as_trace(const char *text, size_t size)
{
    struct error_text error;
    struct trace trace;
    struct trace_index trace_index;

    if (trace_read(&trace, "fuzz", text, size, &error) != CAPU_OK) {
        return;
    }
    if (trace.op_count <= OPS_MAX && trace_index_init(&trace_index, &trace, 1, &error) == CAPU_OK) {
        plan_trace(&trace, &trace_index, false);
        trace_index_finish(&trace_index);
    }
    /* Large pages, so that there are few. */
    if (trace.op_count <= OPS_MAX &&
        trace_index_init(&trace_index, &trace, TRACE_INDEX_PAGE_MAX, &error) == CAPU_OK) {
        plan_trace(&trace, &trace_index, true);
        trace_index_finish(&trace_index);
    }
    trace_finish(&trace);
}

static void read_as_plan(const char *text, size_t size)
{
    struct error_text error;
    struct timeline timeline;
    struct trace trace;
    struct trace_index trace_index;
    struct plan plan;

    if (plan_read(&plan, "fuzz", text, size, &error) != CAPU_OK) {
        return;
    }
    if (trace_read(&trace, "chain", CHAIN_TRACE, sizeof(CHAIN_TRACE) - 1, &error) != CAPU_OK) {
        abort();
    }
    if (trace_index_init(&trace_index, &trace, plan.page_bytes, &error) == CAPU_OK) {
        if (validate_plan(&trace_index, &plan, &error) == CAPU_OK &&
            timeline_init(&timeline, &trace_index, &plan, NULL, true, &error) == CAPU_OK) {
            if (timeline.iteration_ns < timeline.ideal_ns ||
                timeline.peak_bytes > plan.budget_bytes ||
                timeline.iteration_ns <
                    bound_iteration(&trace_index, &trace.machine, plan.budget_bytes)) {
                abort();
            }
            timeline_finish(&timeline);
        }
        trace_index_finish(&trace_index);
    }
    trace_finish(&trace);
    plan_finish(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == 't') {
        read_as_trace((const char *)data + 1, size - 1);
    } else if (size > 0) {
        read_as_plan((const char *)data + 1, size - 1);
    }
    return 0;
}

#ifndef CAPUCHIN_FUZZ
int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE...\n", argv[0]);
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        static char data[1 << 20];
        FILE *file = fopen(argv[i], "rb");
        size_t size;

        if (file == NULL) {
            perror(argv[i]);
            return 1;
        }
        size = fread(data, 1, sizeof(data), file);
        fclose(file);
        LLVMFuzzerTestOneInput((const uint8_t *)data, size);
    }
    return 0;
}
#endif
