/* Writers of device code, see device_code.h. */
#include "tests/unit/interpose/device_code.h"

#include "interpose/ptx/ptx.h"

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef INTERPOSE_LZ4
#include <lz4.h>
#endif
#ifdef INTERPOSE_ZSTD
#include <zstd.h>
#endif

enum { SECTIONS_MOST = 32, NAMES_MOST = 2048 };

/* Ends the program, which need not be a test. */
static void require(bool is_true)
{
    if (!is_true) {
        fprintf(stderr, "device_code.c: no memory, or a limit of this file\n");
        abort();
    }
}

void buffer_put(struct buffer *buffer, const void *bytes, size_t count)
{
    buffer->data = realloc(buffer->data, buffer->count + count + 1);
    require(buffer->data != NULL);
    if (count > 0) {
        memcpy(buffer->data + buffer->count, bytes, count);
    }
    buffer->count += count;
}

void buffer_number(struct buffer *buffer, uint64_t number, unsigned width)
{
    for (unsigned i = 0; i < width; i++) {
        unsigned char byte = (unsigned char)(number >> 8 * i);

        buffer_put(buffer, &byte, 1);
    }
}

void buffer_align(struct buffer *buffer, size_t alignment)
{
    while (buffer->count % alignment != 0) {
        buffer_put(buffer, "", 1);
    }
}

struct bytes buffer_bytes(const struct buffer *buffer)
{
    return (struct bytes){buffer->data, buffer->count};
}

void write_elf(struct buffer *buffer, unsigned type, unsigned machine,
               const struct written_section *sections, size_t count)
{
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1},
        .e_type = (Elf64_Half)type,
        .e_machine = (Elf64_Half)machine,
        .e_version = 1,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = (Elf64_Half)(count + 2),
        .e_shstrndx = (Elf64_Half)(count + 1)};
    Elf64_Shdr headers[SECTIONS_MOST] = {{0}};
    struct buffer names = {0};

    require(count + 2 <= SECTIONS_MOST);
    buffer_put(buffer, &header, sizeof(header));
    buffer_put(&names, "", 1);
    for (size_t i = 0; i < count; i++) {
        buffer_align(buffer, 8);
        headers[i + 1] = (Elf64_Shdr){.sh_name = (Elf64_Word)names.count,
                                      .sh_type = sections[i].type,
                                      .sh_offset = buffer->count,
                                      .sh_size = sections[i].contents.count,
                                      .sh_link = sections[i].link + 1};
        buffer_put(buffer, sections[i].contents.data, sections[i].contents.count);
        buffer_put(&names, sections[i].name, strlen(sections[i].name) + 1);
    }
    headers[count + 1] =
        (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = buffer->count, .sh_size = names.count};
    buffer_put(buffer, names.data, names.count);
    buffer_align(buffer, 8);
    header.e_shoff = buffer->count;
    buffer_put(buffer, headers, (count + 2) * sizeof(headers[0]));
    memcpy(buffer->data, &header, sizeof(header));
    free(names.data);
}

static void write_info(struct buffer *info, const struct written_kernel *kernel)
{
    unsigned offset = 0;

    buffer_number(info, 0x00803704, 4); /* a record with bytes that no reader needs */
    info->data[2] = 4;
    info->data[3] = 0;
    buffer_number(info, 0x82, 4);
    for (unsigned i = 0; i < PARAMETERS_MOST && kernel->sizes[i] != 0; i++) {
        unsigned bytes = kernel->sizes[i];
        unsigned alignment = bytes >= 8 ? 8 : bytes;

        offset = (offset + alignment - 1) / alignment * alignment;
        buffer_number(info, 0x04, 1);
        buffer_number(info, kernel->is_wide ? 0x45 : 0x17, 1);
        buffer_number(info, 12, 2);
        buffer_number(info, 0, 4);
        buffer_number(info, i, 2);
        buffer_number(info, offset, 2);
        buffer_number(info, kernel->is_wide ? bytes : bytes << 18 | 0x1f000, 4);
        offset += bytes;
    }
    buffer_number(info, 0x1903, 2);
    buffer_number(info, offset, 2);
}

/* A cubin, with a section of `text` unless that is empty. */
static void write_kernels(struct buffer *buffer, bool is_relocatable,
                          const struct written_kernel *kernels, size_t count, struct bytes text)
{
    struct written_section sections[SECTIONS_MOST];
    struct buffer infos[SECTIONS_MOST] = {{0}};
    struct buffer symbols = {0};
    struct buffer names = {0};
    char texts[SECTIONS_MOST][NAMES_MOST / SECTIONS_MOST];

    require(count + 5 <= SECTIONS_MOST);
    buffer_put(&names, "", 1);
    buffer_put(&symbols, &(Elf64_Sym){0}, sizeof(Elf64_Sym));
    for (size_t i = 0; i < count; i++) {
        Elf64_Sym symbol = {.st_name = (Elf64_Word)names.count,
                            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                            .st_other = 0x10,
                            .st_shndx = 1};

        buffer_put(&symbols, &symbol, sizeof(symbol));
        buffer_put(&names, kernels[i].name, strlen(kernels[i].name) + 1);
        write_info(&infos[i], &kernels[i]);
        require(snprintf(texts[i], sizeof(texts[i]), ".nv.info.%s", kernels[i].name) <
                (int)sizeof(texts[i]));
        sections[i] = (struct written_section){texts[i], SHT_LOPROC, -1u, buffer_bytes(&infos[i])};
    }
    sections[count] = (struct written_section){".strtab", SHT_STRTAB, -1u, buffer_bytes(&names)};
    sections[count + 1] =
        (struct written_section){".symtab", SHT_SYMTAB, (unsigned)count, buffer_bytes(&symbols)};
    sections[count + 2] = (struct written_section){MACHINE_CODE_SECTION, SHT_PROGBITS, -1u, text};
    write_elf(buffer, is_relocatable ? ET_REL : ET_EXEC, 190, sections,
              count + (text.count > 0 ? 3 : 2));
    for (size_t i = 0; i < count; i++) {
        free(infos[i].data);
    }
    free(symbols.data);
    free(names.data);
}

