/* Declares the operands of fused_attention and runs it. */
#include "kernels/fused_attention.h"

#include "kernels/launch.h"

struct sizes {
    size_t part; /* of query, key, value or output */
    size_t rows; /* of log_sums */
    uint64_t product_flops;
};

static struct sizes sizes_of(const struct fused_attention *attention)
{
    size_t rows = (size_t)attention->batch * attention->heads * attention->length;

    return (struct sizes){
        .part = rows * attention->head_channels * element_bytes(attention->element),
        .rows = rows * sizeof(float),
        /* Half of the products of queries and keys are masked. */
        .product_flops = (uint64_t)rows * attention->length * attention->head_channels,
    };
}

capu_status fused_attention_forward(capu_context *context, const struct fused_attention *attention)
{
    struct sizes sizes = sizes_of(attention);
    capu_status status = fused_attention_check(attention);

    if (status != CAPU_OK) {
        return status;
    }
    return LAUNCH(context, fused_attention_forward, attention, 2 * sizes.product_flops,
                  LAUNCH_READ(attention->qkv, 3 * sizes.part),
                  LAUNCH_WRITE(attention->output, sizes.part),
                  LAUNCH_WRITE(attention->log_sums, sizes.rows));
}

/* On cuda there are seven products: two of them are computed twice. */
capu_status fused_attention_backward(capu_context *context, const struct fused_attention *attention)
{
    struct sizes sizes = sizes_of(attention);
    capu_status status = fused_attention_check(attention);

    if (status != CAPU_OK) {
        return status;
    }
    return LAUNCH(
        context, fused_attention_backward, attention, 7 * sizes.product_flops,
        LAUNCH_READ(attention->qkv, 3 * sizes.part), LAUNCH_READ(attention->output, sizes.part),
        LAUNCH_READ(attention->log_sums, sizes.rows),
        LAUNCH_READ(attention->output_gradient, sizes.part),
        LAUNCH_WRITE(attention->qkv_gradient, 3 * sizes.part), capu_scratch(attention->products));
}
