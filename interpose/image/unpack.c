/* LZ4 (CUDA 11 and 12) and zstd (since 12.8), see unpack.h. */
#include "interpose/image/unpack.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#ifdef INTERPOSE_LZ4
#include <lz4.h>
#endif
#ifdef INTERPOSE_ZSTD
#include <zstd.h>
#endif

static capu_status unpack_lz4(struct bytes packed, unsigned char *out, size_t count,
                              struct error_text *problem)
{
#ifdef INTERPOSE_LZ4
    if (packed.count > INT_MAX || count > INT_MAX ||
        LZ4_decompress_safe((const char *)packed.data, (char *)out, (int)packed.count,
                            (int)count) != (int)count) {
        return error_text_set(problem, CAPU_BAD_FILE, "damaged (lz4)");
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
        return error_text_set(problem, CAPU_BAD_FILE, "damaged (zstd)");
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

capu_status unpack(struct bytes packed, enum packing packing, uint64_t count, unsigned char **out,
                   struct error_text *problem)
{
    unsigned char *unpacked;
    capu_status status = CAPU_OK;

    if (count > UNPACK_MOST_BYTES || (packing == PACKING_NONE && count > packed.count)) {
        return error_text_set(problem, CAPU_BAD_FILE, "its size is damaged");
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
