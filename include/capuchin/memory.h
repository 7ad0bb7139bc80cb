/*
 * Device memory: allocations whose address never changes, and the tensors they consist of.
 *
 * An allocation is one tensor until capu_split divides it. The memory behind an address may be
 * taken away and given back; the address stays valid in every op that names it, until capu_free.
 * Only ops that name a tensor may touch it.
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
    CAPU_KIND_UNKNOWN = 0, /* persistent by default, which is always correct */
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

/* The user's wish for a tensor. Recorded in traces; the planners `hybrid` and `manual` obey it. */
typedef enum capu_hint {
    CAPU_HINT_NONE = 0,
    CAPU_HINT_KEEP = 1,
    CAPU_HINT_SWAP = 2,
    CAPU_HINT_RECOMPUTE = 3
} capu_hint;

typedef struct capu_tensor_info {
    size_t size;       /* sizeof(capu_tensor_info), as the caller was compiled */
    const char *name;  /* for reports, traces and errors; copied; NULL keeps the present name */
    uint32_t kind;     /* capu_kind */
    uint32_t lifetime; /* capu_lifetime */
    uint32_t hint;     /* capu_hint */
    uint32_t reserved; /* 0 */
} capu_tensor_info;

/* A tensor's description and state, from capu_tensor_query. */
typedef struct capu_tensor_state {
    size_t size;          /* sizeof(capu_tensor_state), as the caller was compiled */
    const char *name;     /* owned by the context, valid until its end */
    void *address;        /* of the tensor's first byte */
    uint64_t bytes;       /* of the whole tensor */
    uint64_t fixed_bytes; /* of these, in always-resident pages: slabs or edge pages */
    uint32_t kind;        /* capu_kind */
    uint32_t hint;        /* capu_hint */
    uint32_t is_persistent;
    uint32_t is_resident;   /* its own pages are mapped, or it is always resident */
    uint32_t is_defined;    /* holds contents that may be read */
    uint32_t has_host_copy; /* a valid one */
    uint64_t version;       /* counts its writes */
    uint32_t is_zero;       /* known to be zero, see capu_zero: nothing is stored for it */
    uint32_t reserved;      /* 0 */
    uint64_t out_bytes;     /* copied to host memory since it was allocated, or split from another;
                               what that one had counts for its first part */
    uint64_t back_bytes;    /* copied back to the device, likewise */
} capu_tensor_state;

/*
 * Allocates `bytes` of device memory, aligned to 256 bytes, and stores its address in *address. The
 * contents are undefined, or zero with clear_fresh. The tensor has the default description:
 * persistent, unnamed. In passive and guided mode its pages are mapped at the first access; with
 * mode off they are mapped at once. The n-th allocation of an iteration gets the address that the
 * n-th allocation of that size had last under the same label, provided that one has been freed;
 * four sizes are remembered per n.
 *
 * Owner: the caller, until capu_free or the end of the context. Stream order: none. It may wait for
 * evictions when a small tensor needs a new page; in guided mode, an iteration that has left its
 * plan may first recompute what it still owes.
 * Errors: INVALID (`address` is NULL, or zero bytes), TOO_LARGE, OVER_BUDGET (mode off; or no page
 * can be freed for a small tensor), SYSTEM_LIMIT, NO_HOST_MEMORY, HOST_OVER_BUDGET (nowhere to
 * evict to), DEVICE_FAILED, DEVICE_LOST.
 */
CAPU_API capu_status capu_malloc(capu_context *context, size_t bytes, void **address);

/*
 * Frees an allocation and all tensors split from it. Work that is already enqueued may still use
 * it: its memory is reused only after that work, and its address range only after the iteration has
 * ended. NULL is allowed. Does not wait, with one exception: in guided mode, freeing a tensor of
 * the current plan outside an iteration, or one of several split from an allocation, ends the
 * plan's use and waits for all work.
 *
 * Stream order: after the allocation's last use on the compute stream.
 * Errors: WRONG_ADDRESS (not from this context, not the start of an allocation, or already freed),
 * NO_HOST_MEMORY, DEVICE_FAILED, DEVICE_LOST. After a failure nothing is freed.
 */
CAPU_API capu_status capu_free(capu_context *context, void *address);

/*
 * Makes the `bytes` at `address` a separate tensor, managed independently of the rest of the
 * allocation. capu_split_list divides a blob that holds many. Any byte offset is allowed, but a
 * page that two tensors share is always resident, so splitting pays for tensors of many pages. The
 * range must lie inside one tensor; what remains of that tensor keeps its description. Contents are
 * kept. The new tensor has the default description: persistent, unnamed. A range that is exactly
 * one tensor already changes nothing.
 *
 * May wait for the compute stream and copy contents back to the device. In guided mode, splitting a
 * tensor of the plan makes the rest of the iteration passive, and so does freeing a split
 * allocation inside an iteration. Errors: INVALID (zero bytes), WRONG_ADDRESS
 * (also: the range crosses the end of a tensor), OVER_BUDGET (no room for shared pages),
 * HOST_OVER_BUDGET, NO_HOST_MEMORY, SYSTEM_LIMIT, DEVICE_FAILED, DEVICE_LOST. After a failure
 * the tensor is not split.
 */
