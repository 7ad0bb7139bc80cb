/*
 * Compiling plans, see guide.h. The program is walked twice: the second walk, which starts where a
 * steady iteration does, says for every allocation whose pages it takes.
 */
#include "runtime/guide/guide.h"

#include "base/assert.h"
#include "policy/model/program.h"

#include <stdlib.h>
#include <string.h>

enum { COPIED_IN = 1, COPIED_OUT = 2 };

/* Which ops touched and made a tensor last, plus one; 0: a replay, or none. */
struct guide_use {
    uint32_t user;
    uint32_t maker;
};

struct compiler {
    struct guide *guide;
    const struct program *program;
    struct program_walk walk;
    uint32_t *holder;       /* per page: the tensor that had it last, plus one */
    uint64_t held_pages;    /* of resident tensors */
    uint64_t most_pages;    /* that were ever held */
    uint8_t *copies;        /* per tensor: copies of its residency that compute did not follow */
    struct guide_use *uses; /* per tensor */
    uint32_t *stamp;        /* per tensor: the allocation that named it last, plus one */
    uint32_t allocation;    /* counts them */
    uint32_t previous_count;
    uint32_t previous_capacity;
    bool is_recording;
    uint8_t *next;    /* per item of the program: enum next_access of what it is about */
    bool *is_written; /* per tensor: by an op of the iteration, so far */
};

static capu_status add_previous(struct compiler *compiler, uint32_t tensor)
{
    struct guide *guide = compiler->guide;

    if (compiler->previous_count == compiler->previous_capacity) {
        uint32_t capacity =
            compiler->previous_capacity == 0 ? 256 : compiler->previous_capacity * 2;
        uint32_t *larger;

        if (compiler->previous_capacity > UINT32_MAX / 4) {
            return CAPU_TOO_LARGE;
        }
        larger = realloc(guide->previous, capacity * sizeof(*larger));
        if (larger == NULL) {
            return CAPU_NO_HOST_MEMORY;
        }
        guide->previous = larger;
        compiler->previous_capacity = capacity;
    }
    guide->previous[compiler->previous_count++] = tensor;
    return CAPU_OK;
}

/* A tensor takes its pages. Compute runs in order, so an op need only wait for earlier holders of
   the pages that a copy may still touch. A copy waits for all of them. */
static capu_status take_pages(void *user, const struct item *item, uint32_t tensor)
{
    struct compiler *compiler = user;
    bool by_copy = item->kind == ACTION_PREFETCH;
    struct guide *guide = compiler->guide;
    struct guide_part runs = guide->tensors[tensor].runs;
    capu_status status = CAPU_OK;

    for (uint32_t r = 0; r < runs.count; r++) {
        const struct plan_run *run = &guide->runs[runs.first + r];

        for (uint32_t page = run->first; page < run->first + run->count; page++) {
            uint32_t last = compiler->holder[page];

            compiler->holder[page] = tensor + 1;
            if (last == 0 || !compiler->is_recording ||
                compiler->stamp[last - 1] == compiler->allocation ||
                !(by_copy || compiler->copies[last - 1] != 0)) {
                continue;
            }
            compiler->stamp[last - 1] = compiler->allocation;
            status = add_previous(compiler, last - 1);
            if (status != CAPU_OK) {
                return status;
            }
        }
    }
    compiler->copies[tensor] = 0;
    compiler->held_pages += guide->tensors[tensor].page_count;
    if (compiler->held_pages > compiler->most_pages) {
        compiler->most_pages = compiler->held_pages;
    }
    return CAPU_OK;
}

static capu_status give_pages(void *user, const struct item *item, uint32_t tensor)
{
    struct compiler *compiler = user;

    (void)item;
    compiler->held_pages -= compiler->guide->tensors[tensor].page_count;
    return CAPU_OK;
}

/* Walks over an item. *previous are the earlier holders of the pages that it takes. */
static capu_status walk_item(struct compiler *compiler, const struct item *item,
                             struct guide_part *previous)
{
    static const struct program_visitor visitor = {.take = take_pages, .give = give_pages};
    capu_status status;

    compiler->allocation++;
    previous->first = compiler->previous_count;
    status = program_walk_item(&compiler->walk, &visitor, compiler, item);
    previous->count = compiler->previous_count - previous->first;
    return status;
}

static void note_uses(struct compiler *compiler, uint32_t number, bool is_replay)
{
    struct guide_part accesses = compiler->guide->ops[number].accesses;
    uint32_t user = is_replay ? 0 : number + 1;

    for (uint32_t i = 0; i < accesses.count; i++) {
        const struct guide_access *access = &compiler->guide->accesses[accesses.first + i];
        struct guide_use *use = &compiler->uses[access->tensor];

        use->user = user;
        use->maker = access->role == CAPU_READ ? use->maker : user;
        compiler->copies[access->tensor] &= access->role == CAPU_READ ? COPIED_OUT : 0;
        compiler->is_written[access->tensor] |= access->role != CAPU_READ;
    }
}

