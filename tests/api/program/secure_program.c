/*
 * secure_program [DEVICE [SHIM]]: trains for three empty iterations, then calls the driver through
 * the library that stands in for it. secure_test.sh installs it as a set-user-ID program and lets
 * another user start it.
 */
#include "capuchin/capuchin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/auxv.h>

static const char *text_of(const char *path)
{
    return path != NULL ? path : "none";
}

static const char *setting_of(const capu_config *config, const char *name, char text[PATH_MAX])
{
    if (capu_config_get(config, name, text, PATH_MAX) != CAPU_OK) {
        return "?";
    }
    return text[0] != '\0' ? text : "none";
}

static int train(const char *device)
{
    char error[512] = "";
    capu_config config = CAPU_CONFIG_INIT;
    char plan[PATH_MAX];
    char folder[PATH_MAX];
    const capu_config *used;
    capu_context *context;

    config.device = device;
    config.error = error;
    config.error_bytes = sizeof(error);
    if (capu_context_create(&config, &context) != CAPU_OK) {
        printf("error=%s\n", error);
        return 1;
    }
    used = capu_context_config(context);
    printf("report=%s trace=%s plan=%s plugins=%s budget=%llu\n", text_of(used->report_path),
           text_of(used->trace_path), setting_of(used, "plan", plan),
           setting_of(used, "plugin_folder", folder), (unsigned long long)used->budget_bytes);
    for (int i = 0; i < 3; i++) {
        if (capu_iteration_begin(context, NULL) != CAPU_OK ||
            capu_iteration_end(context) != CAPU_OK) {
            printf("error=%s\n", capu_last_error(context));
        }
    }
    capu_context_destroy(context);
    return 0;
}

static void call_driver(const char *shim)
{
    void *library = dlopen(shim, RTLD_NOW);
    int (*start)(unsigned) = NULL;

    if (library != NULL) {
        *(void **)&start = dlsym(library, "cuInit");
    }
    printf("driver=%d\n", start != NULL ? start(0) : -1);
}

int main(int count, char **arguments)
{
    int result;

    printf("secure=%lu\n", getauxval(AT_SECURE));
    result = train(count > 1 ? arguments[1] : NULL);
    if (count > 2) {
        call_driver(arguments[2]);
    }
    return result;
}
