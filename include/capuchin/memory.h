/*
 * Device memory: allocations whose address never changes, and the tensors they consist of.
 *
 * An allocation is one tensor until capu_split makes it several. What is behind an address comes
 * and goes; the address stays valid in every op that names it, until capu_free.
 */
#ifndef CAPU_INCLUDE_MEMORY_H
#define CAPU_INCLUDE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "capuchin/context.h"
#include "capuchin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum capu_kind {
    CAPU_KIND_UNKNOWN = 0, /* treated as persistent, since nothing is known */
    CAPU_PARAMETER = 1,
    CAPU_OPTIMIZER = 2,
    CAPU_GRADIENT = 3,
    CAPU_ACTIVATION = 4,
    CAPU_WORKSPACE = 5,
    CAPU_INPUT = 6
} capu_kind;

/*
 * A persistent tensor keeps its contents from one iteration to the next. A transient one is
 * undefined at capu_iteration_begin, and reading it before it is written is an error.
 */
typedef enum capu_lifetime {
    CAPU_LIFETIME_DEFAULT = 0, /* persistent for parameters, optimizer state and unknown kinds */
    CAPU_PERSISTENT = 1,
    CAPU_TRANSIENT = 2
} capu_lifetime;

/* The user's wish for a tensor, recorded in traces and obeyed by planners. */
typedef enum capu_hint {
    CAPU_HINT_NONE = 0,
    CAPU_HINT_KEEP = 1,
    CAPU_HINT_SWAP = 2,
    CAPU_HINT_RECOMPUTE = 3
} capu_hint;

typedef struct capu_tensor_info {
    size_t size;       /* sizeof(capu_tensor_info), as the caller was compiled */
    const char *name;  /* for reports, traces and errors; copied; NULL leaves it as it is */
    uint32_t kind;     /* capu_kind */
    uint32_t lifetime; /* capu_lifetime */
    uint32_t hint;     /* capu_hint */
    uint32_t reserved; /* 0 */
} capu_tensor_info;

/* What a tensor is and where it stands, as capu_tensor_query tells it. */
typedef struct capu_tensor_state {
    size_t size;          /* sizeof(capu_tensor_state), as the caller was compiled */
    const char *name;     /* belongs to the context, valid as long as it */
    void *address;        /* of the tensor's first byte */
    uint64_t bytes;       /* of the whole tensor */
    uint64_t fixed_bytes; /* of them in always-resident pages: slab or shared edge pages */
    uint32_t kind;        /* capu_kind */
    uint32_t hint;        /* capu_hint */
    uint32_t is_persistent;
    uint32_t is_resident;   /* its own pages are mapped */
    uint32_t is_defined;    /* holds contents that may be read */
    uint32_t has_host_copy; /* a valid one */
    uint64_t version;       /* counts its writes */
} capu_tensor_state;

/*
 * Allocates `bytes` of device memory, aligned to 256 bytes, and gives its address. The contents are
 * undefined (zeros with clear_fresh). In passive mode nothing is mapped before the first access; in
 * mode off everything is mapped at once. The n-th allocation of an iteration gets the address that
 * an n-th one of its size had last, if that was freed; four sizes are remembered for each n.
 *
 * Owner: the caller, until capu_free or the context's end. Thread: the context's. Not ordered with
 * any stream. Errors: ZERO_BYTES, TOO_LARGE, OVER_BUDGET (mode off, or a small tensor's page finds
 * no room), NO_ADDRESS_SPACE, NO_HOST_MEMORY, HOST_OVER_BUDGET, WRONG_ORDER, DEVICE_FAILED,
 * DEVICE_LOST; *address is untouched then.
 */
CAPU_API capu_status capu_malloc(capu_context *context, size_t bytes, void **address);

/*
 * Frees an allocation and all tensors split from it. Work already enqueued still finds it: the
 * memory is reused only behind that work, and the address range not before the iteration ends. NULL
 * is fine.
 *
 * Errors: UNKNOWN_ADDRESS (never allocated here, or not the start of an allocation), ALREADY_FREED,
 * WRONG_ORDER (between capu_access_begin and capu_access_end), DEVICE_LOST.
 */
