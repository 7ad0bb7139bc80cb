/*
 * Tiles and products of matrices, which a warp holds in pieces, see exchange.h. Lane i holds of row
 * i/4 the columns 2(i%4) and 2(i%4)+1 of a tile of 8 by 8 halves, packed into a word.
 *
 * PRODUCT: four words of A, from 4 on two of B, from 6 on four of the sum, which are f32. Products
 * are added in order of k, in f32; hardware may add several at once, so results agree to rounding.
 */
#include "tests/ptx/machine/exchange.h"

#include "tests/ptx/machine/prelude_convert.h"

bool exchange_is_matrix(enum ptx_exchange kind)
{
    return kind >= PTX_TILES_1;
}

static uint16_t tile_item(const struct exchange *exchange, unsigned tile, unsigned row,
                          unsigned column)
{
    unsigned lane = tile * 8 + row;
    uint64_t address = (uint64_t)exchange->in[lane][1] << 32 | exchange->in[lane][0];
    uint16_t item;

    memcpy(&item, (const unsigned char *)address + column * sizeof(item), sizeof(item));
    return item;
}

static void load_tiles(const struct exchange *exchange, unsigned count, bool is_turned)
{
    for (unsigned lane = 0; lane < EXCHANGE_LANES; lane++) {
        for (unsigned tile = 0; tile < count; tile++) {
            unsigned row = lane / 4;
            unsigned column = lane % 4 * 2;

            exchange->out[lane][tile] =
                is_turned ? tile_item(exchange, tile, column, row) |
                                (uint32_t)tile_item(exchange, tile, column + 1, row) << 16
                          : tile_item(exchange, tile, row, column) |
                                (uint32_t)tile_item(exchange, tile, row, column + 1) << 16;
        }
    }
}

/* Items of A (16 by k) and B (k by 8). Words of 16-bit items: word 0 has the rows below 8 and the
   columns below 8, word 1 the rows from 8 on, words 2 and 3 the columns from 8 on. */
static uint16_t half_a(const struct exchange *exchange, unsigned row, unsigned k)
{
    unsigned lane = row % 8 * 4 + k % 8 / 2;
    uint32_t word = exchange->in[lane][row / 8 + 2 * (k / 8)];

    return (uint16_t)(word >> 16 * (k % 2));
}

static uint16_t half_b(const struct exchange *exchange, unsigned k, unsigned column)
{
    uint32_t word = exchange->in[column * 4 + k % 8 / 2][4 + k / 8];

    return (uint16_t)(word >> 16 * (k % 2));
}

/* tf32: one item per word, four columns each. */
static float tf32_a(const struct exchange *exchange, unsigned row, unsigned k)
{
    return f32_of(exchange->in[row % 8 * 4 + k % 4][row / 8 + 2 * (k / 4)] & 0xffffe000);
}

static float tf32_b(const struct exchange *exchange, unsigned k, unsigned column)
{
    return f32_of(exchange->in[column * 4 + k % 4][4 + k / 4] & 0xffffe000);
}

static float product(const struct exchange *exchange, unsigned row, unsigned k, unsigned column)
{
    switch (exchange->kind) {
    case PTX_PRODUCT_BF16_8:
    case PTX_PRODUCT_BF16_16:
        return (float)(from_bf16(half_a(exchange, row, k)) *
                       from_bf16(half_b(exchange, k, column)));
    case PTX_PRODUCT_F16_8:
    case PTX_PRODUCT_F16_16:
        return (float)(from_f16(half_a(exchange, row, k)) * from_f16(half_b(exchange, k, column)));
    default:
        return tf32_a(exchange, row, k) * tf32_b(exchange, k, column);
    }
}

static void multiply(const struct exchange *exchange, unsigned depth)
{
    for (unsigned lane = 0; lane < EXCHANGE_LANES; lane++) {
        for (unsigned i = 0; i < 4; i++) {
            unsigned row = lane / 4 + i / 2 * 8;
            unsigned column = lane % 4 * 2 + i % 2;
            float sum = f32_of(exchange->in[lane][6 + i]);

            for (unsigned k = 0; k < depth; k++) {
                sum += product(exchange, row, k, column);
            }
            exchange->out[lane][i] = bits_f32(sum);
        }
    }
}

void exchange_compute_matrix(const struct exchange *exchange)
{
    switch (exchange->kind) {
    case PTX_TILES_1:
    case PTX_TILES_2:
    case PTX_TILES_4:
        load_tiles(exchange, 1u << (exchange->kind - PTX_TILES_1), false);
        break;
    case PTX_TILES_1_TURNED:
    case PTX_TILES_2_TURNED:
    case PTX_TILES_4_TURNED:
        load_tiles(exchange, 1u << (exchange->kind - PTX_TILES_1_TURNED), true);
        break;
    case PTX_PRODUCT_TF32_4:
        multiply(exchange, 4);
        break;
    case PTX_PRODUCT_BF16_8:
    case PTX_PRODUCT_F16_8:
    case PTX_PRODUCT_TF32_8:
        multiply(exchange, 8);
        break;
    default:
        multiply(exchange, 16);
        break;
    }
}
