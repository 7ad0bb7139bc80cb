/*
 * BERT (Devlin et al., 2018; pre-training), GPT-2 (Radford et al., 2019) and Llama 3 (Meta, 2024):
 * blocks of attention and two products. BERT normalises after each half of a block, the others
 * before it. GPT-2 and Llama are causal: only half of the attention matrix is computed.
 */
#include "models/layers.h"
#include "models/zoo.h"

#include <stdio.h>
#include <string.h>

/* BERT's share of masked tokens, in percent of the sequence. */
#define MASKED_PERCENT 15
#define MASKED_MAX_AT_128 20

struct block {
    struct tape *tape;
    const struct transformer *shape;
    const struct zoo_options *options;
    char prefix[32];
    char name[TAPE_NAME_MAX];
};

/* PREFIX.WHAT, valid until the next call. */
static const char *named(struct block *block, const char *what)
{
    snprintf(block->name, sizeof(block->name), "%s%s", block->prefix, what);
    return block->name;
}

enum attention_size { ATTENTION_ROTATED, ATTENTION_CHANNELS, ATTENTION_MATRIX, ATTENTION_DROPS };
enum attention_saved { SAVED_ROWS, SAVED_P, SAVED_MASK, SAVED_DROPPED };

/* in: queries, keys and values; sizes[ATTENTION_ROTATED]: with positions turned into queries and
   keys, which are a tensor of their own then, as an index plus one. */
static uint32_t queries_of(const struct tape *tape, const struct step *step)
{
    uint64_t rotated = step->sizes[ATTENTION_ROTATED];

    return rotated != 0 ? tape_at(tape, (uint32_t)rotated - 1).ref : 0;
}

/* Joins the gradients of queries and keys, and of values, into one of all three. */
static void give_joined(struct tape *tape, const struct step *step, uint32_t of_keys,
                        uint32_t of_values)
{
    bool is_rotated = step->sizes[ATTENTION_ROTATED] != 0;
    uint32_t dx = tape_new_gradient(tape, step->in, step->name);

    tape_op(tape, &(struct tape_op){.name = step->name,
                                    .suffix = is_rotated ? "bwd_rotate" : "bwd_join",
                                    .reads = {of_keys, of_values},
                                    .writes = {dx}});
    tape_give_gradient(tape, step->in, dx, step->name);
}

/* Fused: the matrix is recomputed tile by tile, so the backward pass has five products to the
 * forward pass's two. */
static void fused_backward(struct tape *tape, const struct step *step)
{
    uint32_t dy = tape_gradient(tape, step->out);
    uint32_t qkv = tape_at(tape, step->in).ref;
    uint32_t rotated = queries_of(tape, step);
    uint64_t part = step->sizes[ATTENTION_CHANNELS];
    uint64_t all = tape_at(tape, step->in).channels;
    uint64_t row_bytes = all > 0 ? tape_bytes(tape, qkv) / all : 0;
    struct tape_op op = {
        .name = step->name,
        .suffix = "flash_bwd",
        .reads = {dy, qkv, rotated, tape_at(tape, step->out).ref, step->saved[SAVED_ROWS]},
        .flops = 2.5 * step->flops};

    if (rotated == 0) {
        op.writes[0] = tape_new_gradient(tape, step->in, step->name);
        tape_op(tape, &op);
        tape_give_gradient(tape, step->in, op.writes[0], step->name);
        return;
    }
    op.writes[0] = tape_tensor(tape, CAPU_GRADIENT, row_bytes, part, step->name, "dqk");
    op.writes[1] = tape_tensor(tape, CAPU_GRADIENT, row_bytes, all - part, step->name, "dv");
    tape_op(tape, &op);
    give_joined(tape, step, op.writes[0], op.writes[1]);
}

