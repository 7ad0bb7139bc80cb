/*
 * Writes device code as nvcc does, byte by byte, so that the readers can be tested without a
 * toolkit: cubins, fat binaries and the host's ELF files around them. Buffers grow; memory that
 * runs out ends the program. Free a buffer with free(data).
 */
#ifndef CAPU_TESTS_UNIT_INTERPOSE_DEVICE_CODE_H
#define CAPU_TESTS_UNIT_INTERPOSE_DEVICE_CODE_H

#include "interpose/image/bytes.h"
#include "interpose/image/fatbin.h"

struct buffer {
    unsigned char *data;
    size_t count;
};

void buffer_put(struct buffer *buffer, const void *bytes, size_t count);
void buffer_number(struct buffer *buffer, uint64_t number, unsigned width);
void buffer_align(struct buffer *buffer, size_t alignment);
struct bytes buffer_bytes(const struct buffer *buffer);

struct written_section {
    const char *name;
    unsigned type; /* SHT_... */
    unsigned link; /* index among the sections given, or -1u */
    struct bytes contents;
};

/* An ELF file. Section i of the file is sections[i - 1]. */
void write_elf(struct buffer *buffer, unsigned type, unsigned machine,
               const struct written_section *sections, size_t count);

enum { PARAMETERS_MOST = 12 };

struct written_kernel {
    const char *name;
    unsigned sizes[PARAMETERS_MOST]; /* of its parameters, in order; 0 after the last */
    bool is_wide;                    /* described as blocks over 4 KiB are */
};

void write_cubin(struct buffer *buffer, bool is_relocatable, const struct written_kernel *kernels,
                 size_t count);

/* A cubin of what the driver of tests/ptx takes for machine code: the kernels of a PTX text, which
   is in a section that other readers skip. */
#define MACHINE_CODE_SECTION ".capuchin.ptx"
void write_machine_code(struct buffer *buffer, struct bytes text);

struct written_image {
    unsigned kind; /* 1 PTX, 2 ELF */
    unsigned architecture;
    enum packing packing;
    struct bytes contents;
    const char *options; /* of the compiler; NULL: none */
    bool is_damaged;     /* not packed as it says */
};

void write_fatbin(struct buffer *buffer, const struct written_image *images, size_t count);

/* A program with one section of fat binaries. */
void write_program(struct buffer *buffer, const char *section, struct bytes fatbins);

#endif
