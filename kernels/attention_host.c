/*
 * attention on the host. A tile is one head of one sequence: heads are independent of each other,
 * so tiles never add into the same place.
 *
 * Causality is in the softmax alone. Products run over whole squares, because one large product is
 * faster than many small ones; above the diagonal they multiply zeros, so the softmax and its
 * backward pass must leave zeros there.
 */
#include "kernels/attention.h"

#include "kernels/copies.h"
#include "kernels/exponential.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "kernels/reduce.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { QUERY = 0, KEY = 1, VALUE = 2, PARTS = 3 };

/* A buffer or its fp32 copy: tiles only see fp32. */
static float *floats(const void *buffer)
{
    return (float *)buffer;
}

static size_t part_items(const struct attention *attention)
{
    return (size_t)attention->batch * attention->heads * attention->length *
           attention->head_channels;
}

/* The first of the head's rows in part `part`, or in mixed (part 0). */
static size_t head_start(const struct attention *attention, size_t part, size_t tile)
{
    return part * part_items(attention) +
           tile * attention->length * (size_t)attention->head_channels;
}

static size_t square_start(const struct attention *attention, size_t tile)
{
    return tile * attention->length * (size_t)attention->length;
}

/* Row `t` of the head in a buffer whose rows hold `groups` x heads x head_channels items. */
static size_t row_start(const struct attention *attention, size_t tile, size_t t, size_t groups,
                        size_t group)
{
    size_t row = tile / attention->heads * attention->length + t;

    return ((row * groups + group) * attention->heads + tile % attention->heads) *
           attention->head_channels;
}

static size_t row_bytes(const struct attention *attention)
{
    return attention->head_channels * sizeof(float);
}

static void split_forward_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;

    for (size_t part = QUERY; part <= VALUE; part++) {
        float *to = floats(attention->parts) + head_start(attention, part, tile);

        for (size_t t = 0; t < attention->length; t++) {
            memcpy(to + t * attention->head_channels,
                   floats(attention->qkv) + row_start(attention, tile, t, 3, part),
                   row_bytes(attention));
        }
    }
}

static void split_backward_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;

    for (size_t part = QUERY; part <= VALUE; part++) {
        const float *from = floats(attention->parts_gradient) + head_start(attention, part, tile);

        for (size_t t = 0; t < attention->length; t++) {
            memcpy(floats(attention->qkv_gradient) + row_start(attention, tile, t, 3, part),
                   from + t * attention->head_channels, row_bytes(attention));
        }
    }
}

static void merge_forward_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;
    const float *from = floats(attention->mixed) + head_start(attention, 0, tile);

    for (size_t t = 0; t < attention->length; t++) {
        memcpy(floats(attention->output) + row_start(attention, tile, t, 1, 0),
               from + t * attention->head_channels, row_bytes(attention));
    }
}

static void merge_backward_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;
    float *to = floats(attention->mixed_gradient) + head_start(attention, 0, tile);

    for (size_t t = 0; t < attention->length; t++) {
        memcpy(to + t * attention->head_channels,
               floats(attention->output_gradient) + row_start(attention, tile, t, 1, 0),
               row_bytes(attention));
    }
}

/* square = rows a x rows b, transposed. */
static void multiply_to_square(const struct attention *attention, const float *a, const float *b,
                               float *square)
{
    gemm_block(&(struct gemm){
        .rows = attention->length,
        .columns = attention->length,
        .depth = attention->head_channels,
        .a = a,
        .a_stride = attention->head_channels,
        .b = b,
        .b_stride = attention->head_channels,
        .b_transposed = true,
        .c = square,
        .c_stride = attention->length,
    });
}

/* to = square x rows. */
static void multiply_square(const struct attention *attention, const float *square,
                            bool is_transposed, const float *rows, float *to)
{
    gemm_block(&(struct gemm){
        .rows = attention->length,
        .columns = attention->head_channels,
        .depth = attention->length,
        .a = square,
        .a_stride = attention->length,
        .a_transposed = is_transposed,
        .b = rows,
        .b_stride = attention->head_channels,
        .c = to,
        .c_stride = attention->head_channels,
    });
}

static void scores_forward_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;

    multiply_to_square(attention, floats(attention->parts) + head_start(attention, QUERY, tile),
                       floats(attention->parts) + head_start(attention, KEY, tile),
                       floats(attention->scores) + square_start(attention, tile));
}

