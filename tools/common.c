/* What the subcommands share. */
#include "tools/common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void say(const char *format, ...)
{
    va_list arguments;

    fputs("capuchin: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

void say_unwritten(const char *path)
{
    say("%s: cannot be written: %s", path, strerror(errno));
}

bool subject_load(struct subject *subject, const char *path, const char *machine_name,
                  uint64_t page_bytes)
{
    struct error_text error = {""};

    *subject = (struct subject){0};
    if (trace_load(&subject->trace, path, &error) != CAPU_OK ||
        trace_index_init(&subject->trace_index, &subject->trace, page_bytes, &error) != CAPU_OK) {
        say("%s", error.text[0] != '\0' ? error.text : "out of memory");
        subject_finish(subject);
        return false;
    }
    subject->machine = subject->trace.machine;
    if (machine_name != NULL && !machine_load(machine_name, &subject->machine)) {
        subject_finish(subject);
        return false;
    }
    if (machine_name == NULL && !subject->trace.has_machine) {
        say("%s names no machine: give one with --machine, or record it in mode guided or with "
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

bool write_output(const char *path, const struct string_buffer *text)
{
    FILE *file;
    bool is_fine;

    if (path == NULL) {
        (void)fwrite(text->data, 1, text->length, stdout); /* main looks how that ended */
        return true;
    }
    file = fopen(path, "wb");
    is_fine = file != NULL && fwrite(text->data, 1, text->length, file) == text->length;
    if (file != NULL && fclose(file) != 0) {
        is_fine = false;
    }
    if (!is_fine) {
        say_unwritten(path);
    }
    return is_fine;
}

int exit_of_plan(capu_status status, const struct error_text *error)
{
    if (status == CAPU_OK) {
        return EXIT_FINE;
    }
    say("%s", error->text[0] != '\0' ? error->text : "out of memory");
    return status == CAPU_OVER_BUDGET   ? EXIT_NO_PLAN
           : status == CAPU_UNSUPPORTED ? EXIT_NONE_FOUND
                                        : EXIT_USAGE;
}

const char *show_bytes(uint64_t bytes, char *buffer)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024.0 && unit < sizeof(units) / sizeof(units[0]) - 1) {
        value /= 1024.0;
        unit++;
    }
    snprintf(buffer, 32, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return buffer;
}

const char *show_ns(uint64_t ns, char *buffer)
{
    snprintf(buffer, 32, "%.3f ms", (double)ns / 1e6);
    return buffer;
}
