/* One walk over the ops: each takes pages for the tensors that it accesses first, after those of
   the tensors that are freed before it have been returned. Few pages suffice: no more than the
   tensors that are allocated at one point need together. */
#include "policy/place/place.h"

#include "base/array.h"
#include "base/assert.h"

#include <stdlib.h>

struct apart {
    const struct trace_index *trace_index;
    struct plan *plan;
    uint64_t page_limit;
    uint64_t page_count;   /* handed out */
    uint32_t *place;       /* per tensor: its place line, plus one; 0: none yet */
    uint32_t *freed_first; /* per op: the first tensor that is freed before it, plus one */
    uint32_t *freed_next;  /* per tensor: the next one that is freed before the same op, plus one */
    struct plan_run *spare; /* pages of freed tensors: a stack */
    size_t spare_count;
    size_t spare_capacity;
};

static uint64_t pages_of(const struct apart *apart, uint32_t tensor)
{
    return apart->trace_index->rounded[tensor] / apart->trace_index->page_bytes;
}

/* The next pages for a tensor, at most `most`: returned ones, else unused ones. */
static struct plan_run next_run(struct apart *apart, uint64_t most)
{
    struct plan_run run;

    if (apart->spare_count > 0) {
        struct plan_run *top = &apart->spare[apart->spare_count - 1];

        run = (struct plan_run){.first = top->first,
                                .count = top->count < most ? top->count : (uint32_t)most};
        top->first += run.count;
        top->count -= run.count;
        apart->spare_count -= top->count == 0;
        return run;
    }
    run = (struct plan_run){.first = (uint32_t)apart->page_count, .count = (uint32_t)most};
    apart->page_count += most;
    return run;
}

static capu_status place_tensor(struct apart *apart, uint32_t tensor)
{
    uint64_t need = pages_of(apart, tensor);
    capu_status status = CAPU_OK;

    if (need == 0 || apart->place[tensor] != 0) {
        return CAPU_OK;
    }
    status = plan_add_place(apart->plan, tensor);
    apart->place[tensor] = apart->plan->place_count;
    while (status == CAPU_OK && need > 0) {
        struct plan_run run = next_run(apart, need);

        if (apart->page_count > apart->page_limit) {
            return CAPU_OVER_BUDGET;
        }
        need -= run.count;
        status = plan_add_run(apart->plan, run.first, run.count);
    }
    return status;
}

/* Returns the pages of the tensors that are freed before an op. */
static capu_status give_back(struct apart *apart, uint32_t op)
{
    for (uint32_t next = apart->freed_first[op]; next != 0; next = apart->freed_next[next - 1]) {
        const struct plan_place *line;

        if (apart->place[next - 1] == 0) {
            continue;
        }
        line = &apart->plan->places[apart->place[next - 1] - 1];
        for (uint32_t r = 0; r < line->count; r++) {
            if (!array_reserve(&apart->spare, &apart->spare_capacity, apart->spare_count + 1,
                               sizeof(*apart->spare))) {
                return CAPU_NO_HOST_MEMORY;
            }
            apart->spare[apart->spare_count++] = apart->plan->runs[line->first + r];
        }
    }
    return CAPU_OK;
}

static capu_status place_all(struct apart *apart)
{
    const struct trace *trace = apart->trace_index->trace;
    capu_status status = CAPU_OK;

    for (uint32_t t = 0; t < trace->tensor_count && status == CAPU_OK; t++) {
        if (trace->tensors[t].persistent) {
            status = place_tensor(apart, t);
        }
    }
    for (uint32_t k = 0; k < trace->op_count && status == CAPU_OK; k++) {
        const struct trace_op *op = &trace->ops[k];

        status = give_back(apart, k);
        for (uint32_t i = 0; i < trace_operand_count(op) && status == CAPU_OK; i++) {
            status = place_tensor(apart, trace->operands[op->first + i]);
        }
    }
    return status;
}

/* A persistent tensor is needed in the next iteration, whatever is said of it here. */
static void list_freed(struct apart *apart, const uint32_t *freed)
{
    const struct trace *trace = apart->trace_index->trace;

    for (uint32_t t = trace->tensor_count; freed != NULL && t-- > 0;) {
        if (!trace->tensors[t].persistent && freed[t] < trace->op_count) {
            apart->freed_next[t] = apart->freed_first[freed[t]];
            apart->freed_first[freed[t]] = t + 1;
        }
    }
}

capu_status place_apart(const struct trace_index *trace_index, const uint32_t *freed,
                        uint64_t page_limit, struct plan *plan)
{
    const struct trace *trace = trace_index->trace;
    struct apart apart = {.trace_index = trace_index, .plan = plan, .page_limit = page_limit};
    capu_status status = CAPU_NO_HOST_MEMORY;

    ASSERT(plan->action_count == 0);
    plan_clear_places(plan);
    if (apart.page_limit > PLAN_PAGES_MAX) {
        apart.page_limit = PLAN_PAGES_MAX;
    }
    apart.place = calloc((size_t)trace->tensor_count + 1, sizeof(*apart.place));
    apart.freed_first = calloc((size_t)trace->op_count + 1, sizeof(*apart.freed_first));
    apart.freed_next = calloc((size_t)trace->tensor_count + 1, sizeof(*apart.freed_next));
    if (apart.place != NULL && apart.freed_first != NULL && apart.freed_next != NULL) {
        list_freed(&apart, freed);
        status = place_all(&apart);
    }
    if (status != CAPU_OK) {
        plan_clear_places(plan);
    }
    free(apart.place);
    free(apart.freed_first);
    free(apart.freed_next);
    free(apart.spare);
    return status;
}
