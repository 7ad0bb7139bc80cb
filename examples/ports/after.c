/*
 * A small GPT, after: a trainer without a framework, all on one page. It learns to continue
 * sequences of symbols. There is one allocation per kind of tensor (weights, their gradients, the
 * two moments of AdamW, activations, their gradients), which is divided into tensors by hand, and
 * launchers take plain pointers and numbers. `diff before.c after.c` shows what using the library
 * takes.
 */
#define CAPU_LAUNCHER_CHECK(status) check(status)
#include "capuchin/launcher.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LAYERS = 4,
    BATCH = 4,
    LENGTH = 32, /* of a sequence */
    WIDTH = 64,
    HEADS = 4,
    SYMBOLS = 80,
    STEPS = 8,
    ROWS = BATCH * LENGTH,
    HEAD = WIDTH / HEADS,
    TENSORS_MAX = 96
};

static void check(int error)
{
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", capu_status_text(error),
                capu_last_error(capu_context_current()));
        exit(1);
    }
}

/* Inputs and targets are the same symbols; a target is one further. */
static int symbol_at(const int *symbols, int row, int shift)
{
    return symbols[row / LENGTH * (LENGTH + 1) + row % LENGTH + shift];
}

static CAPU_LAUNCHER(embed_forward, (float *, out, writes), (const int *, symbols, reads),
                     (const float *, words, reads), (const float *, places, reads))
{
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < WIDTH; i++) {
            out[row * WIDTH + i] =
                words[symbol_at(symbols, row, 0) * WIDTH + i] + places[row % LENGTH * WIDTH + i];
        }
    }
}

static CAPU_LAUNCHER(embed_backward, (float *, d_words, updates), (float *, d_places, updates),
                     (const float *, d_out, reads), (const int *, symbols, reads))
{
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < WIDTH; i++) {
            d_words[symbol_at(symbols, row, 0) * WIDTH + i] += d_out[row * WIDTH + i];
            d_places[row % LENGTH * WIDTH + i] += d_out[row * WIDTH + i];
        }
    }
}

/* Divides each row by its root mean square. A weight is the distance of a factor from 1. */
static CAPU_LAUNCHER(norm_forward, (float *, out, writes), (float *, scales, writes),
                     (const float *, in, reads), (const float *, weight, reads))
{
    for (int row = 0; row < ROWS; row++) {
        const float *x = in + row * WIDTH;
        float sum = 0.0f;

        for (int i = 0; i < WIDTH; i++) {
            sum += x[i] * x[i];
        }
        scales[row] = 1.0f / sqrtf(sum / WIDTH + 1e-5f);
        for (int i = 0; i < WIDTH; i++) {
            out[row * WIDTH + i] = x[i] * scales[row] * (1.0f + weight[i]);
        }
    }
}

static CAPU_LAUNCHER(norm_backward, (float *, d_in, updates), (float *, d_weight, updates),
                     (const float *, d_out, reads), (const float *, in, reads),
                     (const float *, weight, reads), (const float *, scales, reads))
{
    for (int row = 0; row < ROWS; row++) {
        const float *x = in + row * WIDTH;
        const float *d_y = d_out + row * WIDTH;
        float scale = scales[row];
        float sum = 0.0f;

        for (int i = 0; i < WIDTH; i++) {
            sum += d_y[i] * (1.0f + weight[i]) * x[i];
            d_weight[i] += d_y[i] * x[i] * scale;
        }
        sum *= scale * scale / WIDTH;
        for (int i = 0; i < WIDTH; i++) {
            d_in[row * WIDTH + i] += scale * (d_y[i] * (1.0f + weight[i]) - x[i] * sum);
        }
    }
}

static CAPU_LAUNCHER(matmul_forward, (float *, out, writes), (const float *, in, reads),
                     (const float *, weight, reads), (const float *, bias, reads),
                     (int, width, value), (int, columns, value))
{
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < columns; column++) {
            float sum = bias != NULL ? bias[column] : 0.0f;

            for (int i = 0; i < width; i++) {
                sum += in[row * width + i] * weight[column * width + i];
            }
            out[row * columns + column] = sum;
        }
    }
}

