/* A kept plan, see plan_entry.h. */
#include "runtime/guide/plan_entry.h"

#include "base/assert.h"

#include <stdlib.h>

bool improvement_is_due(struct improvement *improvement, uint64_t change_ns)
{
    uint64_t lost_ns = improvement->forgone_ns;

    ASSERT(improvement->gain_ns > 0);
    lost_ns =
        improvement->gain_ns > UINT64_MAX - lost_ns ? UINT64_MAX : lost_ns + improvement->gain_ns;
    improvement->forgone_ns = lost_ns;
    return lost_ns >= change_ns;
}

/* The planned times of the ops in the guide. */
static void copy_times(struct plan_entry *entry, const struct record *record)
{
    uint32_t count = 0;

    for (size_t i = record_planned(record, 0); i < record->op_count;
         i = record_planned(record, i + 1)) {
        entry->feedback.planned_ns[count++] = record->ops[i].ns;
    }
}

capu_status plan_entry_create(const struct record *record, struct plan_entry **out)
{
    struct plan_entry *entry = calloc(1, sizeof(*entry));
    capu_status status;

    if (entry == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = guide_create(record, &entry->guide);
    if (status == CAPU_OK) {
        status = feedback_init(&entry->feedback, entry->guide->op_count);
    }
    if (status != CAPU_OK) {
        plan_entry_destroy(entry);
        return status;
    }
    copy_times(entry, record);
    *out = entry;
    return CAPU_OK;
}

capu_status plan_entry_copy(const struct plan_entry *entry, struct plan_entry **out)
{
    struct plan_entry *copy = calloc(1, sizeof(*copy));
    capu_status status;

    if (copy == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    copy->keeps_contents = entry->keeps_contents;
    copy->budget_bytes = entry->budget_bytes;
    status = guide_copy(entry->guide, &copy->guide);
    if (status == CAPU_OK) {
        status = feedback_copy(&copy->feedback, &entry->feedback);
    }
    if (status != CAPU_OK) {
        plan_entry_destroy(copy);
        return status;
    }
    *out = copy;
    return CAPU_OK;
}

static uint64_t own_bytes(const struct plan_entry *entry)
{
    return sizeof(*entry) + entry->guide->bytes + feedback_bytes(&entry->feedback);
}

uint64_t plan_entry_bytes(const struct plan_entry *entry)
{
    return own_bytes(entry) + (entry->better != NULL ? own_bytes(entry->better) : 0);
}

static void destroy_one(struct plan_entry *entry)
{
    guide_destroy(entry->guide);
    feedback_finish(&entry->feedback);
    string_buffer_finish(&entry->text);
    free(entry);
}

void plan_entry_destroy(struct plan_entry *entry)
{
    if (entry == NULL) {
        return;
    }
    if (entry->better != NULL) {
        destroy_one(entry->better);
    }
    destroy_one(entry);
}
