/* The text to learn. */
#include "examples/train_gpt/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Far more than this example learns from. */
#define TEXT_LIMIT ((size_t)1 << 30)

/* Where the build put the default text, and which text that is. */
static const char bible_path[] = TRAIN_GPT_DATA_FOLDER "/bible-kjv.txt";
static const char documentation_path[] = TRAIN_GPT_DATA_FOLDER "/documentation.txt";

static bool complain(const char *path, const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, path, what);
    return false;
}

static FILE *open_default(const char **path)
{
    FILE *file = fopen(bible_path, "rb");

    *path = bible_path;
    if (file == NULL) {
        *path = documentation_path;
        file = fopen(documentation_path, "rb");
        if (file != NULL) {
            puts("the bible-kjv packages were not there: learning the project's documentation");
        }
    }
    return file;
}

static bool read_all(struct text *text, FILE *file, const char *path)
{
    size_t capacity = 0;

    do {
        uint8_t *larger;

        capacity = capacity > 0 ? 2 * capacity : 1 << 20;
        larger = capacity <= TEXT_LIMIT ? realloc(text->bytes, capacity) : NULL;
        if (larger == NULL) {
            return complain(path, "too large to hold");
        }
        text->bytes = larger;
        text->count += fread(text->bytes + text->count, 1, capacity - text->count, file);
    } while (text->count == capacity);
    return ferror(file) ? complain(path, strerror(errno)) : true;
}

bool text_read(struct text *text, const char *path, size_t length)
{
    FILE *file;
    bool is_read;

    *text = (struct text){0};
    file = path != NULL ? fopen(path, "rb") : open_default(&path);
    if (file == NULL) {
        return complain(path, strerror(errno));
    }
    is_read = read_all(text, file, path);
    fclose(file);
    if (!is_read) {
        return false;
    }
    text->train_count = text->count / 10 * 9;
    /* The validation part, a tenth, is the smaller one. */
    if (text->count / 10 <= length) {
        return complain(path, "too short for sequences of this length");
    }
    return true;
}

void text_close(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

void text_window(const struct text *text, size_t start, size_t length, int32_t *tokens,
                 int32_t *targets)
{
    for (size_t i = 0; i < length; i++) {
        tokens[i] = text->bytes[start + i];
        targets[i] = text->bytes[start + i + 1];
    }
}
