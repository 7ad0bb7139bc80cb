/*
 * Virtual reads: accesses that only planning sees, of tensors that are dead.
 *
 * A transient tensor after its last access carries no decision, although replays may start from
 * it. A virtual read at an op that may need such replays ends one more gap, in which the tensor can
 * be kept, swapped or dropped like any other. It demands nothing: if the tensor is not there, the
 * op runs all the same.
 */
#ifndef CAPU_POLICY_VIRTUAL_READS_H
#define CAPU_POLICY_VIRTUAL_READS_H

#include <stdbool.h>
#include <stdint.h>

#include "capuchin/status.h"
#include "policy/model/trace_index.h"

struct virtual_read {
    uint32_t tensor;
    uint32_t op;
};

struct virtual_reads {
    struct virtual_read *list; /* by tensor, then by op */
    uint32_t count;
    /* Keeping a tensor for them is obeyed even where no replay is seen that needs it. */
    bool is_unconditional;
};

/* Which dead tensors are worth a decision, and where. Errors: NO_HOST_MEMORY. On failure zeroed. */
capu_status virtual_reads_choose(const struct trace_index *trace_index,
                                 struct virtual_reads *reads);
void virtual_reads_finish(struct virtual_reads *reads);

#endif
