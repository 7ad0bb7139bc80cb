/*
 * The instant when op k starts. Whatever the plan, each version of a tensor that is still to be
 * read is then on the device; or only on the host; or a replay after k makes it again, which needs
 * each input of its op in one of these states, too. docs/policy.md derives what that costs:
 *
 *   least O = O1 + O2 >= 0 with    bytes on the device          <= limit - operands of k
 *                                  copies out of what is on the host  <= time before k + O1
 *                                  copies in of what is on the host   <= time from k on + O2
 *                                  replays                            <= O2
 *
 * With prices a and b, each from 0 to 1, for a ns of the links before and after k, and the price of
 * a byte of memory that makes both states cost the same, every plan has
 *
 *   O >= cost of its states - price of the memory, of the time before k, and of the time after k
 *
 * where a replay costs 1 - b per ns. The least cost over all states is a minimum cut: ops on its
 * near side are replayed; versions that are needed, or that a replayed op reads, cost what is
 * cheaper, unless their op is replayed. This holds at any prices. The cost is a concave function of
 * the prices, so tangent planes find the best ones (Kelley's method).
 *
 * Each call owns its data.
 */
#include "policy/bound/replay_bound.h"

#include "policy/bound/max_flow.h"
#include "policy/model/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Cuts per bound. */
#define PLANES_MAX 40
/* Better prices are not looked for if they can gain at most this share of the ideal. */
#define GAIN_MIN 2e-4
/* Each removes a third of the range in which the best price is. */
#define NARROWINGS 36
/* What a version's node is if no replay has to pay for the version. */
#define NODE_PAID (MAX_FLOW_NONE - 1)

struct item {
    double bytes;
    double out_ns;   /* 0: the host has it from an earlier iteration */
    double in_ns;    /* 0: the next iteration fetches it */
    uint32_t reader; /* its node; NODE_PAID: needed in any case */
    uint32_t maker;  /* the node of its op; MAX_FLOW_NONE: cannot be replayed */
    uint32_t edge;   /* from reader to maker, if it has both */
};

struct edge {
    uint32_t from;
    uint32_t to;
};

struct network {
    const struct trace_index *trace_index;
    const struct trace *trace;
    const struct machine *machine;
    uint32_t cut;
    uint32_t tail; /* the op from which on replays cost nothing; UINT32_MAX: none */
    bool is_after; /* only the time from the cut on counts: that of copies out does not */

    /* A version is the operand that wrote it, or, if an earlier iteration did, operand_count plus
       its tensor. */
    uint32_t *source;  /* per operand of an op before the cut: the version it reads */
    uint32_t *made_by; /* likewise: its op */
    uint32_t *current; /* per tensor: its version at the cut */
    uint32_t *node_of_version;
    uint32_t *node_of_op;

    struct item *items;
    uint32_t item_count;
    uint32_t *ops; /* that may be replayed: by order of discovery */
    uint32_t op_count;
    struct edge *edges; /* from such an op to a version that it reads */
    uint32_t edge_count;
    double *replay_ns; /* per node; 0 for versions */
    bool *is_late;     /* per node: an op whose replay may be in the tail */
    uint32_t node_count;
    struct max_flow flow;

    double limit_bytes;
    double before_ns;
    double after_ns;
    double out_ns_per_byte;
    double in_ns_per_byte;
    double unit; /* flow per ns */
};

/* Where a plane is at prices a and b: base + a * out + b * in. */
struct plane {
    double base;
    double out;
    double in;
};

struct prices {
    double out; /* per ns of the link before the cut */
    double in;  /* after it */
};

