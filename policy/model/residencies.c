/*
 * Two walks over the records: one counts the residencies of each tensor, one fills them in. Before
 * them, one walk backwards finds how late each prefetch may start: a prefetch that comes long
 * before its use does no harm by waiting for its pages, so placement may let it wait.
 */
#include "policy/model/residencies.h"

#include "base/assert.h"

#include <stdbool.h>
#include <stdlib.h>

struct walk {
    struct residencies *residencies;
    const struct trace_index *trace_index;
    const struct timeline *timeline;
    uint8_t *is_resident;
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
static void find_starts(const struct walk *walk, int64_t *needed)
{
    const struct timeline *timeline = walk->timeline;
    const struct trace *trace = walk->trace_index->trace;
    uint32_t count = timeline->record_count;
    int64_t link = INT64_MAX; /* when the next prefetch has to start */

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        needed[t] = INT64_MAX;
    }
    for (uint32_t i = count * 2; i-- > 0;) {
        const struct timeline_record *record = &timeline->records[i % count];
        int64_t start = (int64_t)record->span.start - (int64_t)timeline->begin_ns +
                        (i >= count ? walk->residencies->turn_ns : 0);

        if (record->item.kind == ACTION_PREFETCH) {
            int64_t end = needed[record->item.subject];
            int64_t latest = start;

            end = end < link ? end : link;
            if (end != INT64_MAX) {
                latest = end - (int64_t)(record->span.end - record->span.start);
            }
            link = latest > start ? latest : start;
            walk->start[i % count] = start + (link - start) / 2;
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

static void arrive(struct walk *walk, uint32_t tensor, uint32_t at, int64_t start)
{
    walk->is_resident[tensor] = 1;
    if (walk->is_counting) {
        walk->residencies->first[tensor + 1]++;
        return;
    }
    walk->residencies->list[walk->next[tensor]] = (struct residency){.from = at, .start = start};
}

static void leave(struct walk *walk, uint32_t tensor, uint32_t at, uint64_t end)
{
    uint32_t slot = walk->next[tensor];
    /* What was not used since the previous iteration is usable from before this one began. */
    int64_t after = (int64_t)end - (int64_t)walk->timeline->begin_ns;

    walk->is_resident[tensor] = 0;
    if (walk->leftover[tensor].to == UINT32_MAX) {
        walk->leftover[tensor] = (struct residency){.to = at, .end = after};
        return;
    }
    if (!walk->is_counting) {
        walk->residencies->list[slot].to = at;
        walk->residencies->list[slot].end = after;
        walk->next[tensor]++;
    }
}

static void pass(struct walk *walk)
{
    const struct trace *trace = walk->trace_index->trace;

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        walk->is_resident[t] = trace->tensors[t].persistent;
        walk->leftover[t].to = walk->is_resident[t] ? UINT32_MAX : 0;
    }
    for (uint32_t i = 0; i < walk->timeline->record_count; i++) {
        const struct timeline_record *record = &walk->timeline->records[i];
        const struct trace_op *op;

        if (record->item.kind == ACTION_SAVE) {
            continue;
        }
        if (record->item.kind == ACTION_PREFETCH) {
            if (walk->leftover[record->item.subject].to == UINT32_MAX) {
                /* Its first event: it started on the host. */
                walk->leftover[record->item.subject].to = 0;
            }
            arrive(walk, record->item.subject, i, walk->start[i]);
            continue;
        }
        if (!item_is_run(&record->item)) {
            leave(walk, record->item.subject, i, record->span.end);
            continue;
        }
        op = &trace->ops[record->item.subject];
        for (uint32_t j = op->read_count; j < trace_operand_count(op); j++) {
            if (!walk->is_resident[trace->operands[op->first + j]]) {
                arrive(walk, trace->operands[op->first + j], i,
                       (int64_t)(record->span.start - walk->timeline->begin_ns));
            }
        }
    }
}

/* What is resident at the end of the iteration is resident at the start of the next. */
static void close_round(struct walk *walk)
{
    struct residencies *residencies = walk->residencies;

    for (uint32_t t = 0; t < walk->trace_index->trace->tensor_count; t++) {
        if (walk->leftover[t].to == UINT32_MAX) {
            residencies->is_always[t] = 1;
        } else if (walk->is_resident[t]) {
            struct residency *last = &residencies->list[walk->next[t]];

            last->to = walk->leftover[t].to + residencies->turn;
            last->end = walk->leftover[t].end + residencies->turn_ns;
        }
    }
}

capu_status residencies_init(struct residencies *residencies, const struct trace_index *trace_index,
                             const struct timeline *timeline)
{
    size_t tensors = (size_t)trace_index->trace->tensor_count + 1;
    struct walk walk = {.residencies = residencies,
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
    walk.is_resident = malloc(tensors * sizeof(*walk.is_resident));
    walk.next = malloc(tensors * sizeof(*walk.next));
    walk.leftover = calloc(tensors, sizeof(*walk.leftover));
    walk.start = malloc(((size_t)timeline->record_count + 1) * sizeof(*walk.start));
    if (needed == NULL || walk.start == NULL || residencies->first == NULL ||
        residencies->is_always == NULL || walk.is_resident == NULL || walk.next == NULL ||
        walk.leftover == NULL) {
        goto finish;
    }
    find_starts(&walk, needed);
    pass(&walk);
    for (uint32_t t = 0; t + 1 < tensors; t++) {
        residencies->first[t + 1] += residencies->first[t];
        walk.next[t] = residencies->first[t];
    }
    residencies->list =
        calloc((size_t)residencies->first[tensors - 1] + 1, sizeof(*residencies->list));
    if (residencies->list == NULL) {
        goto finish;
    }
    walk.is_counting = false;
    pass(&walk);
    close_round(&walk);
    status = CAPU_OK;

finish:
    free(needed);
    free(walk.start);
    free(walk.is_resident);
    free(walk.next);
    free(walk.leftover);
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