static CAPU_LAUNCHER(matmul_backward, (float *, d_in, updates), (float *, d_weight, updates),
                     (float *, d_bias, updates), (const float *, d_out, reads),
                     (const float *, in, reads), (const float *, weight, reads),
                     (int, width, value), (int, columns, value))
{
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < columns; column++) {
            float d = d_out[row * columns + column];

            for (int i = 0; i < width; i++) {
                d_in[row * width + i] += d * weight[column * width + i];
                d_weight[column * width + i] += d * in[row * width + i];
            }
            if (d_bias != NULL) {
                d_bias[column] += d;
            }
        }
    }
}

/* The keys of a row of queries are those of its sequence up to it. */
static void attend(float *shares, const float *query, const float *keys, int count)
{
    float most = -INFINITY;
    float sum = 0.0f;

    for (int k = 0; k < count; k++) {
        float score = 0.0f;

        for (int i = 0; i < HEAD; i++) {
            score += query[i] * keys[k * 3 * WIDTH + i];
        }
        shares[k] = score / sqrtf(HEAD);
        most = fmaxf(most, shares[k]);
    }
    for (int k = 0; k < count; k++) {
        shares[k] = expf(shares[k] - most);
        sum += shares[k];
    }
    for (int k = 0; k < LENGTH; k++) {
        shares[k] = k < count ? shares[k] / sum : 0.0f;
    }
}

static CAPU_LAUNCHER(attention_forward, (float *, out, writes), (float *, shares, writes),
                     (const float *, qkv, reads))
{
    for (int row = 0; row < ROWS; row++) {
        for (int head = 0; head < HEADS; head++) {
            const float *query = qkv + row * 3 * WIDTH + head * HEAD;
            const float *keys = query - row % LENGTH * 3 * WIDTH + WIDTH;
            float *share = shares + (row * HEADS + head) * LENGTH;
            float *to = out + row * WIDTH + head * HEAD;

            attend(share, query, keys, row % LENGTH + 1);
            for (int i = 0; i < HEAD; i++) {
                to[i] = 0.0f;
                for (int k = 0; k <= row % LENGTH; k++) {
                    to[i] += share[k] * keys[k * 3 * WIDTH + WIDTH + i];
                }
            }
        }
    }
}

static CAPU_LAUNCHER(attention_backward, (float *, d_qkv, updates), (const float *, d_out, reads),
                     (const float *, qkv, reads), (const float *, shares, reads))
{
    for (int row = 0; row < ROWS; row++) {
        for (int head = 0; head < HEADS; head++) {
            const float *query = qkv + row * 3 * WIDTH + head * HEAD;
            const float *keys = query - row % LENGTH * 3 * WIDTH + WIDTH;
            const float *share = shares + (row * HEADS + head) * LENGTH;
            const float *from = d_out + row * WIDTH + head * HEAD;
            float *d_query = d_qkv + (query - qkv);
            float *d_keys = d_qkv + (keys - qkv);
            float d_share[LENGTH];
            float sum = 0.0f;

            for (int k = 0; k <= row % LENGTH; k++) {
                d_share[k] = 0.0f;
                for (int i = 0; i < HEAD; i++) {
                    d_share[k] += from[i] * keys[k * 3 * WIDTH + WIDTH + i];
                    d_keys[k * 3 * WIDTH + WIDTH + i] += share[k] * from[i];
                }
                sum += d_share[k] * share[k];
            }
            for (int k = 0; k <= row % LENGTH; k++) {
                float d_score = share[k] * (d_share[k] - sum) / sqrtf(HEAD);

                for (int i = 0; i < HEAD; i++) {
                    d_query[i] += d_score * keys[k * 3 * WIDTH + i];
                    d_keys[k * 3 * WIDTH + i] += d_score * query[i];
                }
            }
        }
    }
}

static CAPU_LAUNCHER(swish_forward, (float *, out, writes), (const float *, in, reads))
{
    for (int i = 0; i < ROWS * 4 * WIDTH; i++) {
        out[i] = in[i] / (1.0f + expf(-in[i]));
    }
}

static CAPU_LAUNCHER(swish_backward, (float *, d_in, updates), (const float *, in, reads),
                     (const float *, d_out, reads))
{
    for (int i = 0; i < ROWS * 4 * WIDTH; i++) {
        float gate = 1.0f / (1.0f + expf(-in[i]));

        d_in[i] += d_out[i] * gate * (1.0f + in[i] * (1.0f - gate));
    }
}

static CAPU_LAUNCHER(add_forward, (float *, out, writes), (const float *, a, reads),
                     (const float *, b, reads))
{
    for (int i = 0; i < ROWS * WIDTH; i++) {
        out[i] = a[i] + b[i];
    }
}

