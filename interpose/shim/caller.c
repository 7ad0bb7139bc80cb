/* Telling callers apart, see caller.h. */
#define _GNU_SOURCE /* dladdr1 */
#include "interpose/shim/caller.h"

#include "interpose/shim/real.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

/* How the names of files begin. */
static const struct {
    const char *prefix;
    enum caller caller;
} files[] = {
    {"libcapuchin-cuda", CALLER_OWN}, {"libcublas", CALLER_LIBRARY},
    {"libcudnn", CALLER_LIBRARY},     {"libcurand", CALLER_LIBRARY},
    {"libcusolver", CALLER_LIBRARY},  {"libcusparse", CALLER_LIBRARY},
    {"libcufft", CALLER_LIBRARY},     {"libnccl", CALLER_LIBRARY},
    {"libnvrtc", CALLER_LIBRARY},     {"libnvJitLink", CALLER_LIBRARY},
};

static struct link_map *map_of(const void *address)
{
    struct link_map *map = NULL;
    Dl_info info;

    return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 ? map : NULL;
}

enum caller caller_of(const void *address)
{
    const struct link_map *map = map_of(address);
    const char *name;

    if (map == NULL || map->l_name == NULL) {
        return CALLER_PROGRAM;
    }
    if (map == map_of(files)) {
        return CALLER_OWN;
    }
    if (real_contains(address)) {
        return CALLER_DRIVER;
    }
    name = strrchr(map->l_name, '/');
    name = name != NULL ? name + 1 : map->l_name;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (strncmp(name, files[i].prefix, strlen(files[i].prefix)) == 0) {
            return files[i].caller;
        }
    }
    return CALLER_PROGRAM;
}
