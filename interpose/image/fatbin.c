/* Reading fat binaries, see fatbin.h. */
#define _GNU_SOURCE /* memmem */
#include "interpose/image/fatbin.h"

#include "interpose/image/elf_file.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Both libraries are optional when this is built. */
#ifdef INTERPOSE_LZ4
#include <lz4.h>
#endif
#ifdef INTERPOSE_ZSTD
#include <zstd.h>
#endif

#define MAGIC 0xba55ed50u

enum {
    HEADER_BYTES = 16,
    ENTRY_BYTES = 64, /* the least; what else an entry has is optional */
    OPTIONS_BYTES = 72,
    KIND_PTX = 1,
    KIND_ELF = 2,
    KIND_LTO = 8,
    FLAG_LZ4 = 0x2000,
    FLAG_ZSTD = 0x8000,
};

bool fatbin_is_one(struct bytes bytes)
{
    return bytes_have(bytes, 0, HEADER_BYTES) && bytes_u32(bytes, 0) == MAGIC;
}

static enum image_kind kind_of(unsigned number)
{
    switch (number) {
    case KIND_PTX:
        return IMAGE_PTX;
    case KIND_ELF:
        return IMAGE_ELF;
    case KIND_LTO:
        return IMAGE_LTO;
    default:
        return IMAGE_UNKNOWN;
    }
}

/* Whether the compiler's options in the header of an entry say that it is to be linked. */
static bool is_for_linking(struct bytes header)
{
    static const char option[] = "--compile-only";
    uint32_t offset;
    uint32_t length;

    if (header.count < OPTIONS_BYTES) {
        return false;
    }
    offset = bytes_u32(header, 64);
    length = bytes_u32(header, 68);
    return bytes_have(header, offset, length) &&
           memmem(header.data + offset, length, option, sizeof(option) - 1) != NULL;
}

/* Moves to the next fat binary of the section. */
static capu_status begin_fatbin(struct fatbin_reader *reader, struct error_text *problem)
{
    struct bytes bytes = reader->bytes;
    uint64_t header;
    uint64_t count;

    /* They are aligned; the bytes between them are zero. */
    while (reader->offset < bytes.count && bytes.data[reader->offset] == 0) {
        reader->offset++;
    }
    if (reader->offset == bytes.count) {
        return CAPU_NOT_READY;
    }
    if (!bytes_have(bytes, reader->offset, HEADER_BYTES) ||
        bytes_u32(bytes, reader->offset) != MAGIC) {
        return error_text_set(problem, CAPU_FILE_FAILED,
                              "no fat binary where one should begin, at byte %" PRIu64,
                              reader->offset);
    }
    header = bytes_u16(bytes, reader->offset + 6);
    count = bytes_u64(bytes, reader->offset + 8);
    if (header < HEADER_BYTES || !bytes_have(bytes, reader->offset, header) ||
        !bytes_have(bytes, reader->offset + header, count)) {
        return error_text_set(problem, CAPU_FILE_FAILED,
                              "the fat binary at byte %" PRIu64 " is cut short", reader->offset);
    }
    reader->offset += header;
    reader->end = reader->offset + count;
    reader->count++;
    return CAPU_OK;
}

capu_status fatbin_next(struct fatbin_reader *reader, struct image *image,
                        struct error_text *problem)
{
    struct bytes bytes;
    uint64_t header;
    uint64_t padded;
    uint64_t packed;
    uint64_t flags;

