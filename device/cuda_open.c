/*
 * Opens the plug-in with the cuda device, see cuda_plugin.h, and creates the device with it.
 *
 * Where it is looked for: in the folder that the options name, and then nowhere else; else in the
 * folder of the file that this code is in (libcapuchin.so, or the program that it is linked into),
 * in the folder `lib` next to that one, and where the loader looks for libraries. Of several
 * plug-ins the one for the newest CUDA is taken for which the driver has a device.
 *
 * A file that is no plug-in is rejected before it is opened, since opening would run what is in it;
 * one that the loader finds can only be checked afterwards. In a set-user-ID program the folder of
 * the program does not count: a user who makes a hard link to the program chooses that folder.
 *
 * An opened plug-in is never closed: the CUDA runtime inside does not expect that. No state; any
 * thread.
 */
#define _GNU_SOURCE /* dladdr1 */
#include "device/cuda_plugin.h"

#include "base/environment.h"
#include "device/device.h"

#include "capuchin/version.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Looks into a shared library before it is opened: opening runs its constructors, which is too late
 * to find out that it is something else. Every offset comes from the file, so each piece is read
 * with pread(2), which returns less where the file ends.
 */

/* Longer than any plug-in's list of symbols. A larger number is that of a damaged file. */
enum { SYMBOLS_MAX = 1 << 16, NAME_BYTES = 64 };

#define NATIVE_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)
#define NATIVE_ORDER (__BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB)

static bool read_at(int file, uint64_t offset, void *data, size_t bytes)
{
    return offset <= INT64_MAX - bytes && pread(file, data, bytes, (off_t)offset) == (ssize_t)bytes;
}

static bool read_section(int file, const ElfW(Ehdr) * head, size_t index, ElfW(Shdr) * section)
{
    return index < head->e_shnum &&
           read_at(file, head->e_shoff + index * sizeof(*section), section, sizeof(*section));
}

static bool is_named(int file, uint64_t offset, const char *name)
{
    char found[NAME_BYTES];
    size_t bytes = strlen(name) + 1;

    return bytes <= sizeof(found) && read_at(file, offset, found, bytes) &&
           memcmp(found, name, bytes) == 0;
}

static bool defines(int file, const ElfW(Shdr) * symbols, const ElfW(Shdr) * names,
                    const char *variable)
{
    ElfW(Sym) symbol;

    for (size_t i = 0; i < symbols->sh_size / sizeof(symbol) && i < SYMBOLS_MAX; i++) {
        if (!read_at(file, symbols->sh_offset + i * sizeof(symbol), &symbol, sizeof(symbol))) {
            return false;
        }
        /* The type is in the same bits in both classes. */
        if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT &&
            is_named(file, names->sh_offset + symbol.st_name, variable)) {
            return true;
        }
    }
    return false;
}

static bool is_library(int file, ElfW(Ehdr) * head)
{
    return read_at(file, 0, head, sizeof(*head)) && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
           head->e_ident[EI_CLASS] == NATIVE_CLASS && head->e_ident[EI_DATA] == NATIVE_ORDER &&
           head->e_type == ET_DYN && head->e_shentsize == sizeof(ElfW(Shdr));
}

static bool contains(int file, const char *variable)
{
    ElfW(Ehdr) head;
    ElfW(Shdr) section;
    ElfW(Shdr) names;

    /* The list of sections is at the end: with its last one, the file is complete. */
    if (!is_library(file, &head) || head.e_shnum == 0 ||
        !read_section(file, &head, head.e_shnum - 1u, &section)) {
        return false;
    }
    for (size_t i = 0; read_section(file, &head, i, &section); i++) {
        if (section.sh_type == SHT_DYNSYM) {
            return read_section(file, &head, section.sh_link, &names) &&
                   defines(file, &section, &names, variable);
        }
    }
    return false;
}

/* Checks that the file is a library for this machine that defines a variable of this name. Returns
   0, ENOEXEC if it is anything else, or the errno with which it could not be read. Runs nothing in
   it. Thread: any. */
static int plugin_file_check(const char *path, const char *variable)
{
    /* A FIFO of this name must not make the program wait. */
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int error;

    if (file < 0) {
        return errno;
    }
    error = contains(file, variable) ? 0 : ENOEXEC;
    close(file);
    return error;
}

/* CUDA's major versions, newest first. */
static const int majors[] = {13, 12};
enum { MAJORS = sizeof(majors) / sizeof(majors[0]) };

/* Where a plug-in may be. "" is where the loader looks. */
struct places {
    size_t count;
    char folders[3][PATH_MAX];
};

struct text {
    char *to;
    size_t bytes;
};

/* The file that this code is in. For a program, whose own name the loader does not know as a path,
   the kernel is asked. */
