/*
 * Fat binaries: the containers in which nvcc puts the device code of one translation unit, as PTX,
 * as cubins (ELF), or both, per architecture. A program's section of them holds many, one after
 * another. The format is not documented; what is read here was seen in the output of CUDA 11 to 13.
 *
 * A fat binary is a header of at least 16 bytes (u32 magic, u16 version, u16 header bytes, u64
 * bytes after the header) and entries (u16 kind, u16 version, u32 header bytes, u64 payload bytes,
 * padded; at 16 u32 packed bytes, at 28 u32 architecture, at 40 u64 flags, at 56 u64 unpacked
 * bytes, at 64 and 68 place and length of the compiler's options).
 */
#ifndef CAPU_INTERPOSE_FATBIN_H
#define CAPU_INTERPOSE_FATBIN_H

#include "base/error_text.h"
#include "capuchin/status.h"
#include "interpose/image/bytes.h"

enum packing { PACKING_NONE, PACKING_LZ4, PACKING_ZSTD };

enum image_kind { IMAGE_PTX, IMAGE_ELF, IMAGE_LTO, IMAGE_UNKNOWN };

struct image {
    enum image_kind kind;
    unsigned kind_number;  /* as in the file, for messages */
    unsigned architecture; /* 80: sm_80 or compute_80 */
    enum packing packing;
    bool is_relocatable;  /* made to be linked with other device code: by -rdc=true or -dc */
    struct bytes payload; /* packed, in the file */
    uint64_t unpacked_bytes;
};

/* The fat binaries of a section, in order. Zeroed but for `bytes`: at the start. */
struct fatbin_reader {
    struct bytes bytes; /* of the section */
    uint64_t offset; /* of the next entry, or of the next fat binary if none is left in this one */
    uint64_t end;    /* of the current fat binary */
    unsigned count;  /* fat binaries begun so far */
};

/* Whether the bytes begin with a fat binary. */
bool fatbin_is_one(struct bytes bytes);

/* The next image; its fat binary is number count - 1. NOT_READY: there are no more. FILE_FAILED:
   what follows cannot be read, `problem` says why and where; nothing can be read after that. */
capu_status fatbin_next(struct fatbin_reader *reader, struct image *image,
                        struct error_text *problem);

/* The unpacked contents of an image, terminated by a 0 that does not count. The caller frees
   *out. On failure *out is unchanged. Errors: FILE_FAILED; UNSUPPORTED: built without the library
   that is needed, `problem` names the package; NO_HOST_MEMORY. */
capu_status fatbin_unpack(const struct image *image, unsigned char **out, size_t *count,
                          struct error_text *problem);

#endif
