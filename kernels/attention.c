/* Declares the operands of attention and runs it. A part of `parts` is an operand of its own: an
 * interior address and a number of bytes. */
#include "kernels/attention.h"

#include "kernels/launch.h"

struct sizes {
    size_t part;
    size_t square; /* of scores, weights and their gradients */
    uint64_t square_items;
    uint64_t flops;
};

static struct sizes sizes_of(const struct attention *attention)
{
    size_t rows = (size_t)attention->batch * attention->heads * attention->length;
    size_t item = element_bytes(attention->element);

    return (struct sizes){
        .part = rows * attention->head_channels * item,
        .square = rows * attention->length * item,
        .square_items = (uint64_t)rows * attention->length,
        .flops = UINT64_C(2) * rows * attention->length * attention->head_channels,
    };
}

/* Query, key and value are parts 0, 1 and 2. */
static char *part_of(void *parts, const struct sizes *sizes, size_t index)
{
    return (char *)parts + index * sizes->part;
}

capu_status attention_split_forward(capu_context *context, const struct attention *attention)
{
    struct sizes sizes = sizes_of(attention);

    return LAUNCH(context, attention_split_forward, attention, 0,
                  LAUNCH_READ(attention->qkv, 3 * sizes.part),
                  LAUNCH_WRITE(attention->parts, 3 * sizes.part));
}

capu_status attention_scores_forward(capu_context *context, const struct attention *attention)
{
    struct sizes sizes = sizes_of(attention);

    return LAUNCH_WITH(LAUNCH_NEEDS_PRODUCTS, context, attention_scores_forward, attention,
                       sizes.flops, LAUNCH_READ(part_of(attention->parts, &sizes, 0), sizes.part),
                       LAUNCH_READ(part_of(attention->parts, &sizes, 1), sizes.part),
                       LAUNCH_WRITE(attention->scores, sizes.square));
}

capu_status attention_softmax_forward(capu_context *context, const struct attention *attention)
{
    struct sizes sizes = sizes_of(attention);

    return LAUNCH(context, attention_softmax_forward, attention, 8 * sizes.square_items,
                  LAUNCH_READ(attention->scores, sizes.square),
                  LAUNCH_WRITE_REST_ZERO(attention->weights, sizes.square));
}

capu_status attention_mix_forward(capu_context *context, const struct attention *attention)
{
    struct sizes sizes = sizes_of(attention);

    return LAUNCH_WITH(LAUNCH_NEEDS_PRODUCTS, context, attention_mix_forward, attention,
                       sizes.flops, LAUNCH_READ(attention->weights, sizes.square),
                       LAUNCH_READ(part_of(attention->parts, &sizes, 2), sizes.part),
                       LAUNCH_WRITE(attention->mixed, sizes.part));
}

capu_status attention_merge_forward(capu_context *context, const struct attention *attention)
{
    struct sizes sizes = sizes_of(attention);

    return LAUNCH(context, attention_merge_forward, attention, 0,
                  LAUNCH_READ(attention->mixed, sizes.part),
                  LAUNCH_WRITE(attention->output, sizes.part));
}

capu_status attention_merge_backward(capu_context *context, const struct attention *attention)
{
    struct sizes sizes = sizes_of(attention);

    return LAUNCH(context, attention_merge_backward, attention, 0,
                  LAUNCH_READ(attention->output_gradient, sizes.part),
                  LAUNCH_WRITE(attention->mixed_gradient, sizes.part));
}

capu_status attention_mix_backward_weights(capu_context *context, const struct attention *attention)
{
    struct sizes sizes = sizes_of(attention);

    return LAUNCH_WITH(LAUNCH_NEEDS_PRODUCTS, context, attention_mix_backward_weights, attention,
                       sizes.flops, LAUNCH_READ(attention->mixed_gradient, sizes.part),
                       LAUNCH_READ(part_of(attention->parts, &sizes, 2), sizes.part),
                       LAUNCH_WRITE(attention->weights_gradient, sizes.square));
}

capu_status attention_mix_backward_value(capu_context *context, const struct attention *attention)
{
    struct sizes sizes = sizes_of(attention);

    return LAUNCH_WITH(LAUNCH_NEEDS_PRODUCTS, context, attention_mix_backward_value, attention,
                       sizes.flops, LAUNCH_READ(attention->weights, sizes.square),
                       LAUNCH_READ(attention->mixed_gradient, sizes.part),
                       LAUNCH_WRITE(part_of(attention->parts_gradient, &sizes, 2), sizes.part));
}

capu_status attention_softmax_backward(capu_context *context, const struct attention *attention)
{
    struct sizes sizes = sizes_of(attention);

    return LAUNCH(context, attention_softmax_backward, attention, 4 * sizes.square_items,
                  LAUNCH_READ(attention->weights, sizes.square),
                  LAUNCH_READ(attention->weights_gradient, sizes.square),
                  LAUNCH_WRITE_REST_ZERO(attention->scores_gradient, sizes.square));
}

capu_status attention_scores_backward_query(capu_context *context,
                                            const struct attention *attention)
{
    struct sizes sizes = sizes_of(attention);

    return LAUNCH_WITH(LAUNCH_NEEDS_PRODUCTS, context, attention_scores_backward_query, attention,
                       sizes.flops, LAUNCH_READ(attention->scores_gradient, sizes.square),
                       LAUNCH_READ(part_of(attention->parts, &sizes, 1), sizes.part),
                       LAUNCH_WRITE(part_of(attention->parts_gradient, &sizes, 0), sizes.part));
}

capu_status attention_scores_backward_key(capu_context *context, const struct attention *attention)
{
    struct sizes sizes = sizes_of(attention);

    return LAUNCH_WITH(LAUNCH_NEEDS_PRODUCTS, context, attention_scores_backward_key, attention,
                       sizes.flops, LAUNCH_READ(attention->scores_gradient, sizes.square),
                       LAUNCH_READ(part_of(attention->parts, &sizes, 0), sizes.part),
                       LAUNCH_WRITE(part_of(attention->parts_gradient, &sizes, 1), sizes.part));
}

capu_status attention_split_backward(capu_context *context, const struct attention *attention)
{
    struct sizes sizes = sizes_of(attention);

    return LAUNCH(context, attention_split_backward, attention, 0,
                  LAUNCH_READ(attention->parts_gradient, 3 * sizes.part),
                  LAUNCH_WRITE(attention->qkv_gradient, 3 * sizes.part));
}
