/* Guides and refusals by label and signature, see plan_cache.h. */
#include "runtime/plan_cache.h"

#include "runtime/names.h"

#include <stdio.h>

void plan_cache_finish(struct plan_cache *cache)
{
    for (size_t i = 0; i < PLAN_CACHE_GUIDES; i++) {
        guide_destroy(cache->guides[i]);
    }
    *cache = (struct plan_cache){0};
}

struct guide *plan_cache_find(const struct plan_cache *cache, const char *label, uint64_t signature)
{
    for (size_t i = 0; i < PLAN_CACHE_GUIDES; i++) {
        struct guide *guide = cache->guides[i];

        if (guide != NULL && guide->label == label && guide->signature == signature) {
            return guide;
        }
    }
    return NULL;
}

void plan_cache_add(struct plan_cache *cache, struct guide *guide, const struct guide *in_force)
{
    struct guide **place = NULL;

    for (size_t i = 0; i < PLAN_CACHE_GUIDES; i++) {
        struct guide **at = &cache->guides[i];

        if (*at == NULL) {
            place = at;
            break;
        }
        if (*at != in_force && (place == NULL || (*at)->used < (*place)->used)) {
            place = at;
        }
    }
    guide_destroy(*place);
    *place = guide;
}

void plan_cache_discard(struct plan_cache *cache, struct guide *guide)
{
    for (size_t i = 0; i < PLAN_CACHE_GUIDES; i++) {
        if (cache->guides[i] == guide) {
            cache->guides[i] = NULL;
        }
    }
    guide_destroy(guide);
}

void plan_cache_discard_wrong(struct plan_cache *cache)
{
    for (size_t i = 0; i < PLAN_CACHE_GUIDES; i++) {
        if (cache->guides[i] != NULL && cache->guides[i]->is_wrong) {
            plan_cache_discard(cache, cache->guides[i]);
        }
    }
}

const char *plan_cache_refusal(const struct plan_cache *cache, const char *label,
                               uint64_t signature)
{
    for (size_t i = 0; i < PLAN_CACHE_REFUSALS; i++) {
        const struct refusal *refusal = &cache->refusals[i];

        if (refusal->label == label && refusal->signature == signature) {
            return refusal->text;
        }
    }
    return NULL;
}

void plan_cache_refuse(struct plan_cache *cache, const char *label, uint64_t signature,
                       const char *text)
{
    struct refusal *refusal = &cache->refusals[cache->refusal_count++ % PLAN_CACHE_REFUSALS];

    refusal->label = label;
    refusal->signature = signature;
    snprintf(refusal->text, sizeof(refusal->text), "%s", text);
    names_mend(refusal->text); /* it goes into reports */
}
