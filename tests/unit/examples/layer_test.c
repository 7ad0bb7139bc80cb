/* Which layer of a table reads which, and which tables the passes can walk. */
#include "examples/layers/layer.h"

#include "tests/support/suite.h"

/* A block: the convolution, the sum with what entered, a relu. */
static const struct layer block[] = {
    {.name = "stem", .kind = LAYER_CONV},
    {.name = "conv", .kind = LAYER_CONV},
    {.name = "norm", .kind = LAYER_NORM},
    {.name = "sum", .kind = LAYER_ADD, .input = 1, .branch = 3},
    {.name = "relu", .kind = LAYER_RELU},
};

#define BLOCK_LAYERS (sizeof(block) / sizeof(block[0]))

static struct layer_table table_of(const struct layer *layers)
{
    return (struct layer_table){
        .layers = layers, .count = BLOCK_LAYERS, .channels = 1, .side = 8, .streams = 1};
}

START_TEST(readers_follow_the_branches)
{
    struct layer_table table = table_of(block);

    ck_assert_uint_eq(layer_input(&table, 0), LAYER_NONE);
    ck_assert_uint_eq(layer_input(&table, 1), 0);
    ck_assert_uint_eq(layer_input(&table, 3), 0);
    ck_assert_uint_eq(layer_last_reader(&table, 0), 3);
    ck_assert_uint_eq(layer_last_reader(&table, 1), 2);
    ck_assert_uint_eq(layer_last_reader(&table, 2), 3);
    ck_assert_uint_eq(layer_last_reader(&table, 4), LAYER_NONE);
    ck_assert(layer_table_is_valid(&table));
}
END_TEST

/* One layer of the block made wrong. */
static const struct {
    size_t index;
    struct layer layer;
} wrong[] = {
    {0, {.kind = LAYER_RELU}},              /* not a convolution */
    {0, {.kind = LAYER_CONV, .input = 2}},  /* reads a later layer */
    {2, {.kind = LAYER_NORM, .input = 4}},  /* likewise */
    {2, {.kind = LAYER_NORM, .stream = 1}}, /* above the streams */
    {1, {.kind = LAYER_RELU}},              /* in place, and the sum reads its input too */
    {2, {.kind = LAYER_DENSE, .input = 1}}, /* nothing reads the layer before */
    {3, {.kind = LAYER_ADD, .input = 1}},   /* names no branch */
    {3, {.kind = LAYER_ADD, .input = 1, .branch = 5}}, /* a later layer */
    {3, {.kind = LAYER_ADD, .input = 3, .branch = 3}}, /* both terms are one */
    {4, {.kind = LAYER_DENSE, .input = 1}},            /* the sum is not the last reader */
};

START_TEST(tables_that_cannot_be_walked_are_rejected)
{
    struct layer layers[BLOCK_LAYERS];
    struct layer_table table = table_of(layers);

    for (size_t i = 0; i < BLOCK_LAYERS; i++) {
        layers[i] = block[i];
    }
    layers[wrong[_i].index] = wrong[_i].layer;
    ck_assert(!layer_table_is_valid(&table));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("examples/layer");
    TCase *tcase = tcase_create("layer");

    tcase_add_test(tcase, readers_follow_the_branches);
    tcase_add_loop_test(tcase, tables_that_cannot_be_walked_are_rejected, 0,
                        (int)(sizeof(wrong) / sizeof(wrong[0])));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
