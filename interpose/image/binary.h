/*
 * All device code of a file: a program, a shared library or an object file of the host, a fat
 * binary or a cubin in a file of its own, or PTX text. Reading never fails because of one image:
 * what is wrong with it is noted there.
 */
#ifndef CAPU_INTERPOSE_BINARY_H
#define CAPU_INTERPOSE_BINARY_H

#include "interpose/flow/roles.h"
#include "interpose/image/elf_file.h"
#include "interpose/image/fatbin.h"

/*
 * The kernels in a cubin, and their parameters: what the driver knows about them without PTX. From
 * the symbol table and the sections .nv.info.NAME, whose format is not documented: records u8
 * format, u8 attribute, u16 value or size, and for format 4 that many bytes.
 */

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
 * FILE_FAILED, NO_HOST_MEMORY. */
capu_status cubin_read(struct bytes bytes, struct cubin *cubin, struct error_text *problem);
void cubin_finish(struct cubin *cubin);

/* NULL: there is no such kernel. */
const struct cubin_kernel *cubin_find(const struct cubin *cubin, const char *name);

/* An image of a file. */
struct binary_image {
    struct image image;
    unsigned fatbin;           /* which fat binary it is in, from 0 */
    capu_status status;        /* whether it could be read */
    struct error_text problem; /* if not */
    struct cubin cubin;        /* of an ELF image */
    char *text;                /* of a PTX image, terminated; NULL if there is none */
    size_t text_bytes;
    bool is_analysed; /* module and kernels are there */
    struct ptx_module module;
    struct kernels kernels;
};

/* Zeroed: empty. */
struct binary {
    struct binary_image *images; /* in the order of the file, so by fat binary */
    size_t image_count;
    size_t image_capacity;
    unsigned fatbin_count;
    bool is_cut;               /* a section of fat binaries could not be read to its end */
    struct error_text problem; /* why */
};

/*
 * Reads a file. On failure *binary is empty, and `problem` says why, without the file's name.
 *
 * Errors: FILE_FAILED: it cannot be read, or is no kind of file that can hold device
 * code; UNSUPPORTED: an archive; NO_HOST_MEMORY.
 */
capu_status binary_read(const char *path, struct binary *binary, struct error_text *problem);

/* The same for a file in memory. Copies what it keeps. */
capu_status binary_read_bytes(struct bytes bytes, struct binary *binary,
                              struct error_text *problem);

/* Parses a PTX image and analyses its kernels; what is wrong with it is noted in the image. Pre: it
   has text. Errors: NO_HOST_MEMORY. */
capu_status binary_analyse(struct binary_image *image, struct error_text *problem);

/* PTX tells about a kernel only if what runs is made from it. Returns why that is not certain for a
   kernel of an analysed image, as words for a message; NULL: it is. */
const char *binary_doubt(const struct binary *binary, const struct binary_image *image,
                         const struct kernel *kernel);

void binary_finish(struct binary *binary);

#endif
