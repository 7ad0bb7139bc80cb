/* Loads machines, and estimates how long an op takes on one. */
#include "models/hardware.h"

#include "policy/format/json_lines.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

__asm__(".pushsection .rodata\n"
        "machines_begin: .incbin \"" MACHINES_FILE "\"\n"
        "machines_end:\n"
        ".popsection\n");
extern const char machines_begin[];
extern const char machines_end[];

#define PERCENT_MAX 100
#define FLOPS_MAX ((uint64_t)1 << 62)

static const char *const names[DTYPE_COUNT] = {"fp32", "tf32", "fp16", "bf16"};

const char *dtype_name(enum dtype dtype)
{
    return names[dtype];
}

/* Reads what a trace contains of a machine: the trace reader gets the line under a header of its
 * own, so that both accept the same. */
static capu_status read_machine(const char *file, const char *line, size_t length,
                                struct machine *machine, struct error_text *error)
{
    struct string_buffer text = {0};
    struct trace trace;
    capu_status status = string_buffer_format(&text, "{\"type\":\"trace\",\"version\":1}\n");

    if (status == CAPU_OK) {
        status = string_buffer_append(&text, line, length);
    }
    if (status == CAPU_OK) {
        status = trace_read(&trace, file, text.data, text.length, error);
    }
    if (status == CAPU_OK) {
        if (trace.has_machine) {
            *machine = trace.machine;
        } else {
            status = error_text_set(error, CAPU_FILE_FAILED, "%s: contains no machine line", file);
        }
        trace_finish(&trace);
    }
    string_buffer_finish(&text);
    return status;
}

/* Reads the current line. */
static capu_status read_hardware(struct json_lines *lines, const char *line, size_t length,
                                 struct hardware *hardware)
{
    const char *text = "";
    capu_status status = read_machine(lines->file, line, length, &hardware->machine, lines->error);

    for (unsigned i = 0; status == CAPU_OK && i < DTYPE_COUNT; i++) {
        char key[32];

        snprintf(key, sizeof(key), "%s_flops_per_s", names[i]);
        status = json_lines_number(lines, lines->value, key, false, FLOPS_MAX,
                                   &hardware->flops_per_s[i]);
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, lines->value, "memory_bytes_per_s", false, TRACE_RATE_MAX,
                                   &hardware->memory_bytes_per_s);
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, lines->value, "product_percent", false, PERCENT_MAX,
                                   &hardware->product_percent);
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, lines->value, "memory_percent", false, PERCENT_MAX,
                                   &hardware->memory_percent);
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, lines->value, "launch_ns", false, TRACE_NS_MAX,
                                   &hardware->launch_ns);
    }
    if (status == CAPU_OK) {
        status = json_lines_string(lines, lines->value, "text", false, &text);
    }
    snprintf(hardware->text, sizeof(hardware->text), "%s", text);
    return status;
}

/* Reads the line of that number. *found is false after the last one. */
static capu_status read_numbered(const char *file, const char *data, size_t data_length,
                                 unsigned number, struct hardware *hardware, bool *found,
                                 struct error_text *error)
{
    struct json_lines lines;
    size_t from = 0;
    capu_status status;

    *hardware = (struct hardware){.product_percent = PERCENT_MAX, .memory_percent = PERCENT_MAX};
    *found = true;
    json_lines_init(&lines, file, data, data_length, error);
    status = json_lines_next(&lines, found);
    for (; status == CAPU_OK && *found && number > 0; number--) {
        from = lines.offset;
        status = json_lines_next(&lines, found);
    }
    if (status == CAPU_OK && *found) {
        status = read_hardware(&lines, data + from, lines.offset - from, hardware);
    }
    json_lines_finish(&lines);
    return status;
}

bool hardware_builtin(struct hardware *hardware, unsigned number)
{
    bool found;

    return read_numbered("machines", machines_begin, (size_t)(machines_end - machines_begin),
                         number, hardware, &found, NULL) == CAPU_OK &&
           found;
}

bool hardware_find(struct hardware *hardware, const char *name)
{
    for (unsigned i = 0; hardware_builtin(hardware, i); i++) {
        if (strcmp(hardware->machine.name, name) == 0) {
            return true;
        }
    }
    return false;
}

capu_status hardware_load(struct hardware *hardware, const char *name, struct error_text *error)
{
    struct string_buffer text = {0};
    bool found = false;
    capu_status status;

    if (hardware_find(hardware, name)) {
        return CAPU_OK;
    }
    status = json_lines_load(name, &text, error);
    if (status != CAPU_OK && access(name, F_OK) != 0) {
        return error_text_set(
            error, CAPU_INVALID,
            "there is no machine \"%s\" and no such file ('capuchin machines' lists the machines)",
            name);
    }
    if (status == CAPU_OK && text.length > 0) {
        status = read_numbered(name, text.data, text.length, 0, hardware, &found, error);
    }
    if (status == CAPU_OK && !found) {
        status = error_text_set(error, CAPU_FILE_FAILED, "%s: contains no machine line", name);
    }
    string_buffer_finish(&text);
    return status;
}

capu_status hardware_check(const struct hardware *hardware, enum dtype dtype,
                           struct error_text *error)
{
    char has[64] = "";

    for (unsigned i = 0; i < DTYPE_COUNT; i++) {
        if (hardware->flops_per_s[i] != 0) {
            snprintf(has + strlen(has), sizeof(has) - strlen(has), " %s", names[i]);
        }
    }
    if (has[0] == '\0' || hardware->memory_bytes_per_s == 0 || hardware->product_percent == 0 ||
        hardware->memory_percent == 0) {
        return error_text_set(error, CAPU_INVALID,
                              "machine %s has no rates (*_flops_per_s and memory_bytes_per_s)",
                              hardware->machine.name);
    }
    if (hardware->flops_per_s[dtype] == 0) {
        return error_text_set(error, CAPU_INVALID,
                              "machine %s has no rate for %s; it has rates for%s",
                              hardware->machine.name, names[dtype], has);
    }
    return CAPU_OK;
}

uint64_t hardware_op_ns(const struct hardware *hardware, enum dtype dtype, double flops,
                        double bytes, unsigned launches)
{
    double product_ns = flops / ((double)hardware->flops_per_s[dtype] *
                                 (double)hardware->product_percent / 100.0 / 1e9);
    double memory_ns = bytes / ((double)hardware->memory_bytes_per_s *
                                (double)hardware->memory_percent / 100.0 / 1e9);
    double ns = product_ns > memory_ns ? product_ns : memory_ns;

    /* The trace rejects times above its limit; a cast of more than 2^64 would be undefined. */
    if (!(ns < (double)TRACE_NS_MAX)) {
        return TRACE_NS_MAX + 1;
    }
    return (uint64_t)ns + launches * hardware->launch_ns;
}
