/* Finding the functions of CUDA's libraries, see next.h. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "shim/driver/next.h"

#include "shim/driver/log.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

/* One of the files that are loaded. */
struct search {
    const char *library;
    size_t skip; /* so many that match */
    char path[PATH_MAX];
};

/* Must not call the loader, which holds a lock. */
static int match(struct dl_phdr_info *info, size_t bytes, void *argument)
{
    struct search *search = argument;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *file = slash != NULL ? slash + 1 : info->dlpi_name;

    (void)bytes;
    if (strncmp(file, search->library, strlen(search->library)) != 0 || search->skip-- > 0) {
        return 0;
    }
    return snprintf(search->path, sizeof(search->path), "%s", info->dlpi_name) < PATH_MAX;
}

/* A library that is not in the scope of the whole program, as plug-ins and what they need are not
   (RTLD_LOCAL). */
static void *find_local(const char *library, const char *name)
{
    struct search search = {.library = library};
    void *function = NULL;

    for (size_t i = 0; function == NULL; i++) {
        void *handle;

        search.skip = i;
        if (dl_iterate_phdr(match, &search) == 0) {
            return NULL;
        }
        handle = dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
        if (handle != NULL) {
            function = dlsym(handle, name);
            (void)dlclose(handle);
        }
    }
    return function;
}

void *next_find(const char *library, const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    return function != NULL ? function : find_local(library, name);
}
