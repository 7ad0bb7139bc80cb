/*
 * What the operands of a launch depend on, as bytes: the kernel and the shape of the launch, then
 * the version of the variables that the slice reads, its inputs, then all pointers.
 */
#include "shim/launch/reach_parts.h"

#include <string.h>

struct head {
    const struct code_kernel *kernel;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3];
    uint32_t shared_bytes;
    uint64_t version; /* of variables; 0: the slice reads none */
};

/* The bytes that a word's pointers lie in. */
static uint32_t word_bytes(const struct kernel *roles, const struct kernel_word *word)
{
    return word->offset == PTX_NONE ? roles->parameters[word->parameter].bytes : sizeof(uint64_t);
}

bool reach_key_fits(const struct kernel *roles, const struct reach *reach)
{
    size_t bytes = sizeof(struct head) + reach->row_bytes;

    for (size_t i = 0; i < roles->word_count; i++) {
        bytes += word_bytes(roles, &roles->words[i]);
    }
    return bytes <= REACH_KEY_BYTES_MOST;
}

void reach_find_key(const struct code_kernel *kernel, const struct launch *launch,
                    const unsigned char *block, struct reach_key *key)
{
    const struct kernel *roles = kernel->roles;
    const struct reach *reach = kernel->reach;
    struct head head;

    memset(&head, 0, sizeof(head)); /* between its fields, too */
    head.kernel = kernel;
    head.shared_bytes = launch->shared_bytes;
    head.version = reach->slice.source_count > 0 ? code_version() : 0;
    memcpy(head.grid, launch->grid, sizeof(head.grid));
    memcpy(head.block, launch->block, sizeof(head.block));
    memcpy(head.cluster, launch->cluster, sizeof(head.cluster));
    memcpy(key->key, &head, sizeof(head));
    slice_key(&reach->slice, block, key->key + sizeof(head));
    key->results_bytes = sizeof(head) + reach->row_bytes;
    key->bytes = key->results_bytes;
    for (size_t i = 0; i < roles->word_count; i++) {
        const struct kernel_word *word = &roles->words[i];
        uint32_t bytes = word_bytes(roles, word);

        parameters_copy(key->key + key->bytes,
                        block + roles->parameters[word->parameter].offset +
                            (word->offset == PTX_NONE ? 0 : word->offset),
                        bytes);
        key->bytes += bytes;
    }
}