static void softmax_row(const float *restrict scores, float *restrict weights, size_t count,
                        float scale)
{
    float most = scores[0];
    float factor;

    for (size_t i = 1; i < count; i++) {
        most = scores[i] > most ? scores[i] : most;
    }
    for (size_t i = 0; i < count; i++) {
        weights[i] = exponential((scores[i] - most) * scale);
    }
    factor = 1.0f / reduce_sum(weights, count);
    for (size_t i = 0; i < count; i++) {
        weights[i] *= factor;
    }
}

static void softmax_forward_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;
    size_t start = square_start(attention, tile);
    float scale = 1.0f / sqrtf((float)attention->head_channels);

    for (size_t t = 0; t < attention->length; t++) {
        size_t row = start + t * attention->length;
        softmax_row(floats(attention->scores) + row, floats(attention->weights) + row, t + 1,
                    scale);
    }
}

static void softmax_backward_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;
    size_t start = square_start(attention, tile);
    float scale = 1.0f / sqrtf((float)attention->head_channels);

    for (size_t t = 0; t < attention->length; t++) {
        size_t row = start + t * attention->length;
        const float *restrict weights = floats(attention->weights) + row;
        const float *restrict gradient = floats(attention->weights_gradient) + row;
        float *restrict to = floats(attention->scores_gradient) + row;
        float mean = reduce_product(weights, 0.0f, gradient, 0.0f, t + 1);

        for (size_t i = 0; i <= t; i++) {
            to[i] = weights[i] * (gradient[i] - mean) * scale;
        }
    }
}

static void mix_forward_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;

    multiply_square(attention, floats(attention->weights) + square_start(attention, tile), false,
                    floats(attention->parts) + head_start(attention, VALUE, tile),
                    floats(attention->mixed) + head_start(attention, 0, tile));
}

static void mix_backward_weights_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;

    multiply_to_square(attention,
                       floats(attention->mixed_gradient) + head_start(attention, 0, tile),
                       floats(attention->parts) + head_start(attention, VALUE, tile),
                       floats(attention->weights_gradient) + square_start(attention, tile));
}

static void mix_backward_value_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;

    multiply_square(attention, floats(attention->weights) + square_start(attention, tile), true,
                    floats(attention->mixed_gradient) + head_start(attention, 0, tile),
                    floats(attention->parts_gradient) + head_start(attention, VALUE, tile));
}

static void scores_backward_query_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;

    multiply_square(attention, floats(attention->scores_gradient) + square_start(attention, tile),
                    false, floats(attention->parts) + head_start(attention, KEY, tile),
                    floats(attention->parts_gradient) + head_start(attention, QUERY, tile));
}

static void scores_backward_key_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;

    multiply_square(attention, floats(attention->scores_gradient) + square_start(attention, tile),
                    true, floats(attention->parts) + head_start(attention, QUERY, tile),
                    floats(attention->parts_gradient) + head_start(attention, KEY, tile));
}

/*
 * The buffers of an operation: which of them it reads, writes, or writes partly. Of a buffer with
 * three parts it uses the parts [first, end); the others may belong to other tensors.
 */
struct use {
    size_t offset; /* of the pointer in struct attention */
    enum { USE_READ, USE_WRITE, USE_UPDATE } kind;
    size_t first;
    size_t end; /* 0: the buffer holds squares */
};

#define USE_PARTS(field_, kind_, first_, end_)                  \
    {                                                           \
        offsetof(struct attention, field_), kind_, first_, end_ \
    }
#define USE_PART(field_, kind_) USE_PARTS(field_, kind_, 0, 1)
#define USE_SQUARE(field_, kind_) USE_PARTS(field_, kind_, 0, 0)

/* Replaces the pointer to a buffer by one to its copy. A buffer that is written partly is copied
 * whole. */
static void use_copy(struct attention *attention, const struct use *use, struct copies *copies)
{
    char *field = (char *)attention + use->offset;
    size_t first = use->first * part_items(attention);
    size_t end = use->end != 0
                     ? use->end * part_items(attention)
                     : square_start(attention, (size_t)attention->batch * attention->heads);
    void *buffer;

    memcpy(&buffer, field, sizeof(buffer));
    switch (use->kind) {
    case USE_READ:
        buffer = (float *)copies_read_range(copies, buffer, first, end);
        break;
    case USE_WRITE:
        buffer = copies_write_range(copies, buffer, first, end);
        break;
    case USE_UPDATE:
        buffer = copies_update(copies, buffer, end);
        break;
    }
    memcpy(field, &buffer, sizeof(buffer));
}

