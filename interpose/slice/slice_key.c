/* The inputs of a slice at a launch, see slice.h. */
#include "interpose/slice/slice.h"

#include <string.h>

static size_t bytes_of(const struct slice_input *input)
{
    switch (input->kind) {
    case SLICE_INPUT_NULL:
        return 1;
    case SLICE_INPUT_LOW_BITS:
        return sizeof(input->mask);
    case SLICE_INPUT_VALUE:
        break;
    }
    return input->bytes;
}

size_t slice_key_bytes(const struct slice *slice)
{
    size_t bytes = 0;

    for (size_t i = 0; i < slice->input_count; i++) {
        bytes += bytes_of(&slice->inputs[i]);
    }
    return bytes;
}

void slice_key(const struct slice *slice, const unsigned char *parameters, unsigned char *key)
{
    for (size_t i = 0; i < slice->input_count; i++) {
        const struct slice_input *input = &slice->inputs[i];
        uint64_t word = 0;

        if (input->kind == SLICE_INPUT_VALUE) {
            memcpy(key, parameters + input->offset, input->bytes);
        } else {
            memcpy(&word, parameters + input->offset, sizeof(word));
        }
        if (input->kind == SLICE_INPUT_NULL) {
            *key = word == 0;
        } else if (input->kind == SLICE_INPUT_LOW_BITS) {
            word &= input->mask;
            memcpy(key, &word, sizeof(word));
        }
        key += bytes_of(input);
    }
}

uint64_t slice_base(const struct kernel *kernel, const struct slice_report *report,
                    const unsigned char *parameters)
{
    uint64_t address = 0;

    for (size_t i = 0; i < kernel->word_count; i++) {
        const struct kernel_word *word = &kernel->words[i];

        if (report->words == (uint64_t)1 << i && word->offset != PTX_NONE) {
            memcpy(&address, parameters + kernel->parameters[word->parameter].offset + word->offset,
                   sizeof(address));
        }
    }
    return address;
}

bool slice_is_relative(const struct slice_result *result)
{
    bool is_none = result->lowest == UINT64_MAX && result->end == 0;

    return is_none || (result->lowest < result->end && result->end <= INT64_MAX);
}
