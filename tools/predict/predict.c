#include "tools/predict/predict.h"

#include "policy/bound/bound.h"
#include "policy/model/timeline.h"
#include "tools/output/progress.h"

capu_status predict_iteration(const struct planner *planner, const struct trace_index *trace_index,
                              const struct machine *machine, uint64_t budget_bytes,
                              capu_effort effort, uint64_t *ns, struct error_text *error)
{
    struct planner_request request = {.trace_index = trace_index,
                                      .machine = machine,
                                      .budget_bytes = budget_bytes,
                                      .host_bytes = UINT64_MAX,
                                      .effort = effort,
                                      .should_stop = progress_should_stop};
    struct program program;
    struct plan plan;
    capu_status status = planner_run_program(planner, &request, &plan, &program, error);

    if (status == CAPU_OK) {
        status = timeline_time(&program, machine, 0, ns);
        program_finish(&program);
        plan_finish(&plan);
    }
    return status;
}

double predict_overhead(const struct trace_index *trace_index, uint64_t ns)
{
    uint64_t ideal_ns = trace_index->trace->total_ns;

    return ideal_ns > 0 ? 100.0 * ((double)ns / (double)ideal_ns - 1.0) : 0.0;
}

uint64_t curves_budget(const struct subject *subject, unsigned percent)
{
    uint64_t peak = subject->trace_index.peak_bytes;

    return peak / 100 * percent + peak % 100 * percent / 100;
}

const char *curve_name(const struct curve *curve)
{
    return curve->planner != NULL ? curve->planner->name : "bound";
}

static double overhead_of(const struct subject *subject, const struct planner *planner,
                          uint64_t budget, capu_effort effort)
{
    uint64_t ns;

    return predict_iteration(planner, &subject->trace_index, &subject->machine, budget, effort, &ns,
                             NULL) == CAPU_OK
               ? predict_overhead(&subject->trace_index, ns)
               : -1.0;
}

static double bound_of(const struct subject *subject, uint64_t budget)
{
    const struct trace_index *trace_index = &subject->trace_index;

    return budget < trace_index->floor_bytes || subject->trace.total_ns == 0
               ? -1.0
               : predict_overhead(trace_index,
                                  bound_iteration(trace_index, &subject->machine, budget));
}

bool curves_measure(struct curves *curves, const struct subject *subject,
                    const struct curves_range *range, capu_effort effort)
{
    struct curve *bound = &curves->items[curves->item_count];
    unsigned budgets = (range->to - range->from) / range->step + 1;
    bool is_stopped = false;

    bound->planner = NULL;
    progress_begin("comparing planners", (uint64_t)budgets * curves->item_count, 0.0);
    for (unsigned percent = range->from; percent <= range->to && !is_stopped;
         percent += range->step) {
        uint64_t budget = curves_budget(subject, percent);
        unsigned at = curves->count;

        for (unsigned i = 0; i < curves->item_count && !is_stopped; i++) {
            progress_note("%s at %u %%", curve_name(&curves->items[i]), percent);
            curves->items[i].overhead[at] =
                overhead_of(subject, curves->items[i].planner, budget, effort);
            is_stopped = progress_should_stop(NULL);
            progress_step();
        }
        if (!is_stopped) {
            curves->percent[at] = percent;
            bound->overhead[at] = bound_of(subject, budget);
            curves->count++;
        }
    }
    curves->item_count++;
    return progress_end();
}
