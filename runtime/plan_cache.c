/* Guides and refusals by signature, see plan_cache.h. */
#include "runtime/plan_cache.h"

#include "runtime/names.h"

#include <stdlib.h>
#include <string.h>

/* An iteration for which no plan was found. */
struct refusal {
    uint64_t signature;
    char text[];
};

void plan_cache_finish(struct plan_cache *cache)
{
    for (size_t i = 0; i < cache->guide_count; i++) {
        guide_destroy(cache->guides[i]);
    }
    for (size_t i = 0; i < PLAN_CACHE_REFUSALS; i++) {
        free(cache->refusals[i]);
    }
    *cache = (struct plan_cache){0};
}

struct guide *plan_cache_find(const struct plan_cache *cache, uint64_t signature)
{
    for (size_t i = 0; i < cache->guide_count; i++) {
        if (cache->guides[i]->signature == signature) {
            return cache->guides[i];
        }
    }
    return NULL;
}

struct guide *plan_cache_oldest(const struct plan_cache *cache, const struct guide *active)
{
    struct guide *oldest = NULL;

    for (size_t i = 0; i < cache->guide_count; i++) {
        struct guide *guide = cache->guides[i];

        if (guide != active && (oldest == NULL || guide->used < oldest->used)) {
            oldest = guide;
        }
    }
    return oldest;
}

void plan_cache_add(struct plan_cache *cache, struct guide *guide)
{
    cache->guides[cache->guide_count++] = guide;
}

void plan_cache_discard(struct plan_cache *cache, struct guide *guide)
{
    size_t i = 0;

    while (cache->guides[i] != guide) {
        i++;
    }
    cache->guides[i] = cache->guides[--cache->guide_count];
    guide_destroy(guide);
}

void plan_cache_discard_wrong(struct plan_cache *cache)
{
    for (size_t i = cache->guide_count; i-- > 0;) {
        if (cache->guides[i]->is_wrong) {
            plan_cache_discard(cache, cache->guides[i]);
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
