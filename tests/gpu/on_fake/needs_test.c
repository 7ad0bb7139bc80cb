/*
 * What operations on cuda need: only those that compute matrix products load cuBLAS. All others
 * work where it is missing. Every operation runs over the fake CUDA runtime, its kernels as PTX,
 * once without cuBLAS and once with its stand-in.
 */
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/average_pool.h"
#include "kernels/batch_norm.h"
#include "kernels/conv2d.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/fused_attention.h"
#include "kernels/gelu.h"
#include "kernels/gradient_norm.h"
#include "kernels/initialise.h"
#include "kernels/layer_norm.h"
#include "kernels/matmul.h"
#include "kernels/max_pool.h"
#include "kernels/relu.h"
#include "kernels/residual.h"
#include "kernels/sgd.h"
#include "kernels/softmax_cross_entropy.h"

#include "capuchin/capuchin.h"

#include "tests/support/suite.h"

#include <stdbool.h>
#include <stdlib.h>

enum { BUFFERS = 13, ITEMS = 4096, COUNT = 64 };

/* A context, and zeros that can be any operand, also tokens and labels. */
struct bed {
    capu_context *context;
    void *at[BUFFERS];
    bool has_cublas;
    unsigned product_count;
};

static void make(struct bed *bed, bool has_cublas)
{
    capu_config config = CAPU_CONFIG_INIT;

    *bed = (struct bed){.has_cublas = has_cublas};
    config.device = "cuda";
    config.budget_bytes = UINT64_C(16) << 20;
    ck_assert_int_eq(capu_context_create(&config, &bed->context), CAPU_OK);
    for (size_t i = 0; i < BUFFERS; i++) {
        ck_assert_int_eq(capu_malloc(bed->context, ITEMS * sizeof(float), &bed->at[i]), CAPU_OK);
        ck_assert_int_eq(CAPU_DESCRIBE(bed->context, bed->at[i], .kind = CAPU_PARAMETER,
                                       .lifetime = CAPU_PERSISTENT),
                         CAPU_OK);
        ck_assert_int_eq(capu_zero(bed->context, bed->at[i], 0), CAPU_OK);
    }
}

static void check(struct bed *bed, const char *call, capu_status status, bool has_products)
{
    capu_status expected = has_products && !bed->has_cublas ? CAPU_UNSUPPORTED : CAPU_OK;

    ck_assert_msg(status == expected, "%s %s cuBLAS: %s: %s", call,
                  bed->has_cublas ? "with" : "without", capu_status_name(status),
                  capu_last_error(bed->context));
    ck_assert_msg(capu_synchronize(bed->context) == CAPU_OK, "%s: %s", call,
                  capu_last_error(bed->context));
    bed->product_count += has_products;
}

#define PLAIN(call_) check(bed, #call_, call_, false)
#define PRODUCT(call_) check(bed, #call_, call_, true)

static void run_items(struct bed *bed)
{
    void *const *at = bed->at;
    struct relu relu = {at[0], at[1], at[2], COUNT, ELEMENT_FP32};
    struct gelu gelu = {at[0], at[1], at[2], COUNT, ELEMENT_FP32};
    struct dropout dropout = {at[0], at[1], at[2], COUNT, 1, 2, 0.5f, ELEMENT_FP32};
    struct residual residual = {at[0], at[1], at[2], at[3], at[4], at[5], COUNT, ELEMENT_FP32};
    struct initialise fill = {at[0], COUNT, 1, 2, INITIALISE_UNIFORM, 0.0f, 1.0f, ELEMENT_FP32};
    struct sgd sgd = {at[0], at[1], at[2], COUNT, 0.1f, 0.9f, 0.0f, NULL};
    struct adamw adamw = {at[0],  at[1], at[2], at[3], COUNT, 0.1f, 0.9f,
                          0.999f, 1e-8f, 0.0f,  1.0f,  1,     NULL};
    struct gradient_norm norm = {at[0], COUNT, at[1]};

    PLAIN(relu_forward(bed->context, &relu));
    PLAIN(relu_backward(bed->context, &relu));
    PLAIN(gelu_forward(bed->context, &gelu));
    PLAIN(gelu_backward(bed->context, &gelu));
    PLAIN(dropout_forward(bed->context, &dropout));
    PLAIN(dropout_backward(bed->context, &dropout));
    PLAIN(residual_forward(bed->context, &residual));
    PLAIN(residual_backward(bed->context, &residual));
    PLAIN(initialise(bed->context, &fill));
    PLAIN(sgd_update(bed->context, &sgd));
    PLAIN(adamw_update(bed->context, &adamw));
    PLAIN(gradient_norm(bed->context, &norm));
}

