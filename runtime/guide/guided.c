/* The binding of a guide, see guided.h. */
#include "runtime/guide/guided.h"

#include "base/array.h"

#include <stdlib.h>

static bool reserve(struct binding *binding, const struct guide *guide)
{
    return array_reserve(&binding->tensors, &binding->tensor_capacity, guide->tensor_count,
                         sizeof(*binding->tensors)) &&
           array_reserve(&binding->ops, &binding->op_capacity, guide->op_count,
                         sizeof(*binding->ops)) &&
           array_reserve(&binding->versions, &binding->access_capacity, guide->access_count,
                         sizeof(*binding->versions)) &&
           array_reserve(&binding->pages, &binding->page_capacity, guide->page_count,
                         sizeof(*binding->pages)) &&
           array_reserve(&binding->newest, &binding->newest_capacity, guide->page_count,
                         sizeof(*binding->newest));
}

capu_status binding_start(struct binding *binding, const struct guide *guide)
{
    if (!reserve(binding, guide)) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        binding->tensors[i] = (struct bound_tensor){0};
    }
    for (uint32_t k = 0; k < guide->op_count; k++) {
        binding->ops[k] = (struct bound_op){0};
    }
    for (uint32_t i = 0; i < guide->access_count; i++) {
        binding->versions[i] = 0;
    }
    for (uint32_t page = 0; page < guide->page_count; page++) {
        binding->pages[page] = DEVICE_NO_PAGE;
    }
    binding->free_pages = 0;
    binding->leaving = (struct bound_queue){0};
    binding->expected = (struct bound_queue){0};
    binding->takes = 0;
    binding->next = 0;
    binding->free_count = 0;
    return CAPU_OK;
}

void binding_finish(struct binding *binding)
{
    free(binding->tensors);
    free(binding->ops);
    free(binding->versions);
    free(binding->pages);
    free(binding->newest);
    *binding = (struct binding){0};
}
