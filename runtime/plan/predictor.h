/*
 * The predictor: which iteration comes next under a label.
 *
 * Iterations are known by their signatures, of which the newest PREDICTOR_LENGTH are remembered.
 * The next one is predicted to be what followed the longest stretch of the past that equals the
 * present: shapes that take turns are predicted from their second turn on, whatever the period.
 *
 * Zeroed is empty. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_PREDICTOR_H
#define CAPU_RUNTIME_PREDICTOR_H

#include <stddef.h>
#include <stdint.h>

enum { PREDICTOR_LENGTH = 64 };

struct predictor {
    uint64_t signatures[PREDICTOR_LENGTH]; /* the oldest first */
    size_t count;
};

/* An iteration has ended. */
void predictor_add(struct predictor *predictor, uint64_t signature);

/* The signature of the newest iteration. Pre: there was one. */
uint64_t predictor_newest(const struct predictor *predictor);

/*
 * The signature of the iteration to come. Returns how many of the newest iterations also stand,
 * in this order, before an earlier one: the longest such stretch counts, and what followed it is
 * predicted. If several stretches are equally long, the most frequent signature that followed one
 * of them wins; of equally frequent ones, the latest. 0: the newest iteration is new, and
 * *signature is the most frequent one. Pre: there was an iteration.
 */
size_t predictor_predict(const struct predictor *predictor, uint64_t *signature);

#endif