CAPU_API capu_status capu_split(capu_context *context, void *address, size_t bytes);

/*
 * Splits a blob into tensors of `count` sizes, one after the other from `address` on: the same
 * pieces as that many calls of capu_split, but with one wait, and at most one change of plan. What
 * follows the last size stays a tensor with the old description. A range that is exactly one tensor
 * already is left alone, so repeating the call changes nothing and costs no plan; nor does
 * splitting a tensor that no plan contains, between iterations, if the budget has room for pages
 * that the pieces share beside the plan. `sizes` is read during the call only.
 *
 * The ranges may lie in several tensors of one allocation, but none may cross the end of a tensor.
 * Waits and errors are those of capu_split, and INVALID (no sizes). Wrong sizes are found before
 * anything is split. After another failure the pieces of earlier tensors are split, and the call
 * can be repeated.
 */
CAPU_API capu_status capu_split_list(capu_context *context, void *address, const size_t *sizes,
                                     size_t count);

/*
 * The address of the tensor that follows the one which contains `address` in the same allocation;
 * NULL if that is the last one. So all tensors of an allocation are visited by
 *
 *     for (void *at = blob; at != NULL; at = capu_tensor_next(context, at))
 *
 * with capu_tensor_query for what each one is. Does not wait; splits in between are allowed. NULL
 * also if the address is in no tensor or the context cannot be used; capu_last_error says why.
 */
CAPU_API void *capu_tensor_next(capu_context *context, const void *address);

/*
 * Changes the size of an allocation and stores its address in *address: the old one wherever
 * `bytes` fit the address range that is reserved for it, which is whole pages, or the slot of a
 * small allocation. `old` NULL allocates.
 *
 * - A smaller size, and any size up to the largest it has had, changes nothing: tensors, contents
 *   and plans stay as they are, and so does the memory, until capu_free. A buffer that follows the
 *   size of the batch therefore keeps its plans, if ops name its tensors as a whole or with
 *   CAPU_WRITE_REST_UNDEFINED.
 * - A larger size that still fits makes the last tensor longer. Contents are kept; what is added is
 *   undefined, or zero with clear_fresh. Plans that contain that tensor are left, as by capu_split.
 * - Otherwise there is a new allocation, and the old one is freed as by capu_free. It has the same
 *   tensors with the same descriptions, the last one longer. Contents are copied, except those of
 *   transient tensors between iterations, which are undefined afterwards. Each tensor of the old
 *   allocation must fit the budget beside its copy. Plans that contain the old one are not used
 *   again.
 *
 * Stream order: compute stream. Waits as capu_split does. Errors: INVALID (`address` is NULL,
 * or zero bytes), WRONG_ADDRESS (also inside an allocation), and those of capu_malloc,
 * capu_split, capu_copy and capu_free. After a failure the old allocation is as it was, and
 * *address is untouched.
 */
CAPU_API capu_status capu_realloc(capu_context *context, void *old, size_t bytes, void **address);

/*
 * Sets the description of the tensor that contains `address`: name, kind, lifetime and hint. Each
 * call replaces all of them, except that a NULL name keeps the present one. Describe a tensor
 * before its first use; a later change applies from the next access on. In guided mode, making a
 * transient tensor persistent discards the plans that include it, and new ones are made. If a plan
 * has already discarded what the tensor holds, it is recomputed at once.
 *
 * Stream order: none; what is recomputed, compute stream. Errors: INVALID (a field is out of
 * range), WRONG_STRUCT, WRONG_ADDRESS, NO_HOST_MEMORY, DEVICE_LOST; if the
 * contents must be recomputed, also those of capu_run, after which the description applies.
 * CONTENTS_LOST: too late, they are gone; write the tensor again. Between iterations that is not
 * reported here, but by what reads the tensor.
 */
CAPU_API capu_status capu_tensor_describe(capu_context *context, const void *address,
                                          const capu_tensor_info *info);

/*
 * Stores the description and the present state of the tensor that contains `address` in *state.
 * The caller sets state->size. Does not wait and moves nothing.
 * Errors: INVALID (`state` is NULL), WRONG_STRUCT, WRONG_ADDRESS.
 */
CAPU_API capu_status capu_tensor_query(capu_context *context, const void *address,
                                       capu_tensor_state *state);

/*
 * Makes a range read as zeros. A tensor that lies entirely inside the range becomes known to be
 * zero: it needs no memory until an op reads or updates it, and is never copied while it is zero.
 * With mode off it is filled at once. `bytes` 0 means to the end of the tensor. The range may cover
 * several tensors of one allocation.
 *
 * Stream order: compute stream. Errors: those of capu_run. If a range of several tensors fails, its
 * first tensors may already be zero.
 */
CAPU_API capu_status capu_zero(capu_context *context, void *address, size_t bytes);

/* What an upload or a download may add; 0: nothing. */
typedef enum capu_transfer_flag {
    CAPU_TRANSFER_REST_UNDEFINED = 1, /* of capu_upload */
    CAPU_TRANSFER_ASYNC = 2           /* of capu_download */
} capu_transfer_flag;

