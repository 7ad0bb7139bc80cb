/*
 * A network whose ops take fixed times, trained on several ranks: each computes gradients of its
 * own inputs, adds them up over all ranks, and updates its weights, which stay the same on all of
 * them.
 */
#ifndef CAPU_BENCH_PARALLEL_NETWORK_H
#define CAPU_BENCH_PARALLEL_NETWORK_H

#include "capuchin/parallel.h"
#include "policy/format/report.h"

#include <stddef.h>
#include <stdint.h>

enum { NETWORK_LAYERS = 12, NETWORK_FLOATS = 1 << 18, NETWORK_WEIGHT_FLOATS = 1 << 17 };

struct network {
    capu_context *context;
    capu_parallel *group;
    uint64_t seed; /* of the inputs, a different one on each rank */
    float *weights[NETWORK_LAYERS];
    float *weight_gradients[NETWORK_LAYERS];
    float *outputs[NETWORK_LAYERS + 1]; /* inputs of the layers, and the output of the last one */
    float *gradients[2];
};

/* The rate of both links with which half of the activations can leave during the forward pass. */
uint64_t network_link_bytes_per_s(void);

/* Together. Creates the context and joins the others. Ends the program on errors, as all do here.
 */
void network_start(struct network *network, capu_mode mode, uint64_t budget_bytes);
void network_finish(struct network *network);

/* Together. Runs one iteration, waits for it, and returns its report. */
struct report network_iterate(struct network *network, uint64_t number);

/* The weights of all layers, one after the other. */
void network_weights(struct network *network, float *weights);

#endif
