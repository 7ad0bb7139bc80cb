/* The accesses of an op, see access.h. */
#include "runtime/access.h"

#include "runtime/internal.h"

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

/* An update cannot be repeated. A function made for replays leaves the updated tensor alone, so
   such an op is replayable if the tensor is always resident: otherwise it would be brought back for
   nothing. */
static bool allows_replay(const struct operands *operands, const struct access *access)
{
    return access->recorded != CAPU_UPDATE ||
           (operands->call.replay != NULL && !tensor_is_managed(access->tensor));
}

bool access_can_replay(struct operands *operands)
{
    bool can = operands->call.is_replayable;

    for (size_t i = 0; i < operands->access_count; i++) {
        struct access *access = &operands->accesses[i];

        access->recorded = access_role(access);
        can = can && allows_replay(operands, access);
    }
    return can;
}
