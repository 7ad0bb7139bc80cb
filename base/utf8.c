/* Reading UTF-8, see utf8.h. */
#include "base/utf8.h"

size_t utf8_read(const char *text, uint32_t *code)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length;
    uint32_t value;

    if (bytes[0] < 0x80) {
        *code = bytes[0];
        return 1;
    }
    length = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4) {
        return 0;
    }
    value = bytes[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) { /* the zero byte is no continuation either */
            return 0;
        }
        value = value << 6 | (bytes[i] & 0x3fu);
    }
    if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff) ||
        (length == 3 && value < 0x800) || (length == 4 && value < 0x10000)) {
        return 0;
    }
    *code = value;
    return length;
}
