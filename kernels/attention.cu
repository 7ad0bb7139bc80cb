/*
 * attention on cuda: one batched product over all heads; softmax, splitting and merging with one
 * warp per row. Softmax computes its exponentials twice instead of storing them in between, so that
 * every stored value is rounded once.
 */
#include "kernels/attention.h"

#include "kernels/blas.cuh"
#include "kernels/grid.cuh"

#include <math.h>

enum { QUERY = 0, KEY = 1, VALUE = 2, PARTS = 3 };

static enum element element_of(const struct attention *attention)
{
    return attention->element == ELEMENT_BF16 ? ELEMENT_BF16 : ELEMENT_FP32;
}

static size_t heads_of(const struct attention *attention)
{
    return (size_t)attention->batch * attention->heads;
}

/* Of one head. */
static size_t head_items(const struct attention *attention)
{
    return (size_t)attention->length * attention->head_channels;
}

static size_t square_items(const struct attention *attention)
{
    return (size_t)attention->length * attention->length;
}

static void *part_of(const struct attention *attention, void *parts, size_t part)
{
    return (char *)parts +
           part * heads_of(attention) * head_items(attention) * element_bytes(attention->element);
}

/*
 * Copies between a buffer by heads, `parts` x batch x heads x length x head_channels, and one by
 * rows, batch x length x `parts` x heads x head_channels; one warp per run of head_channels.
 */
template <typename Element>
static __global__ void regroup(const struct attention attention, size_t parts, void *by_heads,
                               void *by_rows, bool is_to_heads)
{
    size_t channels = attention.head_channels;
    size_t runs = parts * attention.batch * attention.heads * attention.length;

    for (size_t run = grid_first_row(); run < runs; run += grid_row_stride()) {
        size_t t = run % attention.length;
        size_t tile = run / attention.length;
        size_t head = tile % attention.heads;
        size_t b = tile / attention.heads % attention.batch;
        size_t part = tile / attention.heads / attention.batch;
        size_t row = b * attention.length + t;
        Element *in_heads = (Element *)by_heads + run * channels;
        Element *in_rows =
            (Element *)by_rows + ((row * parts + part) * attention.heads + head) * channels;

        for (size_t i = grid_lane(); i < channels; i += GRID_WARP) {
            if (is_to_heads) {
                in_heads[i] = in_rows[i];
            } else {
                in_rows[i] = in_heads[i];
            }
        }
    }
}

static capu_status launch_regroup(capu_stream stream, const struct attention *attention,
                                  size_t parts, void *by_heads, void *by_rows, bool is_to_heads)
{
    size_t runs = parts * heads_of(attention) * attention->length;

    GRID_LAUNCH_FOR(attention->element, regroup, grid_blocks(runs, GRID_WARPS), GRID_THREADS,
                    stream, *attention, parts, by_heads, by_rows, is_to_heads);
    return grid_status();
}

/* Row t has t + 1 weights; items above the diagonal were cleared before and stay zero. */
template <typename Element>
static __global__ void softmax_forward(const struct attention attention, float scale)
{
    size_t rows = (size_t)attention.batch * attention.heads * attention.length;

    for (size_t row = grid_first_row(); row < rows; row += grid_row_stride()) {
        const Element *scores = (const Element *)attention.scores + row * attention.length;
        Element *weights = (Element *)attention.weights + row * attention.length;
        size_t count = row % attention.length + 1;
        float most = scores[0];
        float sum = 0.0f;
        float factor;

        for (size_t i = grid_lane(); i < count; i += GRID_WARP) {
            most = fmaxf(most, scores[i]);
        }
        most = grid_warp_largest(most);
        for (size_t i = grid_lane(); i < count; i += GRID_WARP) {
            sum += expf((scores[i] - most) * scale);
        }
        factor = 1.0f / grid_warp_sum(sum);
        for (size_t i = grid_lane(); i < count; i += GRID_WARP) {
            weights[i] = expf((scores[i] - most) * scale) * factor;
        }
    }
}

template <typename Element>
static __global__ void softmax_backward(const struct attention attention, float scale)
{
    size_t rows = (size_t)attention.batch * attention.heads * attention.length;

    for (size_t row = grid_first_row(); row < rows; row += grid_row_stride()) {
        const Element *weights = (const Element *)attention.weights + row * attention.length;
        const Element *gradient =
            (const Element *)attention.weights_gradient + row * attention.length;
        Element *to = (Element *)attention.scores_gradient + row * attention.length;
        size_t count = row % attention.length + 1;
        float mean = 0.0f;

        for (size_t i = grid_lane(); i < count; i += GRID_WARP) {
            mean += weights[i] * gradient[i];
        }
        mean = grid_warp_sum(mean);
        for (size_t i = grid_lane(); i < count; i += GRID_WARP) {
            to[i] = weights[i] * (gradient[i] - mean) * scale;
        }
    }
}

