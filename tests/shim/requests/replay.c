/*
 * replay <LIST: asks the driver, which is libcapuchin-interpose in front of another, for functions
 * by name, version and flags, and prints of each what came: forwarded, the symbol that wraps it,
 * refused, or missing.
 */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int (*find_function)(const char *, void **, int, uint64_t, int *);

/* A refusal has no symbol of its own. */
static const char *kind(const void *function)
{
    Dl_info info;

    if (function == NULL) {
        return "missing";
    }
    if (dladdr(function, &info) == 0) {
        return "unknown";
    }
    if (strstr(info.dli_fname, "libcapuchin-interpose") == NULL) {
        return "forwarded";
    }
    return info.dli_saddr == function ? info.dli_sname : "refused";
}

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    find_function find =
        driver != NULL ? (find_function)dlsym(driver, "cuGetProcAddress_v2") : NULL;
    char name[96];
    int version;
    int flags;

    if (find == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    while (scanf("%95s %d %d", name, &version, &flags) == 3) {
        void *function = NULL;
        int status = 0;

        (void)find(name, &function, version, (uint64_t)flags, &status);
        printf("%s %d %d %s\n", name, version, flags, kind(function));
    }
    return 0;
}
