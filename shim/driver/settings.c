/* Reading the environment, see settings.h. */
#include "shim/driver/settings.h"

#include "shim/driver/log.h"

#include "base/environment.h"
#include "capuchin/capuchin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct settings settings;

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static const char *path_variable(const char *name)
{
    return environment_is_secure() ? NULL : variable(name);
}

/* A path in which "%p" stands for the process's ID, so that the processes that a program starts do
   not write the same file. */
static const char *process_path(const char *name)
{
    const char *from = path_variable(name);
    const char *mark = from != NULL ? strstr(from, "%p") : NULL;
    char *path = NULL;
    size_t bytes = 0;
    FILE *out;

    if (mark == NULL || (out = open_memstream(&path, &bytes)) == NULL) {
        return from;
    }
    for (; mark != NULL; mark = strstr(from, "%p")) {
        fprintf(out, "%.*s%ld", (int)(mark - from), from, (long)getpid());
        from = mark + strlen("%p");
    }
    fputs(from, out);
    return fclose(out) == 0 ? path : NULL;
}

static void refuse_value(const char *name, const char *value)
{
    log_line("%s=%s is not understood: start the program with `capuchin run`", name, value);
    settings.is_wrong = true;
}

static void read_size(const char *name, uint64_t *bytes)
{
    const char *value = variable(name);

    if (value != NULL && capu_parse_size(value, bytes) != CAPU_OK) {
        refuse_value(name, value);
    }
}

/* "75%" or a size. */
static void read_budget(void)
{
    const char *value = variable("CAPU_RUN_BUDGET");
    char *end = NULL;
    double percent;

    if (value == NULL || strchr(value, '%') == NULL) {
        read_size("CAPU_RUN_BUDGET", &settings.budget_bytes);
        return;
    }
    percent = strtod(value, &end);
    if (strcmp(end, "%") != 0 || !(percent > 0.0 && percent <= 100.0)) {
        refuse_value("CAPU_RUN_BUDGET", value);
        return;
    }
    settings.budget_share = percent / 100.0;
}

static void read_all(void)
{
    const char *mode = variable("CAPU_RUN_MODE");

    if (mode == NULL) {
        return;
    }
    settings.is_managed = true;
    if (strcmp(mode, "passive") == 0) {
        settings.mode = CAPU_MODE_PASSIVE;
    } else if (strcmp(mode, "guided") == 0) {
        settings.mode = CAPU_MODE_GUIDED;
    } else if (strcmp(mode, "off") == 0) {
        settings.mode = CAPU_MODE_OFF;
    } else {
        refuse_value("CAPU_RUN_MODE", mode);
    }
    settings.is_strict = variable("CAPU_RUN_STRICT") != NULL;
    settings.compiles = variable("CAPU_RUN_JIT") != NULL;
    settings.trusts_parameters = variable("CAPU_RUN_TRUST") != NULL;
    settings.recomputes = variable("CAPU_RUN_RECOMPUTE") != NULL;
    settings.report_path = process_path("CAPU_RUN_REPORT");
    settings.operands_path = process_path("CAPU_RUN_OPERANDS");
    settings.iterations_path = process_path("CAPU_RUN_ITERATIONS");
    settings.iteration_kernel = variable("CAPU_RUN_ITERATION_KERNEL");
    settings.iteration_range = variable("CAPU_RUN_ITERATION_RANGE");
    read_budget();
    read_size("CAPU_RUN_HOST_BUDGET", &settings.host_bytes);
    read_size("CAPU_RUN_PRETEND", &settings.pretend_bytes);
}

const struct settings *settings_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, read_all);
    return &settings;
}
