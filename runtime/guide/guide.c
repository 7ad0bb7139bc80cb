/*
 * Compiling plans, see guide.h. The program is walked twice: the second walk, which starts where a
 * steady iteration does, says for every allocation whose pages it takes.
 */
#include "runtime/guide/guide.h"

#include "policy/model/program_walk.h"
#include "runtime/guide/guide_frees.h"

#include <stdlib.h>
#include <string.h>

void guide_destroy(struct guide *guide)
{
    if (guide == NULL) {
        return;
    }
    free(guide->tensors);
    free(guide->ops);
    free(guide->accesses);
    free(guide->operands);
    free(guide->cleared);
    free(guide->items);
    free(guide->previous);
    free(guide->runs);
    free(guide);
}

/* calloc that returns a pointer for no elements, too. */
static void *array(size_t count, size_t bytes)
{
    return calloc(count > 0 ? count : 1, bytes);
}

/* The same for an array that the guide keeps. */
static void *own_array(struct guide *guide, size_t count, size_t bytes)
{
    guide->bytes += (uint64_t)count * bytes;
    return array(count, bytes);
}

static void copy_tensors(struct guide *guide, const struct record *record)
{
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        const struct record_tensor *from = &record->tensors[i];

        guide->tensors[i] = (struct guide_tensor){
            .address = from->address,
            .bytes = from->tensor_bytes,
            .page_count = record_tensor_pages(from),
            .name = from->name,
            .is_split = from->is_split,
            .is_transient = from->is_transient,
        };
    }
}

/* How many operands, accesses and cleared ranges have been copied. */
struct copied {
    uint32_t operands;
    uint32_t accesses;
    uint32_t cleared;
};

static void copy_op(struct guide *guide, const struct record *record, size_t number,
                    struct copied *copied)
{
    const struct record_op *from = &record->ops[number];
    struct guide_op *op = &guide->ops[guide->op_count++];

    op->call = record_call(record, number);
    op->call.operands = guide->operands + copied->operands;
    op->call.operand_count = record_operand_count(record, number);
    op->is_replayable = from->is_replayable;
    op->accesses = (struct guide_part){.first = copied->accesses,
                                       .count = (uint32_t)record_access_count(record, number)};
    for (size_t i = 0; i < op->call.operand_count; i++) {
        guide->operands[copied->operands++] = record_operand(record, from->first_operand + i);
    }
    for (size_t i = 0; i < op->accesses.count; i++) {
        record_access access = record->accesses[from->first_access + i];

        guide->accesses[copied->accesses++] = (struct guide_access){
            .tensor = record_access_tensor(access),
            .role = record_access_role(access),
            .needs_contents = record_access_role(access) != CAPU_WRITE,
            .is_partial = record_access_is_partial(access),
            .is_managed = record_tensor_pages(&record->tensors[record_access_tensor(access)]) > 0,
        };
    }
}

/* The ranges that are cleared before an op: *next is the record's next one. */
static void copy_cleared(struct guide *guide, const struct record *record, size_t number,
                         size_t *next, struct copied *copied)
{
    bool is_copied = !record_is_once(record, number);
    struct guide_op *op = is_copied ? &guide->ops[guide->op_count - 1] : NULL;

    if (is_copied) {
        op->cleared.first = copied->cleared;
    }
    for (; *next < record->cleared_count && record->cleared[*next].op == number; (*next)++) {
        if (is_copied) {
            guide->cleared[copied->cleared++] = record->cleared[*next].range;
            op->cleared.count++;
        }
    }
}

/* Copies all ops except those that happen once, and notes before which of them tensors were zeroed.
 */
static capu_status copy_ops(struct guide *guide, const struct record *record)
{
    uint32_t *number = array(record->op_count + 1, sizeof(*number));
    struct copied copied = {0};
    size_t next_cleared = 0;

    if (number == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < record->op_count; i++) {
        number[i] = guide->op_count;
        if (!record_is_once(record, i)) {
            copy_op(guide, record, i, &copied);
        }
        copy_cleared(guide, record, i, &next_cleared, &copied);
    }
    number[record->op_count] = guide->op_count;
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        guide->tensors[i].zeroed_op = number[record->tensors[i].zeroed_op];
        guide->tensors[i].freed_op = record->tensors[i].freed_op != UINT32_MAX
                                         ? number[record->tensors[i].freed_op]
                                         : UINT32_MAX;
    }
    free(number);
    return CAPU_OK;
}