/* Backward of single ops (product, softmax, dropout, product), each with its matrix. */
static void matrix_backward(struct tape *tape, const struct step *step)
{
    const char *name = step->name;
    uint32_t dy = tape_gradient(tape, step->out);
    uint32_t qkv = tape_at(tape, step->in).ref;
    uint32_t rotated = queries_of(tape, step);
    uint64_t part = step->sizes[ATTENTION_CHANNELS];
    uint64_t all = tape_at(tape, step->in).channels;
    uint64_t row_bytes = all > 0 ? tape_bytes(tape, qkv) / all : 0;
    uint64_t matrix = tape_bytes(tape, step->saved[SAVED_P]);
    bool drops = step->sizes[ATTENTION_DROPS] != 0;
    uint32_t dp = tape_tensor(tape, CAPU_GRADIENT, matrix, 1, name, "dp");
    uint32_t dv = tape_tensor(tape, CAPU_GRADIENT, row_bytes, all - part, name, "dv");
    uint32_t ds = tape_tensor(tape, CAPU_GRADIENT, matrix, 1, name, "ds");
    uint32_t dqk = tape_tensor(tape, CAPU_GRADIENT, row_bytes, part, name, "dqk");

    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "attn.pv_bwd_p",
                                    .reads = {dy, qkv},
                                    .writes = {dp},
                                    .flops = step->flops / 2.0});
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "attn.pv_bwd_v",
                                    .reads = {dy, step->saved[drops ? SAVED_DROPPED : SAVED_P]},
                                    .writes = {dv},
                                    .flops = step->flops / 2.0});
    if (drops) {
        uint32_t dropped = dp;

        dp = tape_tensor(tape, CAPU_GRADIENT, matrix, 1, name, "dp_kept");
        tape_op(tape, &(struct tape_op){.name = name,
                                        .suffix = "drop_bwd",
                                        .reads = {dropped, step->saved[SAVED_MASK]},
                                        .writes = {dp}});
    }
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "softmax_bwd",
                                    .reads = {dp, step->saved[SAVED_P]},
                                    .writes = {ds},
                                    .extra_bytes = 2.0 * (double)matrix});
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "attn.qk_bwd",
                                    .reads = {ds, rotated != 0 ? rotated : qkv},
                                    .writes = {dqk},
                                    .flops = step->flops,
                                    .extra_launches = 1});
    give_joined(tape, step, dqk, dv);
}

/* Forward of the same; keeps the matrices in the step. */
static void add_matrix_ops(struct block *block, struct step *step, uint64_t matrix_elements)
{
    struct tape *tape = block->tape;
    uint64_t bytes = tape_element_bytes(tape);
    uint32_t qkv = tape_at(tape, step->in).ref;
    uint32_t rotated = queries_of(tape, step);
    const char *name = step->name;
    uint32_t scores = tape_tensor(tape, CAPU_ACTIVATION, matrix_elements, bytes, name, "scores");
    uint32_t p = tape_tensor(tape, CAPU_ACTIVATION, matrix_elements, bytes, name, "p");
    uint32_t used = p;

    step->saved[SAVED_P] = p;
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "attn.qk",
                                    .reads = {rotated != 0 ? rotated : qkv},
                                    .writes = {scores},
                                    .flops = step->flops / 2.0});
    /* Scaling and masking (padding, or the future) take a pass of their own, in place. */
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "softmax.fwd",
                                    .reads = {scores},
                                    .writes = {p},
                                    .extra_bytes = 2.0 * (double)tape_bytes(tape, scores),
                                    .extra_launches = 1});
    if (step->sizes[ATTENTION_DROPS] != 0) {
        uint32_t mask = tape_tensor(tape, CAPU_ACTIVATION, matrix_elements, 1, name, "mask");

        used = tape_tensor(tape, CAPU_ACTIVATION, matrix_elements, bytes, name, "dropped");
        step->saved[SAVED_MASK] = mask;
        step->saved[SAVED_DROPPED] = used;
        tape_op(tape, &(struct tape_op){
                          .name = name, .suffix = "mask", .writes = {mask}, .is_random = true});
        tape_op(tape,
                &(struct tape_op){
                    .name = name, .suffix = "drop.fwd", .reads = {p, mask}, .writes = {used}});
    }
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "attn.pv",
                                    .reads = {used, qkv},
                                    .writes = {tape_at(tape, step->out).ref},
                                    .flops = step->flops / 2.0});
}

