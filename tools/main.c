/* capuchin: plans and simulates training iterations. Dispatch to the subcommands. */
#include "tools/commands.h"

#include "tools/exit_code.h"
#include "tools/say.h"

#include "capuchin/version.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    {"explain", "why an iteration was slow, from a report file", explain_main},
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

/* Without this, a file that is opened would take the place of an output that is closed. What writes
   there fails, as it would have. */
static void fill_closed_outputs(void)
{
    while (fcntl(STDERR_FILENO, F_GETFD) < 0 || fcntl(STDOUT_FILENO, F_GETFD) < 0 ||
           fcntl(STDIN_FILENO, F_GETFD) < 0) {
        if (open("/dev/null", O_RDONLY) < 0) {
            return;
        }
    }
}

/* The last of all, also behind argp's --help: an answer that did not arrive is a failure. */
static void finish_output(void)
{
    bool had_failed = ferror(stdout) != 0;

    errno = 0;
    if (fclose(stdout) == 0 && !had_failed) {
        return;
    }
    if (errno != 0) {
        say_unwritten("standard output");
    } else {
        say("standard output: cannot be written");
    }
    _exit(EXIT_USAGE);
}

int main(int argc, char **argv)
{
    static char name[64];

    fill_closed_outputs();
    (void)atexit(finish_output);
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
    if (strcmp(argv[1], "--version") == 0) {
        puts("capuchin " CAPU_VERSION_STRING);
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
