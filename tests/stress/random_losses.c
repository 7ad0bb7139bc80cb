/*
 * Which contents of a random program guided mode may give up, see random_program.h. A call on any
 * other contents must succeed. What may be given up, if the budget does not hold all tensors:
 *
 * - contents of a transient tensor that cannot be recomputed (tests/support/lineage.h), or that are
 *   read outside the iteration that made them;
 * - the same of a persistent tensor that ops overwrite completely, until the iteration ends: a plan
 *   may expect that they are overwritten;
 * - what a tensor held when it was described as persistent between iterations;
 * - what earlier iterations left in a persistent tensor, after eight that have overwritten it.
 *
 * Inside iterations, all but the last happens in one iteration per label: from then on, its plans
 * keep such contents.
 */
#include "tests/stress/random_program.h"

#include <stdlib.h>

enum { SURE_TURNS = 8 };

void random_trace(struct program *program, struct shadow *tensor)
{
    uint64_t pages = 0;

    ck_assert_uint_lt(program->lineage_count, PROGRAM_LINEAGES);
    tensor->lineage = calloc(1, sizeof(*tensor->lineage));
    ck_assert_ptr_nonnull(tensor->lineage);
    program->lineages[program->lineage_count++] = tensor->lineage;
    for (size_t i = 0; i < program->tensor_count; i++) {
        pages += (program->tensors[i].count + RIG_PAGE - 1) / RIG_PAGE;
    }
    program->pages = pages > program->pages ? pages : program->pages;
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
    tensor->label = program->label;
    tensor->turn = program->turns;
}

static bool has_fixed_part(struct program *program, const struct shadow *shadow)
{
    const struct tensor *tensor =
        tensors_find(&program->rig.context->memory.tensors, shadow->address);

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

/* Whether so many iterations have begun by overwriting a persistent tensor that plans may expect it
   of this one, too. */
static bool is_expected_to_be_overwritten(const struct program *program,
                                          const struct shadow *tensor)
{
    return !tensor->is_transient && tensor->is_overwritten && program->turns > SURE_TURNS;
}

/* Which tensors plans keep. */
static void note_held(struct program *program)
{
    for (size_t i = 0; i < program->tensor_count; i++) {
        struct shadow *tensor = &program->tensors[i];

        tensor->lineage->is_held =
            !tensor->is_transient && !tensor->is_gone &&
            (!tensor->is_overwritten ||
             (tensor->is_kept && !is_expected_to_be_overwritten(program, tensor)));
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

/* Whether an iteration under the label of the one that wrote the tensor has had a loss before that
   one: from then on, plans for the label keep such contents. */
static bool is_second_loss(const struct program *program, const struct shadow *tensor)
{
    for (size_t i = 0; i < program->loss_count; i++) {
        if (program->losses[i].label == tensor->label) {
            return program->losses[i].turn < tensor->turn;
        }
    }
    return false;
}

static void note_loss(struct program *program)
{
    for (size_t i = 0; i < program->loss_count; i++) {
        if (program->losses[i].label == program->label) {
            return;
        }
    }
    ck_assert_uint_lt(program->loss_count, PROGRAM_LABELS);
    program->losses[program->loss_count++] =
        (struct loss){.label = program->label, .turn = program->turns};
}

/* Whether the contents of a tensor may have been given up. */
static bool may_be_lost(const struct program *program, const struct shadow *tensor)
{
    if (lineage_is_safe(tensor->lineage)) {
        return false;
    }
    return is_expected_to_be_overwritten(program, tensor) ||
           (tensor->is_transient && !program->in_iteration) || !is_second_loss(program, tensor);
}

/* Whether a call on the tensors may fail with CONTENTS_LOST. */
static bool may_lose(struct program *program, const struct shadow *const *tensors, size_t count)
{
    const capu_config *config = capu_context_config(program->rig.context);
    uint64_t pages = program->pages + memory_fixed_pages(&program->rig.context->memory);
    bool may_be = false;

    note_held(program);
    for (size_t i = 0; i < count; i++) {
        may_be = may_be || may_be_lost(program, tensors[i]);
    }
    note_loss(program);
    program->given_up++;
    /* Where everything fits, each tensor has a place of its own, unless there are to be none. */
    return may_be && config->mode == CAPU_MODE_GUIDED &&
           (pages * RIG_PAGE > config->budget_bytes || program->rig.context->plans.places_nothing);
}

bool random_may_fail(struct program *program, const struct shadow *const *tensors, size_t count,
                     capu_status status)
{
    bool is_cleared = false;

    for (size_t i = 0; i < count; i++) {
        is_cleared = is_cleared || !tensors[i]->is_defined;
    }
    return program->is_lost || random_is_starved(program, status) ||
           (status == CAPU_UNDEFINED_READ && is_cleared && program->refused > 0) ||
           (status == CAPU_CONTENTS_LOST && may_lose(program, tensors, count));
}
