/*
 * One walk over the program finds which tensors' pages are taken after their release, and which
 * drops discard contents for good.
 *
 * Contents can be recomputed later if the op that made them is replayable and nothing overwrites
 * what it read, or its other outputs: a replay cannot save newer contents of those that are always
 * resident, wholly or in part. What else it reads need not be looked at: it can be recomputed
 * itself, or is preserved here, or is kept.
 */
#include "policy/lower/preserve.h"

#include "policy/model/program.h"

#include <stdlib.h>

#define NOWHERE UINT32_MAX

/* A drop that discards contents for good: an op overwrites them next, or nothing touches them. */
struct final_drop {
    uint32_t tensor;
    uint32_t point;
};

struct keeper {
    const struct trace_index *trace_index;
    const uint32_t *freed;
    enum preserve what;
    struct plan *plan;
    const struct program *program;
    struct final_drop *drops; /* sorted */
    size_t drop_count;
    uint32_t *pending;  /* per tensor: the point of a drop that may be final, plus one; 0: none */
    uint32_t *dropped;  /* per tensor: the point of its last drop after an op, plus one; 0: none */
    uint32_t *holder;   /* per page: the tensor that had it last, plus one */
    uint8_t *is_dead;   /* per tensor: it was released, and has not taken its pages since */
    uint8_t *is_wanted; /* per tensor: its final contents are to outlive its release */
    uint8_t *is_taken;  /* per tensor: they do not without a copy, as its pages are taken */
};

/* The last op up to this one that writes the tensor; NOWHERE: none does. */
static uint32_t maker_of(const struct trace_index *trace_index, uint32_t tensor, uint32_t op)
{
    uint32_t maker = NOWHERE;

    for (uint32_t i = trace_index->first[tensor];
         i < trace_index->first[tensor + 1] && trace_index->op[i] <= op; i++) {
        maker = trace_index->role[i] != USE_READ ? trace_index->op[i] : maker;
    }
    return maker;
}

static uint32_t last_maker_of(const struct trace_index *trace_index, uint32_t tensor)
{
    return maker_of(trace_index, tensor, UINT32_MAX - 1);
}

static bool is_recomputable(const struct keeper *keeper, uint32_t tensor, uint32_t maker)
{
    const struct trace_index *trace_index = keeper->trace_index;
    const struct trace_op *op;

    if (maker == NOWHERE || !trace_index->trace->ops[maker].replayable) {
        return false;
    }
    op = &trace_index->trace->ops[maker];
    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        uint32_t other = trace_index->trace->operands[op->first + i];
        uint32_t last = last_maker_of(trace_index, other);

        if (other != tensor && last != NOWHERE && last > maker) {
            return false;
        }
    }
    return true;
}

/* Whether no op reads the tensor after it was written last. Memory that an op uses for itself is
   workspace that no op ever reads: nothing is kept there. */
static bool is_unread(const struct keeper *keeper, uint32_t tensor)
{
    const struct trace_index *trace_index = keeper->trace_index;
    uint32_t first = trace_index->first[tensor];
    uint32_t end = trace_index->first[tensor + 1];
    bool is_ever_read = false;

    for (uint32_t i = first; i < end; i++) {
        is_ever_read = is_ever_read || trace_index->role[i] != USE_WRITE;
    }
    return end > first && trace_index->role[end - 1] != USE_READ &&
           (is_ever_read || trace_index->trace->tensors[tensor].kind != CAPU_WORKSPACE);
}

/* Which tensors' final contents are to outlive their release, and have no copy yet. */
static void find_wanted(struct keeper *keeper)
{
    const struct trace_index *trace_index = keeper->trace_index;

    for (uint32_t t = 0; t < trace_index->trace->tensor_count; t++) {
        keeper->is_wanted[t] = trace_index->rounded[t] > 0 &&
                               !trace_index->trace->tensors[t].persistent &&
                               (keeper->what == PRESERVE_ALL || is_unread(keeper, t)) &&
                               !is_recomputable(keeper, t, last_maker_of(trace_index, t));
    }
    for (uint32_t i = 0; i < keeper->plan->action_count; i++) {
        const struct plan_action *action = &keeper->plan->actions[i];

        if ((action->kind == ACTION_EVICT || action->kind == ACTION_SAVE) &&
            keeper->is_wanted[action->tensor] &&
            action->point >= last_maker_of(trace_index, action->tensor)) {
            keeper->is_wanted[action->tensor] = 0;
        }
    }
}

