/* Reads Fashion-MNIST: gzipped files in the format of MNIST. */
#ifndef CAPU_EXAMPLES_TRAIN_FASHION_FASHION_DATA_H
#define CAPU_EXAMPLES_TRAIN_FASHION_FASHION_DATA_H

#include "kernels/element.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FASHION_SIDE 28u
#define FASHION_PIXELS (FASHION_SIDE * FASHION_SIDE)
#define FASHION_CLASSES 10u

struct fashion_set {
    size_t count;
    uint8_t *images; /* count x FASHION_PIXELS */
    uint8_t *labels; /* count, each below FASHION_CLASSES */
};

/*
 * Reads the set "train" or "t10k" from `folder`. False: an error that names the file has been
 * printed. Finish the set in either case.
 */
bool fashion_set_read(struct fashion_set *set, const char *folder, const char *name);
void fashion_set_finish(struct fashion_set *set);

/* The normalised pixels, of the element type, and the labels of the images `order[0..count)`. */
void fashion_set_batch(const struct fashion_set *set, const uint32_t *order, size_t count,
                       enum element element, void *pixels, int32_t *labels);

#endif
