/*
 * fused_attention on the host. A task is one head of one sequence; it goes through the tiles of
 * queries and keys in order. A tile of scores lives on the stack.
 */
#include "kernels/fused_attention.h"

#include "kernels/copies.h"
#include "kernels/exponential.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "kernels/reduce.h"

#include <math.h>
#include <stddef.h>

/* Which shapes fused_attention accepts, the same on every device. */

/* Tiles along a side of a grid. */
#define TILES_LIMIT 65535u

capu_status fused_attention_check(const struct fused_attention *attention)
{
    return attention->head_channels <= FUSED_ATTENTION_CHANNELS &&
                   attention->length <= FUSED_ATTENTION_TILE * TILES_LIMIT
               ? CAPU_OK
               : CAPU_TOO_LARGE;
}

enum { QUERY = 0, KEY = 1, VALUE = 2, PARTS = 3 };

#define TILE ((size_t)FUSED_ATTENTION_TILE)

/* One head of one sequence. Its rows lie `stride` items apart. */
struct rows {
    float *first;
    size_t stride;
};

struct head {
    struct rows part[PARTS];
    struct rows part_gradient[PARTS];
    struct rows output;
    struct rows output_gradient;
    float *log_sums;
    float *products;
    size_t length;
    size_t channels;
    float scale;
};

/* Of a buffer whose rows hold `groups` x heads x head_channels items. Tiles only see fp32: the
   buffer or its copy. NULL for NULL. */
static struct rows rows_of(const struct fused_attention *attention, const void *buffer, size_t task,
                           size_t groups, size_t group)
{
    size_t b = task / attention->heads;
    size_t head = task % attention->heads;
    size_t stride = groups * attention->heads * attention->head_channels;
    size_t offset = b * attention->length * stride +
                    (group * attention->heads + head) * attention->head_channels;

    return (struct rows){buffer != NULL ? (float *)buffer + offset : NULL, stride};
}

static struct head head_of(const struct fused_attention *attention, size_t task)
{
    struct head head = {
        .output = rows_of(attention, attention->output, task, 1, 0),
        .output_gradient = rows_of(attention, attention->output_gradient, task, 1, 0),
        .log_sums = attention->log_sums + task * attention->length,
        .length = attention->length,
        .channels = attention->head_channels,
        .scale = 1.0f / sqrtf((float)attention->head_channels),
    };

    for (size_t part = QUERY; part < PARTS; part++) {
        head.part[part] = rows_of(attention, attention->qkv, task, PARTS, part);
        head.part_gradient[part] = rows_of(attention, attention->qkv_gradient, task, PARTS, part);
    }
    if (attention->products != NULL) {
        head.products = attention->products + task * attention->length;
    }
    return head;
}

static size_t tile_rows(const struct head *head, size_t first)
{
    return head->length - first < TILE ? head->length - first : TILE;
}

static float *row_at(const struct rows *rows, size_t t)
{
    return rows->first + t * rows->stride;
}

/* square = the rows of a from `a_first` x the rows of b from `b_first`, transposed. */
static void multiply_rows(const struct head *head, const struct rows *a, size_t a_first,
                          const struct rows *b, size_t b_first, float square[])
{
    gemm_block(&(struct gemm){
        .rows = tile_rows(head, a_first),
        .columns = tile_rows(head, b_first),
        .depth = head->channels,
        .a = row_at(a, a_first),
        .a_stride = a->stride,
        .b = row_at(b, b_first),
        .b_stride = b->stride,
        .b_transposed = true,
        .c = square,
        .c_stride = TILE,
    });
}

/* The rows of `to` from `to_first` = square, or its transpose, x the rows of b from `b_first`; they
   are added to what is there unless is_first. */
static void add_rows(const struct head *head, const float square[], bool is_transposed,
                     const struct rows *b, size_t b_first, const struct rows *to, size_t to_first,
                     bool is_first)
{
    gemm_block(&(struct gemm){
        .rows = tile_rows(head, to_first),
        .columns = head->channels,
        .depth = tile_rows(head, b_first),
        .a = square,
        .a_stride = TILE,
        .a_transposed = is_transposed,
        .b = row_at(b, b_first),
        .b_stride = b->stride,
        .c = row_at(to, to_first),
        .c_stride = to->stride,
        .beta = is_first ? 0.0f : 1.0f,
    });
}

/* How many keys of the tile from `key` the query may see. */
static size_t seen_keys(size_t query, size_t key, size_t keys)
{
    return query + 1 - key < keys ? query + 1 - key : keys;
}

/* Turns a row of scores into weights relative to the largest score so far, and scales the output so
   far to it. */
static void weigh_row(const struct head *head, float weights[], size_t seen, size_t keys,
                      float *most, float *sum, float *output)
{
    float largest = *most;
    float correction;

    for (size_t i = 0; i < seen; i++) {
        largest = weights[i] > largest ? weights[i] : largest;
    }
    for (size_t i = 0; i < seen; i++) {
        weights[i] = exponential((weights[i] - largest) * head->scale);
    }
    for (size_t i = seen; i < keys; i++) {
        weights[i] = 0.0f;
    }
    correction = exponential((*most - largest) * head->scale);
    *sum = *sum * correction + reduce_sum(weights, seen);
    *most = largest;
    for (size_t c = 0; c < head->channels; c++) {
        output[c] *= correction;
    }
}

