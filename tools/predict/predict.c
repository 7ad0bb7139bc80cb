#include "tools/predict/predict.h"

#include "tools/output/progress.h"

#include "policy/model/timeline.h"

capu_status predict_iteration(const struct planner *planner, const struct trace_index *trace_index,
                              const struct machine *machine, uint64_t budget_bytes,
                              enum planner_effort effort, uint64_t *ns, struct error_text *error)
{
    struct planner_request request = {.trace_index = trace_index,
                                      .machine = machine,
                                      .budget_bytes = budget_bytes,
                                      .host_bytes = UINT64_MAX,
                                      .effort = effort,
                                      .should_stop = progress_should_stop};
    struct plan plan;
    capu_status status = planner_run(planner, &request, &plan, error);

    if (status == CAPU_OK) {
        status = timeline_time(trace_index, &plan, machine, 0, ns);
        plan_finish(&plan);
    }
    return status;
}

double predict_overhead(const struct trace_index *trace_index, uint64_t ns)
{
    uint64_t ideal_ns = trace_index->trace->total_ns;

    return ideal_ns > 0 ? 100.0 * ((double)ns / (double)ideal_ns - 1.0) : 0.0;
}
