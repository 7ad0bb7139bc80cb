/*
 * Checks the books of a context: that the parts are valid by themselves and agree with each other.
 * For tests, and for builds with expensive assertions.
 */
#include "runtime/api/context.h"

#include <stdio.h>

struct check {
    capu_context *context;
    const char *what;
    size_t mapped_pages;
    uint64_t persistent_pages;
};

static void expect_holds(struct check *check, bool holds, const char *what)
{
    if (!holds && check->what == NULL) {
        check->what = what;
    }
}

static void check_tensor(struct tensor *tensor, void *data)
{
    struct check *check = data;
    const struct victims *victims = &check->context->residency.victims;
    const struct tensor_list *list = tensor->residency.list;
    const capu_context *context = check->context;
    bool may_be_lost = context->plans.keeper != NULL;
    const char *what = NULL;

    expect_holds(check, tensor->allocation->is_freed == tensor->allocation->is_parked,
                 "a freed tensor can be found");
    expect_holds(check, tensor_validate(tensor, &what), what);
    expect_holds(check, !tensor_is_placed(tensor) || context->guided.active != NULL,
                 "placed without a guide");
    expect_holds(check, (tensor->contents.list != NULL) == tensor_is_defined(tensor),
                 "contents without list");
    if (check->context->settings.is_paging) {
        expect_holds(check, may_be_lost || !tensor_is_lost(tensor), "contents are lost");
        expect_holds(check, (list != NULL) == (tensor->state.pages == PAGES_OWN),
                     "a resident tensor is in no list, or another is in one");
        expect_holds(check, list != &victims->clean || tensor_on_host(tensor),
                     "a tensor in the clean list has no host copy");
        expect_holds(check, list != &victims->empty || tensor_is_empty(tensor),
                     "the empty list has contents");
        expect_holds(check, list != &victims->dirty || tensor->state.contents == CONTENTS_DEVICE,
                     "a tensor in the dirty list is clean");
    } else {
        expect_holds(check, list == NULL, "mode off has something to evict");
    }
    check->mapped_pages +=
        tensor_is_mapped(tensor) && !tensor_is_placed(tensor) ? tensor->page_count : 0;
    if (tensor_is_defined(tensor) && tensor->is_persistent) {
        check->persistent_pages += tensor->page_count;
    }
}

/* Pages of freed allocations that are still on their way out. */
static size_t buried_pages(const struct departure_queue *queue)
{
    size_t count = 0;

    for (const struct departure *at = queue->head; at != NULL; at = at->next) {
        count += at->allocation != NULL ? at->page_count : 0;
    }
    return count;
}

bool context_validate(capu_context *context, const char **what)
{
    struct check check = {.context = context};
    size_t out;

    if (!pages_validate(context->memory.pages, what) ||
        !ranges_validate(context->memory.ranges, what) ||
        !slabs_validate(context->memory.slabs, what) ||
        !host_arena_validate(context->memory.arena, what)) {
        return false;
    }
    tensors_each(&context->memory.tensors, check_tensor, &check);
    for (struct allocation *at = context->residency.parked; at != NULL; at = at->next_parked) {
        for (struct tensor *tensor = at->first; tensor != NULL; tensor = tensor->next) {
            check_tensor(tensor, &check);
        }
    }
    out = (context->guided.active != NULL ? context->guided.active->guide->page_count : 0) +
          check.mapped_pages + slabs_page_count(context->memory.slabs) +
          context->memory.edge_page_count + buried_pages(&context->residency.departures.leaving) +
          buried_pages(&context->residency.departures.copying);
    expect_holds(&check, out == pages_out(context->memory.pages),
                 "pages are lost or counted twice");
    expect_holds(&check, pages_out(context->memory.pages) <= pages_limit(context->memory.pages),
                 "over the budget");
    expect_holds(&check, check.persistent_pages == context->memory.persistent_pages,
                 "persistent pages");
    *what = check.what;
    return check.what == NULL;
}

bool context_is_valid(capu_context *context)
{
    const char *what = NULL;
    bool is_valid = context_validate(context, &what);

    if (!is_valid) {
        fprintf(stderr, "invalid context: %s\n", what);
    }
    return is_valid;
}
