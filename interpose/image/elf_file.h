/*
 * Sections of a 64-bit little-endian ELF file in memory: programs and libraries of the host, and
 * cubins, which are ELF files for the device. Reads only, allocates nothing, and trusts no offset.
 */
#ifndef CAPU_INTERPOSE_ELF_FILE_H
#define CAPU_INTERPOSE_ELF_FILE_H

#include "base/error_text.h"
#include "capuchin/status.h"
#include "interpose/image/bytes.h"

/* Numbers of ELF's header that callers compare with. */
enum { ELF_FILE_RELOCATABLE = 1, ELF_FILE_CUDA = 190 };

/* A view of the bytes, which must outlive it. */
struct elf_file {
    struct bytes bytes;
    unsigned type;
    unsigned machine;
    uint64_t sections_offset;
    uint32_t section_count;
    struct bytes names; /* of sections */
};

struct elf_section {
    const char *name; /* in the file, terminated */
    uint32_t type;
    uint32_t link;
    struct bytes contents; /* empty if it takes no space in the file */
};

/* Whether the bytes begin like an ELF file of any kind. */
bool elf_file_is_one(struct bytes bytes);

/* Errors: FILE_FAILED, with the reason in `problem`. */
capu_status elf_file_open(struct bytes bytes, struct elf_file *elf, struct error_text *problem);

/* Section `index`. False: its header or its contents lie outside the file. */
bool elf_file_section(const struct elf_file *elf, uint32_t index, struct elf_section *section);

/* The string that starts at `offset` of a string table; NULL: there is none that ends. */
const char *elf_file_string(struct bytes table, uint64_t offset);

#endif
