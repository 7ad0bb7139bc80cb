/* Parameters of launches, see parameters.h. */
#include "shim/core/parameters.h"

#include "shim/driver/driver.h"

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

bool parameters_block(const struct parameters *parameters, const struct kernel *roles,
                      unsigned char block[PARAMETERS_BYTES_MOST])
{
    for (size_t i = 0; i < roles->parameter_count; i++) {
        const struct kernel_parameter *place = &roles->parameters[i];
        size_t end = (size_t)place->offset + place->bytes;

        if (end > PARAMETERS_BYTES_MOST) {
            return false;
        }
        if (parameters->list != NULL) {
            parameters_copy(block + place->offset, parameters->list[i], place->bytes);
        } else if (parameters->bytes != NULL && end <= parameters->byte_count) {
            memcpy(block + place->offset, parameters->bytes + place->offset, place->bytes);
        } else {
            return false;
        }
    }
    return true;
}

bool parameters_next(const unsigned char *block, const struct kernel *roles,
                     const struct kernel_word *word, uint32_t *offset, uint64_t *pointer)
{
    const struct kernel_parameter *place = &roles->parameters[word->parameter];
    bool is_any = word->offset == PTX_NONE;
    uint32_t at = is_any ? *offset : word->offset;

    if ((!is_any && *offset > 0) || at + sizeof(*pointer) > place->bytes) {
        return false;
    }
    memcpy(pointer, block + place->offset + at, sizeof(*pointer));
    *offset += (uint32_t)sizeof(*pointer);
    return true;
}
