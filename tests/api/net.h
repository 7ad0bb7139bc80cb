/* A small training loop in guided mode, for tests of what plans do to it. */
#ifndef CAPU_TESTS_API_NET_H
#define CAPU_TESTS_API_NET_H

#include "tests/api/steps.h"

#include "tests/support/adaptor_count.h"

enum { NET_LAYERS = 8, NET_LAYER_PAGES = 4 };

/* Forward and backward over layers whose activations do not all fit the budget. */
struct net {
    struct rig rig;
    unsigned char *weights;
    unsigned char *gradients;
    unsigned char *activations[NET_LAYERS + 1];
    unsigned char step;
};

/* The ops of the first NET_TIMED iterations are timed; after NET_WARM the plan is steady. */
enum { NET_TIMED = 8, NET_WARM = 10 };

/* Creates a context in guided mode that waits for each plan. The default budget is 24 pages. */
void net_init(struct net *net, struct rig_options options);

/* Begins an iteration; each works on a different number. */
void net_begin(struct net *net, const char *label);

/* Computes the first `layers` layers; each is the one before plus 1. */
void net_forward(struct net *net, size_t layers);

/* Reads the layers in reverse order into the gradients, and adds 1 to the weights. */
void net_backward(struct net *net, size_t layers);

/* Ends an iteration, waits for it and returns its report. */
struct report net_end(struct net *net);

/* A whole iteration, which checks the gradients. */
struct report net_train(struct net *net, const char *label);

/* Fails the test unless the iteration followed its plan to the end. */
void net_expect_guided(struct net *net, const struct report *report, const char *label);

/* How often a function of the device was called. */
uint64_t net_calls(const struct adaptor_counts *counts, enum adaptor_slot slot);

#endif
