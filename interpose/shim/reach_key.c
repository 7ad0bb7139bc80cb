/*
 * What the results of a slice depend on, as bytes: the kernel, the shape of the launch, and the
 * parameters that the slice reads. Pointers enter as they are: the slice may compare them.
 */
#include "interpose/shim/reach_parts.h"

#include "base/array.h"

#include <string.h>

static bool add_input(struct reach *reach, struct reach_input input)
{
    if (!array_reserve(&reach->inputs, &reach->input_capacity, reach->input_count + 1,
                       sizeof(reach->inputs[0]))) {
        return false;
    }
    reach->inputs[reach->input_count++] = input;
    return true;
}

/* Whether all of a parameter enters: it is not only words, or any word of it may be chosen. */
static bool enters_whole(const struct kernel *roles, uint32_t parameter)
{
    for (size_t i = 0; i < roles->word_count; i++) {
        if (roles->words[i].parameter == parameter && roles->words[i].offset == PTX_NONE) {
            return true;
        }
    }
    return roles->parameters[parameter].is_in_slice;
}

capu_status reach_find_inputs(const struct kernel *roles, struct reach *reach)
{
    bool is_added = true;

    for (uint32_t i = 0; i < roles->parameter_count && is_added; i++) {
        if (enters_whole(roles, i)) {
            is_added = add_input(reach, (struct reach_input){i, 0, roles->parameters[i].bytes});
        }
    }
    for (size_t i = 0; i < roles->word_count && is_added; i++) {
        const struct kernel_word *word = &roles->words[i];

        if (!enters_whole(roles, word->parameter)) {
            is_added = add_input(
                reach, (struct reach_input){word->parameter, word->offset, sizeof(uint64_t)});
        }
    }
    return is_added ? CAPU_OK : CAPU_NO_HOST_MEMORY;
}

size_t reach_key(const struct code_kernel *kernel, const struct launch *launch,
                 unsigned char key[REACH_KEY_BYTES_MOST])
{
    const struct reach *reach = kernel->reach;
    struct {
        const struct code_kernel *kernel;
        uint32_t shape[10];
    } head = {.kernel = kernel};
    size_t bytes = sizeof(head);

    memcpy(head.shape, launch->grid, sizeof(launch->grid));
    memcpy(head.shape + 3, launch->block, sizeof(launch->block));
    memcpy(head.shape + 6, launch->cluster, sizeof(launch->cluster));
    head.shape[9] = launch->shared_bytes;
    memcpy(key, &head, sizeof(head));
    for (size_t i = 0; i < reach->input_count; i++) {
        const struct reach_input *input = &reach->inputs[i];

        if (bytes + input->bytes > REACH_KEY_BYTES_MOST ||
            !parameters_read(&launch->parameters, kernel->roles, input->parameter, input->offset,
                             key + bytes, input->bytes)) {
            return 0;
        }
        bytes += input->bytes;
    }
    return bytes;
}
