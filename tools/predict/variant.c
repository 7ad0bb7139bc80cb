/* Each variant copies tensors and ops one by one, with its changes. */
#include "tools/predict/variant.h"

#include <stdlib.h>

/* Operands of a split op from this share of its bytes on are split with it. */
#define SPLIT_SHARE 16

bool variant_is_update(const struct trace *trace, uint32_t op)
{
    const struct trace_op *step = &trace->ops[op];
    bool changes_state = false;

    for (uint32_t i = step->read_count; i < trace_operand_count(step); i++) {
        const struct trace_tensor *tensor = &trace->tensors[trace->operands[step->first + i]];

        bool is_state = tensor->kind == CAPU_PARAMETER || tensor->kind == CAPU_OPTIMIZER;

        if (!is_state && tensor->kind != CAPU_WORKSPACE) {
            return false;
        }
        changes_state |= is_state;
    }
    return changes_state;
}

static struct tensor_description describe_tensor(const struct trace *trace, uint32_t tensor)
{
    const struct trace_tensor *from = &trace->tensors[tensor];

    return (struct tensor_description){.name = trace_tensor_name(trace, tensor),
                                       .bytes = from->bytes,
                                       .kind = from->kind,
                                       .hint = from->hint,
                                       .persistent = from->persistent,
                                       .unmanaged = !from->managed,
                                       .scales = from->scales,
                                       .fixed_bytes = from->fixed_bytes};
}

static struct op_description describe_op(const struct trace *trace, uint32_t op)
{
    const struct trace_op *from = &trace->ops[op];

    return (struct op_description){.name = trace_op_name(trace, op),
                                   .segment = trace_text(trace, from->segment),
                                   .ns = from->ns,
                                   .reads = trace_reads(trace, from),
                                   .writes = trace_writes(trace, from),
                                   .updates = trace_updates(trace, from),
                                   .read_count = from->read_count,
                                   .write_count = from->write_count,
                                   .update_count = from->update_count,
                                   .replayable = from->replayable,
                                   .scales = from->scales};
}

/* An empty trace with that name, and all tensors if `with_tensors`. */
static capu_status begin_variant(const struct trace *trace, struct trace *variant,
                                 bool with_tensors)
{
    capu_status status = trace_init(variant, trace_text(trace, trace->name), NULL);

    for (uint32_t t = 0; status == CAPU_OK && with_tensors && t < trace->tensor_count; t++) {
        struct tensor_description description = describe_tensor(trace, t);

        status = trace_add_tensor(variant, &description, NULL, NULL);
    }
    return status;
}

static capu_status end_variant(struct trace *variant, capu_status status)
{
    if (status != CAPU_OK) {
        trace_finish(variant);
    }
    return status;
}

static capu_status copy_op(const struct trace *trace, uint32_t op, struct trace *variant)
{
    struct op_description description = describe_op(trace, op);

    return trace_add_op(variant, &description, NULL);
}

struct position {
    uint32_t after; /* the op that it follows */
    uint32_t op;
};

static int compare_positions(const void *a, const void *b)
{
    const struct position *left = a;
    const struct position *right = b;

    return left->after != right->after ? (left->after > right->after) - (left->after < right->after)
                                       : (left->op > right->op) - (left->op < right->op);
}

/* Where each op goes: a step of the optimizer after the last op that it depends on, or that depends
   on what it overwrites. */
static uint32_t find_positions(const struct trace *trace, struct position *positions,
                               uint32_t *accessed, uint32_t *written)
{
    uint32_t moved = 0;
    uint32_t last_other = 0; /* the last op that is not a step of the optimizer */

    for (uint32_t k = 0; k < trace->op_count; k++) {
        const struct trace_op *op = &trace->ops[k];
        bool is_update = variant_is_update(trace, k);
        uint32_t after = 0;

        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t t = trace->operands[op->first + i];
            uint32_t least = i < op->read_count ? written[t] : accessed[t];

            after = least > after ? least : after;
        }
        last_other = is_update ? last_other : k;
        after = is_update ? after : k;
        positions[k] = (struct position){.after = after, .op = k};
        moved += is_update && after < last_other;
        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t t = trace->operands[op->first + i];

            accessed[t] = after > accessed[t] ? after : accessed[t];
            if (i >= op->read_count) {
                written[t] = after > written[t] ? after : written[t];
            }
        }
    }
    return moved;
}