static void run_rows(struct bed *bed)
{
    void *const *at = bed->at;
    struct layer_norm norm = {at[0], at[1], at[2], at[3], at[4], at[5],       at[6],
                              at[7], at[8], at[9], 4,     COUNT, ELEMENT_FP32};
    struct embedding embedding = {at[0], at[1], at[2], at[3], at[4], at[5],
                                  at[6], 2,     4,     8,     16,    ELEMENT_FP32};
    struct softmax_cross_entropy loss = {at[0], at[1], at[2], at[3], at[4],
                                         at[5], 4,     8,     0.25f, ELEMENT_FP32};
    struct matmul matmul = {at[0], at[1], at[2], at[3], at[4], at[5],       at[6],
                            at[7], 4,     8,     16,    0,     ELEMENT_FP32};

    PLAIN(layer_norm_forward(bed->context, &norm));
    PLAIN(layer_norm_backward(bed->context, &norm));
    PLAIN(embedding_forward(bed->context, &embedding));
    PLAIN(embedding_backward(bed->context, &embedding));
    PLAIN(softmax_cross_entropy_forward(bed->context, &loss));
    PLAIN(softmax_cross_entropy_backward(bed->context, &loss));
    PRODUCT(matmul_forward(bed->context, &matmul));
    PRODUCT(matmul_backward_input(bed->context, &matmul));
    PRODUCT(matmul_backward_weight(bed->context, &matmul));
}

/* A convolution is a product if its window is one pixel, but for a forward pass with a bias. */
static void run_images(struct bed *bed)
{
    void *const *at = bed->at;
    struct average_pool average = {at[0], at[1], at[2], at[3], 4, 16, ELEMENT_FP32};
    struct max_pool largest = {at[0], at[1], at[2], at[3], at[4], 4, 4, 4, 2, 0, 0, ELEMENT_FP32};
    struct batch_norm norm = {at[0], at[1],  at[2], at[3], at[4], at[5], at[6], at[7],       at[8],
                              at[9], at[10], 2,     4,     16,    0.1f,  1e-5f, ELEMENT_FP32};
    struct conv2d conv = {at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8],
                          2,     4,     8,     4,     4,     3,     1,     1,     ELEMENT_FP32};

    PLAIN(average_pool_forward(bed->context, &average));
    PLAIN(average_pool_backward(bed->context, &average));
    PLAIN(max_pool_forward(bed->context, &largest));
    PLAIN(max_pool_backward(bed->context, &largest));
    PLAIN(batch_norm_forward(bed->context, &norm));
    PLAIN(batch_norm_infer(bed->context, &norm));
    PLAIN(batch_norm_backward(bed->context, &norm));
    PLAIN(conv2d_forward(bed->context, &conv));
    PLAIN(conv2d_backward_input(bed->context, &conv));
    PLAIN(conv2d_backward_weight(bed->context, &conv));
    conv.kernel = 1;
    conv.padding = 0;
    PLAIN(conv2d_forward(bed->context, &conv));
    conv.bias = NULL;
    PRODUCT(conv2d_forward(bed->context, &conv));
    PRODUCT(conv2d_backward_input(bed->context, &conv));
    PRODUCT(conv2d_backward_weight(bed->context, &conv));
}

static void run_attention(struct bed *bed)
{
    void *const *at = bed->at;
    struct attention whole = {at[0], at[1],  at[2],  at[3], at[4], at[5], at[6], at[7],       at[8],
                              at[9], at[10], at[11], 2,     4,     2,     16,    ELEMENT_FP32};
    struct fused_attention fused = {at[0], at[1], at[2], at[3], at[4],       at[5],
                                    2,     4,     2,     16,    ELEMENT_FP32};

    PLAIN(attention_split_forward(bed->context, &whole));
    PRODUCT(attention_scores_forward(bed->context, &whole));
    PLAIN(attention_softmax_forward(bed->context, &whole));
    PRODUCT(attention_mix_forward(bed->context, &whole));
    PLAIN(attention_merge_forward(bed->context, &whole));
    PLAIN(attention_merge_backward(bed->context, &whole));
    PRODUCT(attention_mix_backward_weights(bed->context, &whole));
    PRODUCT(attention_mix_backward_value(bed->context, &whole));
    PLAIN(attention_softmax_backward(bed->context, &whole));
    PRODUCT(attention_scores_backward_query(bed->context, &whole));
    PRODUCT(attention_scores_backward_key(bed->context, &whole));
    PLAIN(attention_split_backward(bed->context, &whole));
    PLAIN(fused_attention_forward(bed->context, &fused));
    PLAIN(fused_attention_backward(bed->context, &fused));
}

START_TEST(only_products_need_cublas)
{
    struct bed bed;

    if (_i == 0) {
        setenv("KERNELS_CUBLAS", "/nonexistent/libcublas.so", 1);
    }
    make(&bed, _i == 1);
    run_items(&bed);
    run_rows(&bed);
    run_images(&bed);
    run_attention(&bed);
    ck_assert_uint_eq(bed.product_count, 12);
    capu_context_destroy(bed.context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("what operations need");
    TCase *tests = tcase_create("needs");

    tcase_add_loop_test(tests, only_products_need_cublas, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
