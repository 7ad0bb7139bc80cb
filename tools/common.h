/* What the subcommands share: exit codes, loading, output, machines. */
#ifndef CAPU_TOOLS_COMMON_H
#define CAPU_TOOLS_COMMON_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "policy/plan.h"
#include "policy/planner.h"
#include "policy/timeline.h"
#include "policy/trace.h"
#include "policy/trace_index.h"

enum exit_code { EXIT_FINE = 0, EXIT_USAGE = 2, EXIT_NO_PLAN = 3, EXIT_NONE_FOUND = 4 };

/* A trace, turned round, and the machine it is to run on. */
struct subject {
    struct trace trace;
    struct trace_index trace_index;
    struct machine machine;
};

/* Loads and indexes; `machine_name` NULL: the trace's own. False: said why on standard error. */
bool subject_load(struct subject *subject, const char *path, const char *machine_name,
                  uint64_t page_bytes);
void subject_finish(struct subject *subject);

/* Writes to the file, or to standard output for NULL. */
bool write_output(const char *path, const struct string_buffer *text);

/* A name of the built-in list, or a file with a machine line. */
bool machine_load(const char *name, struct machine *machine);

/* The exit code for what a planner answered; says why on standard error. */
int exit_of_plan(capu_status status, const struct error_text *error);

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says that a file could not be written, and why by errno. */
void say_unwritten(const char *path);

/* 12.34 GiB, 567.8 ms: for people. `buffer` has 32 bytes. */
const char *show_bytes(uint64_t bytes, char *buffer);
const char *show_ns(uint64_t ns, char *buffer);

/* The subcommands: argv[0] is the subcommand's name. They return exit codes. */
int plan_main(int argc, char **argv);
int simulate_main(int argc, char **argv);
int check_main(int argc, char **argv);
int bound_main(int argc, char **argv);
int sweep_main(int argc, char **argv);
int model_main(int argc, char **argv);
int maxbatch_main(int argc, char **argv);
int replay_main(int argc, char **argv);
int explain_main(int argc, char **argv);
int machines_main(int argc, char **argv);

#endif
