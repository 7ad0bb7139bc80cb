/* Which signature comes next, see predictor.h. */
#include "runtime/predictor.h"

#include <string.h>

/* The label's place, or the one that makes way for it. */
static struct predictor *place_of(struct predictors *predictors, const char *label)
{
    struct predictor *oldest = &predictors->list[0];

    for (size_t i = 0; i < PREDICTOR_LABELS; i++) {
        struct predictor *predictor = &predictors->list[i];

        if (predictor->label == label) {
            return predictor;
        }
        oldest = predictor->iteration < oldest->iteration ? predictor : oldest;
    }
    *oldest = (struct predictor){.label = label};
    return oldest;
}

void predictor_add(struct predictors *predictors, const char *label, uint64_t iteration,
                   uint64_t signature)
{
    struct predictor *predictor = place_of(predictors, label);

    predictor->iteration = iteration;
    if (predictor->count == PREDICTOR_LENGTH) {
        memmove(predictor->signatures, predictor->signatures + 1,
                (PREDICTOR_LENGTH - 1) * sizeof(predictor->signatures[0]));
        predictor->count--;
    }
    predictor->signatures[predictor->count++] = signature;
}

const struct predictor *predictor_find(const struct predictors *predictors, const char *label)
{
    for (size_t i = 0; i < PREDICTOR_LABELS; i++) {
        if (predictors->list[i].label == label) {
            return &predictors->list[i];
        }
    }
    return NULL;
}

uint64_t predictor_newest(const struct predictor *predictor)
{
    return predictor->signatures[predictor->count - 1];
}

/* How much of the history before `end` is like its newest part. */
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