    while (reader->offset == reader->end) {
        capu_status status = begin_fatbin(reader, problem);

        if (status != CAPU_OK) {
            return status;
        }
    }
    bytes = bytes_part(reader->bytes, reader->offset, reader->end - reader->offset);
    if (!bytes_have(bytes, 0, ENTRY_BYTES)) {
        goto cut_short;
    }
    header = bytes_u32(bytes, 4);
    padded = bytes_u64(bytes, 8);
    if (header < ENTRY_BYTES || !bytes_have(bytes, 0, header) ||
        !bytes_have(bytes, header, padded)) {
        goto cut_short;
    }
    packed = bytes_u32(bytes, 16);
    flags = bytes_u64(bytes, 40);
    image->kind_number = bytes_u16(bytes, 0);
    image->kind = kind_of(image->kind_number);
    image->architecture = bytes_u32(bytes, 28);
    image->packing = (flags & FLAG_ZSTD) != 0  ? PACKING_ZSTD
                     : (flags & FLAG_LZ4) != 0 ? PACKING_LZ4
                                               : PACKING_NONE;
    image->is_relocatable = is_for_linking(bytes_part(bytes, 0, header));
    if (image->packing == PACKING_NONE || packed == 0) {
        packed = padded;
    }
    if (packed > padded) {
        goto cut_short;
    }
    image->payload = bytes_part(bytes, header, packed);
    image->unpacked_bytes = image->packing == PACKING_NONE ? packed : bytes_u64(bytes, 56);
    reader->offset += header + padded;
    return CAPU_OK;

cut_short:
    return error_text_set(problem, CAPU_FILE_FAILED, "the image at byte %" PRIu64 " is cut short",
                          reader->offset);
}

/* Unpacking: LZ4 (CUDA 11 and 12) and zstd (since 12.8). */

/* The most that an image may unpack to. Far more than any real one; a damaged size beyond it is
   refused before memory is taken. */
#define UNPACK_MOST_BYTES ((uint64_t)1 << 30)

static capu_status unpack_lz4(struct bytes packed, unsigned char *out, size_t count,
                              struct error_text *problem)
{
#ifdef INTERPOSE_LZ4
    if (packed.count > INT_MAX || count > INT_MAX ||
        LZ4_decompress_safe((const char *)packed.data, (char *)out, (int)packed.count,
                            (int)count) != (int)count) {
        return error_text_set(problem, CAPU_FILE_FAILED, "damaged (lz4)");
    }
    return CAPU_OK;
#else
    (void)packed;
    (void)out;
    (void)count;
    return error_text_set(
        problem, CAPU_UNSUPPORTED,
        "compressed with lz4, which this build cannot read: install liblz4-dev and "
        "build again");
#endif
}

static capu_status unpack_zstd(struct bytes packed, unsigned char *out, size_t count,
                               struct error_text *problem)
{
#ifdef INTERPOSE_ZSTD
    if (ZSTD_decompress(out, count, packed.data, packed.count) != count) {
        return error_text_set(problem, CAPU_FILE_FAILED, "damaged (zstd)");
    }
    return CAPU_OK;
#else
    (void)packed;
    (void)out;
    (void)count;
    return error_text_set(problem, CAPU_UNSUPPORTED,
                          "compressed with zstd, which this build cannot read: install libzstd-dev "
                          "and build again");
#endif
}

/* Stores in *out what `packed` unpacks to: exactly `count` bytes and a terminating 0. */
static capu_status unpack(struct bytes packed, enum packing packing, uint64_t count,
                          unsigned char **out, struct error_text *problem)
{
    unsigned char *unpacked;
    capu_status status = CAPU_OK;

    if (count > UNPACK_MOST_BYTES || (packing == PACKING_NONE && count > packed.count)) {
        return error_text_set(problem, CAPU_FILE_FAILED, "its size is damaged");
    }
    unpacked = malloc((size_t)count + 1);
    if (unpacked == NULL) {
        return error_text_set(problem, CAPU_NO_HOST_MEMORY, "no memory to unpack it");
    }
    switch (packing) {
    case PACKING_NONE:
        memcpy(unpacked, packed.data, (size_t)count);
        break;
    case PACKING_LZ4:
        status = unpack_lz4(packed, unpacked, (size_t)count, problem);
        break;
    case PACKING_ZSTD:
        status = unpack_zstd(packed, unpacked, (size_t)count, problem);
        break;
    }
    if (status != CAPU_OK) {
        free(unpacked);
        return status;
    }
    unpacked[count] = '\0';
    *out = unpacked;
    return CAPU_OK;
}

capu_status fatbin_unpack(const struct image *image, unsigned char **out, size_t *count,
                          struct error_text *problem)
{
    capu_status status =
        unpack(image->payload, image->packing, image->unpacked_bytes, out, problem);

    if (status == CAPU_OK) {
        *count = (size_t)image->unpacked_bytes;
        /* Text is padded with zeros. */
        while (image->kind == IMAGE_PTX && *count > 0 && (*out)[*count - 1] == '\0') {
            --*count;
        }
    }
    return status;
}
