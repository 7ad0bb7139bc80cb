/* A small training loop in mode guided, for tests of what plans do to it. */
#ifndef CAPU_TESTS_API_NET_H
#define CAPU_TESTS_API_NET_H

#include "tests/api/steps.h"

#include "device/adaptor_count.h"

enum { NET_LAYERS = 8, NET_LAYER_PAGES = 4 };

/* Forward and backward over layers of activations that do not fit all together. */
struct net {
    struct rig rig;
    unsigned char *weights;
    unsigned char *gradients;
    unsigned char *activations[NET_LAYERS + 1];
    unsigned char step;
};

/* The first NET_TIMED iterations have their ops timed; after NET_WARM all is steady. */
enum { NET_TIMED = 8, NET_WARM = 10 };

/* Mode guided, each plan waited for; with no budget given, one of 24 pages. */
void net_init(struct net *net, struct rig_options options);

/* Begins an iteration, with another number in it. */
void net_begin(struct net *net, const char *label);

/* Each of so many layers is the one before plus 1. */
void net_forward(struct net *net, size_t layers);

/* Reads them in reverse order into the gradients, and adds 1 to the weights. */
void net_backward(struct net *net, size_t layers);

/* Ends an iteration and gives its report. */
capu_report net_end(struct net *net);

/* All of that; the gradients are checked. */
capu_report net_train(struct net *net, const char *label);

/* Fails the test unless the iteration was guided to its end. */
void net_expect_guided(struct net *net, const capu_report *report, const char *label);

/* How often the device was called. */
uint64_t net_calls(const struct adaptor_counts *counts, enum adaptor_slot slot);

#endif