/* A tensor takes its pages before or for an op, and with them what released tensors left there. */
static capu_status take_pages(void *user, const struct item *item, uint32_t tensor)
{
    struct keeper *keeper = user;

    for (uint32_t i = 0; i < placement_count(&keeper->program->placement, tensor); i++) {
        uint32_t *holder = &keeper->holder[placement_page(&keeper->program->placement, tensor, i)];
        uint32_t last = *holder - 1;

        if (*holder != 0 && last != tensor && keeper->is_dead[last] &&
            (keeper->freed == NULL || keeper->freed[last] > item->point)) {
            keeper->is_taken[last] = 1;
        }
        *holder = tensor + 1;
    }
    keeper->is_dead[tensor] = 0;
    return CAPU_OK;
}

/* Without place lines any tensor may take its pages from the next op on. */
static void note_release(struct keeper *keeper, const struct item *item)
{
    uint32_t tensor = item->subject;

    keeper->is_dead[tensor] = 1;
    keeper->is_taken[tensor] |= keeper->plan->place_count == 0 &&
                                (keeper->freed == NULL || keeper->freed[tensor] > item->point + 1);
}

static void add_drop(struct keeper *keeper, uint32_t tensor)
{
    if (keeper->pending[tensor] != 0) {
        keeper->drops[keeper->drop_count++] =
            (struct final_drop){.tensor = tensor, .point = keeper->pending[tensor] - 1};
        keeper->pending[tensor] = 0;
    }
}

static void note_run(struct keeper *keeper, const struct item *item)
{
    const struct trace *trace = keeper->trace_index->trace;
    const struct trace_op *op = &trace->ops[item->subject];

    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        uint32_t tensor = trace->operands[op->first + i];

        if (item->kind == ACTION_OP) {
            add_drop(keeper, tensor);
        }
        keeper->pending[tensor] = 0;
    }
}

static int compare_drops(const void *a, const void *b)
{
    const struct final_drop *x = a;
    const struct final_drop *y = b;

    if (x->tensor != y->tensor) {
        return x->tensor < y->tensor ? -1 : 1;
    }
    return x->point < y->point ? -1 : x->point > y->point;
}

/* Finds final drops, and the tensors whose pages are taken after their release. After a drop that
   belongs to a replay, the drop before the replay counts. */
static capu_status walk_program(struct keeper *keeper, struct program_walk *walk)
{
    static const struct program_visitor visitor = {.take = take_pages};
    static const struct item start = {.kind = ACTION_OP};
    const struct trace *trace = keeper->trace_index->trace;
    uint32_t next = 0; /* the op whose turn has not come */
    capu_status status = program_walk_init(walk, keeper->program);

    for (uint32_t t = 0; t < trace->tensor_count && status == CAPU_OK; t++) {
        if (program_walk_is_resident(walk, t)) {
            take_pages(keeper, &start, t);
        }
    }
    for (uint32_t i = 0; i < keeper->program->count && status == CAPU_OK; i++) {
        const struct item *item = &keeper->program->items[i];

        next = item->kind == ACTION_OP ? item->subject + 1 : next;
        if (item_is_run(item)) {
            note_run(keeper, item);
        } else if (item->kind == ACTION_DROP) {
            if (item->point < next) {
                keeper->dropped[item->subject] = item->point + 1;
            }
            keeper->pending[item->subject] = keeper->dropped[item->subject];
        } else if (item->kind == ACTION_RELEASE) {
            note_release(keeper, item);
        }
        status = program_walk_item(walk, &visitor, keeper, item);
    }
    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        add_drop(keeper, t);
    }
    qsort(keeper->drops, keeper->drop_count, sizeof(*keeper->drops), compare_drops);
    return status;
}

