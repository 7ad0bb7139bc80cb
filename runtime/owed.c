/* What is owed after a guide was left, see owed.h. */
#include "runtime/owed.h"

#include "runtime/internal.h"

struct guide_tensor *owed_entry(const capu_context *context, const struct tensor *tensor)
{
    const struct guide *guide = context->recovery.guide;
    struct guide_tensor *planned;

    if (guide == NULL || tensor->guide_index >= guide->tensor_count) {
        return NULL;
    }
    planned = &guide->tensors[tensor->guide_index];
    return planned->address == tensor->address && planned->bytes == tensor->bytes ? planned : NULL;
}

bool owed_is_lost(const struct guide_tensor *planned)
{
    return planned->tensor != NULL && tensor_is_lost(planned->tensor);
}

struct tensor *owed_tensor(capu_context *context, const struct guide_tensor *planned)
{
    struct tensor *tensor = planned->tensor;

    if (planned->page_count == 0) {
        tensor = tensors_find(&context->tensors, planned->address);
        if (tensor != NULL && (tensor->address != planned->address ||
                               tensor->bytes != planned->bytes || tensor_is_managed(tensor))) {
            tensor = NULL;
        }
    }
    return tensor;
}

/* Which op made each tensor's newest version, and the versions of what may be freed. */
static void note_makers(capu_context *context, struct guide *guide, uint32_t executed)
{
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        struct tensor *tensor = owed_tensor(context, &guide->tensors[i]);

        guide->tensors[i].maker = 0;
        guide->tensors[i].is_source = false;
        if (tensor != NULL) {
            tensor->guide_index = i;
        }
    }
    for (uint32_t k = 0; k < executed; k++) {
        struct guide_part accesses = guide->ops[k].accesses;

        for (uint32_t i = 0; i < accesses.count; i++) {
            const struct guide_access *access = &guide->accesses[accesses.first + i];

            guide->tensors[access->tensor].version = access->version;
            if (access->role != CAPU_READ) {
                guide->tensors[access->tensor].maker = k + 1;
            }
        }
    }
}

/* Whether a replay would overwrite contents of a planned tensor that it cannot shelter. */
static bool has_planned_fixed_part(const struct guide_tensor *planned)
{
    return planned->page_count == 0 ||
           (planned->tensor != NULL && planned->tensor->span_bytes != planned->tensor->bytes);
}

/* Marks what replays of a lost tensor would read, and what they would spoil once it is newer. */
static void mark_sources(struct guide *guide, uint32_t root)
{
    uint32_t depth = 0;

    guide->stack[depth++] = root;
    while (depth > 0) {
        uint32_t lost = guide->stack[--depth];
        uint32_t maker = guide->tensors[lost].maker;
        struct guide_part accesses = {0};

        if (maker > 0) {
            accesses = guide->ops[maker - 1].accesses;
        }
        for (uint32_t i = 0; i < accesses.count; i++) {
            const struct guide_access *access = &guide->accesses[accesses.first + i];
            struct guide_tensor *touched = &guide->tensors[access->tensor];
            bool counts = access->role == CAPU_READ ||
                          (access->role == CAPU_WRITE && access->tensor != lost &&
                           has_planned_fixed_part(touched));

            if (counts && !touched->is_source) {
                touched->is_source = true;
                if (owed_is_lost(touched)) {
                    guide->stack[depth++] = access->tensor;
                }
            }
        }
    }
}

void owed_mark(struct guide *guide)
{
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        if (owed_is_lost(&guide->tensors[i]) && guide->tensors[i].tensor->is_owed) {
            mark_sources(guide, i);
        }
    }
}

void owed_start(capu_context *context, struct guide *guide, uint32_t executed)
{
    context->recovery = (struct recovery){.guide = guide, .executed = executed};
    note_makers(context, guide, executed);
    owed_mark(guide);
}