/* A copy out starts after an op, whose end must therefore be marked at once. */
static void note_followed(struct compiler *compiler, uint32_t op)
{
    if (op > 0) {
        compiler->guide->ops[op - 1].is_followed = true;
    }
}

static capu_status compile_item(struct compiler *compiler, const struct item *from,
                                struct guide_item *item)
{
    struct guide_tensor *tensors = compiler->guide->tensors;
    struct guide_part none;
    uint8_t next = compiler->next[from - compiler->program->items];
    capu_status status = CAPU_OK;

    *item = (struct guide_item){
        .kind = from->kind,
        .subject = from->subject,
        .next = next,
        .is_older = from->kind == ACTION_DROP && (next == NEXT_OP || next == NEXT_FILL) &&
                    tensors[from->subject].is_kept && !compiler->is_written[from->subject],
    };
    switch (from->kind) {
    case ACTION_REPLAY:
        status = walk_item(compiler, from, &item->previous);
        note_uses(compiler, from->subject, true);
        return status;
    case ACTION_PREFETCH:
        status = walk_item(compiler, from, &item->previous);
        compiler->copies[from->subject] = COPIED_IN;
        tensors[from->subject].is_copied = true;
        return status;
    case ACTION_EVICT:
    case ACTION_SAVE:
        note_followed(compiler, from->kind == ACTION_EVICT ? compiler->uses[from->subject].user
                                                           : compiler->uses[from->subject].maker);
        compiler->copies[from->subject] |= COPIED_OUT;
        tensors[from->subject].is_copied = true;
        return walk_item(compiler, from, &none);
    default:
        if (item->is_older) { /* it may be copied out first */
            note_followed(compiler, compiler->uses[from->subject].user);
            compiler->copies[from->subject] |= COPIED_OUT;
        }
        return walk_item(compiler, from, &none);
    }
}

/* Items without effect: on always-resident tensors, and releases of what has left already. */
static bool is_nothing(const struct compiler *compiler, const struct item *item)
{
    return item->kind != ACTION_REPLAY &&
           (compiler->guide->tensors[item->subject].page_count == 0 ||
            (item->kind == ACTION_RELEASE &&
             !program_walk_is_resident(&compiler->walk, item->subject)));
}

/* One pass over the program. Items are in its order, so those of one op are neighbours. */
static capu_status walk(struct compiler *compiler)
{
    struct guide *guide = compiler->guide;
    uint32_t count = 0;
    uint32_t next = 0; /* the op whose turn has not come */
    struct guide_part none;
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < compiler->program->count && status == CAPU_OK; i++) {
        const struct item *from = &compiler->program->items[i];

        if (from->kind == ACTION_OP) {
            next = from->subject + 1;
            guide->ops[from->subject].after.first = count;
            if (guide->ops[from->subject].before.count == 0) {
                guide->ops[from->subject].before.first = count;
            }
            status = walk_item(compiler, from, &guide->ops[from->subject].previous);
            note_uses(compiler, from->subject, false);
            continue;
        }
        if (is_nothing(compiler, from)) {
            status = walk_item(compiler, from, &none);
            continue;
        }
        if (from->point >= next) {
            struct guide_op *op = &guide->ops[from->point];

            op->before.first = op->before.count == 0 ? count : op->before.first;
            op->before.count++;
        } else {
            guide->ops[from->point].after.count++;
        }
        status = compile_item(compiler, from, &guide->items[count]);
        count++;
    }
    return status;
}

static uint8_t next_access_of(const struct guide *guide, const struct item *item,
                              const struct guide_access *access)
{
    if (item->kind == ACTION_REPLAY) {
        return NEXT_REPLAY;
    }
    if (access->role == CAPU_WRITE && access->is_partial) {
        return NEXT_PART;
    }
    return guide->ops[item->subject].call.kind == CALL_FILL ? NEXT_FILL : NEXT_OP;
}

/* Finds, for each item, what accesses its tensor next in the same iteration. */
static capu_status find_next(struct compiler *compiler)
{
    const struct guide *guide = compiler->guide;
    const struct program *program = compiler->program;
    uint8_t *next = calloc((size_t)guide->tensor_count + 1, sizeof(*next));

    if (next == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t i = program->count; i-- > 0;) {
        const struct item *item = &program->items[i];

        if (item_is_run(item)) {
            struct guide_part accesses = guide->ops[item->subject].accesses;

            for (uint32_t j = 0; j < accesses.count; j++) {
                const struct guide_access *access = &guide->accesses[accesses.first + j];

                next[access->tensor] = next_access_of(guide, item, access);
            }
        } else {
            compiler->next[i] = next[item->subject];
        }
    }
    free(next);
    return CAPU_OK;
}

