/*
 * The kernels in a cubin, and their parameters: what the driver knows about them without PTX. From
 * the symbol table and the sections .nv.info.NAME, whose format is not documented: records u8
 * format, u8 attribute, u16 value or size, and for format 4 that many bytes.
 */
#ifndef CAPU_INTERPOSE_CUBIN_H
#define CAPU_INTERPOSE_CUBIN_H

#include "interpose/image/elf_file.h"

struct cubin_parameter {
    uint32_t offset; /* in the parameter block, in bytes */
    uint32_t bytes;
};

struct cubin_kernel {
    char *name; /* mangled */
    struct cubin_parameter *parameters;
    size_t parameter_count;
    size_t parameter_capacity;
    uint32_t parameter_bytes; /* of the whole block */
    bool has_parameters;      /* its section was found and read */
};

/* Zeroed: empty. */
struct cubin {
    struct cubin_kernel *kernels;
    size_t kernel_count;
    size_t kernel_capacity;
    bool is_relocatable;
};

/* Copies what it keeps; the bytes are not needed afterwards. On failure *cubin is empty. Errors:
 * BAD_FILE, NO_HOST_MEMORY. */
capu_status cubin_read(struct bytes bytes, struct cubin *cubin, struct error_text *problem);
void cubin_finish(struct cubin *cubin);

/* NULL: there is no such kernel. */
const struct cubin_kernel *cubin_find(const struct cubin *cubin, const char *name);

#endif
