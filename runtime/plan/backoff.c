/* Pauses of guided mode, see backoff.h. */
#include "runtime/plan/backoff.h"

#include "base/assert.h"

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
