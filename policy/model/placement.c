/* The place lines of a plan, checked and indexed. */
#include "policy/model/placement.h"

#include <inttypes.h>
#include <stdlib.h>

/* Pages of each tensor into `first`, shifted by one for the prefix sum to come. */
static capu_status count_pages(struct placement *placement, const struct trace_index *trace_index,
                               const struct plan *plan, struct error_text *error)
{
    for (uint32_t i = 0; i < plan->place_count; i++) {
        const struct plan_place *place = &plan->places[i];
        uint64_t pages = 0;

        for (uint32_t r = 0; r < place->count; r++) {
            const struct plan_run *run = &plan->runs[place->first + r];

            if (run->count == 0 || run->first >= PLAN_PAGES_MAX ||
                run->count > PLAN_PAGES_MAX - run->first) {
                return error_text_set(error, CAPU_INVALID, "place: a run of pages is out of range");
            }
            pages += run->count;
            if (pages > PLAN_PAGES_MAX) {
                /* Such a plan names pages more than once, and their bytes may exceed 64 bits. */
                return error_text_set(error, CAPU_INVALID, "place: too many pages");
            }
        }
        if (place->tensor >= trace_index->trace->tensor_count ||
            !trace_index->trace->tensors[place->tensor].managed ||
            placement->first[place->tensor + 1] != 0) {
            return error_text_set(error, CAPU_INVALID,
                                  "place: tensor %" PRIu32
                                  " does not exist, is not managed, or is placed twice",
                                  place->tensor);
        }
        if (pages * trace_index->page_bytes != trace_index->rounded[place->tensor]) {
            return error_text_set(error, CAPU_INVALID,
                                  "place: tensor %" PRIu32 " has %" PRIu64
                                  " pages, its bytes need %" PRIu64,
                                  place->tensor, pages,
                                  trace_index->rounded[place->tensor] / trace_index->page_bytes);
        }
        placement->first[place->tensor + 1] = (uint32_t)pages;
    }
    return CAPU_OK;
}

static capu_status fill_pages(struct placement *placement, const struct trace_index *trace_index,
                              const struct plan *plan, struct error_text *error)
{
    uint64_t distinct = 0;
    uint8_t *is_named;

    for (uint32_t i = 0; i < plan->place_count; i++) {
        uint32_t at = placement->first[plan->places[i].tensor];

        for (uint32_t r = 0; r < plan->places[i].count; r++) {
            const struct plan_run *run = &plan->runs[plan->places[i].first + r];

            for (uint32_t p = 0; p < run->count; p++) {
                placement->pages[at++] = run->first + p;
            }
            if (run->first + run->count > placement->page_count) {
                placement->page_count = run->first + run->count;
            }
        }
    }
    is_named = calloc((size_t)placement->page_count + 1, 1);
    if (is_named == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < placement->first[trace_index->trace->tensor_count]; i++) {
        distinct += !is_named[placement->pages[i]];
        is_named[placement->pages[i]] = 1;
    }
    free(is_named);
    if (plan->fixed_bytes > plan->budget_bytes ||
        distinct > (plan->budget_bytes - plan->fixed_bytes) / trace_index->page_bytes) {
        return error_text_set(error, CAPU_INVALID,
                              "place: %" PRIu64 " pages and fixed_bytes exceed the budget",
                              distinct);
    }
    return CAPU_OK;
}

capu_status placement_init(struct placement *placement, const struct trace_index *trace_index,
                           const struct plan *plan, struct error_text *error)
{
    uint32_t tensors = trace_index->trace->tensor_count;
    uint64_t total = 0;
    capu_status status;

    *placement = (struct placement){0};
    if (plan->place_count == 0) {
        return CAPU_OK;
    }
    placement->first = calloc((size_t)tensors + 2, sizeof(*placement->first));
    if (placement->first == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = count_pages(placement, trace_index, plan, error);
    if (status != CAPU_OK) {
        goto finish;
    }
    for (uint32_t t = 0; t < tensors; t++) {
        total += placement->first[t + 1];
        if (total > UINT32_MAX / 2) {
            status = error_text_set(error, CAPU_INVALID, "place: too many pages");
            goto finish;
        }
        placement->first[t + 1] = (uint32_t)total;
    }
    placement->pages = malloc((size_t)(total + 1) * sizeof(*placement->pages));
    if (placement->pages == NULL) {
        status = CAPU_NO_HOST_MEMORY;
        goto finish;
    }
    status = fill_pages(placement, trace_index, plan, error);
    if (status != CAPU_OK) {
        goto finish;
    }
    return CAPU_OK;

finish:
    placement_finish(placement);
    return status;
}

void placement_finish(struct placement *placement)
{
    free(placement->first);
    free(placement->pages);
    *placement = (struct placement){0};
}