static CAPU_LAUNCHER(add_backward, (float *, d_a, updates), (float *, d_b, updates),
                     (const float *, d_out, reads))
{
    for (int i = 0; i < ROWS * WIDTH; i++) {
        d_a[i] += d_out[i];
        d_b[i] += d_out[i];
    }
}

/* The loss of each row, and the gradient of the logits for the mean of all rows. */
static CAPU_LAUNCHER(measure, (float *, losses, writes), (float *, d_logits, writes),
                     (const float *, logits, reads), (const int *, symbols, reads))
{
    for (int row = 0; row < ROWS; row++) {
        const float *logit = logits + row * SYMBOLS;
        float *d_logit = d_logits + row * SYMBOLS;
        int target = symbol_at(symbols, row, 1);
        float most = -INFINITY;
        float sum = 0.0f;

        for (int i = 0; i < SYMBOLS; i++) {
            most = fmaxf(most, logit[i]);
        }
        for (int i = 0; i < SYMBOLS; i++) {
            d_logit[i] = expf(logit[i] - most);
            sum += d_logit[i];
        }
        losses[row] = -logf(d_logit[target] / sum);
        for (int i = 0; i < SYMBOLS; i++) {
            d_logit[i] = (d_logit[i] / sum - (i == target ? 1.0f : 0.0f)) / ROWS;
        }
    }
}

static CAPU_LAUNCHER(adamw, (float *, weight, updates), (float *, first, updates),
                     (float *, second, updates), (const float *, gradient, reads),
                     (size_t, count, value), (int, step, value))
{
    float first_part = 1.0f - powf(0.9f, (float)step);
    float second_part = 1.0f - powf(0.99f, (float)step);

    for (size_t i = 0; i < count; i++) {
        first[i] = 0.9f * first[i] + 0.1f * gradient[i];
        second[i] = 0.99f * second[i] + 0.01f * gradient[i] * gradient[i];
        weight[i] -= 3e-3f * (first[i] / first_part / (sqrtf(second[i] / second_part) + 1e-8f) +
                              0.01f * weight[i]);
    }
}

/* The weights, and in the same way their gradients and moments. */
struct weights {
    float *words, *places, *norm;
    struct weights_layer {
        float *norm_1, *qkv, *qkv_bias, *mix, *mix_bias;
        float *norm_2, *up, *up_bias, *down, *down_bias;
    } layers[LAYERS];
};

/* The activations, and in the same way their gradients. */
struct acts {
    float *embedded, *normed, *scales, *logits, *losses;
    struct acts_layer {
        float *normed_1, *scales_1, *qkv, *shares, *mixed, *projected, *middle;
        float *normed_2, *scales_2, *up, *bent, *down, *out;
    } layers[LAYERS];
};

/* An allocation and the tensors in it, in the order of their addresses. */
struct blob {
    float *start;
    size_t count; /* of floats, as below */
    int tensor_count;
    struct tensor {
        float **address;
        size_t count;
    } tensors[TENSORS_MAX];
};

enum { WEIGHTS, D_WEIGHTS, FIRST, SECOND, ACTS, D_ACTS, BLOBS };

static struct blob blobs[BLOBS];
static struct weights weights, d_weights, first, second;
static struct acts acts, d_acts;
static int *symbols;
static capu_context *context;
static const capu_kind kinds[BLOBS] = {CAPU_PARAMETER, CAPU_GRADIENT,   CAPU_OPTIMIZER,
                                       CAPU_OPTIMIZER, CAPU_ACTIVATION, CAPU_GRADIENT};

static void add(struct blob *blob, float **address, size_t count)
{
    blob->tensors[blob->tensor_count++] = (struct tensor){address, count};
    blob->count += count;
}

static void list_weights(struct blob *blob, struct weights *list)
{
    add(blob, &list->words, SYMBOLS * WIDTH);
    add(blob, &list->places, LENGTH * WIDTH);
    add(blob, &list->norm, WIDTH);
    for (struct weights_layer *w = list->layers; w < list->layers + LAYERS; w++) {
        add(blob, &w->norm_1, WIDTH);
        add(blob, &w->qkv, 3 * WIDTH * WIDTH);
        add(blob, &w->qkv_bias, 3 * WIDTH);
        add(blob, &w->mix, WIDTH * WIDTH);
        add(blob, &w->mix_bias, WIDTH);
        add(blob, &w->norm_2, WIDTH);
        add(blob, &w->up, 4 * WIDTH * WIDTH);
        add(blob, &w->up_bias, 4 * WIDTH);
        add(blob, &w->down, 4 * WIDTH * WIDTH);
        add(blob, &w->down_bias, WIDTH);
    }
}

