/* What is remembered per label, and what is discarded when there is too much: see label_records.h.
 */
#include "runtime/plan/label_records.h"

#include "base/array.h"
#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

void address_memo_finish(struct address_memo *memo)
{
    free(memo->places);
    *memo = (struct address_memo){0};
}

void address_memo_begin(struct address_memo *memo)
{
    memo->next = 0;
}

/* The entry of that size, or the one to be replaced by it. */
static struct address_memo_entry *find_entry(struct address_memo_place *place, uint64_t bytes)
{
    size_t i = 0;

    while (i + 1 < ADDRESS_MEMO_SIZES && place->entries[i].bytes != bytes) {
        i++;
    }
    return &place->entries[i];
}

void *address_memo_propose(const struct address_memo *memo, uint64_t bytes)
{
    const struct address_memo_entry *entry;

    if (memo->next >= memo->count) {
        return NULL;
    }
    entry = find_entry(&memo->places[memo->next], bytes);
    return entry->bytes == bytes ? entry->address : NULL;
}

capu_status address_memo_note(struct address_memo *memo, void *address, uint64_t bytes)
{
    struct address_memo_entry *newest;

    if (!array_reserve(&memo->places, &memo->capacity, memo->next + 1, sizeof(*memo->places))) {
        return CAPU_NO_HOST_MEMORY;
    }
    if (memo->next == memo->count) {
        memo->places[memo->count++] = (struct address_memo_place){0};
    }
    newest = memo->places[memo->next++].entries;
    for (struct address_memo_entry *at = find_entry(memo->places + memo->next - 1, bytes);
         at > newest; at--) {
        *at = at[-1];
    }
    *newest = (struct address_memo_entry){.address = address, .bytes = bytes};
    return CAPU_OK;
}

bool backoff_is_paused(const struct backoff *backoff)
{
    return backoff->left > 0;
}

void backoff_note(struct backoff *backoff, bool is_guided, bool has_diverged)
{
    if (backoff->left > 0) {
        ASSERT(!is_guided);
        backoff->left--;
        return;
    }
    if (!is_guided) {
        return;
    }
    if (!has_diverged) {
        *backoff = (struct backoff){0};
        return;
    }
    if (backoff->diverged < BACKOFF_DIVERGED) {
        backoff->diverged++;
    }
    if (backoff->diverged == BACKOFF_DIVERGED) {
        if (backoff->pause == 0) {
            backoff->pause = BACKOFF_PAUSE;
        } else if (backoff->pause < UINT64_MAX / 2) {
            backoff->pause *= 2;
        }
        backoff->left = backoff->pause;
    }
}

void predictor_add(struct predictor *predictor, uint64_t signature)
{
    if (predictor->count == PREDICTOR_LENGTH) {
        memmove(predictor->signatures, predictor->signatures + 1,
                (PREDICTOR_LENGTH - 1) * sizeof(predictor->signatures[0]));
        predictor->count--;
    }
    predictor->signatures[predictor->count++] = signature;
}

uint64_t predictor_newest(const struct predictor *predictor)
{
    ASSERT(predictor->count > 0);
    return predictor->signatures[predictor->count - 1];
}

/* How many signatures before `end` equal the newest ones. */
static size_t common_length(const struct predictor *predictor, size_t end)
{
    size_t length = 0;

    while (length < end && predictor->signatures[end - 1 - length] ==
                               predictor->signatures[predictor->count - 1 - length]) {
        length++;
    }
    return length;
}

static size_t times_seen(const struct predictor *predictor, uint64_t signature)
{
    size_t times = 0;

    for (size_t i = 0; i < predictor->count; i++) {
        times += predictor->signatures[i] == signature;
    }
    return times;
}

size_t predictor_predict(const struct predictor *predictor, uint64_t *signature)
{
    size_t best_length = 0;
    size_t best_times = 0;

    ASSERT(predictor->count > 0);
    for (size_t end = 0; end < predictor->count; end++) {
        size_t length = common_length(predictor, end);
        size_t times;

        if (length < best_length) {
            continue;
        }
        times = times_seen(predictor, predictor->signatures[end]);
        if (length > best_length || times >= best_times) {
            best_length = length;
            best_times = times;
            *signature = predictor->signatures[end];
        }
    }
    return best_length;
}

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
               "plan_memory";
    }
    return refusal != NULL ? refusal : "";
}
