/* A library with the name of the driver that has nothing but cuGetProcAddress, which prints what it
   is asked for: name, version and flags. Every function that it gives says that there is no device,
   so a runtime goes no further. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { NO_DEVICE = 100 };

__attribute__((visibility("default"))) int
cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status);

static int fail(void)
{
    return NO_DEVICE;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
    if (name[0] != '\0') {
        printf("%s %d %d\n", name, version, (int)flags);
    }
    *function = strcmp(name, "cuGetProcAddress") == 0 ? (void *)cuGetProcAddress_v2 : (void *)fail;
    if (status != NULL) {
        *status = 0;
    }
    return 0;
}
