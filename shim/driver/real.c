/* Opening the real driver, see real.h. */
#define _GNU_SOURCE /* dladdr1 */
#include "shim/driver/real.h"

#include "shim/driver/loader.h"
#include "shim/driver/log.h"

#include "base/environment.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define DRIVER_FILE "libcuda.so.1"

/* Where distributions, containers and WSL put the driver, if the loader does not find it. */
static const char *const folders[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
};

/* Written by open_driver only. */
static void *driver;
static const struct link_map *driver_map;

/* The driver's constructors may call the driver. */
static _Thread_local bool is_opening;

static const struct link_map *map_of(const void *address)
{
    struct link_map *map = NULL;
    Dl_info info;

    return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 ? map : NULL;
}

/* Whether a file is the one that this code is in: the library may be found under the driver's
   name. */
static bool is_own_file(const char *path)
{
    const struct link_map *own = map_of(folders);
    struct stat one;
    struct stat other;

    return own != NULL && stat(own->l_name, &one) == 0 && stat(path, &other) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static void *open_library(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void use(void *library)
{
    struct link_map *map = NULL;

    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) {
        driver_map = map;
    }
    driver = library;
}

static void open_file(const char *path)
{
    void *library = open_library(path);

    if (library == NULL) {
        log_line("the CUDA driver cannot be opened: %s", dlerror());
        return;
    }
    use(library);
}

/* Opens a file if it is a driver, as the loader does. */
static bool try_file(const char *path)
{
    struct stat file;
    void *library = stat(path, &file) == 0 && !is_own_file(path) ? open_library(path) : NULL;

    if (library != NULL) {
        use(library);
    }
    return library != NULL;
}

static void search_driver(void)
{
    char path[64];
    bool is_found = loader_find(DRIVER_FILE, try_file);

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !is_found; i++) {
        snprintf(path, sizeof(path), "%s/" DRIVER_FILE, folders[i]);
        is_found = try_file(path);
    }
    if (!is_found) {
        log_line("there is no CUDA driver: no " DRIVER_FILE
                 " where the loader looks, nor in the usual folders");
    }
}

static void open_driver(void)
{
    const char *path = environment_path("CAPU_RUN_DRIVER");

    is_opening = true;
    if (path == NULL || path[0] == '\0') {
        search_driver();
    } else if (path[0] != '/') {
        log_line("CAPU_RUN_DRIVER is \"%s\", but must be an absolute path", path);
    } else if (is_own_file(path)) {
        log_line("CAPU_RUN_DRIVER is %s, which is this library and not a driver", path);
    } else {
        open_file(path);
    }
    is_opening = false;
}

bool real_is_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (is_opening) {
        return false;
    }
    (void)pthread_once(&once, open_driver);
    return driver != NULL;
}

void *real_find(const char *name)
{
    return real_is_open() ? dlsym(driver, name) : NULL;
}

bool real_contains(const void *address)
{
    return driver_map != NULL && map_of(address) == driver_map;
}

/* The functions, typed. */

static struct real_calls calls;

static CUresult fail_missing(const char *name)
{
    if (!real_is_open()) {
        return DRIVER_NO_DEVICE;
    }
    log_line(
        "the CUDA driver has no function %s, which runs under a budget need: it may be too old",
        name);
    return DRIVER_NOT_FOUND;
}

static void *find_call(const char *name, CUresult (*missing)(void))
{
    void *function = real_find(name);

    return function != NULL ? function : (void *)(uintptr_t)missing;
}

/* Each function of the driver: X(name, parameters). */
#define EACH(X)                      \
    DRIVER_WRAPPED(X##_WRAPPED)      \
    DRIVER_WRAPPED_TWICE(X##_TWICE)  \
    DRIVER_PASSED_HOST(X##_PASSED)   \
    DRIVER_PASSED_DEVICE(X##_PASSED) \
    DRIVER_PASSED_FREES(X##_PASSED)  \
    DRIVER_CALLED(X)

/* In place of one that is not there, whatever its parameters are. */
#define MISSING(name, parameters)        \
    static CUresult missing_##name(void) \
    {                                    \
        return fail_missing(#name);      \
    }
#define MISSING_WRAPPED(name, takers, parameters, arguments) MISSING(name, parameters)
#define MISSING_TWICE(name, suffix, takers, parameters, arguments) \
    MISSING(name, parameters)                                      \
    MISSING(name##suffix, parameters)
#define MISSING_PASSED(name, parameters, ...) MISSING(name, parameters)
EACH(MISSING)

#define FILL(name, parameters) \
    calls.name = (CUresult(*) parameters)find_call(#name, missing_##name);
#define FILL_WRAPPED(name, takers, parameters, arguments) FILL(name, parameters)
#define FILL_TWICE(name, suffix, takers, parameters, arguments) \
    FILL(name, parameters)                                      \
    FILL(name##suffix, parameters)
#define FILL_PASSED(name, parameters, ...) FILL(name, parameters)

static void fill_calls(void)
{
    EACH(FILL)
}

const struct real_calls *real_calls(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, fill_calls);
    return &calls;
}
