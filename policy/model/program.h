/*
 * A trace and a plan merged: what is issued in one iteration, in issue order, with implicit
 * releases written out, and the pages of each tensor. Whoever works on a plan takes its program, so
 * that a plan is merged once: the validator, the timeline, the placer, and the runtime.
 */
#ifndef CAPU_POLICY_PROGRAM_H
#define CAPU_POLICY_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/format/plan.h"
#include "policy/model/trace_index.h"

/*
 * Which pages a placed plan gives each tensor: the place lines of a plan, looked up by tensor. An
 * unplaced plan has an empty placement.
 */
struct placement {
    uint32_t *first;     /* per tensor, one more at the end; NULL: nothing is placed */
    uint32_t *pages;     /* page numbers, by tensor */
    uint32_t page_count; /* the largest page number, plus one */
};

/*
 * Errors: INVALID (a tensor does not exist, is placed twice, is not managed, or has another number
 * of pages than its bytes need; the pages exceed the budget), NO_HOST_MEMORY. On failure zeroed.
 */
capu_status placement_init(struct placement *placement, const struct trace_index *trace_index,
                           const struct plan *plan, struct error_text *error);
void placement_finish(struct placement *placement);

static inline uint32_t placement_count(const struct placement *placement, uint32_t tensor)
{
    return placement->first == NULL ? 0 : placement->first[tensor + 1] - placement->first[tensor];
}

static inline uint32_t placement_page(const struct placement *placement, uint32_t tensor,
                                      uint32_t index)
{
    return placement->pages[placement->first[tensor] + index];
}

struct item {
    uint32_t kind;    /* enum action_kind; never a recompute: its replays are listed instead */
    uint32_t subject; /* op or tensor */
    uint32_t point;   /* the op it precedes, is, or follows */
};

/* Whether the subject is an op that runs, for the first time or again; else it is a tensor. */
static inline bool item_is_run(const struct item *item)
{
    return item->kind == ACTION_OP || item->kind == ACTION_REPLAY;
}

struct program {
    const struct trace_index *trace_index; /* borrowed: outlives this */
    const struct plan *plan;               /* the same; its actions may change: they are copied */
    struct item *items;
    uint32_t count;
    uint8_t *starts_on_host; /* per tensor: persistent, and its first event is a prefetch */
    struct placement placement;
};

/*
 * Errors: those of placement_init, INVALID (an action names a tensor or op that does not exist, or
 * a tensor that is not managed, or a replay of an op that is not replayable or not earlier),
 * NO_HOST_MEMORY. On failure zeroed.
 */
capu_status program_init(struct program *program, const struct trace_index *trace_index,
                         const struct plan *plan, struct error_text *error);
void program_finish(struct program *program);

/* Reads the plan's place lines again, which have changed. Errors: those of placement_init; there is
   no placement then. */
capu_status program_place(struct program *program, struct error_text *error);

/*
 * A walk over a program: which version of its contents each tensor has on the device and in host
 * memory, item by item. Whoever follows a program visits this walk instead of deriving that again.
 *
 * The walk does not judge: what a plan must not do is the validator's business. Everyone else walks
 * programs of valid plans.
 */

#define PROGRAM_NO_VERSION UINT32_MAX

struct program_walk {
    const struct program *program;
    uint32_t *device; /* per tensor: the version it has on the device, or PROGRAM_NO_VERSION */
    uint32_t *host;   /* the same of its host copy */
};

/*
 * What an item does, in this order. Each is called before the walk's versions change, and may be
 * NULL. An error ends the walk.
 */
struct program_visitor {
    /* A tensor takes its memory: an output that is not resident, or what a prefetch brings. */
    capu_status (*take)(void *user, const struct item *item, uint32_t tensor);
    /* A copy to the host is made, since there is none of this version. */
    capu_status (*copy_out)(void *user, const struct item *item, uint32_t tensor);
    /* A host copy is no longer held: it is outdated, or its tensor is dead. */
    void (*forget)(void *user, uint32_t tensor);
    /* A tensor gives its memory back. */
    capu_status (*give)(void *user, const struct item *item, uint32_t tensor);
};

/* At the start of the first iteration. Errors: NO_HOST_MEMORY. program_walk_finish also after a
   failure. */
