/*
 * Tiles and products of matrices, which a warp holds in pieces, see exchange.h. Lane i holds of row
 * i/4 the columns 2(i%4) and 2(i%4)+1 of a tile of 8 by 8 halves, packed into a word.
 *
 * TILES_LOAD and TILES_STORE pass how many tiles there are, whether they are turned, two halves of
 * the address of a row, and the words to be stored; TILES_TURN passes a word. PRODUCT passes a
 * struct ptx_product, and then the words of A, B and C, see matrix.h. Products are added in order
 * of k; hardware may add several at once, so results agree to rounding. Sums are rounded to f32 at
 * each step, also where the result is f16, and to f64 where that is their format; those of integers
 * are exact until the end.
 */
#include "tests/ptx/machine/exchange.h"

#include "tests/ptx/machine/matrix.h"
#include "tests/ptx/machine/prelude_convert.h"

bool exchange_is_matrix(enum ptx_exchange kind)
{
    return kind >= PTX_TILES_LOAD;
}

/* Tiles. */

enum { TILES_COUNT, TILES_TURNED, TILES_LOW, TILES_HIGH, TILES_WORDS };

static unsigned char *tile_item(const struct exchange *exchange, unsigned tile, unsigned row,
                                unsigned column)
{
    const uint32_t *in = exchange->in[tile * 8 + row];
    uint64_t address = (uint64_t)in[TILES_HIGH] << 32 | in[TILES_LOW];

    return (unsigned char *)address + column * sizeof(uint16_t);
}

/* One of both items of a lane. */
static unsigned char *item_of_lane(const struct exchange *exchange, unsigned tile, unsigned lane,
                                   unsigned i)
{
    unsigned row = lane / 4;
    unsigned column = lane % 4 * 2 + i;

    return exchange->in[lane][TILES_TURNED] != 0 ? tile_item(exchange, tile, column, row)
                                                 : tile_item(exchange, tile, row, column);
}

static void load_tiles(const struct exchange *exchange)
{
    for (unsigned lane = 0; lane < EXCHANGE_LANES; lane++) {
        for (unsigned tile = 0; tile < exchange->in[lane][TILES_COUNT]; tile++) {
            exchange->out[lane][tile] = get_u16(item_of_lane(exchange, tile, lane, 0)) |
                                        (uint32_t)get_u16(item_of_lane(exchange, tile, lane, 1))
                                            << 16;
        }
    }
}

static void store_tiles(const struct exchange *exchange)
{
    for (unsigned lane = 0; lane < EXCHANGE_LANES; lane++) {
        for (unsigned tile = 0; tile < exchange->in[lane][TILES_COUNT]; tile++) {
            uint32_t word = exchange->in[lane][TILES_WORDS + tile];

            put_u16(item_of_lane(exchange, tile, lane, 0), (uint16_t)word);
            put_u16(item_of_lane(exchange, tile, lane, 1), (uint16_t)(word >> 16));
        }
    }
}

static uint32_t turned_item(const struct exchange *exchange, unsigned row, unsigned column)
{
    return exchange->in[column * 4 + row / 2][0] >> 16 * (row % 2) & 0xffff;
}

static void turn_tile(const struct exchange *exchange)
{
    for (unsigned lane = 0; lane < EXCHANGE_LANES; lane++) {
        unsigned column = lane % 4 * 2;

        exchange->out[lane][0] = turned_item(exchange, lane / 4, column) |
                                 turned_item(exchange, lane / 4, column + 1) << 16;
    }
}

/* Products. */

enum { PRODUCT_WORDS = sizeof(struct ptx_product) / sizeof(uint32_t) };

/* What items are, exactly. */
typedef double matrix[MATRIX_SIDE_MOST][MATRIX_SIDE_MOST];

