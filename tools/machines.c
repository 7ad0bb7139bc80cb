/* capuchin machines: lists the machines known by name. */
#include "tools/commands.h"

#include "models/hardware.h"
#include "tools/exit_code.h"

#include <argp.h>
#include <inttypes.h>
#include <stdio.h>

static void print_json(const struct hardware *hardware)
{
    const struct machine *machine = &hardware->machine;

    printf("{\"type\":\"machine\",\"name\":\"%s\",\"memory_bytes\":%" PRIu64
           ",\"d2h_bytes_per_s\":%" PRIu64 ",\"h2d_bytes_per_s\":%" PRIu64
           ",\"copy_latency_ns\":%" PRIu64,
           machine->name, machine->memory_bytes, machine->d2h_bytes_per_s, machine->h2d_bytes_per_s,
           machine->copy_latency_ns);
    for (unsigned i = 0; i < DTYPE_COUNT; i++) {
        if (hardware->flops_per_s[i] != 0) {
            printf(",\"%s_flops_per_s\":%" PRIu64, dtype_name((enum dtype)i),
                   hardware->flops_per_s[i]);
        }
    }
    printf(",\"memory_bytes_per_s\":%" PRIu64 ",\"product_percent\":%" PRIu64
           ",\"memory_percent\":%" PRIu64 ",\"launch_ns\":%" PRIu64 ",\"text\":\"%s\"}\n",
           hardware->memory_bytes_per_s, hardware->product_percent, hardware->memory_percent,
           hardware->launch_ns, hardware->text);
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

static error_t parse_option(int key, char *argument, struct argp_state *state)
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
                                     parse_option,
                                     "",
                                     "Lists the machines known by name, with the rates of their "
                                     "links and the peak rates of their "
                                     "data sheets.",
                                     NULL,
                                     NULL,
                                     NULL};
    struct hardware hardware;
    bool as_json = false;

    argp_parse(&argp, argc, argv, 0, NULL, &as_json);
    for (unsigned i = 0; hardware_builtin(&hardware, i); i++) {
        if (as_json) {
            print_json(&hardware);
        } else {
            print_line(&hardware);
        }
    }
    return EXIT_FINE;
}
