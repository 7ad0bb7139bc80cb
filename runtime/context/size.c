/*
 * Sizes as people write them: see capu_parse_size in capuchin/context.h.
 *
 * Not strtod: its decimal point depends on the locale, and a size must mean the same everywhere.
 * The digits are read into an integer and a power of ten, and only the last step uses floating
 * point, so that "1.5GB" is exact.
 */
#include "capuchin/context.h"

#include <stdbool.h>
#include <string.h>

struct unit {
    const char *name;
    long double factor;
};

/* mantissa * 10^exponent */
struct decimal {
    uint64_t mantissa;
    int64_t exponent;
};

/* Larger than any size needs, and small enough that sums of exponents cannot overflow. */
enum { EXPONENT_LIMIT = 1000000 };

static const struct unit units[] = {
    {"", 1},          {"b", 1},         {"k", 0x1p10L},   {"m", 0x1p20L},   {"g", 0x1p30L},
    {"t", 0x1p40L},   {"ki", 0x1p10L},  {"mi", 0x1p20L},  {"gi", 0x1p30L},  {"ti", 0x1p40L},
    {"kib", 0x1p10L}, {"mib", 0x1p20L}, {"gib", 0x1p30L}, {"tib", 0x1p40L}, {"kb", 1e3L},
    {"mb", 1e6L},     {"gb", 1e9L},     {"tb", 1e12L},
};

/* Whether a text is a unit, in upper or lower case in every locale. */
static bool is_unit(const char *text, const char *unit)
{
    while (*unit != '\0' && (*text | 0x20) == *unit) {
        text++;
        unit++;
    }
    return *text == '\0' && *unit == '\0';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Appends a run of digits to the mantissa and returns the end of the run. Digits that no longer fit
   are dropped, but still count in the exponent. */
static const char *read_digits(const char *text, bool is_fraction, struct decimal *number)
{
    for (; is_digit(*text); text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        if (number->mantissa < UINT64_MAX / 10) {
            number->mantissa = number->mantissa * 10 + digit;
            number->exponent -= is_fraction;
        } else {
            number->exponent += !is_fraction;
        }
    }
    return text;
}

/* Reads "e9", "E+9" or "e-9"; anything else is left for the unit. */
static const char *read_exponent(const char *text, struct decimal *number)
{
    const char *digits = text + 1;
    int64_t exponent = 0;
    bool is_negative;

    if (*text != 'e' && *text != 'E') {
        return text;
    }
    is_negative = *digits == '-';
    if (*digits == '-' || *digits == '+') {
        digits++;
    }
    if (!is_digit(*digits)) {
        return text;
    }
    for (; is_digit(*digits); digits++) {
        if (exponent < EXPONENT_LIMIT) {
            exponent = exponent * 10 + (*digits - '0');
        }
    }
    number->exponent += is_negative ? -exponent : exponent;
    return digits;
}

/* The decimal times the factor; infinite if that is too large. Products are exact as long as they
   fit the mantissa, and the division comes last, so that "1.5GB" is exact too. */
static long double scale_decimal(const struct decimal *number, long double factor)
{
    int64_t power = number->exponent < 0 ? -number->exponent : number->exponent;
    long double tens = 1;

    if (number->mantissa == 0) {
        return 0;
    }
    for (int64_t i = 0; i < power && tens < 1e300L; i++) {
        tens *= 10;
    }
    factor *= (long double)number->mantissa;
    return number->exponent < 0 ? factor / tens : factor * tens;
}

capu_status capu_parse_size(const char *text, uint64_t *bytes)
{
    struct decimal number = {0};
    const char *end;

    if (text == NULL || bytes == NULL || !is_digit(text[0])) {
        return CAPU_INVALID;
    }
    end = read_digits(text, false, &number);
    if (*end == '.') {
        end = read_digits(end + 1, true, &number);
    }
    end = read_exponent(end, &number);
    end += strspn(end, " ");
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (is_unit(end, units[i].name)) {
            long double size = scale_decimal(&number, units[i].factor);

            if (!(size < 0x1p63L)) {
                return CAPU_TOO_LARGE;
            }
            *bytes = (uint64_t)(size + 0.5L);
            return CAPU_OK;
        }
    }
    return CAPU_INVALID;
}
