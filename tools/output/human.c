/* Numbers in the units that people use. */
#include "tools/output/human.h"

#include <stddef.h>
#include <stdio.h>

const char *human_bytes(uint64_t bytes, char *buffer)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024.0 && unit < sizeof(units) / sizeof(units[0]) - 1) {
        value /= 1024.0;
        unit++;
    }
    snprintf(buffer, 32, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return buffer;
}

const char *human_ns(uint64_t ns, char *buffer)
{
    snprintf(buffer, 32, "%.3f ms", (double)ns / 1e6);
    return buffer;
}