void write_cubin(struct buffer *buffer, bool is_relocatable, const struct written_kernel *kernels,
                 size_t count)
{
    write_kernels(buffer, is_relocatable, kernels, count, (struct bytes){NULL, 0});
}

static void describe(struct written_kernel *kernel, const struct ptx_function *function)
{
    require(function->parameter_count <= PARAMETERS_MOST);
    kernel->name = strndup(function->name.text, function->name.length);
    require(kernel->name != NULL);
    for (size_t i = 0; i < function->parameter_count; i++) {
        kernel->sizes[i] = function->parameters[i].bytes;
    }
}

void write_machine_code(struct buffer *buffer, struct bytes text)
{
    struct written_kernel kernels[SECTIONS_MOST] = {{NULL, {0}, false}};
    struct ptx_module module;
    size_t count = 0;

    require(ptx_parse((const char *)text.data, text.count, &module, NULL) == CAPU_OK);
    for (size_t i = 0; i < module.function_count; i++) {
        if (module.functions[i].is_kernel) {
            require(count < SECTIONS_MOST);
            describe(&kernels[count++], &module.functions[i]);
        }
    }
    write_kernels(buffer, false, kernels, count, text);
    for (size_t i = 0; i < count; i++) {
        free((char *)(uintptr_t)kernels[i].name);
    }
    ptx_finish(&module);
}

/* The contents of an image as they are stored. */
static void pack(struct buffer *packed, const struct written_image *image)
{
    struct bytes contents = image->contents;

    if (image->packing == PACKING_NONE || image->is_damaged) {
        buffer_put(packed, contents.data, contents.count);
    }
#ifdef INTERPOSE_LZ4
    if (image->packing == PACKING_LZ4 && !image->is_damaged) {
        int most = LZ4_compressBound((int)contents.count);

        packed->data = malloc((size_t)most);
        require(packed->data != NULL);
        packed->count = (size_t)LZ4_compress_default(
            (const char *)contents.data, (char *)packed->data, (int)contents.count, most);
    }
#endif
#ifdef INTERPOSE_ZSTD
    if (image->packing == PACKING_ZSTD && !image->is_damaged) {
        size_t most = ZSTD_compressBound(contents.count);

        packed->data = malloc(most);
        require(packed->data != NULL);
        packed->count = ZSTD_compress(packed->data, most, contents.data, contents.count, 3);
    }
#endif
    require(packed->data != NULL);
}

void write_fatbin(struct buffer *buffer, const struct written_image *images, size_t count)
{
    static const uint64_t flags[] = {0x11, 0x2011, 0x8011};
    struct buffer entries = {0};

    for (size_t i = 0; i < count; i++) {
        size_t options = images[i].options == NULL ? 0 : strlen(images[i].options) + 1;
        struct buffer packed = {0};

        pack(&packed, &images[i]);
        buffer_number(&entries, images[i].kind, 2);
        buffer_number(&entries, 0x101, 2);
        buffer_number(&entries, (72 + options + 7) / 8 * 8, 4);
        buffer_number(&entries, (packed.count + 7) / 8 * 8, 8);
        buffer_number(&entries, images[i].packing == PACKING_NONE ? 0 : packed.count, 4);
        buffer_number(&entries, 0, 8);
        buffer_number(&entries, images[i].architecture, 4);
        buffer_number(&entries, 0, 8);
        buffer_number(&entries, flags[images[i].packing], 8);
        buffer_number(&entries, 0, 8);
        buffer_number(&entries, images[i].packing == PACKING_NONE ? 0 : images[i].contents.count,
                      8);
        buffer_number(&entries, 72, 4);
        buffer_number(&entries, options, 4);
        buffer_put(&entries, images[i].options == NULL ? "" : images[i].options, options);
        buffer_align(&entries, 8);
        buffer_put(&entries, packed.data, packed.count);
        buffer_align(&entries, 8);
        free(packed.data);
    }
    buffer_align(buffer, 8);
    buffer_number(buffer, 0xba55ed50, 4);
    buffer_number(buffer, 1, 2);
    buffer_number(buffer, 16, 2);
    buffer_number(buffer, entries.count, 8);
    buffer_put(buffer, entries.data, entries.count);
    free(entries.data);
}

void write_program(struct buffer *buffer, const char *section, struct bytes fatbins)
{
    struct written_section sections[] = {
        {".text", SHT_PROGBITS, -1u, {(const unsigned char *)"code", 4}},
        {".bss", SHT_NOBITS, -1u, {NULL, 0}},
        {section, SHT_PROGBITS, -1u, fatbins},
    };

    write_elf(buffer, ET_EXEC, EM_X86_64, sections, sizeof(sections) / sizeof(sections[0]));
}
