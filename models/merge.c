/*
 * Merges ops to layers in two passes over the trace. The first one assigns every op to a merged op
 * and finds the first and the last merged op that names each tensor. From that the second one can
 * tell which tensors never leave a merged op: they become its workspace. All others become its
 * operands: read if the contents come from before, written if it makes them, updated if both.
 */
#include "models/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In this order within a layer: ops that draw random numbers read nothing, and no other op reads
   what an update writes. */
enum part { PART_DRAW, PART_MAIN, PART_UPDATE, PART_COUNT };

/* How the op being merged uses a tensor. */
enum use { USE_NONE, USE_OF_READ, USE_OF_WRITE, USE_OF_UPDATE };

struct merge {
    const struct tape *tape;
    const struct trace *from;
    struct trace to;
    uint32_t *first_group; /* per tensor of `from`: first and last merged op that names it */
    uint32_t *last_group;
    uint32_t *last_op;  /* per tensor: the op of `from` that names it last */
    uint32_t *group_of; /* per op: its merged op */
    uint32_t *new_id;   /* per tensor of `from`: its new id plus one; 0: none yet */
    uint8_t *use;       /* per tensor: in the op being merged */
    uint32_t *named;    /* tensors of the op being merged, in order of their first use */
    uint32_t *lists[3]; /* reads, writes, updates, as new ids */
    struct error_text *error;
};

static enum part part_of(const struct merge *merge, uint32_t op)
{
    const struct trace_op *entry = &merge->from->ops[op];

    if (entry->update_count > 0) {
        return PART_UPDATE;
    }
    return entry->replayable ? PART_MAIN : PART_DRAW;
}

/* A run of consecutive ops of a layer: of the forward pass, or of the backward pass with its
 * updates. */
static uint32_t run_end(const struct merge *merge, uint32_t begin)
{
    const struct label *labels = merge->tape->labels;
    uint32_t end = begin + 1;

    while (end < merge->from->op_count && labels[end].layer == labels[begin].layer &&
           (labels[end].phase == PHASE_FORWARD) == (labels[begin].phase == PHASE_FORWARD)) {
        end++;
    }
    return end;
}

/* Numbers the merged ops and notes which of them name each tensor. */
static void survey(struct merge *merge)
{
    const struct trace *from = merge->from;
    uint32_t group = 0;

    for (uint32_t begin = 0; begin < from->op_count;) {
        uint32_t end = run_end(merge, begin);

        for (uint32_t k = begin; k < end; k++) {
            const struct trace_op *op = &from->ops[k];

            merge->group_of[k] = group + part_of(merge, k);
            for (uint32_t i = 0; i < trace_operand_count(op); i++) {
                uint32_t t = from->operands[op->first + i];

                if (merge->last_op[t] == UINT32_MAX || merge->group_of[k] < merge->first_group[t]) {
                    merge->first_group[t] = merge->group_of[k];
                }
                if (merge->last_op[t] == UINT32_MAX || merge->group_of[k] > merge->last_group[t]) {
                    merge->last_group[t] = merge->group_of[k];
                }
                merge->last_op[t] = k;
            }
        }
        group += PART_COUNT;
        begin = end;
    }
}

static bool is_inner(const struct merge *merge, uint32_t tensor)
{
    return !merge->from->tensors[tensor].persistent &&
           merge->first_group[tensor] == merge->last_group[tensor];
}

/* The id of the tensor in the new trace; adds it if necessary. */
static capu_status carry_over(struct merge *merge, uint32_t tensor)
{
    const struct trace_tensor *old = &merge->from->tensors[tensor];
    struct tensor_description description = {.name = trace_tensor_name(merge->from, tensor),
                                             .bytes = old->bytes,
                                             .kind = (enum tensor_kind)old->kind,
                                             .persistent = old->persistent,
                                             .scales = old->scales};
    uint32_t id = 0;
    capu_status status;

    if (merge->new_id[tensor] != 0) {
        return CAPU_OK;
    }
    status = trace_add_tensor(&merge->to, &description, &id, merge->error);
    merge->new_id[tensor] = id + 1;
    return status;
}

/* Combines how the op uses its tensors with how the merged op has used them so far. */
static void note_uses(struct merge *merge, const struct trace_op *op, uint32_t *named_count)
{
    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        uint32_t t = merge->from->operands[op->first + i];
        bool is_read = i < op->read_count;
        bool is_write = !is_read && i < op->read_count + op->write_count;

        if (merge->use[t] == USE_NONE) {
            merge->named[(*named_count)++] = t;
            merge->use[t] = is_read ? USE_OF_READ : is_write ? USE_OF_WRITE : USE_OF_UPDATE;
        } else if (merge->use[t] == USE_OF_READ && !is_read) {
            merge->use[t] = USE_OF_UPDATE;
        }
    }
}

/* The peak size of the inner tensors over the ops of one part of a run. */
static uint64_t inner_bytes(const struct merge *merge, uint32_t begin, uint32_t end, enum part part)
{
    uint64_t alive = 0;
    uint64_t most = 0;

    for (uint32_t k = begin; k < end; k++) {
        const struct trace_op *op = &merge->from->ops[k];
        const uint32_t *operands = merge->from->operands + op->first;

        if (part_of(merge, k) != part) {
            continue;
        }
        for (uint32_t i = op->read_count; i < op->read_count + op->write_count; i++) {
            alive += is_inner(merge, operands[i]) ? merge->from->tensors[operands[i]].bytes : 0;
        }
        most = alive > most ? alive : most;
        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            alive -= is_inner(merge, operands[i]) && merge->last_op[operands[i]] == k
                         ? merge->from->tensors[operands[i]].bytes
                         : 0;
        }
    }
    return most;
}