static void forget_counts(struct guide *guide)
{
    for (uint32_t k = 0; k < guide->op_count; k++) {
        guide->ops[k].before = (struct guide_part){0};
        guide->ops[k].after = (struct guide_part){0};
    }
}

/* Which pages each tensor has. A plan places all tensors or none. */
static capu_status copy_places(struct guide *guide, const struct plan *plan,
                               struct error_text *error)
{
    guide->runs = guide_array(guide, plan->run_count, sizeof(*guide->runs));
    if (guide->runs == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < plan->run_count; i++) {
        uint32_t end = plan->runs[i].first + plan->runs[i].count;

        guide->runs[i] = plan->runs[i];
        guide->page_count = end > guide->page_count ? end : guide->page_count;
    }
    for (uint32_t i = 0; i < plan->place_count; i++) {
        const struct plan_place *place = &plan->places[i];

        if (place->tensor < guide->tensor_count) {
            guide->tensors[place->tensor].runs =
                (struct guide_part){.first = place->first, .count = place->count};
        }
    }
    for (uint32_t t = 0; t < guide->tensor_count && plan->place_count > 0; t++) {
        const struct guide_tensor *tensor = &guide->tensors[t];
        size_t pages = 0;

        for (uint32_t r = 0; r < tensor->runs.count; r++) {
            pages += guide->runs[tensor->runs.first + r].count;
        }
        if (pages != tensor->page_count) {
            return error_text_set(error, CAPU_INVALID,
                                  "tensor %u has %zu pages and the plan places %zu", t,
                                  tensor->page_count, pages);
        }
    }
    return CAPU_OK;
}

/* What an op asks of its tensors is stored with its accesses: it is next to each other there. */
static void note_short_lives(struct guide *guide)
{
    for (uint32_t i = 0; i < guide->access_count; i++) {
        const struct guide_tensor *tensor = &guide->tensors[guide->accesses[i].tensor];

        guide->accesses[i].is_let_die = tensor->is_transient && !tensor->is_kept;
    }
}

/*
 * Plans in which tensors share pages only after they have been freed (policy/place/place_apart.c).
 *
 * Freeing is not an op, so an op of such a plan can be the planned one although the tensor whose
 * pages it takes has not been freed this time, and may still be read. So these tensors are counted:
 * an op is the planned one only if as many have been freed before it as when the plan was made.
 */

/* A tensor takes its pages for an op. False: another one has not been freed by then. */
static bool take_for_op(struct guide *guide, uint32_t *holder, uint32_t tensor, uint32_t op)
{
    struct guide_part runs = guide->tensors[tensor].runs;

    for (uint32_t r = 0; r < runs.count; r++) {
        const struct plan_run *run = &guide->runs[runs.first + r];

        for (uint32_t page = run->first; page < run->first + run->count; page++) {
            uint32_t last = holder[page];

            holder[page] = tensor + 1;
            if (last == 0 || last - 1 == tensor) {
                continue;
            }
            if (guide->tensors[last - 1].freed_op > op) {
                return false;
            }
            guide->tensors[last - 1].passes_pages_on = true;
        }
    }
    return true;
}

/* Tensors take their pages when they are first accessed; what outlives iterations has its own. */
static bool take_all_apart(struct guide *guide, uint32_t *holder)
{
    bool is_apart = true;

    for (uint32_t k = 0; k < guide->op_count && is_apart; k++) {
        struct guide_part accesses = guide->ops[k].accesses;

        for (uint32_t i = 0; i < accesses.count && is_apart; i++) {
            is_apart = take_for_op(guide, holder, guide->accesses[accesses.first + i].tensor, k);
        }
    }
    return is_apart;
}

/* Finds the tensors that pass pages on, and counts them per op. Does nothing if tensors share pages
   before they are freed. Pre: the guide has its places, and its plan no actions. */
