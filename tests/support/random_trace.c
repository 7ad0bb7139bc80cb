/* Random traces. The structure is that of training; the details depend on the seed. */
#include "tests/support/random_trace.h"

#include <check.h>

#include <stdio.h>

#define READS_MAX 4
#define MADE_MAX 512

struct making {
    struct trace *trace;
    uint64_t state;
    uint32_t parameters[16];
    uint32_t parameter_count;
    uint32_t made[MADE_MAX]; /* transients written so far */
    uint32_t made_count;
};

uint64_t random_below(uint64_t *state, uint64_t below)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return ((*state * 0x2545F4914F6CDD1Du) >> 20) % below;
}

static uint64_t draw(struct making *making, uint64_t below)
{
    return random_below(&making->state, below);
}

static uint32_t add_tensor(struct making *making, capu_kind kind)
{
    char name[16];
    struct tensor_description description = {
        .name = name,
        .bytes = 1 + draw(making, 1000),
        .kind = kind,
        .unmanaged = draw(making, 20) == 0,
        .hint = draw(making, 8) == 0 ? (capu_hint)draw(making, TRACE_HINTS) : CAPU_HINT_NONE};
    uint32_t id;

    snprintf(name, sizeof(name), "t%u", making->trace->tensor_count);
    ck_assert_int_eq(trace_add_tensor(making->trace, &description, &id, NULL), CAPU_OK);
    return id;
}

static bool has(const uint32_t *list, size_t count, uint32_t tensor)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == tensor) {
            return true;
        }
    }
    return false;
}

/* A tensor to read: in forward one that was written recently, in backward any. */
static uint32_t pick(struct making *making, bool is_backward)
{
    uint32_t reach = is_backward || making->made_count < 4 ? making->made_count : 4;

    if (making->made_count == 0 || draw(making, 4) == 0) {
        return making->parameters[draw(making, making->parameter_count)];
    }
    return making->made[making->made_count - 1 - draw(making, reach)];
}

static void add_op(struct making *making, bool is_backward)
{
    uint32_t reads[READS_MAX];
    uint32_t write;
    uint32_t update;
    char segment[16];
    struct op_description description = {
        .name = is_backward ? "b" : "f", .ns = draw(making, 2000), .reads = reads};

    for (uint64_t i = 1 + draw(making, READS_MAX - 1); i > 0; i--) {
        uint32_t tensor = pick(making, is_backward);

        if (!has(reads, description.read_count, tensor)) {
            reads[description.read_count++] = tensor;
        }
    }
    update = pick(making, is_backward);
    if (draw(making, is_backward ? 3 : 10) == 0 && !has(reads, description.read_count, update)) {
        description.updates = &update;
        description.update_count = 1;
    }
    /* Sometimes an old tensor is overwritten instead of writing a new one. */
    write = draw(making, 10) == 0 && making->made_count > 0
                ? making->made[draw(making, making->made_count)]
                : add_tensor(making, is_backward ? CAPU_GRADIENT : CAPU_ACTIVATION);
    if (!has(reads, description.read_count, write) &&
        (description.update_count == 0 || write != update)) {
        description.writes = &write;
        description.write_count = 1;
        if (making->made_count < MADE_MAX && !has(making->made, making->made_count, write)) {
            making->made[making->made_count++] = write;
        }
    }
    description.replayable = description.update_count == 0 && draw(making, 8) != 0;
    if (!is_backward && draw(making, 2) == 0) {
        snprintf(segment, sizeof(segment), "s%u", making->trace->op_count / 4);
        description.segment = segment;
    }
    ck_assert_int_eq(trace_add_op(making->trace, &description, NULL), CAPU_OK);
}

void random_trace(struct trace *trace, uint64_t seed, uint32_t ops)
{
    struct making making = {.trace = trace, .state = seed * 0x9E3779B97F4A7C15u + 1};
    struct machine machine = {.name = "random", .memory_bytes = 1000000};

    machine.d2h_bytes_per_s = (uint64_t)100000000 << draw(&making, 6);
    machine.h2d_bytes_per_s = (uint64_t)100000000 << draw(&making, 6);
    machine.copy_latency_ns = draw(&making, 50);
    ck_assert_int_eq(trace_init(trace, "random", NULL), CAPU_OK);
    ck_assert_int_eq(trace_set_machine(trace, &machine, NULL), CAPU_OK);
    for (uint64_t i = 1 + draw(&making, 8); i > 0; i--) {
        making.parameters[making.parameter_count++] =
            add_tensor(&making, draw(&making, 3) == 0 ? CAPU_OPTIMIZER : CAPU_PARAMETER);
    }
    for (uint32_t i = 0; i < ops; i++) {
        add_op(&making, i * 2 >= ops);
    }
}

/* The traits that random_trace lacks. The seed turns each of them on or off, so that a trace can
   also have only one kind of tensor. */
struct odd {
    struct making making;
    uint64_t bytes_most;
    uint64_t ns_most;
    bool has_empty; /* tensors of 0 bytes */
    bool is_even;   /* all tensors of one size */
    bool has_unmanaged;
    bool has_transient;
    bool has_persistent;
    bool is_replayable; /* every op that can be replayable is */
    bool has_hints;
    uint32_t known[MADE_MAX]; /* tensors that can be read */
    uint32_t known_count;
};

static bool is_odd(struct odd *odd, uint64_t one_in)
{
    return draw(&odd->making, one_in) == 0;
}

