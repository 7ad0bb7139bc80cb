/*
 * Two walks over the records: one counts the residencies of each tensor, one fills them in. Before
 * them, one walk backwards finds how late each prefetch may start: a prefetch that comes long
 * before its use does no harm by waiting for its pages, so placement may let it wait.
 */
#include "policy/model/residencies.h"

#include "base/assert.h"
#include "policy/model/program.h"

#include <stdbool.h>
#include <stdlib.h>

struct pass {
    struct residencies *residencies;
    const struct program *program;
    const struct trace_index *trace_index;
    const struct timeline *timeline;
    struct program_walk walk;
    uint32_t at;                /* the record at hand */
    uint32_t *next;             /* per tensor: where its next residency goes */
    struct residency *leftover; /* per tensor: the end of what was resident at the start; to
                              UINT32_MAX: it has not ended yet */
    int64_t *start;             /* per record of a prefetch: when it is counted from */
    bool is_counting;
};

/*
 * No op starts later if no prefetch ends after the next op that accesses its tensor starts, or
 * after the next prefetch has to start. Of that time only half is used: nothing measured is exact.
 * Twice round, since what is fetched for the next iteration is needed in that.
 */
static void find_starts(const struct pass *pass, int64_t *needed)
{
    const struct timeline *timeline = pass->timeline;
    const struct trace *trace = pass->trace_index->trace;
    uint32_t count = timeline->record_count;
    int64_t link = INT64_MAX; /* when the next prefetch has to start */

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        needed[t] = INT64_MAX;
    }
    for (uint32_t i = count * 2; i-- > 0;) {
        const struct timeline_record *record = &timeline->records[i % count];
        int64_t start = (int64_t)record->span.start - (int64_t)timeline->begin_ns +
                        (i >= count ? pass->residencies->turn_ns : 0);

        if (record->item.kind == ACTION_PREFETCH) {
            int64_t end = needed[record->item.subject];
            int64_t latest = start;

            end = end < link ? end : link;
            if (end != INT64_MAX) {
                latest = end - (int64_t)(record->span.end - record->span.start);
            }
            link = latest > start ? latest : start;
            pass->start[i % count] = start + (link - start) / 2;
        } else if (item_is_run(&record->item)) {
            const struct trace_op *op = &trace->ops[record->item.subject];

            for (uint32_t j = 0; j < trace_operand_count(op); j++) {
                needed[trace->operands[op->first + j]] = start;
            }
        } else if (record->engine == ENGINE_D2H) {
            needed[record->item.subject] = start;
        }
    }
}

static capu_status arrive(void *user, const struct item *item, uint32_t tensor)
{
    struct pass *pass = user;
    const struct timeline_record *record = &pass->timeline->records[pass->at];

    if (pass->is_counting) {
        pass->residencies->first[tensor + 1]++;
        return CAPU_OK;
    }
    pass->residencies->list[pass->next[tensor]] =
        (struct residency){.from = pass->at,
                           .start = item->kind == ACTION_PREFETCH
                                        ? pass->start[pass->at]
                                        : (int64_t)(record->span.start - pass->timeline->begin_ns)};
    return CAPU_OK;
}

static capu_status leave(void *user, const struct item *item, uint32_t tensor)
{
    struct pass *pass = user;
    uint64_t end = pass->timeline->records[pass->at].span.end;
    uint32_t slot = pass->next[tensor];
    /* What was not used since the previous iteration is usable from before this one began. */
    int64_t after = (int64_t)end - (int64_t)pass->timeline->begin_ns;

    (void)item;
    if (pass->leftover[tensor].to == UINT32_MAX) {
        pass->leftover[tensor] = (struct residency){.to = pass->at, .end = after};
        return CAPU_OK;
    }
    if (!pass->is_counting) {
        pass->residencies->list[slot].to = pass->at;
        pass->residencies->list[slot].end = after;
        pass->next[tensor]++;
    }
    return CAPU_OK;
}

static const struct program_visitor no_visitor = {0};

/* The records are those of an iteration after others, so what was copied out before is on the host.
 */
