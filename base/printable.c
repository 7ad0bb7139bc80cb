/* Escaping text from files, see printable.h. */
#include "base/printable.h"

#include "base/assert.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Room for four escaped bytes. */
enum { PIECE_BYTES = 4 * 4 + 1 };

static bool is_harmless(uint32_t code)
{
    bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    bool is_direction = code == 0x061c || code == 0x200e || code == 0x200f ||
                        (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    bool is_separator = code == 0x2028 || code == 0x2029;

    return !is_control && !is_direction && !is_separator;
}

/* The first character of a text as it is printed. Returns its length in the text, and stores how
   many columns it takes. */
static size_t read_piece(const char *text, char piece[static PIECE_BYTES], size_t *columns)
{
    uint32_t code;
    size_t length = utf8_read(text, &code);

    if (length > 0 && is_harmless(code)) {
        memcpy(piece, text, length);
        piece[length] = '\0';
        *columns = 1;
        return length;
    }
    length = length > 0 ? length : 1;
    for (size_t i = 0; i < length; i++) {
        snprintf(piece + 4 * i, 5, "\\x%02x", (unsigned char)text[i]);
    }
    *columns = 4 * length;
    return length;
}

/* Fills the buffer with at most `width` columns; returns how many they are. `used`: bytes.
   Advances *rest to what did not fit. */
static size_t fill_line(const char **rest, size_t width, char *buffer, size_t *used)
{
    const char *text = *rest;
    size_t columns = 0;

    *used = 0;
    while (*text != '\0') {
        char piece[PIECE_BYTES];
        size_t more;
        size_t length = read_piece(text, piece, &more);

        if (columns + more > width || *used + strlen(piece) >= PRINTABLE_BYTES) {
            break;
        }
        memcpy(buffer + *used, piece, strlen(piece));
        *used += strlen(piece);
        columns += more;
        text += length;
    }
    buffer[*used] = '\0';
    *rest = text;
    return columns;
}

const char *printable(const char *text, char buffer[static PRINTABLE_BYTES])
{
    size_t used;

    fill_line(&text, SIZE_MAX, buffer, &used);
    return buffer;
}

const char *printable_column(const char *text, size_t width, char buffer[static PRINTABLE_BYTES])
{
    size_t used;
    size_t columns = fill_line(&text, width, buffer, &used);

    while (columns++ < width && used + 1 < PRINTABLE_BYTES) {
        buffer[used++] = ' ';
    }
    buffer[used] = '\0';
    return buffer;
}

const char *printable_cut(const char *text, size_t width, char buffer[static PRINTABLE_BYTES])
{
    size_t used;

    /* A character takes four bytes at most. */
    ASSERT(width < (PRINTABLE_BYTES - sizeof("...")) / 4);
    fill_line(&text, width, buffer, &used);
    if (*text != '\0') {
        memcpy(buffer + used, "...", sizeof("..."));
    }
    return buffer;
}

void printable_print(FILE *file, const char *text)
{
    while (*text != '\0') {
        char piece[PIECE_BYTES];
        size_t columns;

        text += read_piece(text, piece, &columns);
        fputs(piece, file);
    }
}
