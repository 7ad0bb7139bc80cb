/* Random traces. The shape is that of training, the details are whatever the seed says. */
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

static uint32_t add_tensor(struct making *making, enum tensor_kind kind)
{
    char name[16];
    struct tensor_description description = {
        .name = name,
        .bytes = 1 + draw(making, 1000),
        .kind = kind,
        .unmanaged = draw(making, 20) == 0,
        .hint = draw(making, 8) == 0 ? (enum tensor_hint)draw(making, HINT_COUNT) : HINT_NONE};
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

/* Something to read: lately made in forward, from anywhere in backward. */
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
    /* Now and then an old tensor is overwritten instead of a new one made. */
    write = draw(making, 10) == 0 && making->made_count > 0
                ? making->made[draw(making, making->made_count)]
                : add_tensor(making, is_backward ? TENSOR_GRADIENT : TENSOR_ACTIVATION);
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
            add_tensor(&making, draw(&making, 3) == 0 ? TENSOR_OPTIMIZER : TENSOR_PARAMETER);
    }
    for (uint32_t i = 0; i < ops; i++) {
        add_op(&making, i * 2 >= ops);
    }
}
