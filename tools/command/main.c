/* capuchin: plans and simulates training iterations. Dispatch to the subcommands. */
#include "tools/command/commands.h"

#include "tools/output/output.h"

#include "capuchin/version.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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
    {"plan", "make a plan for a trace within a budget", plan_main},
    {"simulate", "compute how long an iteration takes, with or without a plan", simulate_main},
    {"check", "check whether a trace, and a plan for it, are valid", check_main},
    {"bound", "compute a lower bound on the iteration time within a budget", bound_main},
    {"advise", "list what would make an iteration faster within a budget", advise_main},
    {"sweep", "compare planners over a range of budgets", sweep_main},
    {"model", "write the trace of a known network on a known machine", model_main},
    {"maxbatch", "find the largest batch of a known network that fits", maxbatch_main},
    {"replay", "run a trace through the runtime on a simulated device", replay_main},
    {"explain", "explain from a report file why an iteration was slow", explain_main},
    {"kernels", "analyse the kernels of a CUDA program", kernels_main},
    {"run", "run a CUDA program, unmodified, within a budget", run_main},
    {"timeline", "write the timeline of iterations for ui.perfetto.dev", timeline_main},
    {"top", "show running programs that offer their counters", top_main},
    {"machines", "list the machines known by name", machines_main},
};

static void print_help(FILE *file)
{
    fputs("Usage: capuchin COMMAND [OPTION...]\n\n", file);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        fprintf(file, "  %-10s %s\n", commands[i].name, commands[i].summary);
    }
    fputs("\nRun 'capuchin COMMAND -h' for the options of a command.\n\n"
          "Exit codes: 0 success; 2 bad usage, or a file that cannot be read or written;\n"
          "3 no plan exists for the budget; 4 the planner found no plan; 130 stopped by SIGINT,\n"
          "after printing the best result so far if there is one.\n"
          "A file is replaced only when its new contents are complete, so a failure leaves it.\n",
          file);
}

/* If the caller closed standard output, the first file that is opened would get its descriptor, and
   the results with it. /dev/null takes the place; it is read-only, so that writing still fails. */
static void fill_closed_outputs(void)
{
    while (fcntl(STDERR_FILENO, F_GETFD) < 0 || fcntl(STDOUT_FILENO, F_GETFD) < 0 ||
           fcntl(STDIN_FILENO, F_GETFD) < 0) {
        if (open("/dev/null", O_RDONLY) < 0) {
            return;
        }
    }
}

/* Runs at exit, also after argp's --help: a result that could not be written is a failure. */
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
    /* A file that grows beyond the limit is an error of that file, like a full disk. */
    (void)signal(SIGXFSZ, SIG_IGN);
    /* argp exits with this code on bad usage. */
    argp_err_exit_status = EXIT_USAGE;
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0 ||
        strcmp(argv[1], "help") == 0) {
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
    say("there is no command \"%s\"", argv[1]);
    print_help(stderr);
    return EXIT_USAGE;
}
