/* The accesses of an op, see access.h. */
#include "runtime/access.h"

#include "base/array.h"
#include "runtime/internal.h"

struct access *access_create(struct operands *operands, struct tensor *tensor)
{
    struct access *access;

    if (!array_reserve(&operands->accesses, &operands->access_capacity, operands->access_count + 1,
                       sizeof(*access))) {
        return NULL;
    }
    tensor->in_op.stamp = operands->stamp;
    tensor->in_op.index = operands->access_count;
    access = &operands->accesses[operands->access_count++];
    *access = (struct access){.tensor = tensor};
    return access;
}

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
