/* What most subcommands work on, and how long iterations take under plans for it. */
#include "tools/predict/predict.h"

#include "models/hardware.h"
#include "policy/bound/bound_iteration.h"
#include "policy/model/timeline.h"
#include "tools/output/output.h"
#include "tools/output/progress.h"

#include <inttypes.h>
#include <stddef.h>

/* Loads a machine by its name, or from a file with a machine line. False: an error has been
 * printed.
 */
static bool find_machine(const char *name, struct machine *machine)
{
    struct hardware hardware;
    struct error_text error = {""};

    if (hardware_load(&hardware, name, &error) != CAPU_OK) {
        say_error(&error);
        return false;
    }
    *machine = hardware.machine;
    return true;
}

bool subject_trace(struct trace *trace, const char *path)
{
    struct error_text error = {""};

    if (trace_load(trace, path, &error) != CAPU_OK) {
        say_error(&error);
        return false;
    }
    if (trace->may_be_cut) {
        say("%s: warning: the trace has no end line: it may be cut", path);
    }
    return true;
}

const char *subject_machine_file(const char *name)
{
    struct hardware hardware;

    return name == NULL || hardware_find(&hardware, name) ? NULL : name;
}

bool subject_load(struct subject *subject, const char *path, const char *machine_name,
                  uint64_t page_bytes)
{
    struct error_text error = {""};

    *subject = (struct subject){0};
    if (!subject_trace(&subject->trace, path)) {
        return false;
    }
    if (trace_index_init(&subject->trace_index, &subject->trace, page_bytes, &error) != CAPU_OK) {
        say_error(&error);
        subject_finish(subject);
        return false;
    }
    subject->machine = subject->trace.machine;
    if (machine_name != NULL && !find_machine(machine_name, &subject->machine)) {
        subject_finish(subject);
        return false;
    }
    if (machine_name == NULL && !subject->trace.has_machine) {
        say("%s contains no machine: pass --machine, or record the trace in guided mode or with "
            "CAPUCHIN_D2H and CAPUCHIN_H2D set",
            path);
        subject_finish(subject);
        return false;
    }
    return true;
}

void subject_finish(struct subject *subject)
{
    trace_index_finish(&subject->trace_index);
    trace_finish(&subject->trace);
}

static bool is_touched(const struct trace *trace, uint32_t tensor)
{
    for (uint32_t i = 0; i < trace->operand_count; i++) {
        if (trace->operands[i] == tensor) {
            return true;
        }
    }
    return false;
}

/* The trace of a run lists persistent tensors that no op touches after all others. The run's plans
   do not have them: they stay on the host. */
static void leave_untouched(struct trace *trace, const struct plan *plan)
{
    uint32_t count = trace->tensor_count;

    while (plan->trace_tensors < count && trace->tensors[count - 1].persistent &&
           !is_touched(trace, count - 1)) {
        count--;
    }
    if (count == plan->trace_tensors && count < trace->tensor_count) {
        say("tensors that no op touches, which the plan leaves on the host: %" PRIu32,
            trace->tensor_count - count);
        while (trace->tensor_count > count) {
            trace->total_bytes -= trace->tensors[--trace->tensor_count].bytes;
        }
    }
}

bool subject_plan(struct subject *subject, const char *path, struct plan *plan)
{
    uint32_t tensor_count = subject->trace.tensor_count;
    struct error_text error = {""};
    capu_status status;

    if (path == NULL) {
        status = plan_init(plan, trace_text(&subject->trace, subject->trace.name),
                           subject->trace_index.peak_bytes, 1);
        plan->fixed_bytes = subject->trace_index.fixed_bytes;
    } else {
        status = plan_load(plan, path, &error);
    }
    if (status == CAPU_OK) {
        leave_untouched(&subject->trace, plan);
    }
    if (status == CAPU_OK && (plan->page_bytes != subject->trace_index.page_bytes ||
                              subject->trace.tensor_count != tensor_count)) {
        trace_index_finish(&subject->trace_index);
        status = trace_index_init(&subject->trace_index, &subject->trace, plan->page_bytes, &error);
    }
    if (status != CAPU_OK) {
        say_error(&error);
        plan_finish(plan);
    }
    return status == CAPU_OK;
}

/* Predictions. */

capu_status predict_iteration(const struct planner *planner, const struct trace_index *trace_index,
                              const struct machine *machine, uint64_t budget_bytes,
                              enum plan_effort effort, uint64_t *ns, struct error_text *error)
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
                          uint64_t budget, enum plan_effort effort)
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
                    const struct curves_range *range, enum plan_effort effort)
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
