/*
 * Reading what the kernel says of memory, see host_memory.h.
 *
 * The limit of a control group also applies to the groups in it, so all groups from the process's
 * own up to the root count. In a container, the path that /proc/self/cgroup gives may be one of the
 * machine, which is not visible there; then only the root of the mount is left, and that is the
 * container's own group. What the group uses already is not subtracted: much of it is page cache,
 * which goes away when memory is needed.
 */
#include "runtime/context/host_memory.h"

#include "capuchin/context.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

/* Reads a number of bytes from a file that has nothing else in it; UINT64_MAX: there is no such
   file, or no limit ("max"). */
static uint64_t read_limit(const char *path)
{
    FILE *file = fopen(path, "re");
    uint64_t bytes = UINT64_MAX;

    if (file != NULL) {
        if (fscanf(file, "%" SCNu64, &bytes) != 1) {
            bytes = UINT64_MAX;
        }
        fclose(file);
    }
    return bytes;
}

static uint64_t read_available(const char *root)
{
    char line[PATH_BYTES];
    uint64_t bytes = UINT64_MAX;
    FILE *file;

    snprintf(line, sizeof(line), "%s/proc/meminfo", root);
    file = fopen(line, "re");
    while (file != NULL && bytes == UINT64_MAX && fgets(line, sizeof(line), file) != NULL) {
        uint64_t kilobytes;

        if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kilobytes) == 1) {
            bytes = kilobytes * 1024;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

/* The smallest limit from the group at `path` (which is changed) up to the root of the hierarchy
   that is mounted at `mount`. */
static uint64_t smallest_limit(const char *root, const char *mount, const char *file, char *path)
{
    char name[2 * PATH_BYTES];
    uint64_t smallest = UINT64_MAX;
    bool is_root = false;

    while (!is_root) {
        char *slash = strrchr(path, '/');
        uint64_t limit;

        is_root = slash == NULL || slash[1] == '\0';
        snprintf(name, sizeof(name), "%s%s%s/%s", root, mount, is_root ? "" : path, file);
        limit = read_limit(name);
        smallest = limit < smallest ? limit : smallest;
        if (slash != NULL) {
            slash[slash == path] = '\0'; /* "/a/b" to "/a", "/a" to "/" */
        }
    }
    return smallest;
}

/* A line of /proc/self/cgroup is NUMBER:CONTROLLERS:PATH. Version 2 has one hierarchy, without
   controllers in its line. */
static uint64_t group_limit(const char *root, char *line)
{
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;

    if (path == NULL) {
        return UINT64_MAX;
    }
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    if (controllers[1] == '\0') {
        return smallest_limit(root, "/sys/fs/cgroup", "memory.max", path);
    }
    return strcmp(controllers + 1, "memory") == 0
               ? smallest_limit(root, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", path)
               : UINT64_MAX;
}

uint64_t host_memory_available(const char *root)
{
    char line[PATH_BYTES];
    uint64_t bytes = read_available(root);
    FILE *file;

    snprintf(line, sizeof(line), "%s/proc/self/cgroup", root);
    file = fopen(line, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        uint64_t limit = group_limit(root, line);

        bytes = limit < bytes ? limit : bytes;
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

uint64_t host_memory_default_budget(const char *root)
{
    uint64_t bytes = host_memory_available(root);

    return bytes == UINT64_MAX ? UINT64_MAX : bytes / 100 * HOST_MEMORY_PERCENT;
}

uint64_t capu_host_budget_default(uint64_t processes)
{
    uint64_t bytes = host_memory_default_budget("");

    return bytes == UINT64_MAX ? UINT64_MAX : bytes / (processes > 0 ? processes : 1);
}