static void list_acts(struct blob *blob, struct acts *list)
{
    add(blob, &list->embedded, ROWS * WIDTH);
    for (struct acts_layer *a = list->layers; a < list->layers + LAYERS; a++) {
        add(blob, &a->normed_1, ROWS * WIDTH);
        add(blob, &a->scales_1, ROWS);
        add(blob, &a->qkv, ROWS * 3 * WIDTH);
        add(blob, &a->shares, ROWS * HEADS * LENGTH);
        add(blob, &a->mixed, ROWS * WIDTH);
        add(blob, &a->projected, ROWS * WIDTH);
        add(blob, &a->middle, ROWS * WIDTH);
        add(blob, &a->normed_2, ROWS * WIDTH);
        add(blob, &a->scales_2, ROWS);
        add(blob, &a->up, ROWS * 4 * WIDTH);
        add(blob, &a->bent, ROWS * 4 * WIDTH);
        add(blob, &a->down, ROWS * WIDTH);
        add(blob, &a->out, ROWS * WIDTH);
    }
    add(blob, &list->normed, ROWS * WIDTH);
    add(blob, &list->scales, ROWS);
    add(blob, &list->logits, ROWS * SYMBOLS);
    add(blob, &list->losses, ROWS);
}

static void allocate(struct blob *blob)
{
    float *next;

    check(capu_drop_in_malloc((void **)&blob->start, blob->count * sizeof(float)));
    next = blob->start;
    for (int i = 0; i < blob->tensor_count; i++) {
        *blob->tensors[i].address = next;
        check(capu_split(context, next, blob->tensors[i].count * sizeof(float)));
        check(CAPU_DESCRIBE(context, next, .kind = kinds[blob - blobs]));
        next += blob->tensors[i].count;
    }
}

static void clear(struct blob *blob)
{
    check(capu_drop_in_memset(blob->start, 0, blob->count * sizeof(float)));
}

static void forward(void)
{
    const float *in = acts.embedded;

    embed_forward(acts.embedded, symbols, weights.words, weights.places);
    for (int i = 0; i < LAYERS; i++) {
        const struct weights_layer *w = &weights.layers[i];
        const struct acts_layer *a = &acts.layers[i];

        norm_forward(a->normed_1, a->scales_1, in, w->norm_1);
        matmul_forward(a->qkv, a->normed_1, w->qkv, w->qkv_bias, WIDTH, 3 * WIDTH);
        attention_forward(a->mixed, a->shares, a->qkv);
        matmul_forward(a->projected, a->mixed, w->mix, w->mix_bias, WIDTH, WIDTH);
        add_forward(a->middle, in, a->projected);
        norm_forward(a->normed_2, a->scales_2, a->middle, w->norm_2);
        matmul_forward(a->up, a->normed_2, w->up, w->up_bias, WIDTH, 4 * WIDTH);
        swish_forward(a->bent, a->up);
        matmul_forward(a->down, a->bent, w->down, w->down_bias, 4 * WIDTH, WIDTH);
        add_forward(a->out, a->middle, a->down);
        in = a->out;
    }
    norm_forward(acts.normed, acts.scales, in, weights.norm);
    matmul_forward(acts.logits, acts.normed, weights.words, NULL, WIDTH, SYMBOLS);
    measure(acts.losses, d_acts.logits, acts.logits, symbols);
}