/*
 * Copies host bytes to device memory. The source is copied before the call returns and may be
 * overwritten at once. Allowed inside and outside an iteration. The range may cover several tensors
 * of one allocation. A tensor that is covered entirely counts as written, others as updated. Waits
 * if too many staged bytes are outstanding (docs/design.md, "Memory"). In guided mode and inside an
 * iteration, the bytes of a whole tensor are kept until the next iteration has ended, if the host
 * budget allows, so that the upload is as replayable as an op.
 *
 * CAPU_TRANSFER_REST_UNDEFINED: nothing else in the tensors that the range meets is needed. What it
 * does not cover of them is undefined afterwards (in strict mode: filled with NaN). So all of them
 * count as written, and in guided mode the plan for a whole batch also serves a smaller one, such
 * as the last of an epoch. The bytes are kept if the range begins where a tensor does.
 *
 * Stream order: compute stream. Errors: INVALID (an address is NULL, zero bytes, another
 * flag), and those of capu_run. If a range of several tensors fails, its first tensors may
 * already be written.
 */
CAPU_API capu_status capu_upload(capu_context *context, void *to, const void *from, size_t bytes,
                                 uint32_t flags);

/*
 * Copies device bytes to host memory and waits for them. A tensor that is evicted and has a valid
 * host copy is read from there and stays evicted. Allowed inside and outside an iteration. The
 * range may cover several tensors of one allocation. On the sim device the bytes read as zeros.
 *
 * CAPU_TRANSFER_ASYNC: does not wait for the copy. `to` belongs to the library until the compute
 * stream has finished what was enqueued there when the call returned. Wait for that by an event of
 * the caller's on capu_context_stream, on any thread, or with capu_synchronize. So several threads
 * that take turns in calling the library need not wait for each other's reads. On cuda `to` should
 * be pinned memory, since otherwise the device may make the call wait. The call still waits where
 * an op would, for memory.
 *
 * Stream order: after all earlier work on the compute stream. Errors: INVALID (an address is NULL,
 * zero bytes, another flag), and those of capu_run; then `to` may be partly overwritten, and no
 * copy into it is running.
 */
CAPU_API capu_status capu_download(capu_context *context, void *to, const void *from, size_t bytes,
                                   uint32_t flags);

/*
 * Copies device bytes to device memory of the same context. The ranges must not overlap; each lies
 * in one allocation and may cover several tensors.
 * Stream order: compute stream. Errors: INVALID (the ranges overlap, an address is NULL, or
 * zero bytes), and those of capu_run.
 */
CAPU_API capu_status capu_copy(capu_context *context, void *to, const void *from, size_t bytes);

/*
 * Changes the budget of device memory to `bytes`: from now on the context holds at most that. It is
 * for device memory that others of the same process take and give back meanwhile, such as the
 * workspaces of libraries, where both together must fit a budget: lower the budget of the context
 * before such memory is allocated, and raise it after that memory was freed. `bytes` is between one
 * page and the budget that the context was created with; 0 means the latter. Whole pages count.
 *
 * A lower budget evicts tensors as an op would that needs the difference, and may wait as that
 * does. Before the call returns, the memory has been given back to the device. Once raised, the
 * budget is taken up as memory is needed.
 *
 * In guided mode, plans that need more pages than a lower budget allows are discarded, and made
 * again in it; an iteration under way that follows such a plan leaves it and goes on in passive
 * mode. After a higher one a plan goes on until a better one has been made. So a budget that
 * changes in each iteration costs the plans: change it seldom, and where possible between
 * iterations. capu_context_config gives the budget in use; the report of an iteration gives the
 * highest that it had. What an op needs at once is still the floor: an op that does not fit a
 * lowered budget returns OVER_BUDGET.
 *
 * Allowed inside and outside an iteration, and, unlike other calls, between capu_access_begin and
 * capu_access_end, where the operands of the access stay resident; but there not if the call has to
 * leave a plan.
 *
 * Stream order: none; what is evicted leaves after its last use. Errors, after which the old budget
 * holds and nothing is lost: OVER_BUDGET (`bytes` is below one page, or above what the context was
 * created with; or what is always resident, the operands of the access, or, in mode off, what is
 * allocated, does not fit), HOST_OVER_BUDGET or NO_HOST_MEMORY (nowhere to evict to), CONTENTS_LOST
 * (as of capu_run), WRONG_ORDER (inside an access, when a plan has to be left; while an iteration
 * is captured), DEVICE_FAILED. Other errors: OP_FAILED, DEVICE_LOST.
 */
CAPU_API capu_status capu_budget_set(capu_context *context, uint64_t bytes);

#ifndef __cplusplus
/* capu_tensor_describe in one line (C only):
   CAPU_DESCRIBE(context, w, .name = "w", .kind = CAPU_PARAMETER); */
#define CAPU_DESCRIBE(context_, address_, ...)   \
    capu_tensor_describe((context_), (address_), \
                         &(capu_tensor_info){.size = sizeof(capu_tensor_info), __VA_ARGS__})
#endif

#ifdef __cplusplus
}
#endif

#endif
