/* Which layer of a table reads which. Tables are short: every question walks the table. */
#include "examples/layers/layer.h"

size_t layer_input(const struct layer_table *table, size_t index)
{
    const struct layer *layer = &table->layers[index];

    if (layer->input > 0) {
        return layer->input - 1;
    }
    return index > 0 ? index - 1 : LAYER_NONE;
}

static bool reads(const struct layer_table *table, size_t reader, size_t index)
{
    const struct layer *layer = &table->layers[reader];

    return layer_input(table, reader) == index ||
           (layer->kind == LAYER_ADD && layer->branch == index + 1);
}

size_t layer_last_reader(const struct layer_table *table, size_t index)
{
    for (size_t reader = table->count; reader-- > index + 1;) {
        if (reads(table, reader, index)) {
            return reader;
        }
    }
    return LAYER_NONE;
}

bool layer_is_in_place(const struct layer *layer)
{
    return layer->kind == LAYER_NORM || layer->kind == LAYER_RELU || layer->kind == LAYER_DROPOUT;
}

static size_t count_readers(const struct layer_table *table, size_t index)
{
    size_t count = 0;

    for (size_t reader = index + 1; reader < table->count; reader++) {
        count += reads(table, reader, index);
    }
    return count;
}

static bool layer_is_valid(const struct layer_table *table, size_t index)
{
    const struct layer *layer = &table->layers[index];
    size_t input = layer_input(table, index);

    if (layer->stream >= table->streams) {
        return false;
    }
    if (index == 0) {
        return layer->kind == LAYER_CONV && input == LAYER_NONE;
    }
    if (input >= index) {
        return false;
    }
    if (layer_is_in_place(layer) && count_readers(table, input) != 1) {
        return false;
    }
    if (layer->kind != LAYER_ADD) {
        return true;
    }
    return layer->branch > 0 && layer->branch <= index && layer->branch != input + 1 &&
           layer_last_reader(table, input) == index &&
           layer_last_reader(table, layer->branch - 1) == index;
}

bool layer_table_is_valid(const struct layer_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        if (!layer_is_valid(table, i) ||
            (i + 1 < table->count && layer_last_reader(table, i) == LAYER_NONE)) {
            return false;
        }
    }
    return table->count > 0;
}
