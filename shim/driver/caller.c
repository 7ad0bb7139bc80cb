/* Telling callers apart, see caller.h. */
#define _GNU_SOURCE /* _dl_find_object */
#include "shim/driver/caller.h"

#include "shim/driver/real.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

static enum caller caller_of_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (strncmp(name, files[i].prefix, strlen(files[i].prefix)) == 0) {
            return files[i].caller;
        }
    }
    return CALLER_PROGRAM;
}

/* The file that an address is in. The loader finds it without a lock. */
static bool find_file(const void *address, struct dl_find_object *file)
{
    return _dl_find_object((void *)(uintptr_t)address, file) == 0;
}

static enum caller caller_in_file(const void *address, const struct dl_find_object *file)
{
    struct dl_find_object own;

    if (find_file(files, &own) && own.dlfo_link_map == file->dlfo_link_map) {
        return CALLER_OWN;
    }
    if (real_contains(address)) {
        return CALLER_DRIVER;
    }
    return caller_of_file(file->dlfo_link_map->l_name);
}

enum caller caller_of(const void *address)
{
    /* The last answer of this thread. A file that is closed, and another one loaded in its place,
       has another start or link map. */
    static _Thread_local struct {
        const struct link_map *map;
        const void *start;
        enum caller caller;
    } last;
    struct dl_find_object file;

    if (!find_file(address, &file) || file.dlfo_link_map == NULL ||
        file.dlfo_link_map->l_name == NULL) {
        return CALLER_PROGRAM;
    }
    if (last.map != file.dlfo_link_map || last.start != file.dlfo_map_start) {
        last.caller = caller_in_file(address, &file);
        last.map = file.dlfo_link_map;
        last.start = file.dlfo_map_start;
    }
    return last.caller;
}