static uint32_t add_odd_tensor(struct odd *odd)
{
    static const capu_kind transients[] = {CAPU_GRADIENT, CAPU_ACTIVATION, CAPU_WORKSPACE,
                                           CAPU_INPUT};
    struct tensor_description description = {.name = "",
                                             .kind = transients[draw(&odd->making, 4)],
                                             .bytes = 1 + draw(&odd->making, odd->bytes_most)};
    uint32_t id;

    if (odd->is_even) {
        description.bytes = odd->bytes_most;
    }
    if (odd->has_empty && is_odd(odd, 3)) {
        description.bytes = 0;
    }
    if (is_odd(odd, 40)) {
        description.bytes = odd->bytes_most * 8;
    }
    description.unmanaged = odd->has_unmanaged && is_odd(odd, 3);
    if (odd->has_persistent && (!odd->has_transient || is_odd(odd, 4))) {
        description.persistent = true;
        description.kind = (capu_kind)(CAPU_PARAMETER + draw(&odd->making, TRACE_KINDS - 1));
    }
    if (odd->has_hints) {
        description.hint = (capu_hint)draw(&odd->making, TRACE_HINTS);
    }
    ck_assert_int_eq(trace_add_tensor(odd->making.trace, &description, &id, NULL), CAPU_OK);
    if (odd->making.trace->tensors[id].persistent && odd->known_count < MADE_MAX) {
        odd->known[odd->known_count++] = id;
    }
    return id;
}

/* Lists up to `most` tensors that the op does not name yet. Writes may create new tensors. */
static size_t list_odd(struct odd *odd, uint32_t *list, size_t most, const uint8_t *is_named,
                       bool is_write)
{
    size_t count = 0;

    for (uint64_t i = draw(&odd->making, most + 1); i > 0; i--) {
        bool is_new = is_write && (odd->known_count == 0 || !is_odd(odd, 4));
        uint32_t reach = odd->known_count > 6 && !is_odd(odd, 3) ? 6 : odd->known_count;
        uint32_t tensor;

        if (!is_new && odd->known_count == 0) {
            break;
        }
        tensor = is_new ? add_odd_tensor(odd)
                        : odd->known[odd->known_count - 1 - draw(&odd->making, reach)];
        if (!is_named[tensor] && !has(list, count, tensor)) {
            list[count++] = tensor;
        }
    }
    return count;
}

static void add_odd_op(struct odd *odd)
{
    struct trace *trace = odd->making.trace;
    uint32_t lists[3][READS_MAX];
    uint8_t is_named[4096] = {0};
    char segment[16];
    struct op_description description = {.name = "",
                                         .ns = draw(&odd->making, odd->ns_most + 1),
                                         .reads = lists[0],
                                         .writes = lists[1],
                                         .updates = lists[2]};

    description.read_count = list_odd(odd, lists[0], READS_MAX, is_named, false);
    for (size_t i = 0; i < description.read_count; i++) {
        is_named[lists[0][i]] = 1;
    }
    if (is_odd(odd, 4)) {
        description.update_count = list_odd(odd, lists[2], 2, is_named, false);
    }
    for (size_t i = 0; i < description.update_count; i++) {
        is_named[lists[2][i]] = 1;
    }
    description.write_count = list_odd(odd, lists[1], 3, is_named, true);
    description.replayable =
        description.update_count == 0 && (odd->is_replayable || is_odd(odd, 2));
    if (odd->has_hints && is_odd(odd, 2)) {
        snprintf(segment, sizeof(segment), "s%u", trace->op_count / 5);
        description.segment = segment;
    }
    ck_assert_int_eq(trace_add_op(trace, &description, NULL), CAPU_OK);
    for (size_t i = 0; i < description.write_count; i++) {
        if (odd->known_count < MADE_MAX && !has(odd->known, odd->known_count, lists[1][i])) {
            odd->known[odd->known_count++] = lists[1][i];
        }
    }
}

static uint64_t odd_rate(struct odd *odd)
{
    static const uint64_t rates[] = {TRACE_RATE_MIN, 1000000000, 32000000000, TRACE_RATE_MAX};

    return rates[draw(&odd->making, 4)];
}

void random_odd_trace(struct trace *trace, uint64_t seed, uint32_t ops)
{
    static const uint64_t latencies[] = {0, 1, 10000, (uint64_t)1 << 40};
    struct odd odd = {.making = {.trace = trace, .state = seed * 0x9E3779B97F4A7C15u + 5}};
    struct machine machine = {.name = "odd"};

    machine.d2h_bytes_per_s = odd_rate(&odd);
    machine.h2d_bytes_per_s = odd_rate(&odd);
    machine.copy_latency_ns = latencies[draw(&odd.making, 4)];
    odd.bytes_most = (uint64_t)1 << draw(&odd.making, 40);
    odd.ns_most = is_odd(&odd, 6) ? 0 : (uint64_t)1 << draw(&odd.making, 40);
    odd.has_empty = is_odd(&odd, 3);
    odd.is_even = is_odd(&odd, 3);
    odd.has_unmanaged = is_odd(&odd, 3);
    odd.has_transient = !is_odd(&odd, 8);
    odd.has_persistent = !odd.has_transient || !is_odd(&odd, 8);
    odd.is_replayable = is_odd(&odd, 2);
    odd.has_hints = is_odd(&odd, 2);
    ck_assert_int_eq(trace_init(trace, "odd", NULL), CAPU_OK);
    ck_assert_int_eq(trace_set_machine(trace, &machine, NULL), CAPU_OK);
    for (uint64_t i = draw(&odd.making, 6); i > 0; i--) {
        add_odd_tensor(&odd);
    }
    for (uint32_t i = 0; i < ops; i++) {
        add_odd_op(&odd);
    }
}
