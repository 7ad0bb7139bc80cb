/*
 * Looks for a variable in a library's dynamic symbols, see plugin_file.h.
 *
 * Every offset comes from the file, so each piece is read with pread(2), which returns less where
 * the file ends.
 */
#include "device/plugin_file.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

int plugin_file_check(const char *path, const char *variable)
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
