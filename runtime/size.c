/* Sizes as people write them: see capu_parse_size in capuchin/context.h. */
#include "capuchin/context.h"

#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    double factor;
};

static const struct unit units[] = {
    {"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
    {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
};

capu_status capu_parse_size(const char *text, uint64_t *bytes)
{
    double number;
    char *end;

    if (text == NULL || bytes == NULL || text[0] < '0' || text[0] > '9' ||
        (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))) {
        return CAPU_INVALID;
    }
    number = strtod(text, &end);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].name) == 0) {
            number *= units[i].factor;
            if (!(number < 0x1p63)) {
                return CAPU_TOO_LARGE;
            }
            *bytes = (uint64_t)(number + 0.5);
            return CAPU_OK;
        }
    }
    return CAPU_INVALID;
}