/* Allocates the arrays of what the iteration did, as long as the guide's counts say. */
static bool allocate(struct guide *guide)
{
    guide->bytes = sizeof(*guide);
    guide->tensors = own_array(guide, guide->tensor_count, sizeof(*guide->tensors));
    guide->ops = own_array(guide, guide->op_count, sizeof(*guide->ops));
    guide->accesses = own_array(guide, guide->access_count, sizeof(*guide->accesses));
    guide->operands = own_array(guide, guide->operand_count, sizeof(*guide->operands));
    guide->cleared = own_array(guide, guide->cleared_count, sizeof(*guide->cleared));
    return guide->tensors != NULL && guide->ops != NULL && guide->accesses != NULL &&
           guide->operands != NULL && guide->cleared != NULL;
}

capu_status guide_create(const struct record *record, struct guide **out)
{
    struct guide *guide = calloc(1, sizeof(*guide));

    if (guide == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    if (record->tensor_count >= TRACE_TENSORS_MAX || record->op_count >= TRACE_OPS_MAX) {
        guide_destroy(guide);
        return CAPU_TOO_LARGE;
    }
    guide->label = record->label;
    guide->signature = record->signature;
    guide->tensor_count = (uint32_t)record->tensor_count;
    guide->op_count = (uint32_t)record->op_count;
    guide->access_count = (uint32_t)record->access_count;
    guide->operand_count = (uint32_t)record->operand_count;
    guide->cleared_count = (uint32_t)record->cleared_count;
    if (!allocate(guide)) {
        guide_destroy(guide);
        return CAPU_NO_HOST_MEMORY;
    }
    guide->op_count = 0; /* counts those that are copied */
    copy_tensors(guide, record);
    if (copy_ops(guide, record) != CAPU_OK) {
        guide_destroy(guide);
        return CAPU_NO_HOST_MEMORY;
    }
    *out = guide;
    return CAPU_OK;
}

/* memcpy that accepts an array without elements. */
static void copy_array(void *to, const void *from, size_t count, size_t bytes)
{
    if (count > 0) {
        memcpy(to, from, count * bytes);
    }
}

capu_status guide_copy(const struct guide *guide, struct guide **out)
{
    struct guide *copy = calloc(1, sizeof(*copy));

    if (copy == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    copy->label = guide->label;
    copy->signature = guide->signature;
    copy->tensor_count = guide->tensor_count;
    copy->op_count = guide->op_count;
    copy->access_count = guide->access_count;
    copy->operand_count = guide->operand_count;
    copy->cleared_count = guide->cleared_count;
    if (!allocate(copy)) {
        guide_destroy(copy);
        return CAPU_NO_HOST_MEMORY;
    }
    copy_array(copy->tensors, guide->tensors, guide->tensor_count, sizeof(*copy->tensors));
    copy_array(copy->ops, guide->ops, guide->op_count, sizeof(*copy->ops));
    copy_array(copy->accesses, guide->accesses, guide->access_count, sizeof(*copy->accesses));
    copy_array(copy->operands, guide->operands, guide->operand_count, sizeof(*copy->operands));
    copy_array(copy->cleared, guide->cleared, guide->cleared_count, sizeof(*copy->cleared));
    for (uint32_t k = 0; k < copy->op_count; k++) {
        copy->ops[k].call.operands =
            copy->operands + (guide->ops[k].call.operands - guide->operands);
    }
    *out = copy;
    return CAPU_OK;
}

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
    uint8_t *next = array(guide->tensor_count, sizeof(*next));

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
    guide->runs = own_array(guide, plan->run_count, sizeof(*guide->runs));
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

capu_status guide_compile(struct guide *guide, const struct program *program,
                          struct error_text *error)
{
    const struct trace_index *trace_index = program->trace_index;
    const struct plan *plan = program->plan;
    struct compiler compiler = {.guide = guide, .program = program};
    capu_status status = copy_places(guide, plan, error);

    if (status != CAPU_OK) {
        return status;
    }
    for (uint32_t t = 0; t < guide->tensor_count; t++) {
        guide->tensors[t].hint_reason = hint_reason_of(trace_index, t);
    }
    guide->items = own_array(guide, program->count, sizeof(*guide->items));
    compiler.holder = array(guide->page_count, sizeof(*compiler.holder));
    compiler.copies = array(guide->tensor_count, sizeof(*compiler.copies));
    compiler.uses = array(guide->tensor_count, sizeof(*compiler.uses));
    compiler.stamp = array(guide->tensor_count, sizeof(*compiler.stamp));
    compiler.next = array(program->count, sizeof(*compiler.next));
    compiler.is_written = array(guide->tensor_count, sizeof(*compiler.is_written));
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
        status = guide_frees_note(guide);
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

bool guide_has_tensor(const struct guide *guide, const void *address)
{
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        if (guide->tensors[i].address == address) {
            return true;
        }
    }
    return false;
}
