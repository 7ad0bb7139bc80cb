/* The loader's order, see loader.h. */
#define _GNU_SOURCE /* RTLD_NEXT */
#define _GNU_SOURCE /* dlinfo, memmem */
#include "shim/driver/loader.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHE "/etc/ld.so.cache"
#define MAGIC "glibc-ld.so.cache1.1"

enum { FOR_X86_64 = 0x0303, CACHE_BYTES_MOST = 64 << 20 };

/* The cache begins like this, and texts are where their numbers say, counted from here. */
struct cache_head {
    char magic[20];
    uint32_t count, text_bytes;
    uint32_t unused[5];
};
struct cache_entry {
    int32_t flags;
    uint32_t name, path;
    uint32_t unused[3];
};
_Static_assert(sizeof(struct cache_head) == 48 && sizeof(struct cache_entry) == 24, "as in glibc");

/* A whole file, with a zero after it; NULL: it cannot be read. */
static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    long end = file != NULL && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;

    if (end > 0 && end < CACHE_BYTES_MOST && fseek(file, 0, SEEK_SET) == 0) {
        text = calloc(1, (size_t)end + 1);
        *bytes = text != NULL ? fread(text, 1, (size_t)end, file) : 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return text;
}

static bool find_in(const char *text, size_t bytes, const char *library,
                    bool (*take)(const char *path))
{
    const char *begin = memmem(text, bytes, MAGIC, strlen(MAGIC));
    size_t left = begin != NULL ? bytes - (size_t)(begin - text) : 0;
    struct cache_head head;

    if (left < sizeof(head)) {
        return false;
    }
    memcpy(&head, begin, sizeof(head));
    if (head.count > (left - sizeof(head)) / sizeof(struct cache_entry)) {
        return false;
    }
    for (size_t i = 0; i < head.count; i++) {
        struct cache_entry entry;

        memcpy(&entry, begin + sizeof(head) + i * sizeof(entry), sizeof(entry));
        if (entry.flags == FOR_X86_64 && entry.name < left && entry.path < left &&
            strcmp(begin + entry.name, library) == 0 && take(begin + entry.path)) {
            return true;
        }
    }
    return false;
}

bool loader_find_cached(const char *cache, const char *library, bool (*take)(const char *path))
{
    size_t bytes = 0;
    char *text = read_file(cache, &bytes);
    bool is_taken = text != NULL && find_in(text, bytes, library, take);

    free(text);
    return is_taken;
}

/* The folders that the loader searches for what the program opens; NULL: not known. */
static Dl_serinfo *read_folders(void)
{
    void *program = dlopen(NULL, RTLD_LAZY);
    Dl_serinfo size;
    Dl_serinfo *folders = NULL;

    if (program != NULL && dlinfo(program, RTLD_DI_SERINFOSIZE, &size) == 0 &&
        (folders = malloc(size.dls_size)) != NULL) {
        *folders = size;
        if (dlinfo(program, RTLD_DI_SERINFO, folders) != 0) {
            free(folders);
            folders = NULL;
        }
    }
    if (program != NULL) {
        (void)dlclose(program);
    }
    return folders;
}

static bool find_in_folders(const Dl_serinfo *folders, bool is_default, const char *library,
                            bool (*take)(const char *path))
{
    char path[PATH_MAX];

    for (unsigned i = 0; folders != NULL && i < folders->dls_cnt; i++) {
        const Dl_serpath *folder = &folders->dls_serpath[i];

        if ((folder->dls_flags == LA_SER_DEFAULT) == is_default &&
            snprintf(path, sizeof(path), "%s/%s", folder->dls_name, library) < PATH_MAX &&
            take(path)) {
            return true;
        }
    }
    return false;
}

bool loader_find(const char *library, bool (*take)(const char *path))
{
    Dl_serinfo *folders = read_folders();
    bool is_taken = find_in_folders(folders, false, library, take) ||
                    loader_find_cached(CACHE, library, take) ||
                    find_in_folders(folders, true, library, take);

    free(folders);
    return is_taken;
}

/* Functions of CUDA's libraries. */

/* One of the files that are loaded. */
struct search {
    const char *library;
    size_t skip; /* so many that match */
    char path[PATH_MAX];
};

/* Must not call the loader, which holds a lock. */
static int match_file(struct dl_phdr_info *info, size_t bytes, void *argument)
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
        if (dl_iterate_phdr(match_file, &search) == 0) {
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

void *loader_next(const char *library, const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    return function != NULL ? function : find_local(library, name);
}