static bool allocate_network(struct network *network)
{
    const struct trace *trace = network->trace;
    const struct trace_op *op = &trace->ops[network->cut];
    size_t before = (size_t)op->first + 1; /* operands */
    size_t tensors = (size_t)trace->tensor_count + 1;
    size_t versions = (size_t)trace->operand_count + tensors;
    size_t nodes = network->cut + before + tensors;

    network->source = malloc(before * sizeof(*network->source));
    network->made_by = malloc(before * sizeof(*network->made_by));
    network->current = malloc(tensors * sizeof(*network->current));
    network->node_of_version = malloc(versions * sizeof(*network->node_of_version));
    network->node_of_op = malloc(((size_t)network->cut + 1) * sizeof(*network->node_of_op));
    network->items = malloc((before + tensors) * sizeof(*network->items));
    network->ops = malloc(((size_t)network->cut + 1) * sizeof(*network->ops));
    network->edges = malloc(before * sizeof(*network->edges));
    network->replay_ns = calloc(nodes, sizeof(*network->replay_ns));
    network->is_late = calloc(nodes, sizeof(*network->is_late));
    if (network->source == NULL || network->made_by == NULL || network->current == NULL ||
        network->node_of_version == NULL || network->node_of_op == NULL || network->items == NULL ||
        network->ops == NULL || network->edges == NULL || network->replay_ns == NULL ||
        network->is_late == NULL) {
        return false;
    }
    memset(network->node_of_version, 0xff, versions * sizeof(*network->node_of_version));
    memset(network->node_of_op, 0xff, ((size_t)network->cut + 1) * sizeof(*network->node_of_op));
    return true;
}

static void finish_network(struct network *network)
{
    free(network->source);
    free(network->made_by);
    free(network->current);
    free(network->node_of_version);
    free(network->node_of_op);
    free(network->items);
    free(network->ops);
    free(network->edges);
    free(network->replay_ns);
    free(network->is_late);
    max_flow_finish(&network->flow);
}

static void follow_versions(struct network *network)
{
    const struct trace *trace = network->trace;

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        network->current[t] = trace->operand_count + t;
    }
    for (uint32_t k = 0; k < network->cut; k++) {
        const struct trace_op *op = &trace->ops[k];

        network->before_ns += (double)op->ns;
        for (uint32_t i = op->first; i < op->first + trace_operand_count(op); i++) {
            network->source[i] = network->current[trace->operands[i]];
            network->made_by[i] = k;
            if (i >= op->first + op->read_count) {
                network->current[trace->operands[i]] = i;
            }
        }
    }
    network->after_ns = (double)trace->total_ns - network->before_ns;
}

static uint32_t op_node(struct network *network, uint32_t op)
{
    if (network->node_of_op[op] == MAX_FLOW_NONE) {
        network->replay_ns[network->node_count] = (double)network->trace->ops[op].ns;
        network->node_of_op[op] = network->node_count++;
        network->ops[network->op_count++] = op;
    }
    return network->node_of_op[op];
}

static void add_item(struct network *network, uint32_t version, uint32_t reader, bool returns)
{
    const struct trace *trace = network->trace;
    const struct machine *machine = network->machine;
    bool is_made = version < trace->operand_count;
    uint32_t tensor = is_made ? trace->operands[version] : version - trace->operand_count;
    uint64_t bytes = trace->tensors[tensor].bytes;

    network->node_of_version[version] = reader;
    network->items[network->item_count++] =
        (struct item){.bytes = (double)network->trace_index->rounded[tensor],
                      .out_ns = is_made ? (double)clock_copy_ns(bytes, machine->d2h_bytes_per_s,
                                                                machine->copy_latency_ns)
                                        : 0.0,
                      .in_ns = returns ? (double)clock_copy_ns(bytes, machine->h2d_bytes_per_s,
                                                               machine->copy_latency_ns)
                                       : 0.0,
                      .reader = reader,
                      .maker = is_made && trace->ops[network->made_by[version]].replayable
                                   ? op_node(network, network->made_by[version])
                                   : MAX_FLOW_NONE,
                      .edge = MAX_FLOW_NONE};
}

/* The newest item is needed by that op. If that is in the tail, its replay may be there, too. */
static void mark_late(struct network *network, uint32_t op)
{
    const struct item *item = &network->items[network->item_count - 1];

    if (op >= network->tail && item->maker != MAX_FLOW_NONE) {
        network->is_late[item->maker] = true;
    }
}

