/* The lists of tensors with contents, see contents.h. */
#include "runtime/residency/contents.h"

#include "base/assert.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"
#include "runtime/residency/victims.h"

void contents_define(struct residency *residency, struct tensor *tensor)
{
    struct tensor_list *list =
        tensor->is_persistent ? &residency->memory->persistent : &residency->memory->transient;

    ASSERT(tensor_is_defined(tensor));
    if (tensor->contents.list == list) {
        return;
    }
    if (tensor->contents.list == &residency->memory->persistent) {
        tracker_persistent(residency->records, tensor, -1);
    }
    tensor_list_remove(tensor, CONTENTS);
    tensor_list_append(list, tensor, CONTENTS);
    if (tensor->is_persistent) {
        tracker_persistent(residency->records, tensor, 1);
    }
}

void contents_forget(struct residency *residency, struct tensor *tensor)
{
    if (tensor->contents.list == &residency->memory->persistent) {
        tracker_persistent(residency->records, tensor, -1);
    }
    tensor_list_remove(tensor, CONTENTS);
    tensor_state_undefined(tensor);
    swap_give_block(residency, tensor);
    if (residency->settings->is_paging) {
        victims_touch(residency, tensor);
    }
}
