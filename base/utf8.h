/* Reading UTF-8, for texts that come from outside: names that programs give, and files. */
#ifndef CAPU_BASE_UTF8_H
#define CAPU_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The character at the beginning of `text`, which ends with a zero byte: stores its code and
   returns its length in bytes, 1 to 4. The zero byte is a character, too. Returns 0, and leaves
   *code alone, if no valid sequence begins there. Never reads past the zero byte. */
size_t utf8_read(const char *text, uint32_t *code);

#endif
