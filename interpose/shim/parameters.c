/* Parameters of launches, see parameters.h. */
#include "interpose/shim/parameters.h"

#include "interpose/shim/driver.h"

#include <string.h>

struct parameters parameters_of(void **list, void **extra)
{
    struct parameters parameters = {.list = list};

    for (size_t i = 0; list == NULL && extra != NULL && extra[i] != LAUNCH_END; i += 2) {
        if (extra[i] == LAUNCH_BUFFER) {
            parameters.bytes = extra[i + 1];
        } else if (extra[i] == LAUNCH_BUFFER_BYTES) {
            parameters.byte_count = *(const size_t *)extra[i + 1];
        }
    }
    return parameters;
}

bool parameters_read(const struct parameters *parameters, const struct kernel *roles,
                     uint32_t parameter, uint32_t offset, void *to, uint32_t bytes)
{
    const struct kernel_parameter *place = &roles->parameters[parameter];

    if (bytes > place->bytes || offset > place->bytes - bytes) {
        return false;
    }
    if (parameters->list != NULL) {
        memcpy(to, (const unsigned char *)parameters->list[parameter] + offset, bytes);
        return true;
    }
    if (parameters->bytes == NULL ||
        (size_t)place->offset + offset + bytes > parameters->byte_count) {
        return false;
    }
    memcpy(to, parameters->bytes + place->offset + offset, bytes);
    return true;
}

bool parameters_next(const struct parameters *parameters, const struct kernel *roles,
                     const struct kernel_word *word, uint32_t *offset, uint64_t *pointer)
{
    uint32_t at = word->offset == PTX_NONE ? *offset : word->offset;

    if (word->offset != PTX_NONE && *offset > 0) {
        return false;
    }
    *offset += (uint32_t)sizeof(*pointer);
    return parameters_read(parameters, roles, word->parameter, at, pointer, sizeof(*pointer));
}
