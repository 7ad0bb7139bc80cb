/* A library that asks for functions of the driver. Built under several names, by which the shim
   tells callers apart. */
#include <stdint.h>
#include <stdlib.h>

__attribute__((visibility("default"))) void *ask_from(void *find, const char *name, int version,
                                                      uint64_t flags);

void *ask_from(void *find, const char *name, int version, uint64_t flags)
{
    int (*function)(const char *, void **, int, uint64_t, int *) =
        (int (*)(const char *, void **, int, uint64_t, int *))find;
    void *found = NULL;
    int status;

    return function(name, &found, version, flags, &status) == 0 ? found : NULL;
}
