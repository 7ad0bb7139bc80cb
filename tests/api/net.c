/* A training loop in guided mode, see net.h. */
#include "tests/api/net.h"

#include "runtime/plan/planning.h"

void net_init(struct net *net, struct rig_options options)
{
    options.mode = CAPU_MODE_GUIDED;
    options.wait_for_plan = true;
    options.budget_pages = options.budget_pages > 0 ? options.budget_pages : 24;
    *net = (struct net){0};
    rig_init(&net->rig, &options);
    net->weights = step_tensor(&net->rig, "weights", CAPU_PARAMETER, NET_LAYER_PAGES);
    net->gradients = step_tensor(&net->rig, "gradients", CAPU_GRADIENT, NET_LAYER_PAGES);
    for (size_t i = 0; i <= NET_LAYERS; i++) {
        net->activations[i] =
            step_tensor(&net->rig, "activation", CAPU_ACTIVATION, NET_LAYER_PAGES);
    }
    step_set(&net->rig, net->weights, PAGES(NET_LAYER_PAGES), 1);
}

void net_forward(struct net *net, size_t layers)
{
    step_set(&net->rig, net->activations[0], PAGES(NET_LAYER_PAGES), net->step);
    for (size_t i = 0; i < layers; i++) {
        step_next(&net->rig, "forward", net->activations[i + 1], net->activations[i],
                  PAGES(NET_LAYER_PAGES));
    }
}

void net_backward(struct net *net, size_t layers)
{
    for (size_t i = layers; i-- > 0;) {
        step_next(&net->rig, "backward", net->gradients, net->activations[i],
                  PAGES(NET_LAYER_PAGES));
    }
    step_bump(&net->rig, "update", net->weights, PAGES(NET_LAYER_PAGES));
}

void net_begin(struct net *net, const char *label)
{
    net->step++;
    RIG_OK(&net->rig, capu_iteration_begin(net->rig.context, label));
}

struct report net_end(struct net *net)
{
    struct report report = {0};

    RIG_OK(&net->rig, capu_iteration_end(net->rig.context));
    RIG_OK(&net->rig, capu_synchronize(net->rig.context));
    report = rig_report(&net->rig);
    rig_check(&net->rig);
    return report;
}

struct report net_train(struct net *net, const char *label)
{
    net_begin(net, label);
    net_forward(net, NET_LAYERS);
    net_backward(net, NET_LAYERS);
    step_expect(&net->rig, net->gradients, PAGES(NET_LAYER_PAGES), (unsigned char)(net->step + 1));
    return net_end(net);
}

/* Checks the byte counters against the list of evictions: a tensor that was copied out, even ahead
   of time, left by a swap; every other one was dropped without a copy. */
static void expect_balance(const struct report *report)
{
    uint64_t swapped = 0;
    uint64_t dropped = 0;

    for (size_t i = 0; i < report->eviction_count; i++) {
        bool is_swap = report->evictions[i].method == CAPU_METHOD_SWAP;

        *(is_swap ? &swapped : &dropped) += report->evictions[i].bytes;
    }
    ck_assert_uint_eq(swapped, report->evicted_bytes);
    ck_assert_uint_eq(dropped, report->dropped_bytes);
}

void net_expect_guided(struct net *net, const struct report *report, const char *label)
{
    ck_assert_msg(report->mode == CAPU_MODE_GUIDED && report->diverged == 0,
                  "iteration %llu: mode %u, diverged %llu, at op %llu: %s",
                  (unsigned long long)report->iteration, report->mode,
                  (unsigned long long)report->diverged, (unsigned long long)report->diverged_at,
                  planning_error(&net->rig.context->plans, label));
    expect_balance(report);
}

uint64_t net_calls(const struct adaptor_counts *counts, enum adaptor_slot slot)
{
    return counts->slots[slot].calls;
}
