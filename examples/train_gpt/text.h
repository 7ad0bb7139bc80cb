/* The text to learn: a file of bytes, its last tenth kept for validation. */
#ifndef CAPU_EXAMPLES_TRAIN_GPT_TEXT_H
#define CAPU_EXAMPLES_TRAIN_GPT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct string_buffer {
    uint8_t *bytes;
    size_t count;
    size_t train_count; /* the rest is for validation */
};

/*
 * Reads a file; NULL: the default one, and says which that is. Each of the two parts has more than
 * `length` bytes. On failure says why on stderr and holds nothing. Close it in either case.
 */
bool text_read(struct string_buffer *text, const char *path, size_t length);
void text_close(struct string_buffer *text);

/* A window: `length` bytes from `start`, and as targets those that follow each. */
void text_window(const struct string_buffer *text, size_t start, size_t length, int32_t *tokens,
                 int32_t *targets);

#endif
