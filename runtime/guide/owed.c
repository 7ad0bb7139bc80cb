/* What is owed after a guide was left, see owed.h. */
#include "runtime/guide/owed.h"

#include "base/array.h"
#include "base/assert.h"
#include "runtime/guide/guided.h"

#include <stdlib.h>

capu_status owed_reserve(struct owed *owed, const struct guide *guide)
{
    size_t count = guide->tensor_count;
    size_t accesses = 0;

    for (uint32_t i = 0; i < guide->op_count; i++) {
        accesses =
            guide->ops[i].accesses.count > accesses ? guide->ops[i].accesses.count : accesses;
    }
    return array_reserve(&owed->entries, &owed->entry_capacity, count, sizeof(*owed->entries)) &&
                   array_reserve(&owed->stack, &owed->stack_capacity, count + 1,
                                 sizeof(*owed->stack)) &&
                   array_reserve(&owed->again.accesses, &owed->again.access_capacity, accesses,
                                 sizeof(*owed->again.accesses))
               ? CAPU_OK
               : CAPU_NO_HOST_MEMORY;
}

void owed_finish(struct owed *owed)
{
    free(owed->entries);
    free(owed->stack);
    op_finish(&owed->again);
    *owed = (struct owed){0};
}

uint32_t owed_find(const struct guided *guided, const struct tensor *tensor)
{
    const struct guide *guide = guided->owed.guide;
    const struct guide_tensor *planned;

    if (guide == NULL || tensor->guide_index >= guide->tensor_count) {
        return OWED_NONE;
    }
    planned = &guide->tensors[tensor->guide_index];
    return planned->address == tensor->address && planned->bytes == tensor->bytes
               ? tensor->guide_index
               : OWED_NONE;
}

bool owed_is_source(const struct guided *guided, const struct tensor *tensor)
{
    uint32_t number = owed_find(guided, tensor);

    return number != OWED_NONE && guided->owed.entries[number].is_source;
}

bool owed_is_lost(const struct guided *guided, uint32_t number)
{
    const struct tensor *tensor = guided->binding.tensors[number].tensor;

    return tensor != NULL && tensor_is_lost(tensor);
}

bool owed_is_due(const struct guided *guided, uint32_t number)
{
    return owed_is_lost(guided, number) &&
           (guided->owed.keeps_contents || tensor_is_owed(guided->binding.tensors[number].tensor));
}

struct tensor *owed_tensor(struct guided *guided, uint32_t number)
{
    const struct guide_tensor *planned = &guided->owed.guide->tensors[number];
    struct tensor *tensor = guided->binding.tensors[number].tensor;

    if (planned->page_count == 0) {
        tensor = tensors_find(&guided->memory->tensors, planned->address);
        if (tensor != NULL && (tensor->address != planned->address ||
                               tensor->bytes != planned->bytes || tensor_is_managed(tensor))) {
            tensor = NULL;
        }
    }
    return tensor;
}

/* Which op made each tensor's newest version, and the versions of what may be freed. */
static void note_makers(struct guided *guided, uint32_t executed)
{
    const struct guide *guide = guided->owed.guide;
    struct owed_entry *entries = guided->owed.entries;

    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        struct tensor *tensor = owed_tensor(guided, i);

        entries[i] = (struct owed_entry){0};
        if (tensor != NULL) {
            tensor->guide_index = i;
        }
    }
    for (uint32_t k = 0; k < executed; k++) {
        struct guide_part accesses = guide->ops[k].accesses;

        for (uint32_t i = accesses.first; i < accesses.first + accesses.count; i++) {
            struct owed_entry *entry = &entries[guide->accesses[i].tensor];

            entry->version = guided->binding.versions[i];
            if (guide->accesses[i].role != CAPU_READ) {
                entry->maker = k + 1;
            }
        }
    }
}

/* Whether a replay would overwrite contents of a planned tensor that it cannot shelter. */
static bool has_planned_fixed_part(const struct guided *guided, uint32_t number)
{
    const struct tensor *tensor = guided->binding.tensors[number].tensor;

    return guided->owed.guide->tensors[number].page_count == 0 ||
           (tensor != NULL && tensor->span_bytes != tensor->bytes);
}

/* Marks what replays of a lost tensor would read, and what they would spoil once it is newer. */
static void mark_sources(struct guided *guided, uint32_t root)
{
    struct owed *owed = &guided->owed;
    uint32_t depth = 0;

    owed->stack[depth++] = root;
    while (depth > 0) {
        uint32_t lost = owed->stack[--depth];
        uint32_t maker = owed->entries[lost].maker;
        struct guide_part accesses = {0};

        if (maker > 0) {
            accesses = owed->guide->ops[maker - 1].accesses;
        }
        for (uint32_t i = 0; i < accesses.count; i++) {
            const struct guide_access *access = &owed->guide->accesses[accesses.first + i];
            struct owed_entry *touched = &owed->entries[access->tensor];
            bool counts = access->role == CAPU_READ ||
                          (access->role == CAPU_WRITE && access->tensor != lost &&
                           has_planned_fixed_part(guided, access->tensor));

            if (counts && !touched->is_source) {
                touched->is_source = true;
                if (owed_is_lost(guided, access->tensor)) {
                    owed->stack[depth++] = access->tensor;
                }
            }
        }
    }
}

void owed_mark(struct guided *guided)
{
    for (uint32_t i = 0; i < guided->owed.guide->tensor_count; i++) {
        if (owed_is_due(guided, i)) {
            mark_sources(guided, i);
        }
    }
}

void owed_start(struct guided *guided, const struct guide *guide, uint32_t executed,
                bool keeps_contents)
{
    ASSERT(guide->tensor_count <= guided->owed.entry_capacity && executed <= guide->op_count);
    guided->owed.guide = guide;
    guided->owed.keeps_contents = keeps_contents;
    note_makers(guided, executed);
    owed_mark(guided);
}
