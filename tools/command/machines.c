/* capuchin machines: lists the machines known by name. */
#include "tools/command/commands.h"

#include "models/hardware.h"
#include "tools/command/arguments.h"
#include "tools/output/output.h"

#include <argp.h>
#include <inttypes.h>
#include <stdio.h>

static bool print_machines_json(const struct hardware *hardware)
{
    const struct machine *machine = &hardware->machine;
    json_t *line = json_pack("{s:s,s:s,s:I,s:I,s:I,s:I}", "type", "machine", "name", machine->name,
                             "memory_bytes", (json_int_t)machine->memory_bytes, "d2h_bytes_per_s",
                             (json_int_t)machine->d2h_bytes_per_s, "h2d_bytes_per_s",
                             (json_int_t)machine->h2d_bytes_per_s, "copy_latency_ns",
                             (json_int_t)machine->copy_latency_ns);
    json_t *rest = json_pack("{s:I,s:I,s:I,s:I,s:s}", "memory_bytes_per_s",
                             (json_int_t)hardware->memory_bytes_per_s, "product_percent",
                             (json_int_t)hardware->product_percent, "memory_percent",
                             (json_int_t)hardware->memory_percent, "launch_ns",
                             (json_int_t)hardware->launch_ns, "text", hardware->text);

    for (unsigned i = 0; i < DTYPE_COUNT; i++) {
        char key[32];

        snprintf(key, sizeof(key), "%s_flops_per_s", dtype_name((enum dtype)i));
        if (hardware->flops_per_s[i] != 0) {
            (void)json_object_set_new(line, key,
                                      json_integer((json_int_t)hardware->flops_per_s[i]));
        }
    }
    (void)json_object_update(line, rest);
    json_decref(rest);
    return output_json(stdout, line);
}

static void print_line(const struct hardware *hardware)
{
    printf("%-10s %-30s %3.0f GB/s out, %3.0f GB/s in, %4.0f GB/s memory; TFLOP/s:",
           hardware->machine.name, hardware->text, (double)hardware->machine.d2h_bytes_per_s / 1e9,
           (double)hardware->machine.h2d_bytes_per_s / 1e9,
           (double)hardware->memory_bytes_per_s / 1e9);
    for (unsigned i = 0; i < DTYPE_COUNT; i++) {
        if (hardware->flops_per_s[i] != 0) {
            printf(" %s %.1f", dtype_name((enum dtype)i), (double)hardware->flops_per_s[i] / 1e12);
        }
    }
    printf("\n");
}

static error_t parse_machines_option(int key, char *argument, struct argp_state *state)
{
    bool *as_json = state->input;

    (void)argument;
    if (key != 'j') {
        return ARGP_ERR_UNKNOWN;
    }
    *as_json = true;
    return 0;
}

int machines_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"json", 'j', NULL, 0, "Print machine lines in the format of traces", 0}, {0}};
    static const struct argp argp = {options,
                                     parse_machines_option,
                                     "",
                                     "Lists the machines known by name, with the rates of their "
                                     "links and the peak rates of their "
                                     "data sheets.",
                                     NULL,
                                     NULL,
                                     NULL};
    struct hardware hardware;
    bool as_json = false;

    arguments_read(&argp, argc, argv, &as_json);
    for (unsigned i = 0; hardware_builtin(&hardware, i); i++) {
        if (!as_json) {
            print_line(&hardware);
        } else if (!print_machines_json(&hardware)) {
            return EXIT_USAGE;
        }
    }
    return EXIT_FINE;
}
