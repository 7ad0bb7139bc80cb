/* capuchin: plans and simulates training iterations. Dispatch to the subcommands. */
#include "tools/common.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"plan", "make a plan for a trace under a budget", plan_main},
    {"simulate", "time a trace, with or without a plan", simulate_main},
    {"check", "say whether a trace, or a plan for it, is valid", check_main},
    {"bound", "a lower bound on the iteration time under a budget", bound_main},
    {"sweep", "overhead against budget, for several planners", sweep_main},
    {"model", "the trace of a known network on a known machine", model_main},
    {"maxbatch", "the largest batch of a known network under a planner", maxbatch_main},
    {"replay", "run a trace through the runtime on a simulated device", replay_main},
    {"machines", "list the machines known by name", machines_main},
};

static void print_help(FILE *file)
{
    fputs("Usage: capuchin COMMAND [OPTION...]\n\n", file);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        fprintf(file, "  %-10s %s\n", commands[i].name, commands[i].summary);
    }
    fputs("\ncapuchin COMMAND --help tells more. Exit code: 0; 2 for bad usage or files;\n"
          "3 where no plan exists; 4 where none was found.\n",
          file);
}

int main(int argc, char **argv)
{
    static char name[64];

    /* argp leaves with this code on bad usage. */
    argp_err_exit_status = EXIT_USAGE;
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return EXIT_FINE;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            snprintf(name, sizeof(name), "capuchin %s", commands[i].name);
            argv[1] = name;
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    say("no command \"%s\"", argv[1]);
    print_help(stderr);
    return EXIT_USAGE;
}