/* What is needed in any case: for a later op, or, of persistent tensors, for the next iteration. */
static void add_needed(struct network *network)
{
    const struct trace *trace = network->trace;
    const struct trace_index *trace_index = network->trace_index;

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        uint32_t slot = trace_index->first[t];
        uint32_t end = trace_index->first[t + 1];
        uint32_t version = network->current[t];
        bool is_unread;

        while (slot < end && trace_index->op[slot] < network->cut) {
            slot++;
        }
        is_unread = slot == end || trace_index->role[slot] == USE_WRITE;
        if (trace_index->rounded[t] == 0) {
            network->node_of_version[version] = NODE_PAID;
        } else if (slot < end && trace_index->op[slot] == network->cut) {
            network->limit_bytes -= (double)trace_index->rounded[t];
            if (!is_unread) {
                network->node_of_version[version] = NODE_PAID;
            }
        } else if (!is_unread) {
            add_item(network, version, NODE_PAID, true);
            mark_late(network, trace_index->op[slot]);
        } else if (slot == end && trace->tensors[t].persistent && version < trace->operand_count) {
            add_item(network, version, NODE_PAID, false);
            mark_late(network, UINT32_MAX - 1);
        }
    }
}

/* What the ops that may be replayed read. */
static void add_inputs(struct network *network)
{
    const struct trace *trace = network->trace;

    for (uint32_t at = 0; at < network->op_count; at++) {
        const struct trace_op *op = &trace->ops[network->ops[at]];
        uint32_t node = network->node_of_op[network->ops[at]];

        for (uint32_t i = op->first; i < op->first + op->read_count; i++) {
            uint32_t version = network->source[i];

            if (network->trace_index->rounded[trace->operands[i]] == 0) {
                continue;
            }
            if (network->node_of_version[version] == MAX_FLOW_NONE) {
                add_item(network, version, network->node_count++, true);
            }
            if (network->node_of_version[version] != NODE_PAID) {
                network->edges[network->edge_count++] =
                    (struct edge){.from = node, .to = network->node_of_version[version]};
            }
        }
    }
}

/* What a late replay reads may be made again late, too; that costs nothing. */
static void free_late_replays(struct network *network)
{
    const struct trace *trace = network->trace;

    for (uint32_t k = network->cut; k-- > 0;) {
        const struct trace_op *op = &trace->ops[k];
        uint32_t node = network->node_of_op[k];

        if (node == MAX_FLOW_NONE || !network->is_late[node]) {
            continue;
        }
        network->replay_ns[node] = 0.0;
        for (uint32_t i = op->first; i < op->first + op->read_count; i++) {
            uint32_t version = network->source[i];
            uint32_t maker = version < trace->operand_count ? network->made_by[version] : 0;

            if (version < trace->operand_count && network->node_of_version[version] < NODE_PAID &&
                network->node_of_op[maker] != MAX_FLOW_NONE) {
                network->is_late[network->node_of_op[maker]] = true;
            }
        }
    }
}

/* Puts the edges between versions and ops first, so that their limits can be set by item. */
static capu_status build_flow(struct network *network)
{
    capu_status status = max_flow_init(&network->flow, network->node_count,
                                       network->edge_count + network->item_count);

    for (uint32_t i = 0; status == CAPU_OK && i < network->item_count; i++) {
        struct item *item = &network->items[i];

        if (item->reader != NODE_PAID && item->maker != MAX_FLOW_NONE) {
            item->edge = max_flow_add_edge(&network->flow, item->reader, item->maker);
        }
    }
    for (uint32_t i = 0; status == CAPU_OK && i < network->edge_count; i++) {
        max_flow_add_edge(&network->flow, network->edges[i].from, network->edges[i].to);
    }
    return status;
}

/* A price of memory at which a byte costs as much on the device as on the host. */
static double held_ns(const struct network *network, const struct item *item, struct prices prices)
{
    return item->bytes *
           (prices.out * network->out_ns_per_byte + prices.in * network->in_ns_per_byte);
}