static capu_status note_frees(struct guide *guide)
{
    uint32_t *holder = calloc((size_t)guide->page_count + 1, sizeof(*holder));
    bool is_apart;
    uint32_t count = 0;

    if (holder == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    is_apart = take_all_apart(guide, holder);
    free(holder);
    for (uint32_t t = 0; t < guide->tensor_count; t++) {
        struct guide_tensor *tensor = &guide->tensors[t];

        tensor->passes_pages_on = tensor->passes_pages_on && is_apart;
        if (tensor->passes_pages_on) {
            guide->ops[tensor->freed_op].free_count++;
        }
    }
    for (uint32_t k = 0; k < guide->op_count; k++) {
        count += guide->ops[k].free_count;
        guide->ops[k].free_count = count;
    }
    return CAPU_OK;
}

static capu_status walk_twice(struct compiler *compiler)
{
    static const struct item start = {.kind = ACTION_OP};
    static const struct program_visitor none = {.take = NULL};
    const struct trace *trace = compiler->program->trace_index->trace;
    struct guide *guide = compiler->guide;
    capu_status status = find_next(compiler);

    if (status == CAPU_OK) {
        status = program_walk_init(&compiler->walk, compiler->program);
    }
    for (uint32_t t = 0; t < guide->tensor_count && status == CAPU_OK; t++) {
        struct guide_tensor *tensor = &guide->tensors[t];

        tensor->is_kept = trace->tensors[t].persistent;
        tensor->starts_resident =
            tensor->page_count > 0 && program_walk_is_resident(&compiler->walk, t);
        if (tensor->starts_resident) {
            status = take_pages(compiler, &start, t);
        }
    }
    note_short_lives(guide);
    for (int pass = 0; pass < 2 && status == CAPU_OK; pass++) {
        forget_counts(guide);
        compiler->is_recording = pass == 1;
        memset(compiler->is_written, 0, guide->tensor_count * sizeof(*compiler->is_written));
        status = walk(compiler);
        program_walk_turn(&compiler->walk, &none, NULL);
    }
    program_walk_finish(&compiler->walk);
    return status;
}

/* Whether a tensor is an operand of an op of the guide. */
static bool has_access(const struct guide *guide, uint32_t op, uint32_t tensor)
{
    struct guide_part accesses = guide->ops[op].accesses;

    for (uint32_t i = 0; i < accesses.count; i++) {
        if (guide->accesses[accesses.first + i].tensor == tensor) {
            return true;
        }
    }
    return false;
}

/* Whether the trace is of the guide's iteration: numbers mean the same in both. The trace may lack
   operands (trace_record.c), and has a tensor more for what is always resident. */
static bool agrees(const struct guide *guide, const struct trace *trace)
{
    if (trace->op_count != guide->op_count || trace->tensor_count < guide->tensor_count) {
        return false;
    }
    for (uint32_t k = 0; k < trace->op_count; k++) {
        const struct trace_op *op = &trace->ops[k];

        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            if (!has_access(guide, k, trace->operands[op->first + i])) {
                return false;
            }
        }
    }
    return true;
}

capu_status guide_compile(struct guide *guide, const struct program *program,
                          struct error_text *error)
{
    const struct trace_index *trace_index = program->trace_index;
    const struct plan *plan = program->plan;
    struct compiler compiler = {.guide = guide, .program = program};
    capu_status status = copy_places(guide, plan, error);

    ASSERT_INTERNAL(agrees(guide, trace_index->trace));
    if (status != CAPU_OK) {
        return status;
    }
    for (uint32_t t = 0; t < guide->tensor_count; t++) {
        guide->tensors[t].hint_reason = hint_reason_of(trace_index, t);
    }
    guide->items = guide_array(guide, program->count, sizeof(*guide->items));
    compiler.holder = calloc((size_t)guide->page_count + 1, sizeof(*compiler.holder));
    compiler.copies = calloc((size_t)guide->tensor_count + 1, sizeof(*compiler.copies));
    compiler.uses = calloc((size_t)guide->tensor_count + 1, sizeof(*compiler.uses));
    compiler.stamp = calloc((size_t)guide->tensor_count + 1, sizeof(*compiler.stamp));
    compiler.next = calloc((size_t)program->count + 1, sizeof(*compiler.next));
    compiler.is_written = calloc((size_t)guide->tensor_count + 1, sizeof(*compiler.is_written));
    status = CAPU_NO_HOST_MEMORY;
    if (compiler.next != NULL && compiler.is_written != NULL && guide->items != NULL &&
        compiler.holder != NULL && compiler.copies != NULL && compiler.uses != NULL &&
        compiler.stamp != NULL) {
        status = walk_twice(&compiler);
    }
    if (status == CAPU_OK && plan->place_count == 0 && compiler.most_pages > 0) {
        guide->is_unplaced = true;
        guide->page_count = (uint32_t)compiler.most_pages;
    } else if (status == CAPU_OK && plan->action_count == 0) {
        status = note_frees(guide);
    }
    guide->bytes += (uint64_t)compiler.previous_capacity * sizeof(*guide->previous);
    free(compiler.is_written);
    free(compiler.next);
    free(compiler.stamp);
    free(compiler.uses);
    free(compiler.copies);
    free(compiler.holder);
    return status;
}