static double number_of(const uint32_t *words, uint32_t item, enum ptx_format format)
{
    const unsigned char *at = (const unsigned char *)words + item * matrix_item_bytes(format);

    switch (format) {
    case PTX_F16:
        return from_f16(get_u16(at));
    case PTX_BF16:
        return from_bf16(get_u16(at));
    case PTX_TF32:
        return f32_of(get_u32(at) & 0xffffe000);
    case PTX_E4M3:
        return from_e4m3(get_u8(at));
    case PTX_E5M2:
        return from_e5m2(get_u8(at));
    case PTX_S8:
        return (int8_t)get_u8(at);
    case PTX_U8:
        return get_u8(at);
    case PTX_F32:
        return f32_of(get_u32(at));
    case PTX_F64:
        return f64_of(get_u64(at));
    case PTX_S32:
        return (int32_t)get_u32(at);
    }
    return NAN;
}

static void put_number(uint32_t *words, uint32_t item, double value,
                       const struct ptx_product *product)
{
    enum ptx_format format = matrix_format(product, PTX_MATRIX_D);
    unsigned char *at = (unsigned char *)words + item * matrix_item_bytes(format);

    if (format == PTX_F16) {
        put_u16(at, to_f16(value, ROUND_RN));
    } else if (format == PTX_F64) {
        put_u64(at, bits_f64(value));
    } else if (format == PTX_S32) {
        put_u32(at, (uint32_t)(product->saturates ? clamped((int64_t)value, 32, true)
                                                  : (int64_t)value));
    } else {
        put_u32(at, bits_f32((float)value));
    }
}

/* Collects a matrix, whose words are at `first` of each lane. */
static void collect(const struct exchange *exchange, const struct ptx_product *product,
                    enum ptx_matrix which, uint32_t first, matrix items)
{
    for (unsigned lane = 0; lane < EXCHANGE_LANES; lane++) {
        for (unsigned i = 0; i < matrix_items(product, which); i++) {
            struct matrix_place place = matrix_place(product, which, lane, i);

            items[place.row][place.column] =
                number_of(exchange->in[lane] + first, i, matrix_format(product, which));
        }
    }
}

static double sum_of(const struct ptx_product *product, const double *a, const matrix b,
                     unsigned column, double sum)
{
    enum ptx_format format = matrix_format(product, PTX_MATRIX_A);

    for (unsigned k = 0; k < product->k; k++) {
        double by = b[k][column];

        if (format == PTX_F64) {
            sum = fma(a[k], by, sum);
        } else if (format == PTX_S8 || format == PTX_U8) {
            sum += a[k] * by;
        } else {
            sum = (float)sum + (float)(a[k] * by);
        }
    }
    return sum;
}

static void multiply(const struct exchange *exchange)
{
    static matrix a, b, c; /* one launch runs at a time */
    struct ptx_product product;
    uint32_t first = PRODUCT_WORDS;

    memcpy(&product, exchange->in[0], sizeof(product));
    collect(exchange, &product, PTX_MATRIX_A, first, a);
    first += matrix_words(&product, PTX_MATRIX_A);
    collect(exchange, &product, PTX_MATRIX_B, first, b);
    first += matrix_words(&product, PTX_MATRIX_B);
    collect(exchange, &product, PTX_MATRIX_C, first, c);
    for (unsigned lane = 0; lane < EXCHANGE_LANES; lane++) {
        for (unsigned i = 0; i < matrix_items(&product, PTX_MATRIX_D); i++) {
            struct matrix_place place = matrix_place(&product, PTX_MATRIX_D, lane, i);

            put_number(exchange->out[lane], i,
                       sum_of(&product, a[place.row], b, place.column, c[place.row][place.column]),
                       &product);
        }
    }
}

void exchange_compute_matrix(const struct exchange *exchange)
{
    switch (exchange->kind) {
    case PTX_TILES_LOAD:
        load_tiles(exchange);
        break;
    case PTX_TILES_STORE:
        store_tiles(exchange);
        break;
    case PTX_TILES_TURN:
        turn_tile(exchange);
        break;
    default:
        multiply(exchange);
        break;
    }
}
