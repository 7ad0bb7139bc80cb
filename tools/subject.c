/* Loads what the subcommands work on. */
#include "tools/subject.h"

#include "models/hardware.h"
#include "tools/say.h"

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
