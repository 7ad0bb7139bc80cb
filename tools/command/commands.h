/* The subcommands. Each has a file of its own, but check and bound, which are with simulate, and
   maxbatch and machines, which are with model. */
#ifndef CAPU_TOOLS_COMMANDS_H
#define CAPU_TOOLS_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The subcommands: argv[0] is the subcommand's name. They return exit codes. */
int plan_main(int argc, char **argv);
int simulate_main(int argc, char **argv);
int check_main(int argc, char **argv);
int bound_main(int argc, char **argv);
int advise_main(int argc, char **argv);
int sweep_main(int argc, char **argv);
int model_main(int argc, char **argv);
int maxbatch_main(int argc, char **argv);
int replay_main(int argc, char **argv);
int explain_main(int argc, char **argv);
int kernels_main(int argc, char **argv);
int run_main(int argc, char **argv);
int machines_main(int argc, char **argv);
int timeline_main(int argc, char **argv);
int top_main(int argc, char **argv);

/* explain_main with the reports of several ranks: explains them together, to stdout. `iteration`,
   unless it is 0, is the number of an iteration of the lowest rank, and then only its step counts.
   False: an error has been printed. */
bool explain_ranks(char *const *paths, size_t count, uint64_t iteration);

#endif