/* square = rows a x rows b, transposed, for every head. */
static capu_status multiply_to_square(capu_stream stream, const struct attention *attention,
                                      const void *a, const void *b, void *square)
{
    struct gemm gemm = {};
    struct blas_batch batch = {heads_of(attention), head_items(attention), head_items(attention),
                               square_items(attention)};

    gemm.element = element_of(attention);
    gemm.result = element_of(attention);
    gemm.rows = attention->length;
    gemm.columns = attention->length;
    gemm.depth = attention->head_channels;
    gemm.a = a;
    gemm.a_stride = attention->head_channels;
    gemm.b = b;
    gemm.b_stride = attention->head_channels;
    gemm.b_transposed = true;
    gemm.c = square;
    gemm.c_stride = attention->length;
    return blas_gemm(stream, &gemm, &batch);
}

/* to = square x rows, for every head. */
static capu_status multiply_square(capu_stream stream, const struct attention *attention,
                                   const void *square, bool is_transposed, const void *rows,
                                   void *to)
{
    struct gemm gemm = {};
    struct blas_batch batch = {heads_of(attention), square_items(attention), head_items(attention),
                               head_items(attention)};

    gemm.element = element_of(attention);
    gemm.result = element_of(attention);
    gemm.rows = attention->length;
    gemm.columns = attention->head_channels;
    gemm.depth = attention->length;
    gemm.a = square;
    gemm.a_stride = attention->length;
    gemm.a_transposed = is_transposed;
    gemm.b = rows;
    gemm.b_stride = attention->head_channels;
    gemm.c = to;
    gemm.c_stride = attention->head_channels;
    return blas_gemm(stream, &gemm, &batch);
}

capu_status attention_split_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct attention *attention = (const struct attention *)arguments;

    return launch_regroup(stream, attention, PARTS, attention->parts, (void *)attention->qkv, true);
}

capu_status attention_scores_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct attention *attention = (const struct attention *)arguments;

    return multiply_to_square(stream, attention, part_of(attention, attention->parts, QUERY),
                              part_of(attention, attention->parts, KEY), attention->scores);
}

capu_status attention_softmax_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct attention *attention = (const struct attention *)arguments;
    size_t rows = heads_of(attention) * attention->length;
    float scale = 1.0f / sqrtf((float)attention->head_channels);

    GRID_LAUNCH_FOR(attention->element, softmax_forward, grid_blocks(rows, GRID_WARPS),
                    GRID_THREADS, stream, *attention, scale);
    return grid_status();
}

capu_status attention_mix_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct attention *attention = (const struct attention *)arguments;

    return multiply_square(stream, attention, attention->weights, false,
                           part_of(attention, attention->parts, VALUE), attention->mixed);
}

capu_status attention_merge_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct attention *attention = (const struct attention *)arguments;

    return launch_regroup(stream, attention, 1, attention->mixed, attention->output, false);
}

capu_status attention_merge_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct attention *attention = (const struct attention *)arguments;

    return launch_regroup(stream, attention, 1, attention->mixed_gradient,
                          (void *)attention->output_gradient, true);
}

capu_status attention_mix_backward_weights_cuda(capu_stream stream, const void *arguments)
{
    const struct attention *attention = (const struct attention *)arguments;

    return multiply_to_square(stream, attention, attention->mixed_gradient,
                              part_of(attention, attention->parts, VALUE),
                              attention->weights_gradient);
}

capu_status attention_mix_backward_value_cuda(capu_stream stream, const void *arguments)
{
    const struct attention *attention = (const struct attention *)arguments;

    return multiply_square(stream, attention, attention->weights, true, attention->mixed_gradient,
                           part_of(attention, attention->parts_gradient, VALUE));
}

capu_status attention_softmax_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct attention *attention = (const struct attention *)arguments;
    size_t rows = heads_of(attention) * attention->length;
    float scale = 1.0f / sqrtf((float)attention->head_channels);

    GRID_LAUNCH_FOR(attention->element, softmax_backward, grid_blocks(rows, GRID_WARPS),
                    GRID_THREADS, stream, *attention, scale);
    return grid_status();
}

capu_status attention_scores_backward_query_cuda(capu_stream stream, const void *arguments)
{
    const struct attention *attention = (const struct attention *)arguments;

    return multiply_square(stream, attention, attention->scores_gradient, false,
                           part_of(attention, attention->parts, KEY),
                           part_of(attention, attention->parts_gradient, QUERY));
}

capu_status attention_scores_backward_key_cuda(capu_stream stream, const void *arguments)
{
    const struct attention *attention = (const struct attention *)arguments;

    return multiply_square(stream, attention, attention->scores_gradient, true,
                           part_of(attention, attention->parts, QUERY),
                           part_of(attention, attention->parts_gradient, KEY));
}

capu_status attention_split_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct attention *attention = (const struct attention *)arguments;

    return launch_regroup(stream, attention, PARTS, attention->parts_gradient,
                          attention->qkv_gradient, false);
}