static void backward(void)
{
    matmul_backward(d_acts.normed, d_weights.words, NULL, d_acts.logits, acts.normed, weights.words,
                    WIDTH, SYMBOLS);
    norm_backward(d_acts.layers[LAYERS - 1].out, d_weights.norm, d_acts.normed,
                  acts.layers[LAYERS - 1].out, weights.norm, acts.scales);
    for (int i = LAYERS; i-- > 0;) {
        const struct weights_layer *w = &weights.layers[i];
        const struct weights_layer *d_w = &d_weights.layers[i];
        const struct acts_layer *a = &acts.layers[i];
        const struct acts_layer *d_a = &d_acts.layers[i];
        const float *in = i > 0 ? acts.layers[i - 1].out : acts.embedded;
        float *d_in = i > 0 ? d_acts.layers[i - 1].out : d_acts.embedded;

        add_backward(d_a->middle, d_a->down, d_a->out);
        matmul_backward(d_a->bent, d_w->down, d_w->down_bias, d_a->down, a->bent, w->down,
                        4 * WIDTH, WIDTH);
        swish_backward(d_a->up, a->up, d_a->bent);
        matmul_backward(d_a->normed_2, d_w->up, d_w->up_bias, d_a->up, a->normed_2, w->up, WIDTH,
                        4 * WIDTH);
        norm_backward(d_a->middle, d_w->norm_2, d_a->normed_2, a->middle, w->norm_2, a->scales_2);
        add_backward(d_in, d_a->projected, d_a->middle);
        matmul_backward(d_a->mixed, d_w->mix, d_w->mix_bias, d_a->projected, a->mixed, w->mix,
                        WIDTH, WIDTH);
        attention_backward(d_a->qkv, d_a->mixed, a->qkv, a->shares);
        matmul_backward(d_a->normed_1, d_w->qkv, d_w->qkv_bias, d_a->qkv, a->normed_1, w->qkv,
                        WIDTH, 3 * WIDTH);
        norm_backward(d_in, d_w->norm_1, d_a->normed_1, in, w->norm_1, a->scales_1);
    }
    embed_backward(d_weights.words, d_weights.places, d_acts.embedded, symbols);
}

static void update(int step)
{
    for (int i = 0; i < blobs[WEIGHTS].tensor_count; i++) {
        adamw(*blobs[WEIGHTS].tensors[i].address, *blobs[FIRST].tensors[i].address,
              *blobs[SECOND].tensors[i].address, *blobs[D_WEIGHTS].tensors[i].address,
              blobs[WEIGHTS].tensors[i].count, step);
    }
}

/* The initial weights: matrices are random and small; the others are 0. */
static void upload_weights(const struct blob *blob)
{
    float *values = calloc(blob->count, sizeof(*values));
    unsigned state = 1;
    float *next = values;

    check(values == NULL);
    for (int i = 0; i < blob->tensor_count; i++) {
        size_t count = blob->tensors[i].count;

        for (size_t j = 0; count > 4 * WIDTH && j < count; j++) {
            state = state * 1664525u + 1013904223u;
            next[j] = ((float)(state >> 16) / 32768.0f - 1.0f) * 0.1f;
        }
        next += count;
    }
    check(capu_upload(context, blob->start, values, blob->count * sizeof(*values), 0));
    free(values);
}

/* A batch of sequences: from symbol to symbol is one of a few steps. */
static void upload_batch(int step)
{
    int batch[BATCH][LENGTH + 1];

    for (int i = 0; i < BATCH; i++) {
        batch[i][0] = (step * BATCH + i) % SYMBOLS;
        for (int j = 1; j <= LENGTH; j++) {
            batch[i][j] = (batch[i][j - 1] * 3 + j % 4 + 1) % SYMBOLS;
        }
    }
    check(capu_upload(context, symbols, batch, sizeof(batch), 0));
}

int main(void)
{
    check(capu_context_create(NULL, &context));
    capu_context_make_current(context);
    list_weights(&blobs[WEIGHTS], &weights);
    list_weights(&blobs[D_WEIGHTS], &d_weights);
    list_weights(&blobs[FIRST], &first);
    list_weights(&blobs[SECOND], &second);
    list_acts(&blobs[ACTS], &acts);
    list_acts(&blobs[D_ACTS], &d_acts);
    for (int i = 0; i < BLOBS; i++) {
        allocate(&blobs[i]);
    }
    check(capu_drop_in_malloc((void **)&symbols, sizeof(int[BATCH][LENGTH + 1])));
    upload_weights(&blobs[WEIGHTS]);
    clear(&blobs[FIRST]);
    clear(&blobs[SECOND]);
    for (int step = 1; step <= STEPS; step++) {
        float losses[ROWS];
        double sum = 0.0;

        check(capu_iteration_begin(context, NULL));
        upload_batch(step);
        clear(&blobs[D_WEIGHTS]);
        clear(&blobs[D_ACTS]);
        forward();
        backward();
        update(step);
        check(capu_download(context, losses, acts.losses, sizeof(losses), 0));
        check(capu_iteration_end(context));
        for (int i = 0; i < ROWS; i++) {
            sum += (double)losses[i];
        }
        printf("step %d  loss %a\n", step, sum / ROWS);
    }
    capu_context_destroy(context);
    return 0;
}
