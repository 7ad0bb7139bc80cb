/* The text to learn: a file of bytes, the last tenth of which is for validation. */
#ifndef CAPU_EXAMPLES_TRAIN_GPT_TEXT_H
#define CAPU_EXAMPLES_TRAIN_GPT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    uint8_t *bytes;
    size_t count;
    size_t train_count; /* the rest is for validation */
};

/*
 * Reads a file; NULL: the default one, whose name is printed. Each of the two parts must have more
 * than `length` bytes. False: an error has been printed. Close the text in either case.
 */
bool text_read(struct text *text, const char *path, size_t length);
void text_close(struct text *text);

/* A window: `length` bytes from `start`, and as targets those that follow each. */
void text_window(const struct text *text, size_t start, size_t length, int32_t *tokens,
                 int32_t *targets);

#endif
