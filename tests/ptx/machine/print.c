/* printf of device code, see print.h: each conversion is given to the host's printf alone. */
#include "tests/ptx/machine/print.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { CONVERSION_BYTES = 64 };

struct arguments {
    const unsigned char *base;
    size_t offset;
};

static uint64_t take(struct arguments *arguments, size_t bytes)
{
    uint64_t value = 0;

    arguments->offset = (arguments->offset + bytes - 1) / bytes * bytes;
    memcpy(&value, arguments->base + arguments->offset, bytes);
    arguments->offset += bytes;
    return value;
}

/* The length of a conversion from its "%" on; 0: it is not one. */
static size_t conversion_length(const char *at)
{
    size_t length = 1 + strspn(at + 1, "-+ #0123456789.*hljzt");

    return at[length] == '\0' || length + 2 > CONVERSION_BYTES ? 0 : length + 1;
}

/* One conversion, with its stars replaced. */
static bool print_one(const char *conversion, size_t length, struct arguments *arguments,
                      uint32_t *count)
{
    char format[CONVERSION_BYTES + 32];
    size_t written = 0;
    char kind = conversion[length - 1];
    bool is_wide = false;

    for (size_t i = 0; i + 1 < length && written < CONVERSION_BYTES; i++) {
        if (conversion[i] == '*') {
            written += (size_t)snprintf(format + written, sizeof(format) - written, "%d",
                                        (int)take(arguments, 4));
            ++*count;
        } else if (strchr("ljzt", conversion[i]) != NULL) {
            is_wide = true;
        } else if (conversion[i] != 'h') {
            format[written++] = conversion[i];
        }
    }
    snprintf(format + written, sizeof(format) - written, "%s%c",
             strchr("diouxX", kind) != NULL ? "ll" : "", kind);
    ++*count;
    if (strchr("di", kind) != NULL) {
        uint64_t value = take(arguments, is_wide ? 8 : 4);

        printf(format, is_wide ? (long long)value : (long long)(int32_t)value);
    } else if (strchr("ouxX", kind) != NULL) {
        printf(format, (unsigned long long)take(arguments, is_wide ? 8 : 4));
    } else if (kind == 'c') {
        printf(format, (int)take(arguments, 4));
    } else if (strchr("eEfFgGaA", kind) != NULL) {
        uint64_t bits = take(arguments, 8);
        double value;

        memcpy(&value, &bits, sizeof(value));
        printf(format, value);
    } else if (kind == 's' || kind == 'p') {
        printf(format, (void *)(uintptr_t)take(arguments, 8));
    } else {
        return false;
    }
    return true;
}

uint32_t print_formatted(const char *format, const unsigned char *arguments)
{
    struct arguments left = {arguments, 0};
    uint32_t count = 0;

    while (*format != '\0') {
        size_t length = strcspn(format, "%");

        fwrite(format, 1, length, stdout);
        format += length;
        if (format[0] == '%' && format[1] == '%') {
            fputc('%', stdout);
            format += 2;
        } else if (format[0] == '%') {
            length = conversion_length(format);
            if (length == 0 || !print_one(format, length, &left, &count)) {
                return UINT32_MAX;
            }
            format += length;
        }
    }
    return count;
}
