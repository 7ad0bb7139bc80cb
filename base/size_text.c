/* Sizes in messages, see size_text.h. */
#include "base/size_text.h"

#include <inttypes.h>
#include <stdio.h>

struct size_text size_text(uint64_t bytes)
{
    const uint64_t mebibyte = UINT64_C(1) << 20;
    uint64_t whole = bytes / mebibyte;
    uint64_t hundredths = (bytes % mebibyte * 100 + mebibyte - 1) / mebibyte;
    struct size_text size;

    if (whole == 0) {
        snprintf(size.text, sizeof(size.text), "%" PRIu64 " bytes", bytes);
    } else {
        snprintf(size.text, sizeof(size.text), "%" PRIu64 ".%02u MiB (%" PRIu64 " bytes)",
                 whole + hundredths / 100, (unsigned)(hundredths % 100), bytes);
    }
    return size;
}