CAPU_API capu_status capu_free(capu_context *context, void *address);

/*
 * Makes the range a tensor of its own, managed apart from what lies before and behind it in the
 * allocation: one call a tensor carves up a blob that holds hundreds. Any byte offset is fine; a
 * page that two tensors share stays resident, so tensors of many pages are worth splitting. The
 * range must lie inside one tensor, which keeps its description for what remains of it; contents
 * are kept. The new tensor has the default description. In mode guided a split inside an iteration
 * ends its plan's force, and so does freeing an allocation there that was split.
 *
 * Errors: ZERO_BYTES, UNKNOWN_ADDRESS, ALREADY_FREED, OUT_OF_RANGE (the range crosses the border of
 * a tensor), OVER_BUDGET (no room for the shared pages), WRONG_ORDER, NO_HOST_MEMORY, DEVICE_LOST.
 */
CAPU_API capu_status capu_split(capu_context *context, void *address, size_t bytes);

/*
 * Describes the tensor at `address` (an interior address is fine): name, kind, lifetime, hint.
 * Describe before first use; a later change holds from the next access on. In mode guided, making a
 * transient tensor persistent gives up the plans that have it: others are made.
 * Errors: INVALID, WRONG_STRUCT, UNKNOWN_ADDRESS, ALREADY_FREED, NO_HOST_MEMORY, WRONG_ORDER,
 * DEVICE_LOST.
 */
CAPU_API capu_status capu_tensor_describe(capu_context *context, const void *address,
                                          const capu_tensor_info *info);

/*
 * Tells what the tensor at `address` is and where it stands now. Does not wait and moves nothing.
 * Errors: INVALID, WRONG_STRUCT, UNKNOWN_ADDRESS, ALREADY_FREED; *state is untouched then.
 */
CAPU_API capu_status capu_tensor_query(capu_context *context, const void *address,
                                       capu_tensor_state *state);

/*
 * Makes a range read as zeros. A tensor wholly inside it becomes known to be zero: it takes no
 * memory and no transfer until its first update, and is never copied while it stays so. `bytes` 0
 * means to the end of the tensor; the range may cover many tensors of one allocation.
 *
 * Stream order: compute stream. Errors: as capu_run.
 */
CAPU_API capu_status capu_zero(capu_context *context, void *address, size_t bytes);

/*
 * Copies host bytes to device memory. The source is copied before the call returns and may be
 * overwritten at once. Works inside and outside an iteration. A range that covers a tensor wholly
 * is a write of it, else an update.
 *
 * Stream order: compute stream. Errors: as capu_run, and ZERO_BYTES.
 */
CAPU_API capu_status capu_upload(capu_context *context, void *to, const void *from, size_t bytes);

/*
 * Copies device bytes to host memory and waits for them. A tensor that is out and has a valid host
 * copy is read there and stays out. Works inside and outside an iteration.
 * Errors: as capu_run, and ZERO_BYTES. On sim the bytes read as zeros.
 */
CAPU_API capu_status capu_download(capu_context *context, void *to, const void *from, size_t bytes);

/*
 * Copies device bytes to device bytes of the same context; the ranges must not overlap.
 * Stream order: compute stream. Errors: as capu_run, and ZERO_BYTES.
 */
CAPU_API capu_status capu_copy(capu_context *context, void *to, const void *from, size_t bytes);

#ifndef __cplusplus
/* Describes a tensor in one line: CAPU_DESCRIBE(context, w, .name = "w", .kind = CAPU_PARAMETER);
 */
#define CAPU_DESCRIBE(context_, address_, ...)   \
    capu_tensor_describe((context_), (address_), \
                         &(capu_tensor_info){.size = sizeof(capu_tensor_info), __VA_ARGS__})
#endif

#ifdef __cplusplus
}
#endif

#endif