static const char *name_of(const struct merge *merge, uint32_t op, enum part part)
{
    const struct label *label = &merge->tape->labels[op];

    if (label->phase == PHASE_FORWARD) {
        return part == PART_DRAW ? "draw" : part == PART_MAIN ? "fwd" : "running";
    }
    return part == PART_UPDATE ? "update" : "bwd";
}

/* Sorts the named tensors into the lists of operands, and clears their uses. */
static capu_status fill_lists(struct merge *merge, uint32_t named_count, size_t *counts)
{
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < named_count; i++) {
        uint32_t t = merge->named[i];
        enum use use = (enum use)merge->use[t];

        merge->use[t] = USE_NONE;
        if (status == CAPU_OK && !is_inner(merge, t)) {
            status = carry_over(merge, t);
            merge->lists[use - USE_OF_READ][counts[use - USE_OF_READ]++] = merge->new_id[t] - 1;
        }
    }
    return status;
}

/* Adds one part of a run as one op; nothing if the part has no ops. */
static capu_status merge_part(struct merge *merge, uint32_t begin, uint32_t end, enum part part)
{
    char name[2 * TAPE_NAME_MAX];
    size_t counts[3] = {0};
    struct op_description description = {.name = name, .replayable = part == PART_MAIN};
    uint64_t workspace = inner_bytes(merge, begin, end, part);
    uint32_t named_count = 0;
    uint32_t op_count = 0;
    uint32_t id = 0;
    capu_status status;

    for (uint32_t k = begin; k < end; k++) {
        if (part_of(merge, k) == part) {
            note_uses(merge, &merge->from->ops[k], &named_count);
            description.ns += merge->from->ops[k].ns;
            description.scales |= merge->from->ops[k].scales;
            op_count++;
        }
    }
    status = fill_lists(merge, named_count, counts);
    if (status != CAPU_OK || op_count == 0) {
        return status;
    }
    snprintf(name, sizeof(name), "%s.%s", merge->tape->layers[merge->tape->labels[begin].layer],
             name_of(merge, begin, part));
    if (workspace > 0) {
        char inner[sizeof(name) + 8];
        struct tensor_description scratch = {
            .name = inner, .bytes = workspace, .kind = TENSOR_WORKSPACE, .scales = true};

        snprintf(inner, sizeof(inner), "%s.inner", name);
        status = trace_add_tensor(&merge->to, &scratch, &id, merge->error);
        merge->lists[1][counts[1]++] = id;
    }
    description.reads = merge->lists[0];
    description.writes = merge->lists[1];
    description.updates = merge->lists[2];
    description.read_count = counts[0];
    description.write_count = counts[1];
    description.update_count = counts[2];
    return status == CAPU_OK ? trace_add_op(&merge->to, &description, merge->error) : status;
}

static capu_status merge_all(struct merge *merge)
{
    capu_status status = CAPU_OK;

    for (uint32_t begin = 0; status == CAPU_OK && begin < merge->from->op_count;) {
        uint32_t end = run_end(merge, begin);

        for (int part = 0; status == CAPU_OK && part < PART_COUNT; part++) {
            status = merge_part(merge, begin, end, (enum part)part);
        }
        begin = end;
    }
    return status;
}

static bool allocate(struct merge *merge)
{
    size_t tensors = (size_t)merge->from->tensor_count + 1;
    bool is_fine = true;

    merge->first_group = calloc(tensors, sizeof(*merge->first_group));
    merge->last_group = calloc(tensors, sizeof(*merge->last_group));
    merge->last_op = malloc(tensors * sizeof(*merge->last_op));
    merge->group_of = calloc((size_t)merge->from->op_count + 1, sizeof(*merge->group_of));
    merge->new_id = calloc(tensors, sizeof(*merge->new_id));
    merge->use = calloc(tensors, sizeof(*merge->use));
    merge->named = calloc(tensors, sizeof(*merge->named));
    for (int i = 0; i < 3; i++) {
        merge->lists[i] = calloc(tensors + 1, sizeof(*merge->lists[i]));
        is_fine &= merge->lists[i] != NULL;
    }
    if (merge->last_op != NULL) {
        memset(merge->last_op, 0xff, tensors * sizeof(*merge->last_op));
    }
    return is_fine && merge->first_group != NULL && merge->last_group != NULL &&
           merge->last_op != NULL && merge->group_of != NULL && merge->new_id != NULL &&
           merge->use != NULL && merge->named != NULL;
}

capu_status merge_layers(struct tape *tape, struct error_text *error)
{
    struct merge merge = {.tape = tape, .from = tape->trace, .error = error};
    capu_status status = trace_init(&merge.to, trace_text(tape->trace, tape->trace->name), error);

    if (status == CAPU_OK && !allocate(&merge)) {
        status = CAPU_NO_HOST_MEMORY;
    }
    if (status == CAPU_OK) {
        status = trace_set_machine(&merge.to, &tape->trace->machine, error);
        merge.to.batch = tape->trace->batch;
    }
    if (status == CAPU_OK) {
        survey(&merge);
        status = merge_all(&merge);
    }
    if (status == CAPU_OK) {
        trace_finish(tape->trace);
        *tape->trace = merge.to;
        merge.to = (struct trace){0};
    }
    trace_finish(&merge.to);
    free(merge.first_group);
    free(merge.last_group);
    free(merge.last_op);
    free(merge.group_of);
    free(merge.new_id);
    free(merge.use);
    free(merge.named);
    for (int i = 0; i < 3; i++) {
        free(merge.lists[i]);
    }
    return status;
}
