/* Finding and checking the file of a program, see program_file.h. */
#include "tools/command/program_file.h"

#include "tools/output/say.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool is_program(const char *path)
{
    struct stat file;

    return stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

/* Looks in the folders of $PATH; an empty one is the current folder. */
static bool search(const char *name, char path[PATH_MAX])
{
    const char *folders = getenv("PATH");

    while (folders != NULL) {
        size_t length = strcspn(folders, ":");

        if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, folders, length > 0 ? "/" : "./",
                     name) < PATH_MAX &&
            is_program(path)) {
            return true;
        }
        folders = folders[length] == ':' ? folders + length + 1 : NULL;
    }
    return false;
}

bool program_file_find(const char *name, char path[PATH_MAX])
{
    struct stat file;

    if (strchr(name, '/') == NULL) {
        if (!search(name, path)) {
            say("run: there is no program %s in the folders of PATH", name);
            return false;
        }
        return true;
    }
    if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX) {
        say("run: the path of the program is too long");
        return false;
    }
    if (stat(path, &file) != 0) {
        say("run: %s: %s", path, strerror(errno));
        return false;
    }
    if (!is_program(path)) {
        say("run: %s: not a program that can be executed", path);
        return false;
    }
    return true;
}

/* Whether the kernel gives the program rights that the user does not have. The loader then ignores
   LD_PRELOAD. */
static bool has_other_rights(int descriptor, const struct stat *file)
{
    return ((file->st_mode & S_ISUID) != 0 && file->st_uid != geteuid()) ||
           ((file->st_mode & S_ISGID) != 0 && file->st_gid != getegid()) ||
           fgetxattr(descriptor, "security.capability", NULL, 0) > 0;
}

/* Whether a program asks for the loader. */
static bool has_loader(int descriptor, const Elf64_Ehdr *header)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr part;

        if (pread(descriptor, &part, sizeof(part),
                  (off_t)(header->e_phoff + (uint64_t)i * header->e_phentsize)) !=
            (ssize_t)sizeof(part)) {
            return false;
        }
        if (part.p_type == PT_INTERP) {
            return true;
        }
    }
    return false;
}

static bool check_open(const char *path, int descriptor)
{
    Elf64_Ehdr header;
    struct stat file;
    ssize_t count;

    memset(&header, 0, sizeof(header));
    count = pread(descriptor, &header, sizeof(header), 0);

    if (count < 0 || fstat(descriptor, &file) != 0) {
        say("run: %s: %s", path, strerror(errno));
        return false;
    }
    if (has_other_rights(descriptor, &file)) {
        say("run: %s runs with the rights of another user or with capabilities, so no library can "
            "be preloaded; start it as that user, from a copy without these rights",
            path);
        return false;
    }
    if (count >= 2 && memcmp(header.e_ident, "#!", 2) == 0) {
        return true;
    }
    if (count != (ssize_t)sizeof(header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        say("run: %s: neither a program nor a script that names its interpreter", path);
        return false;
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
        say("run: %s: a program for another kind of machine than x86-64", path);
        return false;
    }
    if (!has_loader(descriptor, &header)) {
        say("run: %s %s linked statically, so no library can be preloaded; link it dynamically "
            "(CUDA's libraries may stay static)",
            path, header.e_type == ET_DYN ? "is a library, or" : "is");
        return false;
    }
    return true;
}

bool program_file_check(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    bool is_fine;

    if (descriptor < 0) {
        say("run: %s: %s", path, strerror(errno));
        return false;
    }
    is_fine = check_open(path, descriptor);
    (void)close(descriptor);
    return is_fine;
}