static void forward_tile(const struct head *head, size_t query)
{
    float weights[TILE * TILE];
    float most[TILE];
    float sums[TILE] = {0};
    size_t rows = tile_rows(head, query);

    for (size_t key = 0; key <= query; key += TILE) {
        multiply_rows(head, &head->part[QUERY], query, &head->part[KEY], key, weights);
        for (size_t i = 0; i < rows; i++) {
            float *output = row_at(&head->output, query + i);

            if (key == 0) {
                most[i] = weights[i * TILE];
                for (size_t c = 0; c < head->channels; c++) {
                    output[c] = 0.0f;
                }
            }
            weigh_row(head, weights + i * TILE, seen_keys(query + i, key, tile_rows(head, key)),
                      tile_rows(head, key), &most[i], &sums[i], output);
        }
        add_rows(head, weights, false, &head->part[VALUE], key, &head->output, query, false);
    }
    for (size_t i = 0; i < rows; i++) {
        float *output = row_at(&head->output, query + i);
        float factor = 1.0f / sums[i];

        for (size_t c = 0; c < head->channels; c++) {
            output[c] *= factor;
        }
        head->log_sums[query + i] = most[i] * head->scale + logf(sums[i]);
    }
}

static void forward_task(const void *arguments, size_t task)
{
    struct head head = head_of(arguments, task);

    for (size_t query = 0; query < head.length; query += TILE) {
        forward_tile(&head, query);
    }
}

/* Turns scores into weights, and the gradients of weights into those of scores. */
static void weigh_tile(const struct head *head, size_t query, size_t key, float weights[],
                       float gradients[])
{
    size_t rows = tile_rows(head, query);
    size_t keys = tile_rows(head, key);

    for (size_t i = 0; i < rows; i++) {
        size_t seen = seen_keys(query + i, key, keys);
        float log_sum = head->log_sums[query + i];
        float product = head->products[query + i];

        for (size_t j = 0; j < keys; j++) {
            size_t at = i * TILE + j;
            float weight = j < seen ? exponential(weights[at] * head->scale - log_sum) : 0.0f;

            weights[at] = weight;
            gradients[at] = weight * (gradients[at] - product) * head->scale;
        }
    }
}

static void backward_tile(const struct head *head, size_t query, size_t key)
{
    float weights[TILE * TILE];
    float gradients[TILE * TILE];
    bool is_first = query == key;

    multiply_rows(head, &head->part[QUERY], query, &head->part[KEY], key, weights);
    multiply_rows(head, &head->output_gradient, query, &head->part[VALUE], key, gradients);
    weigh_tile(head, query, key, weights, gradients);
    add_rows(head, weights, true, &head->output_gradient, query, &head->part_gradient[VALUE], key,
             is_first);
    add_rows(head, gradients, true, &head->part[QUERY], query, &head->part_gradient[KEY], key,
             is_first);
    add_rows(head, gradients, false, &head->part[KEY], key, &head->part_gradient[QUERY], query,
             key == 0);
}

static void backward_task(const void *arguments, size_t task)
{
    struct head head = head_of(arguments, task);

    for (size_t t = 0; t < head.length; t++) {
        head.products[t] = reduce_product(row_at(&head.output, t), 0.0f,
                                          row_at(&head.output_gradient, t), 0.0f, head.channels);
    }
    for (size_t key = 0; key < head.length; key += TILE) {
        for (size_t query = key; query < head.length; query += TILE) {
            backward_tile(&head, query, key);
        }
    }
}

static size_t part_items(const struct fused_attention *attention)
{
    return (size_t)attention->batch * attention->length * attention->heads *
           attention->head_channels;
}

capu_status fused_attention_forward_host(capu_stream stream, const void *arguments)
{
    struct fused_attention attention = *(const struct fused_attention *)arguments;
    struct copies copies = {.element = attention.element};
    capu_status status = fused_attention_check(&attention);

    (void)stream;
    if (status != CAPU_OK) {
        return status;
    }
    attention.qkv = copies_read(&copies, attention.qkv, PARTS * part_items(&attention));
    attention.output = copies_write(&copies, attention.output, part_items(&attention));
    attention.qkv_gradient = NULL;
    attention.products = NULL;
    if (copies.status == CAPU_OK) {
        parallel_run((size_t)attention.batch * attention.heads, forward_task, &attention);
    }
    return copies_finish(&copies);
}

capu_status fused_attention_backward_host(capu_stream stream, const void *arguments)
{
    struct fused_attention attention = *(const struct fused_attention *)arguments;
    struct copies copies = {.element = attention.element};
    size_t part = part_items(&attention);
    capu_status status = fused_attention_check(&attention);

    (void)stream;
    if (status != CAPU_OK) {
        return status;
    }
    attention.qkv = copies_read(&copies, attention.qkv, PARTS * part);
    attention.output = (void *)copies_read(&copies, attention.output, part);
    attention.output_gradient = copies_read(&copies, attention.output_gradient, part);
    attention.qkv_gradient = copies_write(&copies, attention.qkv_gradient, PARTS * part);
    if (copies.status == CAPU_OK) {
        parallel_run((size_t)attention.batch * attention.heads, backward_task, &attention);
    }
    return copies_finish(&copies);
}
