/* One record per label, and what is discarded when there is too much: see label_records.h. */
#include "runtime/plan/label_records.h"

#include "base/array.h"
#include "base/assert.h"

#include <stdlib.h>

static void clear(struct label_record *record)
{
    address_memo_finish(&record->addresses);
    plan_cache_finish(&record->plans);
    *record = (struct label_record){0};
}

void label_records_finish(struct label_records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        clear(records->slots[i].record);
        free(records->slots[i].record);
    }
    free(records->slots);
    *records = (struct label_records){0};
}

struct label_record *label_records_find(const struct label_records *records, const char *label)
{
    for (size_t i = 0; i < records->count; i++) {
        if (records->slots[i].label == label) {
            return records->slots[i].record;
        }
    }
    return NULL;
}

/* A slot with an empty record; NULL: no host memory. */
static struct label_slot *add_slot(struct label_records *records)
{
    struct label_record *record;

    if (!array_reserve(&records->slots, &records->capacity, records->count + 1,
                       sizeof(*records->slots))) {
        return NULL;
    }
    record = calloc(1, sizeof(*record));
    if (record == NULL) {
        return NULL;
    }
    records->slots[records->count] = (struct label_slot){.record = record};
    return &records->slots[records->count++];
}

static bool has_plan(const struct label_record *record, const struct plan_entry *entry)
{
    return entry != NULL && plan_cache_find(&record->plans, entry->guide->signature) == entry;
}

/* The slot of the label least recently used, with an empty record. */
static struct label_slot *replace_oldest(struct label_records *records,
                                         const struct plan_entry *active)
{
    struct label_slot *oldest = &records->slots[0];

    for (size_t i = 1; i < records->count; i++) {
        oldest =
            records->slots[i].record->used < oldest->record->used ? &records->slots[i] : oldest;
    }
    ASSERT(!has_plan(oldest->record, active));
    clear(oldest->record);
    return oldest;
}

struct label_record *label_records_use(struct label_records *records, const char *label,
                                       uint64_t iteration, const struct plan_entry *active)
{
    struct label_record *record = label_records_find(records, label);

    if (record == NULL) {
        struct label_slot *slot =
            records->count < LABEL_RECORDS ? add_slot(records) : replace_oldest(records, active);

        if (slot == NULL) {
            return NULL;
        }
        slot->label = label;
        record = slot->record;
        record->label = label;
    }
    record->used = iteration;
    return record;
}

uint64_t label_records_plan_bytes(const struct label_records *records)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < records->count; i++) {
        bytes += records->slots[i].record->plans.bytes;
    }
    return bytes;
}

/* Destroys the least recently used plan that is not active. False: there is none. */
static bool discard_oldest(struct label_records *records, const struct plan_entry *active)
{
    struct label_record *holder = NULL;
    struct plan_entry *oldest = NULL;

    for (size_t i = 0; i < records->count; i++) {
        struct label_record *record = records->slots[i].record;
        struct plan_entry *entry = plan_cache_oldest(&record->plans, active);

        if (entry != NULL && (oldest == NULL || entry->used < oldest->used)) {
            holder = record;
            oldest = entry;
        }
    }
    if (oldest == NULL) {
        return false;
    }
    plan_cache_discard(&holder->plans, oldest);
    holder->was_displaced = true;
    return true;
}

bool label_records_add_plan(struct label_records *records, struct label_record *record,
                            struct plan_entry *entry, const struct plan_entry *active,
                            uint64_t limit_bytes)
{
    uint64_t bytes = plan_entry_bytes(entry);

    record->was_displaced = false;
    while (label_records_plan_bytes(records) + bytes > limit_bytes &&
           discard_oldest(records, active)) {
    }
    return plan_cache_add(&record->plans, entry);
}

void label_records_add_better(struct label_records *records, struct label_record *record,
                              struct plan_entry *active, struct plan_entry *better,
                              uint64_t limit_bytes)
{
    plan_cache_add_better(&record->plans, active, better);
    while (label_records_plan_bytes(records) > limit_bytes && discard_oldest(records, active)) {
    }
}

void label_records_discard_wrong(struct label_records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        plan_cache_discard_wrong(&records->slots[i].record->plans);
    }
}

const char *label_records_refusal(const struct label_record *label)
{
    const char *refusal = NULL;

    if (backoff_is_paused(&label->backoff)) {
        return "guided mode pauses under this label, since too many iterations in a row left their "
               "plans";
    }
    if (label->predictor.count > 0) {
        refusal = plan_cache_refusal(&label->plans, predictor_newest(&label->predictor));
    }
    if (refusal == NULL && label->was_displaced) {
        return "a plan of this label was discarded, since all that are kept would take more than "
               "plan_memory_bytes";
    }
    return refusal != NULL ? refusal : "";
}
