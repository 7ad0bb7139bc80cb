/*
 * A trace in memory: what one training iteration does. Its tensors, its ops in program order, how
 * long each took, and the machine it ran on.
 *
 * Flat arrays that only grow: a tensor's id and an op's number are indices, and names are offsets
 * into one pool. The functions below check every rule that concerns one line (ids exist, a tensor
 * is named at most once per op, an op with updates is not replayable), so the rest of this room
 * relies on them. Rules about the whole trace (nothing is read before it is written) are checked by
 * trace_index_init. Owned by one thread.
 */
#ifndef CAPU_POLICY_TRACE_H
#define CAPU_POLICY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/memory.h"
#include "capuchin/status.h"
#include "policy/format/string_buffer.h"

/* Limits that keep every sum in this room within 63 bits: bytes of one tensor times tensors, time
   of one op times ops and replays. */
#define TRACE_TENSORS_MAX ((uint32_t)1 << 22)
#define TRACE_OPS_MAX ((uint32_t)1 << 22)
#define TRACE_OPERANDS_MAX ((uint32_t)1 << 28)
#define TRACE_BYTES_MAX ((uint64_t)1 << 50) /* of one tensor, and of all tensors together */
#define TRACE_NS_MAX ((uint64_t)1 << 50)    /* of one op, and of all ops together */
#define TRACE_NAME_MAX ((size_t)4096)       /* bytes of one name */
#define TRACE_NAMES_MAX ((size_t)1 << 31)   /* bytes of all names */
#define TRACE_RATE_MIN ((uint64_t)1000000)  /* bytes per second of a link */
#define TRACE_RATE_MAX ((uint64_t)1 << 50)

/* How many kinds and hints there are, CAPU_KIND_UNKNOWN and CAPU_HINT_NONE included. */
#define TRACE_KINDS (CAPU_INPUT + 1)
#define TRACE_HINTS (CAPU_HINT_RECOMPUTE + 1)

struct machine {
    char name[64];
    uint64_t memory_bytes;
    uint64_t d2h_bytes_per_s; /* 0 in a trace without a machine line */
    uint64_t h2d_bytes_per_s;
    uint64_t copy_latency_ns;
};

struct trace_tensor {
    uint32_t name;   /* offset into names */
    uint8_t kind;    /* capu_kind, never unknown */
    uint8_t hint;    /* capu_hint */
    bool persistent; /* contents carry from one iteration to the next */
    bool managed;    /* false: counted in fixed_bytes, in no action */
    bool scales;     /* grows with the batch, all but fixed_bytes of it */
    uint64_t bytes;
    uint64_t fixed_bytes;
};

/* Operands of an op lie together: reads, then writes, then updates. */
struct trace_op {
    uint32_t name;    /* offset into names */
    uint32_t segment; /* offset into names; 0: in no segment */
    uint32_t first;   /* index into operands */
    uint32_t read_count;
    uint32_t write_count;
    uint32_t update_count;
    bool replayable;
    bool scales; /* its time grows with the batch */
    uint64_t ns;
};

struct trace {
    char *names; /* zero-terminated strings; offset 0 is the empty one */
    size_t names_bytes;
    size_t names_capacity;
    uint32_t name; /* offset into names */
    bool has_machine;
    struct machine machine;
    uint64_t batch;  /* 0: unknown */
    bool may_be_cut; /* read from a text without an end line: the last lines may be missing */

    struct trace_tensor *tensors;
    uint32_t tensor_count;
    size_t tensor_capacity;
    struct trace_op *ops;
    uint32_t op_count;
    size_t op_capacity;
    uint32_t *operands; /* tensor ids */
    uint32_t operand_count;
    size_t operand_capacity;

    uint64_t total_bytes; /* of all tensors */
    uint64_t total_ns;    /* the ideal: of all ops */

    /* For trace_add_op, to find a tensor named twice: the op that named each tensor last, plus one.
       As long as tensor_capacity. */
    uint32_t *named_by;
};

