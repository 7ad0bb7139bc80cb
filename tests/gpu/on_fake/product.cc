/* The arithmetic of a product, see product.h. */
#include "tests/gpu/on_fake/product.h"

#include "kernels/element.h"
#include "tests/gpu/on_fake/fake_enqueue.h"

#include <cstring>
#include <utility>
#include <vector>

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

/* Rows of op(a), or columns of op(b): `count` vectors of `depth` items, that far apart. */
struct vectors {
    const void *items;
    cudaDataType type;
    int64_t count;
    int64_t step;
    int64_t depth;
    int64_t depth_step;
};

/* The vectors side by side in groups of `width`: the first items of a group, then the second ones.
   The last group is filled with zeros. */
static std::vector<double> pack(const struct vectors &vectors, int64_t width)
{
    int64_t groups = (vectors.count + width - 1) / width;
    std::vector<double> packed((size_t)(groups * width * vectors.depth));

    for (int64_t i = 0; i < vectors.count; i++) {
        for (int64_t l = 0; l < vectors.depth; l++) {
            packed[(size_t)((i / width * vectors.depth + l) * width + i % width)] =
                item(vectors.items, vectors.type, i * vectors.step + l * vectors.depth_step);
        }
    }
    return packed;
}

/* Products of one vector with a group of them, each added in the order of the items. */
#define GROUP 8
static void multiply_group(const double *a, const double *group, int64_t depth, double sums[GROUP])
{
    double sum[GROUP] = {};

    for (int64_t l = 0; l < depth; l++) {
        for (unsigned k = 0; k < GROUP; k++) {
            sum[k] += a[l] * group[l * GROUP + k];
        }
    }
    memcpy(sums, sum, sizeof(sum));
}

static void finish(const struct product &product, int64_t i, int64_t j, double sum)
{
    int64_t to = j * product.ldc + i;

    sum *= product.alpha;
    if (product.beta != 0.0f) {
        sum += product.beta * item(product.c, product.c_type, to);
    }
    if (product.bias != NULL) {
        sum += item(product.bias, product.c_type, i);
    }
    store(product.c, product.c_type, to, (float)sum);
}

static void multiply(const struct product &product)
{
    int64_t depth = product.k;
    struct vectors rows = {product.a, product.type, product.m, 1, depth, product.lda};
    struct vectors columns = {product.b, product.type, product.n, product.ldb, depth, 1};

    if (product.a_is_transposed) {
        std::swap(rows.step, rows.depth_step);
    }
    if (product.b_is_transposed) {
        std::swap(columns.step, columns.depth_step);
    }
    std::vector<double> a = pack(rows, 1);
    std::vector<double> b = pack(columns, GROUP);

    for (int64_t i = 0; i < product.m; i++) {
        for (int64_t j = 0; j < product.n; j += GROUP) {
            double sums[GROUP];

            multiply_group(a.data() + i * depth, b.data() + j * depth, depth, sums);
            for (int64_t k = 0; k < GROUP && j + k < product.n; k++) {
                finish(product, i, j + k, sums[k]);
            }
        }
    }
}

void product_enqueue(cudaStream_t stream, const struct product *product)
{
    struct product kept = *product;

    fake_enqueue(stream, [=] {
        multiply(kept);
        return true;
    });
}

bool product_types_match(cudaDataType a, cudaDataType b, cudaDataType c,
                         cublasComputeType_t arithmetic)
{
    return a == b && (a == CUDA_R_32F ? c == CUDA_R_32F : arithmetic == CUBLAS_COMPUTE_32F);
}
