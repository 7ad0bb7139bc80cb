/*
 * capuchin run: starts a CUDA program with the library that stands in for the driver, which puts it
 * under a budget. The command only checks, sets the environment and becomes the program; the
 * library's own README is shim/README.md.
 */
#define _GNU_SOURCE /* dlinfo */

#include "tools/command/arguments.h"
#include "tools/command/commands.h"
#include "tools/output/output.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The file of a program that is to be started with a preloaded library. */

static bool is_program(const char *path)
{
    struct stat file;

    return stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

/* Looks in the folders of $PATH; an empty one is the current folder. */
static bool search_path(const char *name, char path[PATH_MAX])
{
    const char *folders = getenv("PATH");

    while (folders != NULL) {
        size_t length = strcspn(folders, ":");

        if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, folders, length > 0 ? "/" : "./",
                     name) < PATH_MAX &&
            is_program(path)) {
            return true;
        }
        folders = folders[length] == ':' ? folders + length + 1 : NULL;
    }
    return false;
}

/* Finds a program as a shell does: by its path, or in the folders of $PATH. False: it is not there,
   and an error has been printed. */
static bool program_file_find(const char *name, char path[PATH_MAX])
{
    struct stat file;

    if (strchr(name, '/') == NULL) {
        if (!search_path(name, path)) {
            say("run: there is no program %s in the folders of PATH", name);
            return false;
        }
        return true;
    }
    if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX) {
        say("run: the path of the program is too long");
        return false;
    }
    if (stat(path, &file) != 0) {
        say("run: %s: %s", path, strerror(errno));
        return false;
    }
    if (!is_program(path)) {
        say("run: %s: not a program that can be executed", path);
        return false;
    }
    return true;
}

/* Whether the kernel gives the program rights that the user does not have. The loader then ignores
   LD_PRELOAD. */
static bool has_other_rights(int descriptor, const struct stat *file)
{
    return ((file->st_mode & S_ISUID) != 0 && file->st_uid != geteuid()) ||
           ((file->st_mode & S_ISGID) != 0 && file->st_gid != getegid()) ||
           fgetxattr(descriptor, "security.capability", NULL, 0) > 0;
}

/* Whether a program asks for the loader. */
static bool has_loader(int descriptor, const Elf64_Ehdr *header)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr part;

        if (pread(descriptor, &part, sizeof(part),
                  (off_t)(header->e_phoff + (uint64_t)i * header->e_phentsize)) !=
            (ssize_t)sizeof(part)) {
            return false;
        }
        if (part.p_type == PT_INTERP) {
            return true;
        }
    }
    return false;
}

