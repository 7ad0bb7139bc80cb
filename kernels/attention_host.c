/*
 * attention on the host: a tile is one head of one sequence. Products are taken over whole squares:
 * above the diagonal they multiply zeros, which is why the softmax must leave zeros there.
 */
#include "kernels/attention.h"

#include "kernels/exponential.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "kernels/reduce.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { QUERY = 0, KEY = 1, VALUE = 2 };

static size_t part_items(const struct attention *attention)
{
    return (size_t)attention->batch * attention->heads * attention->length *
           attention->head_channels;
}

/* Where the head's rows begin in part `part`, or in mixed (part 0). */
static size_t head_start(const struct attention *attention, size_t part, size_t tile)
{
    return part * part_items(attention) +
           tile * attention->length * (size_t)attention->head_channels;
}

static size_t square_start(const struct attention *attention, size_t tile)
{
    return tile * attention->length * (size_t)attention->length;
}

/* Where row `t` of the head begins in a buffer of `groups` x heads x head_channels a row. */
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
        float *to = attention->parts + head_start(attention, part, tile);

        for (size_t t = 0; t < attention->length; t++) {
            memcpy(to + t * attention->head_channels,
                   attention->qkv + row_start(attention, tile, t, 3, part), row_bytes(attention));
        }
    }
}

static void split_backward_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;

    for (size_t part = QUERY; part <= VALUE; part++) {
        const float *from = attention->parts_gradient + head_start(attention, part, tile);

        for (size_t t = 0; t < attention->length; t++) {
            memcpy(attention->qkv_gradient + row_start(attention, tile, t, 3, part),
                   from + t * attention->head_channels, row_bytes(attention));
        }
    }
}

static void merge_forward_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;
    const float *from = attention->mixed + head_start(attention, 0, tile);

    for (size_t t = 0; t < attention->length; t++) {
        memcpy(attention->output + row_start(attention, tile, t, 1, 0),
               from + t * attention->head_channels, row_bytes(attention));
    }
}

static void merge_backward_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;
    float *to = attention->mixed_gradient + head_start(attention, 0, tile);

    for (size_t t = 0; t < attention->length; t++) {
        memcpy(to + t * attention->head_channels,
               attention->output_gradient + row_start(attention, tile, t, 1, 0),
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

    multiply_to_square(attention, attention->parts + head_start(attention, QUERY, tile),
                       attention->parts + head_start(attention, KEY, tile),
                       attention->scores + square_start(attention, tile));
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
        softmax_row(attention->scores + row, attention->weights + row, t + 1, scale);
    }
}

static void softmax_backward_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;
    size_t start = square_start(attention, tile);
    float scale = 1.0f / sqrtf((float)attention->head_channels);

    for (size_t t = 0; t < attention->length; t++) {
        size_t row = start + t * attention->length;
        const float *restrict weights = attention->weights + row;
        const float *restrict gradient = attention->weights_gradient + row;
        float *restrict to = attention->scores_gradient + row;
        float mean = reduce_product(weights, 0.0f, gradient, 0.0f, t + 1);

        for (size_t i = 0; i <= t; i++) {
            to[i] = weights[i] * (gradient[i] - mean) * scale;
        }
    }
}

static void mix_forward_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;

    multiply_square(attention, attention->weights + square_start(attention, tile), false,
                    attention->parts + head_start(attention, VALUE, tile),
                    attention->mixed + head_start(attention, 0, tile));
}

static void mix_backward_weights_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;

    multiply_to_square(attention, attention->mixed_gradient + head_start(attention, 0, tile),
                       attention->parts + head_start(attention, VALUE, tile),
                       attention->weights_gradient + square_start(attention, tile));
}

static void mix_backward_value_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;

    multiply_square(attention, attention->weights + square_start(attention, tile), true,
                    attention->mixed_gradient + head_start(attention, 0, tile),
                    attention->parts_gradient + head_start(attention, VALUE, tile));
}

static void scores_backward_query_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;

    multiply_square(attention, attention->scores_gradient + square_start(attention, tile), false,
                    attention->parts + head_start(attention, KEY, tile),
                    attention->parts_gradient + head_start(attention, QUERY, tile));
}

static void scores_backward_key_tile(const void *arguments, size_t tile)
{
    const struct attention *attention = arguments;

    multiply_square(attention, attention->scores_gradient + square_start(attention, tile), true,
                    attention->parts + head_start(attention, QUERY, tile),
                    attention->parts_gradient + head_start(attention, KEY, tile));
}

static capu_status run_heads(const struct attention *attention, parallel_function function)
{
    parallel_run((size_t)attention->batch * attention->heads, function, attention);
    return CAPU_OK;
}

capu_status attention_split_forward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_heads(arguments, split_forward_tile);
}

capu_status attention_scores_forward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_heads(arguments, scores_forward_tile);
}

capu_status attention_softmax_forward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_heads(arguments, softmax_forward_tile);
}

capu_status attention_mix_forward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_heads(arguments, mix_forward_tile);
}

capu_status attention_merge_forward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_heads(arguments, merge_forward_tile);
}

capu_status attention_merge_backward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_heads(arguments, merge_backward_tile);
}

capu_status attention_mix_backward_weights_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_heads(arguments, mix_backward_weights_tile);
}

capu_status attention_mix_backward_value_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_heads(arguments, mix_backward_value_tile);
}

capu_status attention_softmax_backward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_heads(arguments, softmax_backward_tile);
}

capu_status attention_scores_backward_query_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_heads(arguments, scores_backward_query_tile);
}

capu_status attention_scores_backward_key_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_heads(arguments, scores_backward_key_tile);
}

capu_status attention_split_backward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_heads(arguments, split_backward_tile);
}
