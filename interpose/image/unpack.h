/* Decompresses images. Both libraries are optional when this is built. */
#ifndef CAPU_INTERPOSE_UNPACK_H
#define CAPU_INTERPOSE_UNPACK_H

#include "base/error_text.h"
#include "capuchin/status.h"
#include "interpose/image/bytes.h"

enum packing { PACKING_NONE, PACKING_LZ4, PACKING_ZSTD };

/* The most that an image may unpack to. Far more than any real one; a damaged size beyond it is
   refused before memory is taken. */
#define UNPACK_MOST_BYTES ((uint64_t)1 << 30)

/*
 * Stores in *out what `packed` unpacks to, exactly `count` bytes and a terminating 0; the caller
 * frees it. On failure *out is unchanged.
 *
 * Errors: BAD_FILE; UNSUPPORTED: built without the library, `problem` names the package;
 * NO_HOST_MEMORY.
 */
capu_status unpack(struct bytes packed, enum packing packing, uint64_t count, unsigned char **out,
                   struct error_text *problem);

#endif