static capu_status walk_earlier(struct pass *pass)
{
    const struct program *program = pass->program;
    capu_status status = program_walk_init(&pass->walk, program);

    for (uint32_t i = 0; i < program->count && status == CAPU_OK; i++) {
        status = program_walk_item(&pass->walk, &no_visitor, NULL, &program->items[i]);
    }
    return status;
}

/* Another iteration. */
static capu_status run(struct pass *pass)
{
    static const struct program_visitor visitor = {.take = arrive, .give = leave};
    capu_status status = CAPU_OK;

    program_walk_turn(&pass->walk, &no_visitor, NULL);
    for (uint32_t t = 0; t < pass->trace_index->trace->tensor_count && status == CAPU_OK; t++) {
        pass->leftover[t].to = program_walk_is_resident(&pass->walk, t) ? UINT32_MAX : 0;
    }
    for (pass->at = 0; pass->at < pass->timeline->record_count && status == CAPU_OK; pass->at++) {
        status =
            program_walk_item(&pass->walk, &visitor, pass, &pass->timeline->records[pass->at].item);
    }
    return status;
}

/* What is resident at the end of the iteration is resident at the start of the next. */
static void close_round(struct pass *pass)
{
    struct residencies *residencies = pass->residencies;

    for (uint32_t t = 0; t < pass->trace_index->trace->tensor_count; t++) {
        if (pass->leftover[t].to == UINT32_MAX) {
            residencies->is_always[t] = 1;
        } else if (program_walk_is_resident(&pass->walk, t)) {
            struct residency *last = &residencies->list[pass->next[t]];

            last->to = pass->leftover[t].to + residencies->turn;
            last->end = pass->leftover[t].end + residencies->turn_ns;
        }
    }
}

capu_status residencies_init(struct residencies *residencies, const struct program *program,
                             const struct timeline *timeline)
{
    const struct trace_index *trace_index = program->trace_index;
    size_t tensors = (size_t)trace_index->trace->tensor_count + 1;
    struct pass pass = {.residencies = residencies,
                        .program = program,
                        .trace_index = trace_index,
                        .timeline = timeline,
                        .is_counting = true};
    int64_t *needed = malloc(tensors * sizeof(*needed));
    capu_status status = CAPU_NO_HOST_MEMORY;

    ASSERT(timeline->records != NULL);
    *residencies = (struct residencies){.turn = timeline->record_count,
                                        .turn_ns = (int64_t)timeline->iteration_ns};
    residencies->first = calloc(tensors + 1, sizeof(*residencies->first));
    residencies->is_always = calloc(tensors, sizeof(*residencies->is_always));
    pass.next = malloc(tensors * sizeof(*pass.next));
    pass.leftover = calloc(tensors, sizeof(*pass.leftover));
    pass.start = malloc(((size_t)timeline->record_count + 1) * sizeof(*pass.start));
    if (needed == NULL || pass.start == NULL || residencies->first == NULL ||
        residencies->is_always == NULL || pass.next == NULL || pass.leftover == NULL) {
        goto finish;
    }
    find_starts(&pass, needed);
    status = walk_earlier(&pass);
    status = status == CAPU_OK ? run(&pass) : status;
    if (status != CAPU_OK) {
        goto finish;
    }
    for (uint32_t t = 0; t + 1 < tensors; t++) {
        residencies->first[t + 1] += residencies->first[t];
        pass.next[t] = residencies->first[t];
    }
    residencies->list =
        calloc((size_t)residencies->first[tensors - 1] + 1, sizeof(*residencies->list));
    if (residencies->list == NULL) {
        status = CAPU_NO_HOST_MEMORY;
        goto finish;
    }
    pass.is_counting = false;
    status = run(&pass);
    if (status == CAPU_OK) {
        close_round(&pass);
    }

finish:
    free(needed);
    free(pass.start);
    free(pass.next);
    free(pass.leftover);
    program_walk_finish(&pass.walk);
    if (status != CAPU_OK) {
        residencies_finish(residencies);
    }
    return status;
}

void residencies_finish(struct residencies *residencies)
{
    free(residencies->first);
    free(residencies->list);
    free(residencies->is_always);
    *residencies = (struct residencies){0};
}
