/* Which signature comes next, see predictor.h. */
#include "runtime/plan/predictor.h"

#include "base/assert.h"

#include <string.h>

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