static uint32_t attention(struct block *block, uint32_t qkv, const char *what)
{
    struct tape *tape = block->tape;
    const struct transformer *shape = block->shape;
    struct value in = tape_at(tape, qkv);
    uint64_t sequence = block->options->sequence;
    uint64_t head = shape->channels / shape->heads;
    struct step step = {.in = qkv};
    char name[TAPE_NAME_MAX];

    snprintf(name, sizeof(name), "%s%s", block->prefix, what);
    snprintf(step.name, sizeof(step.name), "%s", name);
    step.sizes[ATTENTION_CHANNELS] = (shape->heads + shape->key_heads) * head;
    step.sizes[ATTENTION_DROPS] = shape->kind != TRANSFORMER_LLAMA;
    if (shape->kind == TRANSFORMER_LLAMA) {
        char rotate[2 * TAPE_NAME_MAX];
        uint32_t rotated;

        snprintf(rotate, sizeof(rotate), "%s.rotate", name);
        rotated = tape_value(tape, in.rows, step.sizes[ATTENTION_CHANNELS], 1, 1, rotate);
        tape_op(tape, &(struct tape_op){.name = rotate,
                                        .suffix = "fwd",
                                        .reads = {in.ref},
                                        .writes = {tape_at(tape, rotated).ref}});
        step.sizes[ATTENTION_ROTATED] = (uint64_t)rotated + 1;
    }
    step.out = tape_value(tape, in.rows, shape->channels, 1, 1, name);
    /* Two products of a row with the sequence; if causal, with half of it. */
    step.flops = 4.0 * (double)in.rows * (double)sequence * (double)shape->channels *
                 (shape->kind == TRANSFORMER_BERT ? 1.0 : 0.5);
    if (block->options->saves_matrix) {
        step.flops = 4.0 * (double)in.rows * (double)sequence * (double)shape->channels;
        step.backward = matrix_backward;
        add_matrix_ops(block, &step, tape_elements(tape, in.rows, shape->heads, sequence, 1));
    } else {
        step.backward = fused_backward;
        step.saved[SAVED_ROWS] =
            tape_tensor(tape, CAPU_ACTIVATION, in.rows, 4 * shape->heads, name, "rows");
        /* Its dropout is drawn from a counter, so a replay gives the same result. */
        tape_op(tape,
                &(struct tape_op){.name = name,
                                  .suffix = "flash.fwd",
                                  .reads = {in.ref, queries_of(tape, &step)},
                                  .writes = {tape_at(tape, step.out).ref, step.saved[SAVED_ROWS]},
                                  .flops = step.flops});
    }
    tape_step(tape, &step, name);
    return step.out;
}

static uint32_t add_dropout(struct block *block, uint32_t x, const char *what)
{
    return block->shape->kind == TRANSFORMER_LLAMA
               ? x
               : layer_dropout(block->tape, x, named(block, what));
}

/* The half of a block with attention, and the residual sum. */
static uint32_t attend(struct block *block, uint32_t x)
{
    struct tape *tape = block->tape;
    const struct transformer *shape = block->shape;
    uint64_t head = shape->channels / shape->heads;
    bool has_bias = shape->kind != TRANSFORMER_LLAMA;
    uint32_t y = x;

    if (shape->kind != TRANSFORMER_BERT) {
        y = layer_norm(tape, x, shape->kind == TRANSFORMER_LLAMA, named(block, "norm1"));
    }
    y = layer_linear(tape, y, (shape->heads + 2 * shape->key_heads) * head, has_bias, false,
                     named(block, "qkv.linear"));
    y = attention(block, y, "attention");
    y = layer_linear(tape, y, shape->channels, has_bias, false, named(block, "out.linear"));
    y = add_dropout(block, y, "dropout1");
    y = layer_add(tape, x, y, false, named(block, "add1"));
    return shape->kind == TRANSFORMER_BERT ? layer_norm(tape, y, false, named(block, "norm1")) : y;
}