capu_status variant_early_updates(const struct trace *trace, struct trace *variant, uint32_t *moved)
{
    struct position *positions = calloc((size_t)trace->op_count + 1, sizeof(*positions));
    uint32_t *accessed = calloc((size_t)trace->tensor_count + 1, sizeof(*accessed));
    uint32_t *written = calloc((size_t)trace->tensor_count + 1, sizeof(*written));
    capu_status status = CAPU_NO_HOST_MEMORY;

    *variant = (struct trace){0};
    if (positions != NULL && accessed != NULL && written != NULL) {
        *moved = find_positions(trace, positions, accessed, written);
        qsort(positions, trace->op_count, sizeof(*positions), compare_positions);
        status = begin_variant(trace, variant, true);
    }
    for (uint32_t k = 0; status == CAPU_OK && k < trace->op_count; k++) {
        status = copy_op(trace, positions[k].op, variant);
    }
    free(positions);
    free(accessed);
    free(written);
    return end_variant(variant, status);
}

capu_status variant_replayable(const struct trace *trace, const bool *chosen, struct trace *variant)
{
    capu_status status = begin_variant(trace, variant, true);

    for (uint32_t k = 0; status == CAPU_OK && k < trace->op_count; k++) {
        struct op_description description = describe_op(trace, k);

        if (chosen[k]) {
            description.replayable = true;
            description.update_count = 0;
        }
        status = trace_add_op(variant, &description, NULL);
    }
    return end_variant(variant, status);
}

/* Part number `part` of a tensor; number 0 has the tensor's own id. */
struct parts {
    uint32_t count;
    uint32_t *first; /* per tensor: the id of part 1; 0: not split */
};

static capu_status add_parts(const struct trace *trace, const struct trace_op *op,
                             struct parts *parts, struct trace *variant)
{
    uint64_t op_bytes = 0;
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        op_bytes += trace->tensors[trace->operands[op->first + i]].bytes;
    }
    for (uint32_t i = 0; status == CAPU_OK && i < trace_operand_count(op); i++) {
        uint32_t t = trace->operands[op->first + i];
        struct tensor_description description = describe_tensor(trace, t);

        if (description.persistent || description.bytes < op_bytes / SPLIT_SHARE ||
            description.bytes < parts->count) {
            continue;
        }
        parts->first[t] = variant->tensor_count;
        description.bytes /= parts->count;
        description.fixed_bytes = 0;
        for (uint32_t part = 1; status == CAPU_OK && part < parts->count; part++) {
            status = trace_add_tensor(variant, &description, NULL, NULL);
        }
        variant->tensors[t].bytes -= description.bytes * (parts->count - 1);
        variant->tensors[t].fixed_bytes = 0;
    }
    return status;
}

/* Lists operands with all parts of them (part UINT32_MAX), or one. */
static size_t list_parts(const struct parts *parts, const uint32_t *from, size_t count,
                         uint32_t part, uint32_t *list)
{
    size_t length = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t first = parts->first[from[i]];

        if (first == 0 || part == UINT32_MAX || part == 0) {
            list[length++] = from[i];
        } else {
            list[length++] = first + part - 1;
        }
        for (uint32_t more = 1; first != 0 && part == UINT32_MAX && more < parts->count; more++) {
            list[length++] = first + more - 1;
        }
    }
    return length;
}

/* An op, or a part of the op that is split. What each part would write again is updated after the
   first part. */