static bool is_final(const struct keeper *keeper, const struct plan_action *action)
{
    struct final_drop drop = {.tensor = action->tensor, .point = action->point};

    return bsearch(&drop, keeper->drops, keeper->drop_count, sizeof(drop), compare_drops) != NULL;
}

/* Some drops become evictions: of wanted contents for good, or as soon as they are made, where a
   save would come too late; and all for good if everything is to be kept. */
static void keep_dropped(struct keeper *keeper)
{
    const struct trace_index *trace_index = keeper->trace_index;

    for (uint32_t i = 0; i < keeper->plan->action_count; i++) {
        struct plan_action *action = &keeper->plan->actions[i];
        uint32_t tensor = action->tensor;
        uint32_t maker;
        bool is_last;

        if (action->kind != ACTION_DROP) {
            continue;
        }
        maker = last_maker_of(trace_index, tensor);
        is_last = action->point == maker ||
                  (maker != NOWHERE && action->point > maker && is_final(keeper, action));
        if (keeper->is_wanted[tensor] && is_last) {
            keeper->is_wanted[tensor] = 0;
            action->kind = ACTION_EVICT;
        } else if (keeper->what == PRESERVE_ALL && is_final(keeper, action) &&
                   !is_recomputable(keeper, tensor, maker_of(trace_index, tensor, action->point))) {
            action->kind = ACTION_EVICT;
        }
    }
}

static capu_status save_released(struct keeper *keeper)
{
    capu_status status = CAPU_OK;

    for (uint32_t t = 0; t < keeper->trace_index->trace->tensor_count && status == CAPU_OK; t++) {
        if (keeper->is_wanted[t] && keeper->is_taken[t]) {
            status = plan_add(keeper->plan, ACTION_SAVE, t, last_maker_of(keeper->trace_index, t));
        }
    }
    return status;
}

static bool allocate_keeper(struct keeper *keeper)
{
    size_t tensors = (size_t)keeper->trace_index->trace->tensor_count + 1;

    keeper->drops = calloc((size_t)keeper->plan->action_count + 1, sizeof(*keeper->drops));
    keeper->pending = calloc(tensors, sizeof(*keeper->pending));
    keeper->dropped = calloc(tensors, sizeof(*keeper->dropped));
    keeper->holder =
        calloc((size_t)keeper->program->placement.page_count + 1, sizeof(*keeper->holder));
    keeper->is_dead = calloc(tensors, 1);
    keeper->is_wanted = calloc(tensors, 1);
    keeper->is_taken = calloc(tensors, 1);
    return keeper->drops != NULL && keeper->pending != NULL && keeper->dropped != NULL &&
           keeper->holder != NULL && keeper->is_dead != NULL && keeper->is_wanted != NULL &&
           keeper->is_taken != NULL;
}

static void finish_keeper(struct keeper *keeper)
{
    free(keeper->drops);
    free(keeper->pending);
    free(keeper->dropped);
    free(keeper->holder);
    free(keeper->is_dead);
    free(keeper->is_wanted);
    free(keeper->is_taken);
}

capu_status preserve_contents(const struct program *program, const uint32_t *freed,
                              enum preserve what, struct plan *plan)
{
    struct keeper keeper = {.trace_index = program->trace_index,
                            .freed = freed,
                            .what = what,
                            .plan = plan,
                            .program = program};
    struct program_walk residency = {0};
    capu_status status = CAPU_NO_HOST_MEMORY;

    if (what == PRESERVE_NOTHING) {
        return CAPU_OK;
    }
    if (allocate_keeper(&keeper)) {
        find_wanted(&keeper);
        status = walk_program(&keeper, &residency);
    }
    if (status == CAPU_OK) {
        keep_dropped(&keeper);
        status = save_released(&keeper);
    }
    program_walk_finish(&residency);
    finish_keeper(&keeper);
    return status;
}
