/*
 * An index of a trace by tensor: which ops access each tensor, in which role, and which version of
 * its contents each access sees. Built once per trace and read by everything else.
 *
 * Versions: a tensor starts the iteration at version 0; each write or update makes the next. For a
 * persistent tensor the final version of one iteration is version 0 of the next.
 */
#ifndef CAPU_POLICY_TRACE_INDEX_H
#define CAPU_POLICY_TRACE_INDEX_H

#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/format/trace.h"

#define TRACE_INDEX_NONE UINT32_MAX
#define TRACE_INDEX_PAGE_MAX \
    ((uint64_t)1 << 30) /* keeps every sum of rounded sizes inside 63 bits */

enum use_role { USE_READ, USE_WRITE, USE_UPDATE };

struct trace_index {
    const struct trace *trace; /* borrowed: outlives this */
    uint32_t *first;           /* per tensor, one more at the end: its accesses are first[t] up */
    uint32_t *op;              /* per access, in program order within a tensor */
    uint8_t *role;             /* per access */
    uint32_t *version;       /* per operand of the trace: what a read or update saw, a write made */
    uint32_t *final_version; /* per tensor */
    uint64_t *rounded;       /* per tensor: bytes rounded up to whole pages; 0 if not managed */
    uint64_t page_bytes;
    uint64_t fixed_bytes;     /* of unmanaged tensors: the most alive at one point */
    uint64_t unmanaged_bytes; /* of all of them together */
    uint64_t peak_bytes;      /* if every tensor is kept from its first access to its last */
    uint64_t idle_bytes;      /* managed persistent tensors that no op names */
    uint64_t floor_bytes;     /* what the largest op needs: no plan fits into less */
    uint32_t peak_op;
    uint32_t floor_op;
};

/*
 * Errors: INVALID (a transient tensor is read before it is written: the text names op and tensor;
 * page_bytes 0), NO_HOST_MEMORY. On failure the struct is zeroed.
 */
capu_status trace_index_init(struct trace_index *trace_index, const struct trace *trace,
                             uint64_t page_bytes, struct error_text *error);
void trace_index_finish(struct trace_index *trace_index);

/* At least so many bytes are fixed, whatever the unmanaged tensors add up to: raises fixed_bytes
   and unmanaged_bytes, and with them peak and floor. */
void trace_index_raise_fixed(struct trace_index *trace_index, uint64_t bytes);

#endif