static capu_status add_part(const struct trace *trace, uint32_t op, const struct parts *parts,
                            uint32_t part, uint32_t *list, struct trace *variant)
{
    struct op_description description = describe_op(trace, op);
    uint32_t *writes = list;
    uint32_t *updates;
    uint32_t *reads;
    size_t count;

    count = list_parts(parts, description.writes, description.write_count, part, writes);
    updates = writes + count;
    description.writes = writes;
    description.write_count = count;
    description.update_count =
        list_parts(parts, description.updates, description.update_count, part, updates);
    reads = updates + description.update_count;
    description.read_count =
        list_parts(parts, description.reads, description.read_count, part, reads);
    description.updates = updates;
    description.reads = reads;
    if (part != UINT32_MAX) {
        uint64_t share = description.ns / parts->count;

        description.ns = part == 0 ? description.ns - share * (parts->count - 1) : share;
    }
    if (part != UINT32_MAX && part > 0) {
        size_t kept = 0;

        /* The updates follow the writes: what moves between them only changes the border. */
        for (size_t i = 0; i < description.write_count; i++) {
            if (writes[i] >= trace->tensor_count) {
                uint32_t other = writes[kept];

                writes[kept++] = writes[i];
                writes[i] = other;
            }
        }
        description.updates = writes + kept;
        description.update_count += description.write_count - kept;
        description.write_count = kept;
        description.replayable &= description.update_count == 0;
    }
    return trace_add_op(variant, &description, NULL);
}

capu_status variant_split(const struct trace *trace, uint32_t op, uint32_t parts,
                          struct trace *variant)
{
    struct parts split = {.count = parts,
                          .first = calloc((size_t)trace->tensor_count + 1, sizeof(uint32_t))};
    uint32_t *list = NULL;
    uint32_t most = 0;
    capu_status status = begin_variant(trace, variant, true);

    for (uint32_t k = 0; k < trace->op_count; k++) {
        uint32_t count = trace_operand_count(&trace->ops[k]);

        most = count > most ? count : most;
    }
    list = malloc(((size_t)most * parts + 1) * sizeof(*list));
    if (status == CAPU_OK && (split.first == NULL || list == NULL)) {
        status = CAPU_NO_HOST_MEMORY;
    }
    if (status == CAPU_OK) {
        status = add_parts(trace, &trace->ops[op], &split, variant);
    }
    for (uint32_t k = 0; status == CAPU_OK && k < trace->op_count; k++) {
        for (uint32_t part = 0; status == CAPU_OK && part < (k == op ? parts : 1); part++) {
            status = add_part(trace, k, &split, k == op ? part : UINT32_MAX, list, variant);
        }
    }
    free(split.first);
    free(list);
    return end_variant(variant, status);
}

/* Transients that steps of the optimizer access: gradients, as a rule. */
static void find_accumulated(const struct trace *trace, bool *is_accumulated)
{
    for (uint32_t k = 0; k < trace->op_count; k++) {
        const struct trace_op *op = &trace->ops[k];

        for (uint32_t i = 0; variant_is_update(trace, k) && i < op->read_count; i++) {
            uint32_t t = trace->operands[op->first + i];

            is_accumulated[t] = !trace->tensors[t].persistent;
        }
    }
}

/* What runs in rounds. */
struct rounds {
    const struct trace *trace;
    uint32_t count;
    bool has_flags;       /* the trace says what grows with the batch */
    bool *is_accumulated; /* per tensor */
    uint32_t *ids;        /* per tensor: its id in the current round */
    uint32_t *list;       /* of ids, for one op */
};