/* The half of a block with the two products. */
static uint32_t feed_forward(struct block *block, uint32_t x)
{
    struct tape *tape = block->tape;
    const struct transformer *shape = block->shape;
    bool is_gated = shape->kind == TRANSFORMER_LLAMA;
    uint32_t y = x;

    if (shape->kind != TRANSFORMER_BERT) {
        y = layer_norm(tape, x, is_gated, named(block, "norm2"));
    }
    y = layer_linear(tape, y, (is_gated ? 2 : 1) * shape->inner, !is_gated, false,
                     named(block, "up.linear"));
    y = layer_activation(tape, y, shape->inner, named(block, is_gated ? "gate" : "gelu"));
    y = layer_linear(tape, y, shape->channels, !is_gated, false, named(block, "down.linear"));
    y = add_dropout(block, y, "dropout2");
    y = layer_add(tape, x, y, false, named(block, "add2"));
    return shape->kind == TRANSFORMER_BERT ? layer_norm(tape, y, false, named(block, "norm2")) : y;
}

/* BERT's two heads: masked words, and whether the second sentence follows the first. */
static void bert_heads(struct tape *tape, const struct transformer *shape,
                       const struct zoo_options *options, uint32_t x, uint32_t table)
{
    uint64_t masked =
        options->sequence == 128 ? MASKED_MAX_AT_128 : options->sequence * MASKED_PERCENT / 100;
    uint32_t y;

    tape_layer(tape, "words");
    y = layer_gather(tape, x, options->batch * (masked > 0 ? masked : 1), "words.gather");
    y = layer_linear(tape, y, shape->channels, true, false, "words.linear");
    y = layer_activation(tape, y, shape->channels, "words.gelu");
    y = layer_norm(tape, y, false, "words.norm");
    y = layer_linear_tied(tape, y, table, shape->words, true, "words.head.linear");
    layer_loss(tape, y, "words.loss");

    tape_layer(tape, "follows");
    y = layer_gather(tape, x, options->batch, "follows.gather");
    y = layer_linear(tape, y, shape->channels, true, false, "follows.pooler.linear");
    y = layer_activation(tape, y, shape->channels, "follows.tanh");
    y = layer_linear(tape, y, 2, true, false, "follows.linear");
    layer_loss(tape, y, "follows.loss");
}

void transformer_forward(struct tape *tape, const struct zoo_model *model,
                         const struct zoo_options *options)
{
    const struct transformer *shape = model->shape;
    struct block block = {.tape = tape, .shape = shape, .options = options};
    uint64_t tokens = tape_elements(tape, options->batch, options->sequence, 1, 1);
    uint32_t table = 0;
    uint32_t x = tape_input(tape, tokens, 1, 1, 1, 8, "ids");
    uint64_t positions = shape->positions;

    if (positions > 0 && options->sequence > model->sequence) {
        /* A longer sequence needs a longer table of positions. */
        positions += options->sequence - model->sequence;
    }
    tape_layer(tape, "embedding");
    x = layer_embedding(tape, x, shape->words, positions, shape->channels, &table, "embedding");
    if (shape->kind == TRANSFORMER_BERT) {
        x = layer_norm(tape, x, false, "embedding.norm");
    }
    x = add_dropout(&block, x, "embedding.dropout");
    for (uint64_t i = 0; i < shape->layers; i++) {
        snprintf(block.prefix, sizeof(block.prefix), "block%u.", (unsigned)i);
        tape_layer(tape, "block%u", (unsigned)i);
        x = attend(&block, x);
        x = feed_forward(&block, x);
    }
    if (shape->kind == TRANSFORMER_BERT) {
        bert_heads(tape, shape, options, x, table);
        return;
    }
    tape_layer(tape, "head");
    x = layer_norm(tape, x, shape->kind == TRANSFORMER_LLAMA, "head.norm");
    x = shape->is_tied ? layer_linear_tied(tape, x, table, shape->words, false, "head.linear")
                       : layer_linear(tape, x, shape->words, false, false, "head.linear");
    layer_loss(tape, x, "head.loss");
}
