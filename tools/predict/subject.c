/* Loads what the subcommands work on. */
#include "tools/predict/subject.h"

#include "models/hardware.h"
#include "tools/output/output.h"

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
