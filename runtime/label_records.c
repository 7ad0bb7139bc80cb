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

/* Destroys the guide least recently used of those that are not active. */
static void discard_oldest(struct label_records *records, const struct guide *active)
{
    struct plan_cache *holder = NULL;
    struct guide *oldest = NULL;

    for (size_t i = 0; i < LABEL_RECORDS; i++) {
        struct plan_cache *plans = &records->list[i].plans;
        struct guide *guide = plan_cache_oldest(plans, active);

        if (guide != NULL && (oldest == NULL || guide->used < oldest->used)) {
            holder = plans;
            oldest = guide;
        }
    }
    if (oldest != NULL) {
        plan_cache_discard(holder, oldest);
    }
}

void label_records_add_guide(struct label_records *records, struct label_record *record,
                             struct guide *guide, const struct guide *active)
{
    size_t count = 0;

    for (size_t i = 0; i < LABEL_RECORDS; i++) {
        count += records->list[i].plans.guide_count;
    }
    if (count == PLAN_CACHE_GUIDES) {
        discard_oldest(records, active);
    }
    plan_cache_add(&record->plans, guide);
}

void label_records_discard_wrong(struct label_records *records)
{
    for (size_t i = 0; i < LABEL_RECORDS; i++) {
        plan_cache_discard_wrong(&records->list[i].plans);
    }
}
