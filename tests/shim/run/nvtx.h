/* The part of NVTX's header that makes ranges: function pointers that a library may set. */
#ifndef CAPU_TESTS_SHIM_NVTX_H
#define CAPU_TESTS_SHIM_NVTX_H

#include "shim/core/ranges.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    range_function functions[16]; /* by number; those of domains after them */
    range_function *core[16];
    range_function *core_2[16];
    void *step;
    bool by_domain;
} nvtx;

static int get_functions(int which, range_function ***table, unsigned *count)
{
    *table = which == RANGE_CORE ? nvtx.core : which == RANGE_CORE_2 ? nvtx.core_2 : NULL;
    *count = 16;
    return *table != NULL;
}

static const void *get_table(uint32_t what)
{
    static const struct range_callbacks callbacks = {sizeof(callbacks), get_functions};

    return what == RANGE_CALLBACKS ? &callbacks : NULL;
}

static inline void load_nvtx(bool by_domain)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
    int (*load)(range_export *) =
        library != NULL ? (int (*)(range_export *))dlsym(library, "InitializeInjectionNvtx2")
                        : NULL;
    void *(*get_string)(void *, const char *);

    for (int i = 0; i < 8; i++) {
        nvtx.core[2 + i] = &nvtx.functions[i]; /* up to RANGE_PUSH */
    }
    nvtx.core_2[RANGE_DOMAIN_PUSH_EX] = &nvtx.functions[8];
    nvtx.core_2[RANGE_DOMAIN_REGISTER] = &nvtx.functions[9];
    nvtx.by_domain = by_domain;
    if (load != NULL && load(get_table) == 0) {
        printf("NVTX: the library sets nothing\n");
    }
    get_string = (void *(*)(void *, const char *))nvtx.functions[9];
    nvtx.step = get_string != NULL ? get_string(NULL, "step") : NULL;
}

static inline void push_range(const char *name)
{
    struct range_attributes attributes = {.size = sizeof(attributes),
                                          .message_type = RANGE_REGISTERED,
                                          .message = strcmp(name, "step") == 0 ? nvtx.step : NULL};
    int (*push)(const char *) = (int (*)(const char *))nvtx.functions[RANGE_PUSH - 2];
    int (*push_in)(void *, const struct range_attributes *) =
        (int (*)(void *, const struct range_attributes *))nvtx.functions[8];

    if (nvtx.by_domain && push_in != NULL) {
        (void)push_in(NULL, &attributes);
    } else if (!nvtx.by_domain && push != NULL) {
        (void)push(name);
    }
}

#endif