static double hosted_ns(const struct item *item, struct prices prices)
{
    return prices.out * item->out_ns + prices.in * item->in_ns;
}

/* All that can be paid at the highest prices fits into the flow's integers. */
static void choose_unit(struct network *network)
{
    struct prices highest = {.out = 1.0, .in = 1.0};
    double sum = 1.0;

    for (uint32_t i = 0; i < network->item_count; i++) {
        sum += held_ns(network, &network->items[i], highest);
    }
    for (uint32_t i = 0; i < network->node_count; i++) {
        sum += network->replay_ns[i];
    }
    network->unit = (double)(MAX_FLOW_UNLIMITED / 4) / sum;
}

/* Sets the limits; the sum of what is paid whatever is replayed. */
static double set_prices(struct network *network, struct prices prices)
{
    struct max_flow *flow = &network->flow;
    double sum = 0.0;

    for (uint32_t i = 0; i < network->node_count; i++) {
        flow->enters[i] = 0;
        flow->leaves[i] = (int64_t)((1.0 - prices.in) * network->replay_ns[i] * network->unit);
    }
    for (uint32_t i = 0; i < flow->edge_count; i += 2) {
        max_flow_set_limit(flow, i, MAX_FLOW_UNLIMITED);
    }
    for (uint32_t i = 0; i < network->item_count; i++) {
        const struct item *item = &network->items[i];
        double ns = fmin(held_ns(network, item, prices), hosted_ns(item, prices));
        int64_t limit = (int64_t)(ns * network->unit);

        if (item->reader == NODE_PAID && item->maker == MAX_FLOW_NONE) {
            sum += ns;
        } else if (item->reader == NODE_PAID) {
            flow->enters[item->maker] += limit;
        } else if (item->maker == MAX_FLOW_NONE) {
            flow->leaves[item->reader] += limit;
        } else {
            max_flow_set_limit(flow, item->edge, limit);
        }
    }
    return sum;
}

/* What the cheapest states cost at other prices. */
static struct plane plane_of(const struct network *network, struct prices prices)
{
    const struct max_flow *flow = &network->flow;
    double replay_ns = 0.0;
    double held_bytes = -network->limit_bytes;
    double out_ns = -network->before_ns;
    double in_ns = -network->after_ns;

    for (uint32_t i = 0; i < network->node_count; i++) {
        replay_ns += max_flow_is_near(flow, i) ? network->replay_ns[i] : 0.0;
    }
    for (uint32_t i = 0; i < network->item_count; i++) {
        const struct item *item = &network->items[i];

        if ((item->reader != NODE_PAID && !max_flow_is_near(flow, item->reader)) ||
            (item->maker != MAX_FLOW_NONE && max_flow_is_near(flow, item->maker))) {
            continue;
        }
        if (held_ns(network, item, prices) <= hosted_ns(item, prices)) {
            held_bytes += item->bytes;
        } else {
            out_ns += item->out_ns;
            in_ns += item->in_ns;
        }
    }
    return (struct plane){.base = replay_ns,
                          .out = out_ns + held_bytes * network->out_ns_per_byte,
                          .in = in_ns - replay_ns + held_bytes * network->in_ns_per_byte};
}

/* The extra time that these prices prove, and the plane there. */
static double solve(struct network *network, struct prices prices, struct plane *plane)
{
    double paid_ns = set_prices(network, prices);
    double have_ns = prices.out * network->before_ns + prices.in * network->after_ns +
                     network->limit_bytes * (prices.out * network->out_ns_per_byte +
                                             prices.in * network->in_ns_per_byte);

    paid_ns += (double)max_flow_solve(&network->flow) / network->unit;
    *plane = plane_of(network, prices);
    /* Sums of doubles are not exact: stay below by more than they can be off. */
    return paid_ns - have_ns - 1e-9 * (paid_ns + have_ns);
}

static double lowest(const struct plane *planes, uint32_t count, struct prices prices)
{
    double value = INFINITY;

    for (uint32_t i = 0; i < count; i++) {
        value = fmin(value, planes[i].base + planes[i].out * prices.out + planes[i].in * prices.in);
    }
    return value;
}

