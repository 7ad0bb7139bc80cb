/* Names of tensors, see tensor_names.h. */
#include "shim/core/tensor_names.h"

#include "runtime/api/describe.h"

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
    struct describe_range range = {first, last};
    capu_tensor_state state;
    uint64_t number;
    uint64_t offset;
    char *end;

    if (strncmp(name, prefix, strlen(prefix)) != 0) {
        return;
    }
    number = strtoull(name + strlen(prefix), &end, 10);
    offset = *end == '+' ? strtoull(end + 1, NULL, 10) : 0;
    while (describe_next(context, &range, &state)) {
        uint64_t at = offset + (uintptr_t)state.address - first;
        char part[NAME_BYTES];

        snprintf(part, sizeof(part), "%s%" PRIu64 "+%" PRIu64, prefix, number, at);
        (void)CAPU_DESCRIBE(context, state.address, .name = part);
    }
}
