/* The arithmetic of a product, see product.h. */
#include "product.h"

#include "kernels/element.h"

static float item(const void *items, cudaDataType type, int64_t index)
{
    return type == CUDA_R_16BF ? element_widen(((const uint16_t *)items)[index])
                               : ((const float *)items)[index];
}

static void store(void *items, cudaDataType type, int64_t index, float value)
{
    if (type == CUDA_R_16BF) {
        ((uint16_t *)items)[index] = element_round(value);
    } else {
        ((float *)items)[index] = value;
    }
}

static double sum_of(const struct product &product, int64_t i, int64_t j)
{
    double sum = 0.0;

    for (int64_t l = 0; l < product.k; l++) {
        double x = item(product.a, product.type,
                        product.a_is_transposed ? i * product.lda + l : l * product.lda + i);
        double y = item(product.b, product.type,
                        product.b_is_transposed ? l * product.ldb + j : j * product.ldb + l);

        sum += x * y;
    }
    return sum;
}

static void multiply(const struct product &product)
{
    for (int64_t j = 0; j < product.n; j++) {
        for (int64_t i = 0; i < product.m; i++) {
            int64_t to = j * product.ldc + i;
            double sum = product.alpha * sum_of(product, i, j);

            if (product.beta != 0.0f) {
                sum += product.beta * item(product.c, product.c_type, to);
            }
            if (product.bias != NULL) {
                sum += item(product.bias, product.c_type, i);
            }
            store(product.c, product.c_type, to, (float)sum);
        }
    }
}

void product_enqueue(cudaStream_t stream, const struct product *product)
{
    struct product kept = *product;

    emulation_enqueue(stream, [=] { multiply(kept); });
}

bool product_types_match(cudaDataType a, cudaDataType b, cudaDataType c,
                         cublasComputeType_t arithmetic)
{
    return a == b && (a == CUDA_R_32F ? c == CUDA_R_32F : arithmetic == CUBLAS_COMPUTE_32F);
}
