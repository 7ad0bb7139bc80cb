/* The lists that victims are taken from, see victims.h. */
#include "runtime/residency/victims.h"

#include "runtime/context/internal.h"

void victims_touch(capu_context *context, struct tensor *tensor)
{
    struct victims *victims = &context->residency.victims;
    struct tensor_list *list = tensor_is_empty(tensor)  ? &victims->empty
                               : tensor_on_host(tensor) ? &victims->clean
                                                        : &victims->dirty;

    /* A tensor in no list is never evicted: in mode off that is every tensor. */
    if (!context->settings.is_paging || tensor->state.pages != PAGES_OWN) {
        return;
    }
    if (list->tail != tensor) {
        tensor_list_remove(tensor, RESIDENCY);
        tensor_list_append(list, tensor, RESIDENCY);
    }
}

static struct tensor *list_victim(const capu_context *context, const struct tensor_list *list)
{
    struct tensor *tensor = list->head;

    while (tensor != NULL && tensor->in_op.stamp == context->operands.stamp) {
        tensor = tensor->residency.next;
    }
    return tensor;
}

struct tensor *victims_choose(const capu_context *context)
{
    const struct tensor_list *lists[] = {&context->residency.victims.empty,
                                         &context->residency.victims.clean,
                                         &context->residency.victims.dirty};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct tensor *tensor = list_victim(context, lists[i]);

        if (tensor != NULL) {
            return tensor;
        }
    }
    return NULL;
}