static capu_status run_heads(const void *arguments, parallel_function function,
                             const struct use *uses, size_t use_count)
{
    struct attention attention = *(const struct attention *)arguments;
    struct copies copies = {.element = attention.element};

    for (size_t i = 0; i < use_count; i++) {
        use_copy(&attention, &uses[i], &copies);
    }
    if (copies.status == CAPU_OK) {
        parallel_run((size_t)attention.batch * attention.heads, function, &attention);
    }
    return copies_finish(&copies);
}

#define RUN_HEADS(arguments_, function_, ...)                               \
    run_heads((arguments_), (function_), (const struct use[]){__VA_ARGS__}, \
              sizeof((const struct use[]){__VA_ARGS__}) / sizeof(struct use))

capu_status attention_split_forward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return RUN_HEADS(arguments, split_forward_tile, USE_PARTS(qkv, USE_READ, QUERY, PARTS),
                     USE_PARTS(parts, USE_WRITE, QUERY, PARTS));
}

capu_status attention_scores_forward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return RUN_HEADS(arguments, scores_forward_tile, USE_PARTS(parts, USE_READ, QUERY, VALUE),
                     USE_SQUARE(scores, USE_WRITE));
}

capu_status attention_softmax_forward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return RUN_HEADS(arguments, softmax_forward_tile, USE_SQUARE(scores, USE_READ),
                     USE_SQUARE(weights, USE_UPDATE));
}

capu_status attention_mix_forward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return RUN_HEADS(arguments, mix_forward_tile, USE_SQUARE(weights, USE_READ),
                     USE_PARTS(parts, USE_READ, VALUE, PARTS), USE_PART(mixed, USE_WRITE));
}

capu_status attention_merge_forward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return RUN_HEADS(arguments, merge_forward_tile, USE_PART(mixed, USE_READ),
                     USE_PART(output, USE_WRITE));
}

capu_status attention_merge_backward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return RUN_HEADS(arguments, merge_backward_tile, USE_PART(output_gradient, USE_READ),
                     USE_PART(mixed_gradient, USE_WRITE));
}

capu_status attention_mix_backward_weights_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return RUN_HEADS(arguments, mix_backward_weights_tile, USE_PART(mixed_gradient, USE_READ),
                     USE_PARTS(parts, USE_READ, VALUE, PARTS),
                     USE_SQUARE(weights_gradient, USE_WRITE));
}

capu_status attention_mix_backward_value_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return RUN_HEADS(arguments, mix_backward_value_tile, USE_SQUARE(weights, USE_READ),
                     USE_PART(mixed_gradient, USE_READ),
                     USE_PARTS(parts_gradient, USE_WRITE, VALUE, PARTS));
}

capu_status attention_softmax_backward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return RUN_HEADS(arguments, softmax_backward_tile, USE_SQUARE(weights, USE_READ),
                     USE_SQUARE(weights_gradient, USE_READ),
                     USE_SQUARE(scores_gradient, USE_UPDATE));
}

capu_status attention_scores_backward_query_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return RUN_HEADS(arguments, scores_backward_query_tile, USE_SQUARE(scores_gradient, USE_READ),
                     USE_PARTS(parts, USE_READ, KEY, VALUE),
                     USE_PARTS(parts_gradient, USE_WRITE, QUERY, KEY));
}

capu_status attention_scores_backward_key_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return RUN_HEADS(arguments, scores_backward_key_tile, USE_SQUARE(scores_gradient, USE_READ),
                     USE_PARTS(parts, USE_READ, QUERY, KEY),
                     USE_PARTS(parts_gradient, USE_WRITE, KEY, VALUE));
}

capu_status attention_split_backward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return RUN_HEADS(arguments, split_backward_tile,
                     USE_PARTS(parts_gradient, USE_READ, QUERY, PARTS),
                     USE_PARTS(qkv_gradient, USE_WRITE, QUERY, PARTS));
}