capu_status program_walk_init(struct program_walk *walk, const struct program *program);
void program_walk_finish(struct program_walk *walk);

/* An iteration has ended: the final versions become the first ones of the next. */
void program_walk_turn(struct program_walk *walk, const struct program_visitor *visitor,
                       void *user);

static inline bool program_walk_is_resident(const struct program_walk *walk, uint32_t tensor)
{
    return walk->device[tensor] != PROGRAM_NO_VERSION;
}

static inline bool program_walk_has_copy(const struct program_walk *walk, uint32_t tensor)
{
    return walk->host[tensor] != PROGRAM_NO_VERSION;
}

static inline void program_walk_forget(struct program_walk *walk,
                                       const struct program_visitor *visitor, void *user,
                                       uint32_t tensor)
{
    if (visitor->forget != NULL && program_walk_has_copy(walk, tensor)) {
        visitor->forget(user, tensor);
    }
    walk->host[tensor] = PROGRAM_NO_VERSION;
}

static inline capu_status program_walk_take(const struct program_visitor *visitor, void *user,
                                            const struct item *item, uint32_t tensor)
{
    return visitor->take != NULL ? visitor->take(user, item, tensor) : CAPU_OK;
}

static inline capu_status program_walk_give(struct program_walk *walk,
                                            const struct program_visitor *visitor, void *user,
                                            const struct item *item)
{
    capu_status status = visitor->give != NULL ? visitor->give(user, item, item->subject) : CAPU_OK;

    walk->device[item->subject] = PROGRAM_NO_VERSION;
    return status;
}

static inline capu_status program_walk_run(struct program_walk *walk,
                                           const struct program_visitor *visitor, void *user,
                                           const struct item *item)
{
    const struct trace_index *trace_index = walk->program->trace_index;
    const struct trace_op *op = &trace_index->trace->ops[item->subject];
    const uint32_t *operands = trace_index->trace->operands + op->first;
    const uint32_t *versions = trace_index->version + op->first;

    for (uint32_t i = op->read_count; i < trace_operand_count(op); i++) {
        uint32_t tensor = operands[i];
        capu_status status = program_walk_is_resident(walk, tensor)
                                 ? CAPU_OK
                                 : program_walk_take(visitor, user, item, tensor);

        if (status != CAPU_OK) {
            return status;
        }
        walk->device[tensor] = versions[i] + (i >= op->read_count + op->write_count);
        if (program_walk_has_copy(walk, tensor) && walk->host[tensor] < walk->device[tensor]) {
            program_walk_forget(walk, visitor, user, tensor);
        }
    }
    return CAPU_OK;
}

static inline capu_status program_walk_copy_out(struct program_walk *walk,
                                                const struct program_visitor *visitor, void *user,
                                                const struct item *item)
{
    uint32_t tensor = item->subject;
    capu_status status = CAPU_OK;

    if (!program_walk_has_copy(walk, tensor) || walk->host[tensor] < walk->device[tensor]) {
        status = visitor->copy_out != NULL ? visitor->copy_out(user, item, tensor) : CAPU_OK;
        walk->host[tensor] = walk->device[tensor];
    }
    return status;
}

/* The next item. Errors: those of the visitor. */
static inline capu_status program_walk_item(struct program_walk *walk,
                                            const struct program_visitor *visitor, void *user,
                                            const struct item *item)
{
    uint32_t tensor = item->subject;
    capu_status status = CAPU_OK;

    switch ((enum action_kind)item->kind) {
    case ACTION_OP:
    case ACTION_REPLAY:
        return program_walk_run(walk, visitor, user, item);
    case ACTION_PREFETCH:
        status = program_walk_take(visitor, user, item, tensor);
        walk->device[tensor] = walk->host[tensor];
        return status;
    case ACTION_SAVE:
        return program_walk_copy_out(walk, visitor, user, item);
    case ACTION_EVICT:
        status = program_walk_copy_out(walk, visitor, user, item);
        break;
    case ACTION_RELEASE:
        program_walk_forget(walk, visitor, user, tensor);
        if (!program_walk_is_resident(walk, tensor)) {
            return CAPU_OK;
        }
        break;
    case ACTION_DROP:
    default:
        break;
    }
    return status == CAPU_OK ? program_walk_give(walk, visitor, user, item) : status;
}

#endif
