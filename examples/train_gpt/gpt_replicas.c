/*
 * Replicas: the equal parts of a batch, each with a gradient of its own, added in order. Here they
 * are computed one after the other. The first one's gradient is in the blob of gradients; each
 * other one's is in a second blob, from which it is added, so two blobs suffice for any number.
 */
#include "examples/train_gpt/gpt.h"

#include "examples/common/try.h"

#include "kernels/residual.h"

capu_status gpt_replicate(struct gpt *gpt, uint32_t count)
{
    gpt->replicas = (struct gpt_replicas){.count = count, .end = count};
    return count > 1 ? gpt_make_blob(gpt, GPT_REPLICA) : CAPU_OK;
}

enum gpt_blob gpt_gradient_of(const struct gpt *gpt, uint32_t replica)
{
    return replica == gpt->replicas.first ? GPT_GRADIENT : GPT_REPLICA;
}

capu_status gpt_merge_one(struct gpt *gpt, enum gpt_parameter parameter, uint32_t layer,
                          uint32_t layers)
{
    if (gpt->gradient == GPT_GRADIENT) {
        return CAPU_OK;
    }
    return residual_backward(
        gpt->context, &(struct residual){
                          .output_gradient = gpt_parameter_at(gpt, GPT_REPLICA, parameter, layer),
                          .input_gradient = gpt_parameter_at(gpt, GPT_GRADIENT, parameter, layer),
                          .count = layers * gpt->layout.count[parameter],
                          .element = ELEMENT_FP32,
                      });
}

capu_status gpt_merge(struct gpt *gpt)
{
    for (size_t i = 0; i < GPT_PARAMETERS; i++) {
        enum gpt_parameter parameter = (enum gpt_parameter)i;
        uint32_t all = gpt_layers_of(gpt, parameter);
        uint32_t each = gpt_is_split(parameter) ? 1 : all;

        for (uint32_t layer = 0; layer < all; layer += each) {
            TRY(gpt_merge_one(gpt, parameter, layer, each));
        }
    }
    return CAPU_OK;
}
