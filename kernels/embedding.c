/* Declares the operands of embedding and runs it. A sequence uses only the weights of its
 * positions. */
#include "kernels/embedding.h"

#include "kernels/launch.h"

struct sizes {
    size_t tokens;
    size_t token_weight;
    size_t position_weight;
    size_t output;
    size_t token_gradient;
    size_t position_gradient;
    uint64_t items;
};

static struct sizes sizes_of(const struct embedding *embedding)
{
    size_t rows = (size_t)embedding->batch * embedding->length;
    size_t row_bytes = embedding->channels * element_bytes(embedding->element);
    size_t gradient_bytes = embedding->channels * sizeof(float);

    return (struct sizes){
        .tokens = rows * sizeof(int32_t),
        .token_weight = embedding->vocabulary * row_bytes,
        .position_weight = embedding->length * row_bytes,
        .output = rows * row_bytes,
        .token_gradient = embedding->vocabulary * gradient_bytes,
        .position_gradient = embedding->length * gradient_bytes,
        .items = (uint64_t)rows * embedding->channels,
    };
}

capu_status embedding_forward(capu_context *context, const struct embedding *embedding)
{
    struct sizes sizes = sizes_of(embedding);

    return LAUNCH(context, embedding_forward, embedding, sizes.items,
                  LAUNCH_READ(embedding->tokens, sizes.tokens),
                  LAUNCH_READ(embedding->token_weight, sizes.token_weight),
                  LAUNCH_READ(embedding->position_weight, sizes.position_weight),
                  LAUNCH_WRITE(embedding->output, sizes.output));
}

capu_status embedding_backward(capu_context *context, const struct embedding *embedding)
{
    struct sizes sizes = sizes_of(embedding);

    return LAUNCH(context, embedding_backward, embedding, 2 * sizes.items,
                  LAUNCH_READ(embedding->tokens, sizes.tokens),
                  LAUNCH_READ(embedding->output_gradient, sizes.output),
                  LAUNCH_UPDATE(embedding->token_gradient, sizes.token_gradient),
                  LAUNCH_UPDATE(embedding->position_gradient, sizes.position_gradient));
}