/* Tensors of a round. What is neither persistent nor accumulated is new in each. */
static capu_status add_tensors(struct rounds *rounds, uint32_t round, struct trace *variant)
{
    const struct trace *trace = rounds->trace;
    capu_status status = CAPU_OK;

    for (uint32_t t = 0; status == CAPU_OK && t < trace->tensor_count; t++) {
        struct tensor_description description = describe_tensor(trace, t);
        bool is_kept = description.persistent || rounds->is_accumulated[t];

        if (rounds->has_flags ? description.scales : !is_kept) {
            uint64_t kept = rounds->has_flags ? description.fixed_bytes : 0;

            description.bytes =
                kept + (description.bytes - kept + rounds->count - 1) / rounds->count;
        }
        if (round == 0 || !is_kept) {
            status = trace_add_tensor(variant, &description, &rounds->ids[t], NULL);
        }
    }
    return status;
}

/* Appends the ids of operands to the list: those that are accumulated, the others, or both. */
static size_t list_ids(const struct rounds *rounds, const uint32_t *tensors, size_t count,
                       bool with_accumulated, bool with_others, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (rounds->is_accumulated[tensors[i]] ? with_accumulated : with_others) {
            rounds->list[length++] = rounds->ids[tensors[i]];
        }
    }
    return length;
}

/* Whether the op only clears accumulated tensors. */
static bool only_clears(struct rounds *rounds, const struct op_description *op)
{
    return op->read_count == 0 && op->update_count == 0 &&
           list_ids(rounds, op->writes, op->write_count, false, true, 0) == 0;
}

/* From the second round on, accumulated tensors are updated instead of written, and what only
   clears them is left out. */
static capu_status add_to_round(struct rounds *rounds, uint32_t op, uint32_t round,
                                struct trace *variant)
{
    struct op_description description = describe_op(rounds->trace, op);
    bool writes_again = round == 0;
    bool is_whole = variant_is_update(rounds->trace, op) || only_clears(rounds, &description);
    size_t reads = list_ids(rounds, description.reads, description.read_count, true, true, 0);
    size_t writes =
        list_ids(rounds, description.writes, description.write_count, writes_again, true, reads);
    size_t end =
        list_ids(rounds, description.writes, description.write_count, !writes_again, false, writes);

    if (reads == 0 && writes == 0 && description.update_count == 0 && round > 0) {
        return CAPU_OK;
    }
    end = list_ids(rounds, description.updates, description.update_count, true, true, end);
    if (rounds->has_flags ? description.scales : !is_whole) {
        description.ns = (description.ns + rounds->count - 1) / rounds->count;
    }
    description.reads = rounds->list;
    description.read_count = reads;
    description.writes = rounds->list + reads;
    description.write_count = writes - reads;
    description.updates = rounds->list + writes;
    description.update_count = end - writes;
    description.replayable &= description.update_count == 0;
    return trace_add_op(variant, &description, NULL);
}

capu_status variant_rounds(const struct trace *trace, uint32_t rounds, struct trace *variant)
{
    size_t tensors = (size_t)trace->tensor_count + 1;
    struct rounds all = {.trace = trace,
                         .count = rounds,
                         .is_accumulated = calloc(tensors, sizeof(bool)),
                         .ids = calloc(tensors, sizeof(uint32_t)),
                         .list = calloc(tensors, sizeof(uint32_t))};
    capu_status status = begin_variant(trace, variant, false);

    if (status == CAPU_OK && (all.is_accumulated == NULL || all.ids == NULL || all.list == NULL)) {
        status = CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t t = 0; status == CAPU_OK && t < trace->tensor_count; t++) {
        all.has_flags |= trace->tensors[t].scales;
    }
    if (status == CAPU_OK) {
        find_accumulated(trace, all.is_accumulated);
    }
    for (uint32_t round = 0; status == CAPU_OK && round < rounds; round++) {
        status = add_tensors(&all, round, variant);
        for (uint32_t k = 0; status == CAPU_OK && k < trace->op_count; k++) {
            if (round + 1 == rounds || !variant_is_update(trace, k)) {
                status = add_to_round(&all, k, round, variant);
            }
        }
    }
    free(all.is_accumulated);
    free(all.ids);
    free(all.list);
    return end_variant(variant, status);
}
