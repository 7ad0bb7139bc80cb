/* The lists of tensors with contents, see contents.h. */
#include "runtime/residency/contents.h"

#include "base/assert.h"
#include "runtime/context/internal.h"
#include "runtime/residency/swap.h"
#include "runtime/residency/victims.h"

void contents_define(capu_context *context, struct tensor *tensor)
{
    struct tensor_list *list =
        tensor->is_persistent ? &context->memory.persistent : &context->memory.transient;

    ASSERT(tensor_is_defined(tensor));
    if (tensor->contents.list == list) {
        return;
    }
    if (tensor->contents.list == &context->memory.persistent) {
        tracker_persistent(&context->records, tensor, -1);
    }
    tensor_list_remove(tensor, CONTENTS);
    tensor_list_append(list, tensor, CONTENTS);
    if (tensor->is_persistent) {
        tracker_persistent(&context->records, tensor, 1);
    }
}

void contents_forget(capu_context *context, struct tensor *tensor)
{
    if (tensor->contents.list == &context->memory.persistent) {
        tracker_persistent(&context->records, tensor, -1);
    }
    tensor_list_remove(tensor, CONTENTS);
    tensor_state_undefined(tensor);
    swap_give_block(context, tensor);
    if (context->settings.is_paging) {
        victims_touch(context, tensor);
    }
}
