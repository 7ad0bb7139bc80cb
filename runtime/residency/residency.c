/* The tensors that may be evicted, see residency.h. */
#include "runtime/residency/residency.h"

void victims_touch(struct residency *residency, struct tensor *tensor)
{
    struct victims *victims = &residency->victims;
    struct tensor_list *list = tensor_is_empty(tensor)  ? &victims->empty
                               : tensor_on_host(tensor) ? &victims->clean
                                                        : &victims->dirty;

    /* A tensor in no list is never evicted: in mode off that is every tensor. */
    if (!residency->settings->is_paging || tensor->state.pages != PAGES_OWN) {
        return;
    }
    if (list->tail != tensor) {
        tensor_list_remove(tensor, RESIDENCY);
        tensor_list_append(list, tensor, RESIDENCY);
    }
}

static struct tensor *list_victim(const struct residency *residency, const struct tensor_list *list)
{
    struct tensor *tensor = list->head;

    while (tensor != NULL && tensor->in_op.stamp == residency->victims.spared) {
        tensor = tensor->residency.next;
    }
    return tensor;
}

struct tensor *victims_choose(const struct residency *residency)
{
    const struct tensor_list *lists[] = {&residency->victims.empty, &residency->victims.clean,
                                         &residency->victims.dirty};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct tensor *tensor = list_victim(residency, lists[i]);

        if (tensor != NULL) {
            return tensor;
        }
    }
    return NULL;
}
