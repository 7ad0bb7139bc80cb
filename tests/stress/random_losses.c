/*
 * Which contents of a random program guided mode may give up, see random_program.h. A call on any
 * other contents must succeed. What may be given up:
 *
 * - contents of a transient tensor that cannot be recomputed (tests/support/lineage.h), or that are
 *   read outside the iteration that made them;
 * - the same of a persistent tensor that ops overwrite completely, until the iteration ends: a plan
 *   may expect that they are overwritten;
 * - what earlier iterations left in such a tensor, after eight iterations;
 * - what a tensor held when it was described as persistent between iterations.
 */
#include "tests/stress/random_program.h"

#include <stdlib.h>

enum { SURE_TURNS = 8 };

void random_trace(struct program *program, struct shadow *tensor)
{
    ck_assert_uint_lt(program->lineage_count, PROGRAM_LINEAGES);
    tensor->lineage = calloc(1, sizeof(*tensor->lineage));
    ck_assert_ptr_nonnull(tensor->lineage);
    program->lineages[program->lineage_count++] = tensor->lineage;
}

void random_note_write(struct program *program, struct shadow *tensor, bool is_replayable,
                       struct shadow *const *sources, size_t count)
{
    struct lineage *lineages[LINEAGE_SOURCES];

    for (size_t i = 0; i < count; i++) {
        lineages[i] = sources[i]->lineage;
    }
    lineage_write(tensor->lineage, is_replayable, lineages, count);
    tensor->is_kept = !program->in_iteration;
    tensor->is_gone = false;
}

static bool has_fixed_part(struct program *program, const struct shadow *shadow)
{
    const struct tensor *tensor = tensors_find(&program->rig.context->tensors, shadow->address);

    return tensor->span_bytes != tensor->bytes;
}

static bool is_update(const struct shadow *tensor, const struct mixing_operand *operand)
{
    return operand->role == CAPU_UPDATE ||
           (operand->role != CAPU_READ && operand->bytes != tensor->count);
}

void random_note_op(struct program *program, const struct mixing *op, struct shadow *const *tensors,
                    bool is_replayable)
{
    struct shadow *sources[MIXING_OPERANDS];
    size_t count = 0;

    for (size_t i = 0; i < op->count; i++) {
        is_replayable = is_replayable && !is_update(tensors[i], &op->operands[i]);
        if (op->operands[i].role == CAPU_READ) {
            sources[count++] = tensors[i];
        }
    }
    for (size_t i = 0; i < op->count; i++) {
        if (op->operands[i].role != CAPU_READ) {
            random_note_write(program, tensors[i], is_replayable, sources, count);
        }
    }
    for (size_t i = 0; i < op->count; i++) {
        for (size_t k = 0; k < op->count; k++) {
            if (i != k && op->operands[i].role != CAPU_READ && op->operands[k].role != CAPU_READ &&
                has_fixed_part(program, tensors[k])) {
                lineage_tie(tensors[i]->lineage, tensors[k]->lineage);
            }
        }
    }
}

/* Which tensors plans keep. */
static void note_held(struct program *program)
{
    for (size_t i = 0; i < program->tensor_count; i++) {
        struct shadow *tensor = &program->tensors[i];

        tensor->lineage->is_held =
            !tensor->is_transient && !tensor->is_gone &&
            (!tensor->is_overwritten || (tensor->is_kept && program->turns <= SURE_TURNS));
    }
}

void random_note_turn(struct program *program)
{
    bool begins = !program->in_iteration;

    note_held(program);
    for (size_t i = 0; i < program->tensor_count && !begins; i++) {
        program->tensors[i].is_kept |= lineage_is_safe(program->tensors[i].lineage);
    }
    for (size_t i = 0; i < program->tensor_count; i++) {
        lineage_turn(program->tensors[i].lineage);
    }
    program->turns += begins;
}

bool random_may_fail(struct program *program, const struct shadow *const *tensors, size_t count,
                     capu_status status)
{
    const capu_config *config = capu_context_config(program->rig.context);
    bool is_cleared = false;
    bool is_unsafe = false;

    if (status == CAPU_CONTENTS_LOST) {
        note_held(program);
        program->given_up++;
    }
    for (size_t i = 0; i < count; i++) {
        is_cleared = is_cleared || !tensors[i]->is_defined;
        is_unsafe =
            is_unsafe || (status == CAPU_CONTENTS_LOST && !lineage_is_safe(tensors[i]->lineage));
    }
    return program->is_lost || random_is_starved(program, status) ||
           (status == CAPU_UNDEFINED_READ && is_cleared && program->refused > 0) ||
           (status == CAPU_CONTENTS_LOST && is_unsafe && config->mode == CAPU_MODE_GUIDED);
}
