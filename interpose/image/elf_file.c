/* Reading ELF files, see elf_file.h. <elf.h> names the fields; the bytes are read one by one, since
   nothing in a cubin that lies inside another file is aligned. */
#include "interpose/image/elf_file.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

#define FIELD(bytes, base, type, field) \
    bytes_number(bytes, (base) + offsetof(type, field), sizeof(((type *)NULL)->field))

bool elf_file_is_one(struct bytes bytes)
{
    return bytes.count >= SELFMAG && memcmp(bytes.data, ELFMAG, SELFMAG) == 0;
}

const char *elf_file_string(struct bytes table, uint64_t offset)
{
    if (offset >= table.count ||
        memchr(table.data + offset, '\0', table.count - (size_t)offset) == NULL) {
        return NULL;
    }
    return (const char *)table.data + offset;
}

/* The header of a section, checked to lie in the file by elf_file_open. */
static uint64_t header_of(const struct elf_file *elf, uint32_t index)
{
    return elf->sections_offset + (uint64_t)index * sizeof(Elf64_Shdr);
}

static bool contents_of(const struct elf_file *elf, uint64_t header, struct bytes *contents)
{
    uint64_t offset = FIELD(elf->bytes, header, Elf64_Shdr, sh_offset);
    uint64_t count = FIELD(elf->bytes, header, Elf64_Shdr, sh_size);

    if (FIELD(elf->bytes, header, Elf64_Shdr, sh_type) == SHT_NOBITS) {
        *contents = (struct bytes){NULL, 0};
        return true;
    }
    if (!bytes_have(elf->bytes, offset, count)) {
        return false;
    }
    *contents = bytes_part(elf->bytes, offset, count);
    return true;
}

/* The section headers are the last part of most files. */
static capu_status say_cut(const struct elf_file *elf, struct error_text *problem)
{
    return error_text_set(
        problem, CAPU_FILE_FAILED,
        "the ELF file is cut short, or damaged: it has %zu bytes, and its section "
        "headers begin at byte %" PRIu64,
        elf->bytes.count, elf->sections_offset);
}

capu_status elf_file_open(struct bytes bytes, struct elf_file *elf, struct error_text *problem)
{
    uint64_t names;

    *elf = (struct elf_file){.bytes = bytes};
    if (!elf_file_is_one(bytes)) {
        return error_text_set(problem, CAPU_FILE_FAILED, "not an ELF file");
    }
    if (bytes.count < sizeof(Elf64_Ehdr)) {
        return error_text_set(problem, CAPU_FILE_FAILED, "the ELF file is cut short");
    }
    if (bytes.data[EI_CLASS] != ELFCLASS64 || bytes.data[EI_DATA] != ELFDATA2LSB) {
        return error_text_set(problem, CAPU_FILE_FAILED, "not a 64-bit little-endian ELF file");
    }
    elf->type = (unsigned)FIELD(bytes, 0, Elf64_Ehdr, e_type);
    elf->machine = (unsigned)FIELD(bytes, 0, Elf64_Ehdr, e_machine);
    elf->sections_offset = FIELD(bytes, 0, Elf64_Ehdr, e_shoff);
    elf->section_count = (uint32_t)FIELD(bytes, 0, Elf64_Ehdr, e_shnum);
    names = FIELD(bytes, 0, Elf64_Ehdr, e_shstrndx);
    if (elf->sections_offset == 0) {
        return error_text_set(problem, CAPU_FILE_FAILED, "the ELF file has no section headers");
    }
    if (FIELD(bytes, 0, Elf64_Ehdr, e_shentsize) != sizeof(Elf64_Shdr)) {
        return error_text_set(problem, CAPU_FILE_FAILED,
                              "the ELF file's section headers are damaged");
    }
    if (!bytes_have(bytes, elf->sections_offset, sizeof(Elf64_Shdr))) {
        return say_cut(elf, problem);
    }
    /* Counts that do not fit the header are in the first section. */
    if (elf->section_count == 0) {
        elf->section_count = (uint32_t)FIELD(bytes, elf->sections_offset, Elf64_Shdr, sh_size);
    }
    if (names == SHN_XINDEX) {
        names = FIELD(bytes, elf->sections_offset, Elf64_Shdr, sh_link);
    }
    if (!bytes_have(bytes, elf->sections_offset,
                    (uint64_t)elf->section_count * sizeof(Elf64_Shdr))) {
        return say_cut(elf, problem);
    }
    if (names >= elf->section_count ||
        !contents_of(elf, header_of(elf, (uint32_t)names), &elf->names)) {
        return error_text_set(problem, CAPU_FILE_FAILED,
                              "the ELF file's section headers are damaged");
    }
    return CAPU_OK;
}

bool elf_file_section(const struct elf_file *elf, uint32_t index, struct elf_section *section)
{
    uint64_t header = header_of(elf, index);

    ASSERT(index < elf->section_count);
    section->name = elf_file_string(elf->names, FIELD(elf->bytes, header, Elf64_Shdr, sh_name));
    section->type = (uint32_t)FIELD(elf->bytes, header, Elf64_Shdr, sh_type);
    section->link = (uint32_t)FIELD(elf->bytes, header, Elf64_Shdr, sh_link);
    return section->name != NULL && contents_of(elf, header, &section->contents);
}
