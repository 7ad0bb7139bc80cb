/* One record per label, and which of them is replaced: see label_records.h. */
#include "runtime/label_records.h"

static void clear(struct label_record *record)
{
    address_memo_finish(&record->addresses);
    plan_cache_finish(&record->plans);
    *record = (struct label_record){0};
}

void label_records_finish(struct label_records *records)
{
    for (size_t i = 0; i < LABEL_RECORDS; i++) {
        clear(&records->list[i]);
    }
}

struct label_record *label_records_find(struct label_records *records, const char *label)
{
    for (size_t i = 0; i < LABEL_RECORDS; i++) {
        if (records->list[i].label == label) {
            return &records->list[i];
        }
    }
    return NULL;
}

struct label_record *label_records_use(struct label_records *records, const char *label,
                                       uint64_t iteration)
{
    struct label_record *record = label_records_find(records, label);

    if (record == NULL) {
        record = &records->list[0];
        for (size_t i = 1; i < LABEL_RECORDS; i++) {
            record = records->list[i].used < record->used ? &records->list[i] : record;
        }
        clear(record);
        record->label = label;
    }
    record->used = iteration;
    return record;
}

/* Destroys the least recently used plan that is not active. */
static void discard_oldest(struct label_records *records, const struct plan_entry *active)
{
    struct plan_cache *holder = NULL;
    struct plan_entry *oldest = NULL;

    for (size_t i = 0; i < LABEL_RECORDS; i++) {
        struct plan_cache *plans = &records->list[i].plans;
        struct plan_entry *entry = plan_cache_oldest(plans, active);

        if (entry != NULL && (oldest == NULL || entry->used < oldest->used)) {
            holder = plans;
            oldest = entry;
        }
    }
    if (oldest != NULL) {
        plan_cache_discard(holder, oldest);
    }
}

void label_records_add_plan(struct label_records *records, struct label_record *record,
                            struct plan_entry *entry, const struct plan_entry *active)
{
    size_t count = 0;

    for (size_t i = 0; i < LABEL_RECORDS; i++) {
        count += records->list[i].plans.entry_count;
    }
    if (count == PLAN_CACHE_ENTRIES) {
        discard_oldest(records, active);
    }
    plan_cache_add(&record->plans, entry);
}

void label_records_discard_wrong(struct label_records *records)
{
    for (size_t i = 0; i < LABEL_RECORDS; i++) {
        plan_cache_discard_wrong(&records->list[i].plans);
    }
}
