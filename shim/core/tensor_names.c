/* Names of tensors, see tensor_names.h. */
#include "shim/core/tensor_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 64 };

static const char prefix[] = "allocation ";

void tensor_names_whole(capu_context *context, void *block, uint64_t ordinal)
{
    char name[NAME_BYTES];

    snprintf(name, sizeof(name), "%s%" PRIu64, prefix, ordinal + 1);
    (void)CAPU_DESCRIBE(context, block, .name = name);
}

void tensor_names_parts(capu_context *context, const char *name, uint64_t first, uint64_t last)
{
    uint64_t number;
    uint64_t offset;
    char *end;

    if (strncmp(name, prefix, strlen(prefix)) != 0) {
        return;
    }
    number = strtoull(name + strlen(prefix), &end, 10);
    offset = *end == '+' ? strtoull(end + 1, NULL, 10) : 0;
    for (uint64_t at = first; at != 0 && at < last;
         at = (uintptr_t)capu_tensor_next(context, (void *)(uintptr_t)at)) {
        char part[NAME_BYTES];

        snprintf(part, sizeof(part), "%s%" PRIu64 "+%" PRIu64, prefix, number, offset + at - first);
        (void)CAPU_DESCRIBE(context, (void *)(uintptr_t)at, .name = part);
    }
}
