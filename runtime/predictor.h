/*
 * What iterations were, and what the next one will be.
 *
 * Iterations of one label are known by their signatures; the newest PREDICTOR_LENGTH of each of the
 * PREDICTOR_LABELS labels used last are kept. What comes next is what followed the longest stretch
 * of the history that ends like the present: shapes that come in turn find their plans so, whatever
 * the period, from the second time on.
 *
 * Zeroed is empty. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_PREDICTOR_H
#define CAPU_RUNTIME_PREDICTOR_H

#include <stddef.h>
#include <stdint.h>

enum { PREDICTOR_LENGTH = 64, PREDICTOR_LABELS = 16 };

struct predictor {
    const char *label;  /* interned; NULL: unused */
    uint64_t iteration; /* of its newest signature */
    uint64_t signatures[PREDICTOR_LENGTH];
    size_t count; /* > 0 unless it is unused */
};

struct predictors {
    struct predictor list[PREDICTOR_LABELS];
};

/* An iteration has ended. The label least recently used makes way for a new one. */
void predictor_add(struct predictors *predictors, const char *label, uint64_t iteration,
                   uint64_t signature);

/* NULL: there was no iteration of this label. */
const struct predictor *predictor_find(const struct predictors *predictors, const char *label);

/* The signature of the newest iteration. */
uint64_t predictor_newest(const struct predictor *predictor);

/*
 * The signature of the iteration to come; returns how many iterations before it were like a stretch
 * of the history, the longest there is. Where several are that long, they vote by how often what
 * followed them came at all. 0: after something new, and *signature is what came most often. Of
 * what came equally often, the latest.
 */
size_t predictor_predict(const struct predictor *predictor, uint64_t *signature);

#endif