static bool check_open(const char *path, int descriptor)
{
    Elf64_Ehdr header;
    struct stat file;
    ssize_t count;

    memset(&header, 0, sizeof(header));
    count = pread(descriptor, &header, sizeof(header), 0);

    if (count < 0 || fstat(descriptor, &file) != 0) {
        say("run: %s: %s", path, strerror(errno));
        return false;
    }
    if (has_other_rights(descriptor, &file)) {
        say("run: %s runs with the rights of another user or with capabilities, so no library can "
            "be preloaded; start it as that user, from a copy without these rights",
            path);
        return false;
    }
    if (count >= 2 && memcmp(header.e_ident, "#!", 2) == 0) {
        return true;
    }
    if (count != (ssize_t)sizeof(header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        say("run: %s: neither a program nor a script that names its interpreter", path);
        return false;
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
        say("run: %s: a program for another kind of machine than x86-64", path);
        return false;
    }
    if (!has_loader(descriptor, &header)) {
        say("run: %s %s linked statically, so no library can be preloaded; link it dynamically "
            "(CUDA's libraries may stay static)",
            path, header.e_type == ET_DYN ? "is a library, or" : "is");
        return false;
    }
    return true;
}

/* Whether a library can be preloaded into it: not into statically linked programs, and not into
   those that run with the rights of another user. A script is fine, since its interpreter counts.
   False: an error has been printed. */
static bool program_file_check(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    bool is_fine;

    if (descriptor < 0) {
        say("run: %s: %s", path, strerror(errno));
        return false;
    }
    is_fine = check_open(path, descriptor);
    (void)close(descriptor);
    return is_fine;
}

#define LIBRARY "libcapuchin-interpose.so"
#define NVTX_LIBRARY "NVTX_INJECTION64_PATH" /* the library that NVTX loads */

enum key {
    KEY_MODE = KEY_OWN,
    KEY_HOST_BUDGET,
    KEY_REPORT,
    KEY_OPERANDS,
    KEY_ITERATIONS,
    KEY_ITERATION_KERNEL,
    KEY_ITERATION_RANGE,
    KEY_PRETEND,
    KEY_STRICT,
    KEY_JIT,
    KEY_TRUST,
    KEY_RECOMPUTE,
    KEY_DRIVER
};

struct settings {
    const char *budget;
    const char *host_budget;
    const char *mode;
    const char *report;
    const char *operands;
    const char *iterations;
    const char *iteration_kernel;
    const char *iteration_range;
    const char *pretend;
    const char *driver;
    bool is_strict;
    bool compiles;
    bool trusts_parameters;
    bool recomputes;
    char **program; /* its name and arguments; NULL at the end */
};

/* A size or a percentage, as the library reads it. */
static const char *check_budget(const char *argument, struct argp_state *state)
{
    if (strchr(argument, '%') != NULL) {
        (void)arguments_percent("budget", argument, 0.0, 100.0, state);
        if (strtod(argument, NULL) == 0.0) {
            argp_error(state, "--budget %s: must be above 0", argument);
        }
    } else {
        (void)arguments_bytes("budget", argument, 1, state);
    }
    return argument;
}

static const char *check_size(const char *option, const char *argument, struct argp_state *state)
{
    (void)arguments_bytes(option, argument, 1, state);
    return argument;
}

/* A regular expression, as the library reads it. */
static const char *check_pattern(const char *argument, struct argp_state *state)
{
    char why[256];
    regex_t pattern;
    int result = regcomp(&pattern, argument, REG_EXTENDED | REG_NOSUB);

    if (result != 0) {
        (void)regerror(result, &pattern, why, sizeof(why));
        argp_error(state, "--iteration-kernel %s: %s", argument, why);
    } else {
        regfree(&pattern);
    }
    return argument;
}

static error_t parse_run_option(int key, char *argument, struct argp_state *state)
{
    static const char *const modes[] = {"passive", "guided", "off", NULL};
    struct settings *settings = state->input;

    switch (key) {
    case KEY_BUDGET:
        settings->budget = check_budget(argument, state);
        return 0;
    case KEY_HOST_BUDGET:
        settings->host_budget = check_size("host-budget", argument, state);
        return 0;
    case KEY_PRETEND:
        settings->pretend = check_size("pretend", argument, state);
        return 0;
    case KEY_MODE:
        settings->mode = modes[arguments_word("mode", argument, modes, state)];
        return 0;
    case KEY_REPORT:
        settings->report = argument;
        return 0;
    case KEY_OPERANDS:
        settings->operands = argument;
        return 0;
    case KEY_ITERATIONS:
        settings->iterations = argument;
        return 0;
    case KEY_ITERATION_KERNEL:
        settings->iteration_kernel = check_pattern(argument, state);
        return 0;
    case KEY_ITERATION_RANGE:
        settings->iteration_range = argument;
        return 0;
    case KEY_STRICT:
        settings->is_strict = true;
        return 0;
    case KEY_JIT:
        settings->compiles = true;
        return 0;
    case KEY_TRUST:
        settings->trusts_parameters = true;
        return 0;
    case KEY_RECOMPUTE:
        settings->recomputes = true;
        return 0;
    case KEY_DRIVER:
        settings->driver = argument;
        return 0;
    case ARGP_KEY_ARGS:
        settings->program = state->argv + state->next;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "PROGRAM is missing");
        return 0;
    case ARGP_KEY_END:
        if (settings->recomputes && strcmp(settings->mode, "guided") != 0) {
            argp_error(state, "--recompute needs --mode guided");
        }
        if (settings->iteration_kernel != NULL && settings->iteration_range != NULL) {
            argp_error(state, "--iteration-kernel cannot be combined with --iteration-range");
        }
        if (settings->iteration_range != NULL && getenv(NVTX_LIBRARY) != NULL) {
            argp_error(state, "--iteration-range needs " NVTX_LIBRARY
                              ", which is set: another tool uses NVTX");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Whether a file of a path can be made. */
static bool can_be_made(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int length = slash != NULL ? (int)(slash - path) + 1 : 0;

    return snprintf(folder, sizeof(folder), "%.*s.", length, path) < PATH_MAX &&
           access(folder, W_OK | X_OK) == 0;
}

/* Whether a file can be written when the program has run, which may take days. What an earlier run
   has left there must not be taken for what this one writes, so it is deleted. */
static bool check_output(const char *option, const char *path)
{
    struct stat file;

    if (path == NULL) {
        return true;
    }
    if (lstat(path, &file) != 0) {
        if (errno == ENOENT && path[0] != '\0' && can_be_made(path)) {
            return true;
        }
    } else if (S_ISDIR(file.st_mode)) {
        errno = EISDIR;
    } else if (access(path, W_OK) == 0 && (!S_ISREG(file.st_mode) || truncate(path, 0) == 0)) {
        return true;
    }
    say("run: --%s %s: %s", option, path, strerror(errno));
    return false;
}

/* The folder of this command, and a path from there. False: it does not exist. */
static bool find_near(const char *path, char found[PATH_MAX])
{
    char command[PATH_MAX];
    char joined[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", command, sizeof(command) - 1);
    char *slash;

    command[length > 0 ? length : 0] = '\0';
    slash = strrchr(command, '/');
    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    snprintf(joined, sizeof(joined), "%s/%s", command, path);
    return realpath(joined, found) != NULL;
}

static bool find_library(char path[PATH_MAX])
{
    if (!find_near("../lib/capuchin/" LIBRARY, path) &&
        !find_near("../" CAPUCHIN_LIBRARY_FOLDER "/capuchin/" LIBRARY, path)) {
        say("run: " LIBRARY " is not there: it belongs into the folder lib/capuchin beside the "
            "folder of this command, and is built for x86-64 only");
        return false;
    }
    if (strpbrk(path, " :") != NULL) {
        say("run: %s: a library whose path has blanks or colons cannot be preloaded", path);
        return false;
    }
    return true;
}

/* Whether the library can be preloaded. One that cannot is left out by the loader, which says so
   and starts the program, without a budget. */
static bool check_library(const char *path)
{
    if (dlopen(path, RTLD_LAZY | RTLD_LOCAL) == NULL) {
        say("run: " LIBRARY " cannot be loaded: %s", dlerror());
        return false;
    }
    return true;
}

/* The driver that the loader finds. */
static bool find_driver(const char *library, char path[PATH_MAX])
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    struct link_map *map = NULL;
    bool is_found;

    if (driver == NULL) {
        say("run: there is no CUDA driver: %s", dlerror());
        return false;
    }
    is_found = dlinfo(driver, RTLD_DI_LINKMAP, &map) == 0 && realpath(map->l_name, path) != NULL;
    (void)dlclose(driver);
    if (is_found && strcmp(path, library) == 0 && getenv("CAPU_RUN_MODE") != NULL) {
        say("run: this command is itself run by `capuchin run`: leave one of the two out");
        return false;
    }
    if (!is_found || strcmp(path, library) == 0) {
        say("run: the driver that the library path leads to is %s itself; correct LD_LIBRARY_PATH, "
            "or name the driver with --driver",
            LIBRARY);
        return false;
    }
    return true;
}

static bool set_variable(const char *name, const char *value)
{
    if (value == NULL) {
        return unsetenv(name) == 0;
    }
    return setenv(name, value, 1) == 0;
}

/* A file; the program may change its folder. */
static bool set_file(const char *name, const char *path)
{
    char folder[PATH_MAX];
    char whole[2 * PATH_MAX];

    if (path == NULL || path[0] == '/') {
        return set_variable(name, path);
    }
    if (getcwd(folder, sizeof(folder)) == NULL) {
        return false;
    }
    snprintf(whole, sizeof(whole), "%s/%s", folder, path);
    return set_variable(name, whole);
}

static bool set_preload(const char *library)
{
    const char *others = getenv("LD_PRELOAD");
    char *list = NULL;
    bool is_set;

    if (others == NULL || others[0] == '\0') {
        return set_variable("LD_PRELOAD", library);
    }
    if (asprintf(&list, "%s:%s", library, others) < 0) {
        return false;
    }
    is_set = set_variable("LD_PRELOAD", list);
    free(list);
    return is_set;
}

static bool set_environment(const struct settings *settings, const char *library,
                            const char *driver)
{
    return set_variable("CAPU_RUN_DRIVER", driver) &&
           set_variable("CAPU_RUN_MODE", settings->mode) &&
           set_variable("CAPU_RUN_BUDGET", settings->budget) &&
           set_variable("CAPU_RUN_HOST_BUDGET", settings->host_budget) &&
           set_variable("CAPU_RUN_PRETEND", settings->pretend) &&
           set_variable("CAPU_RUN_STRICT", settings->is_strict ? "1" : NULL) &&
           set_variable("CAPU_RUN_JIT", settings->compiles ? "1" : NULL) &&
           set_variable("CAPU_RUN_TRUST", settings->trusts_parameters ? "1" : NULL) &&
           set_variable("CAPU_RUN_RECOMPUTE", settings->recomputes ? "1" : NULL) &&
           set_file("CAPU_RUN_REPORT", settings->report) &&
           set_file("CAPU_RUN_OPERANDS", settings->operands) &&
           set_file("CAPU_RUN_ITERATIONS", settings->iterations) &&
           set_variable("CAPU_RUN_ITERATION_KERNEL", settings->iteration_kernel) &&
           set_variable("CAPU_RUN_ITERATION_RANGE", settings->iteration_range) &&
           (settings->iteration_range == NULL || set_variable(NVTX_LIBRARY, library)) &&
           set_preload(library);
}

/* Returns only if the program cannot be started. */
static void become_program(const struct settings *settings)
{
    char path[PATH_MAX];
    char library[PATH_MAX];
    char driver[PATH_MAX];

    if (!program_file_find(settings->program[0], path) || !program_file_check(path) ||
        !find_library(library) || !check_output("report", settings->report) ||
        !check_output("operands", settings->operands) ||
        !check_output("iterations", settings->iterations)) {
        return;
    }
    if (settings->driver == NULL) {
        if (!find_driver(library, driver)) {
            return;
        }
    } else if (realpath(settings->driver, driver) == NULL) {
        say("run: --driver %s: %s", settings->driver, strerror(errno));
        return;
    }
    if (!check_library(library)) {
        return;
    }
    if (!set_environment(settings, library, driver)) {
        say("run: the environment cannot be set: %s", strerror(errno));
        return;
    }
    (void)fflush(NULL);
    (void)signal(SIGXFSZ, SIG_DFL); /* which this command ignores */
    (void)execv(path, settings->program);
    say("run: %s: %s", path,
        errno == ENOENT ? "the loader or the interpreter that it names is not there"
                        : strerror(errno));
}

int run_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"budget", KEY_BUDGET, "SIZE", 0,
         "device memory for what the program allocates: a size, or a percentage of the device's "
         "memory (default: what is free)",
         0},
        {"host-budget", KEY_HOST_BUDGET, "SIZE", 0,
         "host memory for what does not fit (default: 40 % of what is available)", 0},
        {"mode", KEY_MODE, "MODE", 0,
         "passive: evict when memory runs out (default); guided: also find the iterations of the "
         "program, and plan them; off: evict nothing",
         0},
        {"iteration-kernel", KEY_ITERATION_KERNEL, "REGEX", 0,
         "guided: each launch of a kernel whose name matches begins an iteration (default: found "
         "from what repeats)",
         0},
        {"pretend", KEY_PRETEND, "SIZE", 0,
         "the device memory that the program is told of (default: the device's)", 0},
        {"strict", KEY_STRICT, NULL, 0,
         "check that launches touch only the memory that they are taken to touch; slow", 0},
        {"report", KEY_REPORT, "FILE", 0,
         "write a report when the program exits: its kernels, and what they needed; %p in the name "
         "of this and the other files is the process's ID",
         0},
        {"operands", KEY_OPERANDS, "FILE", 0,
         "write a line per launch: the memory that it is taken to touch, and how", 0},
        {"jit", KEY_JIT, NULL, 0,
         "where the PTX in the program is not that of its machine code, let the driver compile it: "
         "kernels can be understood then; results may differ in their last bits",
         0},
        {"trust-parameters", KEY_TRUST, NULL, 0,
         "kernels whose code is not understood touch only the allocations that addresses in their "
         "parameters lead to; wrong results where that is not so",
         0},
        {"recompute", KEY_RECOMPUTE, NULL, 0,
         "guided: also launch kernels again whose results were dropped, where that is faster than "
         "to copy them out and back; only those that certainly compute the same again",
         0},
        {"iteration-range", KEY_ITERATION_RANGE, "NAME", 0,
         "guided: each NVTX range of this name begins an iteration", 0},
        {"iterations", KEY_ITERATIONS, "FILE", 0,
         "guided: write a line per iteration, which `capuchin explain` reads", 0},
        {"driver", KEY_DRIVER, "FILE", 0,
         "the CUDA driver (default: the libcuda.so.1 that the loader finds)", 0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = parse_run_option,
        .args_doc = "[--] PROGRAM [ARGUMENT...]",
        .doc = "Runs a CUDA program, unmodified, within a budget of device memory.\v"
               "What works and what does not: docs/unmodified.md. The exit code is the program's.",
    };
    struct settings settings = {.mode = "passive"};

    arguments_read_first(&argp, argc, argv, &settings);
    become_program(&settings);
    return EXIT_USAGE;
}
