/*
 * Matrices that a warp holds in pieces ("fragments"), as PTX lays them out for mma. wmma leaves the
 * layout open; here it is the same one.
 *
 * Lanes come in eight groups of four. A tile has 8 rows of A, or columns of B, one per group. In it
 * each lane of the group holds one word's items along k; of sums, two columns of its row. Words of
 * A, and pairs of sums, go through the tiles by rows first; words of B along k first.
 */
#ifndef CAPU_TESTS_PTX_MACHINE_MATRIX_H
#define CAPU_TESTS_PTX_MACHINE_MATRIX_H

#include "tests/ptx/machine/thread.h"

enum { MATRIX_SIDE_MOST = 32, MATRIX_WORDS_MOST = 16 };

struct matrix_place {
    uint32_t row, column;
};

static inline uint32_t matrix_rows(const struct ptx_product *product, enum ptx_matrix which)
{
    return which == PTX_MATRIX_B ? product->k : product->m;
}

static inline uint32_t matrix_columns(const struct ptx_product *product, enum ptx_matrix which)
{
    return which == PTX_MATRIX_A ? product->k : product->n;
}

static inline enum ptx_format matrix_format(const struct ptx_product *product,
                                            enum ptx_matrix which)
{
    return product->formats[which];
}

static inline uint32_t matrix_item_bytes(enum ptx_format format)
{
    return format == PTX_F64                                              ? 8
           : format == PTX_F32 || format == PTX_TF32 || format == PTX_S32 ? 4
           : format == PTX_F16 || format == PTX_BF16                      ? 2
                                                                          : 1;
}

/* How many items of a matrix each lane holds. */
static inline uint32_t matrix_items(const struct ptx_product *product, enum ptx_matrix which)
{
    return matrix_rows(product, which) * matrix_columns(product, which) / 32;
}

/* How many words they take. */
static inline uint32_t matrix_words(const struct ptx_product *product, enum ptx_matrix which)
{
    return matrix_items(product, which) * matrix_item_bytes(matrix_format(product, which)) / 4;
}

/* Where an item of a lane is in its matrix. */
static inline struct matrix_place matrix_place(const struct ptx_product *product,
                                               enum ptx_matrix which, uint32_t lane, uint32_t item)
{
    bool is_sum = which >= PTX_MATRIX_C;
    uint32_t bytes = matrix_item_bytes(matrix_format(product, which));
    uint32_t run = is_sum ? 2 : bytes < 4 ? 4 / bytes : 1; /* items that are neighbours */
    uint32_t rows = matrix_rows(product, which) / 8;
    uint32_t depth = product->k / (4 * run);
    uint32_t tile = item / run;
    uint32_t outer = which == PTX_MATRIX_B ? tile / depth : tile % rows;
    uint32_t inner = which == PTX_MATRIX_B ? tile % depth : tile / rows;

    outer = outer * 8 + lane / 4;
    inner = inner * 4 * run + lane % 4 * run + item % run;
    return which == PTX_MATRIX_B ? (struct matrix_place){inner, outer}
                                 : (struct matrix_place){outer, inner};
}

#endif
