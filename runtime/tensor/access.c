/* The accesses of an op, see access.h. */
#include "runtime/tensor/access.h"

#include "runtime/context/internal.h"

capu_status access_add(capu_context *context, struct tensor *tensor, uint32_t role)
{
    struct access *access = access_of(&context->operands, tensor);

    if (access == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    access->role = role;
    access->is_read = role == CAPU_READ;
    return CAPU_OK;
}