/* The best price after the cut for a given one before it: the planes' minimum is concave. */
static double best_in(const struct plane *planes, uint32_t count, struct prices *prices)
{
    double low = 0.0;
    double high = 1.0;

    for (int i = 0; i < NARROWINGS; i++) {
        double third = (high - low) / 3.0;
        struct prices left = {.out = prices->out, .in = low + third};
        struct prices right = {.out = prices->out, .in = high - third};

        if (lowest(planes, count, left) < lowest(planes, count, right)) {
            low = left.in;
        } else {
            high = right.in;
        }
    }
    prices->in = high < 1.0 ? low : 1.0;
    return lowest(planes, count, *prices);
}

/* Where the planes' minimum is highest, and how high it is. */
static double best_prices(const struct plane *planes, uint32_t count, struct prices *prices)
{
    double low = 0.0;
    double high = 1.0;

    for (int i = 0; i < NARROWINGS; i++) {
        double third = (high - low) / 3.0;
        struct prices left = {.out = low + third};
        struct prices right = {.out = high - third};

        if (best_in(planes, count, &left) < best_in(planes, count, &right)) {
            low = left.out;
        } else {
            high = right.out;
        }
    }
    prices->out = high < 1.0 ? low : 1.0;
    return best_in(planes, count, prices);
}

/* The most extra time that any prices prove, if that is more than `least`. */
static double search_prices(struct network *network, double least)
{
    struct plane planes[PLANES_MAX];
    struct prices prices = {.out = network->is_after ? 0.0 : 1.0,
                            .in = network->is_after ? 0.5 : 0.0};
    double gain_min = GAIN_MIN * (double)network->trace->total_ns;
    double best = least;

    for (uint32_t count = 0; count < PLANES_MAX; count++) {
        double extra = solve(network, prices, &planes[count]);
        double most;

        best = fmax(best, extra);
        most = network->is_after ? best_in(planes, count + 1, &prices)
                                 : best_prices(planes, count + 1, &prices);
        if (most < best + gain_min) {
            break;
        }
    }
    return best;
}

/* The most extra time, the tail's included, if that is more than `least`. */
static double extra_at(const struct replay_bound_request *request, bool is_after, double least)
{
    const struct trace_index *trace_index = request->trace_index;
    const struct machine *machine = request->machine;
    bool has_tail = request->tail_ns > 0 && request->tail > request->cut;
    double tail_ns = has_tail ? (double)request->tail_ns : 0.0;
    double extra = least;
    struct network network = {
        .trace_index = trace_index,
        .trace = trace_index->trace,
        .machine = machine,
        .cut = request->cut,
        .tail = has_tail ? request->tail : UINT32_MAX,
        .is_after = is_after,
        .limit_bytes = (double)request->budget_bytes - (double)trace_index->fixed_bytes,
        .out_ns_per_byte = 1e9 / (double)machine->d2h_bytes_per_s,
        .in_ns_per_byte = 1e9 / (double)machine->h2d_bytes_per_s,
    };

    if (allocate_network(&network)) {
        follow_versions(&network);
        add_needed(&network);
        add_inputs(&network);
        free_late_replays(&network);
        network.after_ns += tail_ns;
        if (build_flow(&network) == CAPU_OK) {
            choose_unit(&network);
            extra = tail_ns + search_prices(&network, least - tail_ns);
        }
    }
    finish_network(&network);
    return extra < 1e18 ? extra : least;
}

uint64_t replay_bound(const struct replay_bound_request *request, uint64_t least_ns)
{
    uint64_t total_ns = request->trace_index->trace->total_ns;
    double least = (double)(least_ns - total_ns);
    double extra = extra_at(request, false, least);

    return extra > least ? total_ns + (uint64_t)extra : least_ns;
}

uint64_t replay_bound_after(const struct replay_bound_request *request)
{
    return (uint64_t)extra_at(request, true, 0.0);
}
