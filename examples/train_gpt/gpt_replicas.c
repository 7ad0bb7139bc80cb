/*
 * Replicas: the equal parts of a batch, each with a gradient of its own, added in order. In one
 * process they are computed one after the other. The first one's gradient is in the blob of
 * gradients; each other one's is in a second blob, from which it is added, so two blobs suffice for
 * any number. With ranks, each process computes one replica, and the ranks add up their gradients.
 */
#include "examples/train_gpt/gpt.h"

#include "examples/common/ranks.h"
#include "examples/common/try.h"

#include "kernels/residual.h"

/* What the collectives are called in reports and errors. */
static const char gradients_name[] = "gradients";

capu_status gpt_replicate(struct gpt *gpt, uint32_t count)
{
    gpt->replicas = (struct gpt_replicas){.count = count, .end = count};
    return count > 1 ? gpt_make_blob(gpt, GPT_REPLICA) : CAPU_OK;
}

static capu_status copy_blob(struct gpt *gpt, enum gpt_blob blob, size_t item_bytes)
{
    const struct gpt_layout *layout = &gpt->layout;

    return ranks_copy(gpt->replicas.ranks, "parameters",
                      (char *)gpt->blob[blob] + layout->begin * item_bytes,
                      (layout->end - layout->begin) * item_bytes);
}

capu_status gpt_join(struct gpt *gpt, struct ranks *ranks)
{
    void *sum = NULL;

    TRY(capu_malloc(gpt->context, sizeof(double), &sum));
    TRY(CAPU_DESCRIBE(gpt->context, sum, .name = "sum", .kind = CAPU_ACTIVATION));
    gpt->replicas = (struct gpt_replicas){
        .count = ranks->peers.count,
        .first = ranks->peers.rank,
        .end = ranks->peers.rank + 1,
        .ranks = ranks,
        .sum = sum,
    };
    TRY(copy_blob(gpt, GPT_VALUE, element_bytes(gpt->shape.element)));
    return gpt->blob[GPT_MASTER] != NULL ? copy_blob(gpt, GPT_MASTER, sizeof(float)) : CAPU_OK;
}

capu_status gpt_sum(struct gpt *gpt, double *sum)
{
    const struct gpt_replicas *replicas = &gpt->replicas;

    if (replicas->ranks == NULL) {
        return CAPU_OK;
    }
    TRY(capu_upload(gpt->context, replicas->sum, sum, sizeof(*sum), 0));
    TRY(ranks_sum_doubles(replicas->ranks, "loss", replicas->sum, 1));
    return capu_download(gpt->context, sum, replicas->sum, sizeof(*sum), 0);
}

enum gpt_blob gpt_gradient_of(const struct gpt *gpt, uint32_t replica)
{
    return replica == gpt->replicas.first ? GPT_GRADIENT : GPT_REPLICA;
}

capu_status gpt_merge_one(struct gpt *gpt, enum gpt_parameter parameter, uint32_t layer,
                          uint32_t layers)
{
    size_t count = layers * gpt->layout.count[parameter];

    if (gpt->replicas.ranks != NULL) {
        return ranks_sum_floats(gpt->replicas.ranks, gradients_name,
                                gpt_parameter_at(gpt, GPT_GRADIENT, parameter, layer), count);
    }
    if (gpt->gradient == GPT_GRADIENT) {
        return CAPU_OK;
    }
    return residual_backward(
        gpt->context, &(struct residual){
                          .output_gradient = gpt_parameter_at(gpt, GPT_REPLICA, parameter, layer),
                          .input_gradient = gpt_parameter_at(gpt, GPT_GRADIENT, parameter, layer),
                          .count = count,
                          .element = ELEMENT_FP32,
                      });
}

capu_status gpt_merge(struct gpt *gpt)
{
    const struct gpt_layout *layout = &gpt->layout;

    if (gpt->replicas.ranks != NULL) {
        return ranks_sum_floats(gpt->replicas.ranks, gradients_name,
                                (float *)gpt->blob[GPT_GRADIENT] + layout->begin,
                                layout->end - layout->begin);
    }
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
