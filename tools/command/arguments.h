/*
 * What several subcommands take: the trace and the options that mean the same in each. A subcommand
 * lists those it takes among its own argp options, with these keys, and hands every key that is not
 * its own to arguments_parse. A bad value ends the program with EXIT_USAGE and an error that names
 * the option and the value.
 */
#ifndef CAPU_TOOLS_ARGUMENTS_H
#define CAPU_TOOLS_ARGUMENTS_H

#include "policy/search/planner.h"

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

enum arguments_key {
    KEY_BUDGET = 'b',
    KEY_MACHINE = 'm',
    KEY_OUTPUT = 'o',
    KEY_PLANNER = 'p',
    KEY_EFFORT = 256,
    KEY_HOST,
    KEY_HTML,
    KEY_JSON,
    KEY_PAGE,
    KEY_USAGE,
    KEY_OWN = 384 /* a subcommand's own keys start here */
};

struct arguments {
    const char *trace;
    const char *plan;
    const char *budget; /* as given: what a percentage refers to is known only after loading */
    const char *machine;
    const char *output; /* NULL: standard output */
    const char *html;   /* the page; NULL: none */
    const struct planner *planner;
    enum plan_effort effort;
    uint64_t host_bytes;
    uint64_t page_bytes;
    bool as_json;
    bool takes_trace; /* and requires one */
    bool takes_plan;  /* as an optional argument after the trace */
    bool needs_budget;
    bool runs_library; /* which has fewer planners */
};

/* The defaults of most subcommands: the first planner, default effort, unlimited host memory.
 */
#define ARGUMENTS_INIT                                                              \
    {                                                                               \
        .planner = &planners[0], .effort = EFFORT_DEFAULT, .host_bytes = UINT64_MAX \
    }

/* Parses a subcommand's command line as argp_parse does, with -h as well as --help. */
void arguments_read(const struct argp *argp, int argc, char **argv, void *input);

/* The same, but options end where the first argument is: those after it belong to another program.
 */
void arguments_read_first(const struct argp *argp, int argc, char **argv, void *input);

/* Handles a shared option or argument. Returns ARGP_ERR_UNKNOWN for all others. */
error_t arguments_parse(int key, char *argument, struct arguments *arguments,
                        struct argp_state *state);

/* The budget in bytes; a percentage refers to `whole`. False: it is neither a size above 0 nor a
 * percentage, and an error has been printed. Pre: a budget was given. */
bool arguments_budget(const struct arguments *arguments, uint64_t whole, uint64_t *bytes);

/* One value, for options that only one subcommand has. A number has digits and a point, nothing
   else; a percentage may end in "%". `words` ends with NULL; the answer is an index. */
uint64_t arguments_bytes(const char *option, const char *text, uint64_t least,
                         struct argp_state *state);
uint64_t arguments_count(const char *option, const char *text, uint64_t most,
                         struct argp_state *state);
double arguments_percent(const char *option, const char *text, double least, double most,
                         struct argp_state *state);
double arguments_seconds(const char *option, const char *text, struct argp_state *state);
unsigned arguments_word(const char *option, const char *text, const char *const *words,
                        struct argp_state *state);

/* The file to write; NULL, for standard output, if it is "-". */
const char *arguments_output(const char *path);

/* The planner named by the `length` characters; `of_library`: one that guided mode has, too. */
const struct planner *arguments_planner(const char *option, const char *name, size_t length,
                                        bool of_library, struct argp_state *state);

#endif