/* What trace_add_tensor takes. A tensor of unknown kind becomes an activation. */
struct tensor_description {
    const char *name;
    uint64_t bytes;
    capu_kind kind;
    capu_hint hint;
    bool persistent; /* parameters and optimizer state are persistent in any case */
    bool unmanaged;
    bool scales;
    uint64_t fixed_bytes;
};

/* What trace_add_op takes. Everything is copied. Zero means none or false. */
struct op_description {
    const char *name;
    const char *segment; /* NULL or "": in no segment */
    uint64_t ns;
    const uint32_t *reads;
    const uint32_t *writes;
    const uint32_t *updates;
    size_t read_count;
    size_t write_count;
    size_t update_count;
    bool replayable;
    bool scales;
};

/* An empty trace of that name. On failure the trace is zeroed, and finishing it is harmless.
   Errors: INVALID (name too long), NO_HOST_MEMORY. */
capu_status trace_init(struct trace *trace, const char *name, struct error_text *error);
/* Frees everything; the struct is zeroed. NULL and a zeroed struct are fine. */
void trace_finish(struct trace *trace);

/* Errors: INVALID (a rate out of range). */
capu_status trace_set_machine(struct trace *trace, const struct machine *machine,
                              struct error_text *error);
/* Ids are dense from 0 in the order of the calls. *id may be NULL.
   Errors: INVALID, TOO_LARGE (a limit), NO_HOST_MEMORY; the trace is as before. */
capu_status trace_add_tensor(struct trace *trace, const struct tensor_description *description,
                             uint32_t *id, struct error_text *error);
/* The next op in program order. Errors as above. INVALID: no such tensor, a tensor named twice, a
   replayable op with updates. */
capu_status trace_add_op(struct trace *trace, const struct op_description *description,
                         struct error_text *error);

/* A name by its offset. Valid until the next addition. */
static inline const char *trace_text(const struct trace *trace, uint32_t offset)
{
    return trace->names + offset;
}

static inline const char *trace_tensor_name(const struct trace *trace, uint32_t tensor)
{
    return trace->names + trace->tensors[tensor].name;
}

static inline const char *trace_op_name(const struct trace *trace, uint32_t op)
{
    return trace->names + trace->ops[op].name;
}

/* The operands of an op. Valid until the next addition. */
static inline const uint32_t *trace_reads(const struct trace *trace, const struct trace_op *op)
{
    return trace->operands + op->first;
}

static inline const uint32_t *trace_writes(const struct trace *trace, const struct trace_op *op)
{
    return trace->operands + op->first + op->read_count;
}

static inline const uint32_t *trace_updates(const struct trace *trace, const struct trace_op *op)
{
    return trace->operands + op->first + op->read_count + op->write_count;
}

static inline uint32_t trace_operand_count(const struct trace_op *op)
{
    return op->read_count + op->write_count + op->update_count;
}

/* "parameter" and so on; of an unknown kind "activation". A constant. */
const char *tensor_kind_name(capu_kind kind);
/* "keep", "swap", "recompute"; "" for none. A constant. */
const char *tensor_hint_name(capu_hint hint);

/*
 * trace_json.c: appends the trace as JSON lines, the last of which counts tensors and ops. On
 * failure the text may hold a part of it. Errors: INVALID (a name is not UTF-8), NO_HOST_MEMORY.
 */
capu_status trace_write(const struct trace *trace, struct string_buffer *text,
                        struct error_text *error);

/*
 * The same lines, read back. `file` is a name for messages, which name file, line and
 * field. A text without an end line, as older versions wrote it, is accepted and sets may_be_cut.
 * On failure the trace is zeroed.
 * Errors: FILE_FAILED, TOO_LARGE (a limit), NO_HOST_MEMORY.
 */
capu_status trace_read(struct trace *trace, const char *file, const char *data, size_t length,
                       struct error_text *error);
capu_status trace_load(struct trace *trace, const char *path, struct error_text *error);

#endif