static bool own_file(char path[PATH_MAX])
{
    struct link_map *map = NULL;
    Dl_info info;
    ssize_t length;

    if (dladdr1((const void *)(uintptr_t)majors, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 ||
        map == NULL) {
        return false;
    }
    if (map->l_name != NULL && map->l_name[0] != '\0') {
        return snprintf(path, PATH_MAX, "%s", map->l_name) < PATH_MAX;
    }
    if (environment_is_secure()) {
        return false;
    }
    length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static void add_place(struct places *places, const char *folder, const char *below)
{
    if (snprintf(places->folders[places->count], PATH_MAX, "%s%s", folder, below) < PATH_MAX) {
        places->count++;
    }
}

static void find_places(const char *folder, struct places *places)
{
    char path[PATH_MAX];
    char *slash;

    places->count = 0;
    if (folder != NULL && folder[0] != '\0') {
        add_place(places, folder, "");
        return;
    }
    if (own_file(path) && (slash = strrchr(path, '/')) != NULL) {
        *slash = '\0';
        add_place(places, path, "");
        add_place(places, path, "/../lib");
    }
    add_place(places, "", "");
}

/* Checks that the plug-in fits this library. */
static capu_status check_plugin(const struct cuda_plugin *plugin, const char *path,
                                struct text text)
{
    if (plugin->interface != CUDA_PLUGIN_INTERFACE || plugin->layout != CUDA_PLUGIN_LAYOUT) {
        return device_refuse(CAPU_UNSUPPORTED, text.to, text.bytes,
                             "the CUDA plug-in %s has interface %" PRIu64
                             " and libcapuchin %s needs %d%s: install both from one package",
                             path, plugin->interface, CAPU_VERSION_STRING, CUDA_PLUGIN_INTERFACE,
                             plugin->interface == CUDA_PLUGIN_INTERFACE
                                 ? ", of another build than that of this plug-in"
                                 : "");
    }
    if (strcmp(plugin->version, CAPU_VERSION_STRING) != 0) {
        return device_refuse(CAPU_UNSUPPORTED, text.to, text.bytes,
                             "the CUDA plug-in %s is of version %s and libcapuchin of version %s: "
                             "install both from one package",
                             path, plugin->version, CAPU_VERSION_STRING);
    }
    return CAPU_OK;
}

static capu_status refuse_other(const char *path, struct text text)
{
    return device_refuse(CAPU_UNSUPPORTED, text.to, text.bytes,
                         "%s is not a plug-in of libcapuchin", path);
}

/* Checks a file before it is opened. */
static capu_status check_file(const char *path, struct text text)
{
    int error = plugin_file_check(path, CUDA_PLUGIN_SYMBOL);

    if (error == 0) {
        return CAPU_OK;
    }
    return error == ENOEXEC
               ? refuse_other(path, text)
               : device_refuse(CAPU_UNSUPPORTED, text.to, text.bytes,
                               "the CUDA plug-in %s cannot be opened: %s", path, strerror(error));
}

/* Opens the plug-in for one version of CUDA. OK and NULL if there is none. */
static capu_status open_plugin(const struct places *places, int major,
                               const struct cuda_plugin **plugin, struct text text)
{
    char name[64];
    char path[PATH_MAX + sizeof(name)];

    *plugin = NULL;
    snprintf(name, sizeof(name), CUDA_PLUGIN_FILE, major);
    for (size_t i = 0; i < places->count; i++) {
        bool is_searched = places->folders[i][0] == '\0';
        capu_status status;
        void *library;

        snprintf(path, sizeof(path), "%s%s%s", places->folders[i], is_searched ? "" : "/", name);
        if (!is_searched && access(path, F_OK) != 0) {
            continue;
        }
        status = is_searched ? CAPU_OK : check_file(path, text);
        if (status != CAPU_OK) {
            return status;
        }
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library == NULL && is_searched) {
            continue;
        }
        if (library == NULL) {
            return device_refuse(CAPU_UNSUPPORTED, text.to, text.bytes,
                                 "the CUDA plug-in cannot be opened: %s", dlerror());
        }
        *plugin = dlsym(library, CUDA_PLUGIN_SYMBOL);
        if (*plugin == NULL) {
            return refuse_other(path, text);
        }
        return check_plugin(*plugin, path, text);
    }
    return CAPU_OK;
}

static capu_status refuse_missing(const struct places *places, unsigned ordinal, struct text text)
{
    char names[64 * MAJORS] = "";
    char folders[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < MAJORS; i++) {
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s" CUDA_PLUGIN_FILE,
                                 i > 0 ? " or " : "", majors[i]);
    }
    used = 0;
    for (size_t i = 0; i < places->count && used < sizeof(folders); i++) {
        used += (size_t)snprintf(folders + used, sizeof(folders) - used, "%s%s", i > 0 ? ", " : "",
                                 places->folders[i][0] != '\0' ? places->folders[i]
                                                               : "the loader's folders");
    }
    return device_refuse(CAPU_NO_DEVICE, text.to, text.bytes,
                         "cuda:%u: there is no CUDA plug-in %s in: %s", ordinal, names, folders);
}

capu_status cuda_device_create(const struct device_options *options, struct device **device,
                               char *text, size_t text_bytes)
{
    struct text to = {text, text_bytes};
    bool is_found = false;
    struct places places;
    char reason[512];

    find_places(options != NULL ? options->plugin_folder : NULL, &places);
    for (size_t i = 0; i < MAJORS; i++) {
        const struct cuda_plugin *plugin;
        capu_status status = open_plugin(&places, majors[i], &plugin, to);

        if (status != CAPU_OK) {
            return status;
        }
        if (plugin == NULL) {
            continue;
        }
        reason[0] = '\0';
        status = plugin->create(options, device, reason, sizeof(reason));
        /* If none has a device, the text is that of the newest CUDA. */
        if (status != CAPU_OK && (status != CAPU_NO_DEVICE || !is_found)) {
            device_refuse(status, text, text_bytes, "%s", reason);
        }
        if (status != CAPU_NO_DEVICE) {
            return status;
        }
        is_found = true;
    }
    return is_found ? CAPU_NO_DEVICE
                    : refuse_missing(&places, options != NULL ? options->ordinal : 0, to);
}
