/* Guides and refusals by signature, see plan_cache.h. */
#include "runtime/plan/plan_cache.h"

#include "base/array.h"
#include "base/assert.h"
#include "runtime/context/names.h"

#include <stdlib.h>
#include <string.h>

/* An iteration for which no plan was found. */
struct refusal {
    uint64_t signature;
    char text[];
};

void plan_cache_finish(struct plan_cache *cache)
{
    for (size_t i = 0; i < cache->count; i++) {
        plan_entry_destroy(cache->slots[i].entry);
    }
    free(cache->slots);
    for (size_t i = 0; i < PLAN_CACHE_REFUSALS; i++) {
        free(cache->refusals[i]);
    }
    *cache = (struct plan_cache){0};
}

void plan_cache_forget_refusals(struct plan_cache *cache)
{
    for (size_t i = 0; i < PLAN_CACHE_REFUSALS; i++) {
        free(cache->refusals[i]);
        cache->refusals[i] = NULL;
    }
}

struct plan_entry *plan_cache_find(const struct plan_cache *cache, uint64_t signature)
{
    for (size_t i = 0; i < cache->count; i++) {
        if (cache->slots[i].signature == signature) {
            return cache->slots[i].entry;
        }
    }
    return NULL;
}

struct plan_entry *plan_cache_oldest(const struct plan_cache *cache,
                                     const struct plan_entry *active)
{
    struct plan_entry *oldest = NULL;

    for (size_t i = 0; i < cache->count; i++) {
        struct plan_entry *entry = cache->slots[i].entry;

        if (entry != active && (oldest == NULL || entry->used < oldest->used)) {
            oldest = entry;
        }
    }
    return oldest;
}

bool plan_cache_add(struct plan_cache *cache, struct plan_entry *entry)
{
    ASSERT_INTERNAL(plan_cache_find(cache, entry->guide->signature) == NULL);
    if (!array_reserve(&cache->slots, &cache->capacity, cache->count + 1, sizeof(*cache->slots))) {
        return false;
    }
    cache->slots[cache->count++] =
        (struct plan_slot){.signature = entry->guide->signature, .entry = entry};
    cache->bytes += plan_entry_bytes(entry);
    return true;
}

/* The slot of an entry. */
static size_t find_slot(const struct plan_cache *cache, const struct plan_entry *entry)
{
    size_t i = 0;

    while (cache->slots[i].entry != entry) {
        i++;
        ASSERT(i < cache->count);
    }
    return i;
}

void plan_cache_add_better(struct plan_cache *cache, struct plan_entry *entry,
                           struct plan_entry *better)
{
    uint64_t forgone_ns = entry->improvement.forgone_ns;

    ASSERT(better->better == NULL && better->feedback.predicted_ns < entry->feedback.predicted_ns);
    plan_cache_discard_better(cache, entry);
    cache->bytes += plan_entry_bytes(better);
    entry->better = better;
    entry->improvement = (struct improvement){.gain_ns = entry->feedback.predicted_ns -
                                                         better->feedback.predicted_ns,
                                              .forgone_ns = forgone_ns};
}

void plan_cache_discard_better(struct plan_cache *cache, struct plan_entry *entry)
{
    if (entry->better != NULL) {
        cache->bytes -= plan_entry_bytes(entry->better);
        plan_entry_destroy(entry->better);
        entry->better = NULL;
    }
    entry->improvement = (struct improvement){0};
}

struct plan_entry *plan_cache_promote(struct plan_cache *cache, struct plan_entry *entry)
{
    struct plan_entry *better = entry->better;
    size_t i = find_slot(cache, entry);

    ASSERT(better != NULL);
    entry->better = NULL;
    cache->bytes -= plan_entry_bytes(entry);
    better->stage = entry->stage + 1;
    plan_entry_destroy(entry);
    cache->slots[i].entry = better;
    return better;
}

void plan_cache_discard(struct plan_cache *cache, struct plan_entry *entry)
{
    size_t i = find_slot(cache, entry);

    cache->slots[i] = cache->slots[--cache->count];
    cache->bytes -= plan_entry_bytes(entry);
    plan_entry_destroy(entry);
}

void plan_cache_discard_wrong(struct plan_cache *cache)
{
    for (size_t i = cache->count; i-- > 0;) {
        if (cache->slots[i].entry->feedback.is_wrong) {
            plan_cache_discard(cache, cache->slots[i].entry);
        }
    }
}

const char *plan_cache_refusal(const struct plan_cache *cache, uint64_t signature)
{
    for (size_t i = 0; i < PLAN_CACHE_REFUSALS; i++) {
        const struct refusal *refusal = cache->refusals[i];

        if (refusal != NULL && refusal->signature == signature) {
            return refusal->text;
        }
    }
    return NULL;
}

void plan_cache_refuse(struct plan_cache *cache, uint64_t signature, const char *text)
{
    struct refusal **place = &cache->refusals[cache->refusal_count % PLAN_CACHE_REFUSALS];
    size_t length = strnlen(text, PLAN_CACHE_TEXT_BYTES - 1);
    struct refusal *refusal = malloc(sizeof(*refusal) + length + 1);

    if (refusal == NULL) {
        return;
    }
    refusal->signature = signature;
    memcpy(refusal->text, text, length);
    refusal->text[length] = '\0';
    names_mend(refusal->text); /* it goes into reports, and may have been cut in a character */
    free(*place);
    *place = refusal;
    cache->refusal_count++;
}
