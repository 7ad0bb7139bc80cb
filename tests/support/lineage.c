/* What can be recomputed, see lineage.h. */
#include "tests/support/lineage.h"

#include <check.h>

void lineage_write(struct lineage *to, bool is_replayable, struct lineage *const *sources,
                   size_t count)
{
    if (count > LINEAGE_SOURCES) { /* a Check assertion is a system call: avoid one per op */
        ck_abort_msg("%zu sources", count);
    }
    for (size_t i = 0; i < count; i++) {
        to->sources[i] =
            (struct lineage_source){.from = sources[i], .version = sources[i]->version};
    }
    to->source_count = count;
    to->is_replayable = is_replayable;
    to->version++;
}

void lineage_tie(struct lineage *to, struct lineage *other)
{
    if (to->source_count == LINEAGE_SOURCES) {
        ck_abort_msg("too many outputs");
    }
    to->sources[to->source_count++] =
        (struct lineage_source){.from = other, .version = other->version, .is_output = true};
}

void lineage_turn(struct lineage *lineage)
{
    lineage->is_replayable = false;
    lineage->source_count = 0;
    lineage->version++;
}

/* Each lineage answers a question once, so that shared sources are not followed again and again. A
   source is older than what is made from it, so there are no cycles. */
static bool is_safe(struct lineage *lineage, uint64_t question)
{
    if (lineage->asked != question) {
        bool answer = lineage->is_replayable;

        for (size_t i = 0; i < lineage->source_count && answer; i++) {
            const struct lineage_source *source = &lineage->sources[i];

            answer = source->from->version == source->version &&
                     (source->is_output || is_safe(source->from, question));
        }
        lineage->asked = question;
        lineage->is_safe = answer || lineage->is_held;
    }
    return lineage->is_safe;
}

bool lineage_is_safe(struct lineage *lineage)
{
    static _Thread_local uint64_t questions;

    return is_safe(lineage, ++questions);
}
