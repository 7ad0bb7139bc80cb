/* Guides and refusals by label and signature, see kept.h. */
#include "runtime/kept.h"

#include "runtime/names.h"

#include <stdio.h>

void kept_finish(struct kept *kept)
{
    for (size_t i = 0; i < KEPT_GUIDES; i++) {
        guide_destroy(kept->guides[i]);
    }
    *kept = (struct kept){0};
}

struct guide *kept_find(const struct kept *kept, const char *label, uint64_t signature)
{
    for (size_t i = 0; i < KEPT_GUIDES; i++) {
        struct guide *guide = kept->guides[i];

        if (guide != NULL && guide->label == label && guide->signature == signature) {
            return guide;
        }
    }
    return NULL;
}

void kept_add(struct kept *kept, struct guide *guide, const struct guide *in_force)
{
    struct guide **place = NULL;

    for (size_t i = 0; i < KEPT_GUIDES; i++) {
        struct guide **at = &kept->guides[i];

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

void kept_discard(struct kept *kept, struct guide *guide)
{
    for (size_t i = 0; i < KEPT_GUIDES; i++) {
        if (kept->guides[i] == guide) {
            kept->guides[i] = NULL;
        }
    }
    guide_destroy(guide);
}

void kept_discard_wrong(struct kept *kept)
{
    for (size_t i = 0; i < KEPT_GUIDES; i++) {
        if (kept->guides[i] != NULL && kept->guides[i]->is_wrong) {
            kept_discard(kept, kept->guides[i]);
        }
    }
}

const char *kept_refusal(const struct kept *kept, const char *label, uint64_t signature)
{
    for (size_t i = 0; i < KEPT_REFUSALS; i++) {
        const struct refusal *refusal = &kept->refusals[i];

        if (refusal->label == label && refusal->signature == signature) {
            return refusal->text;
        }
    }
    return NULL;
}

void kept_refuse(struct kept *kept, const char *label, uint64_t signature, const char *text)
{
    struct refusal *refusal = &kept->refusals[kept->refusal_count++ % KEPT_REFUSALS];

    refusal->label = label;
    refusal->signature = signature;
    snprintf(refusal->text, sizeof(refusal->text), "%s", text);
    names_mend(refusal->text); /* it goes into reports */
}
