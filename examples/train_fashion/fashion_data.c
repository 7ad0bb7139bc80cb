/* Fashion-MNIST files: a magic number and sizes, big-endian, then bytes. */
#include "examples/train_fashion/fashion_data.h"

#include <zlib.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGES_MAGIC 0x803u
#define LABELS_MAGIC 0x801u

/* More than any data set in this format has: a larger count means a broken file, and must not
 * decide how much memory is allocated. */
#define COUNT_LIMIT 10000000u

/* Mean and deviation of the training pixels. */
#define PIXEL_MEAN 0.2860f
#define PIXEL_DEVIATION 0.3530f

static bool complain(const char *path, const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, path, what);
    return false;
}

static uint32_t big_endian(const uint8_t bytes[4])
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static bool get(gzFile file, void *bytes, size_t count)
{
    return gzread(file, bytes, (unsigned)count) == (int)count;
}

/* Reads what must follow the header: `count` items and nothing else. */
static uint8_t *read_items(gzFile file, const char *path, size_t count, size_t item_bytes)
{
    uint8_t *items = malloc(count * item_bytes);
    uint8_t beyond;
    int beyond_count;

    if (items == NULL) {
        complain(path, "no memory for it");
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (!get(file, items + i * item_bytes, item_bytes)) {
            complain(path, "ends too early, or is a damaged gzip file");
            free(items);
            return NULL;
        }
    }
    beyond_count = gzread(file, &beyond, 1);
    if (beyond_count != 0) {
        complain(path, beyond_count > 0 ? "goes on after its last item" : "is a damaged gzip file");
        free(items);
        return NULL;
    }
    return items;
}

static uint8_t *read_open_file(gzFile file, const char *path, uint32_t magic, size_t *count)
{
    uint8_t header[16];
    size_t header_bytes = magic == IMAGES_MAGIC ? 16 : 8;

    if (!get(file, header, header_bytes) || big_endian(header) != magic) {
        complain(path, "is not a file of the MNIST format, or a damaged gzip file");
        return NULL;
    }
    if (magic == IMAGES_MAGIC &&
        (big_endian(header + 8) != FASHION_SIDE || big_endian(header + 12) != FASHION_SIDE)) {
        complain(path, "has images of another size than 28 x 28");
        return NULL;
    }
    *count = big_endian(header + 4);
    if (*count == 0 || *count > COUNT_LIMIT) {
        complain(path, "says a number of items that cannot be");
        return NULL;
    }
    return read_items(file, path, *count, magic == IMAGES_MAGIC ? FASHION_PIXELS : 1);
}

static uint8_t *read_file(const char *folder, const char *name, const char *suffix, uint32_t magic,
                          size_t *count)
{
    char path[4096];
    gzFile file;
    uint8_t *items;

    if (snprintf(path, sizeof(path), "%s/%s-%s.gz", folder, name, suffix) >= (int)sizeof(path)) {
        complain(folder, "a path too long");
        return NULL;
    }
    errno = 0;
    file = gzopen(path, "rb");
    if (file == NULL) {
        complain(path, errno != 0 ? strerror(errno) : "cannot be opened");
        if (errno == ENOENT) {
            fputs("  Debian has it in the package dataset-fashion-mnist; --data names the folder\n",
                  stderr);
        }
        return NULL;
    }
    items = read_open_file(file, path, magic, count);
    /* A file without its last bytes, a checksum, fails only now. */
    if (gzclose(file) != Z_OK && items != NULL) {
        complain(path, "ends too early");
        free(items);
        return NULL;
    }
    return items;
}

bool fashion_set_read(struct fashion_set *set, const char *folder, const char *name)
{
    size_t label_count = 0;

    *set = (struct fashion_set){0};
    set->images = read_file(folder, name, "images-idx3-ubyte", IMAGES_MAGIC, &set->count);
    if (set->images == NULL) {
        return false;
    }
    set->labels = read_file(folder, name, "labels-idx1-ubyte", LABELS_MAGIC, &label_count);
    if (set->labels == NULL) {
        return false;
    }
    if (label_count != set->count) {
        return complain(folder, "has another number of labels than of images");
    }
    for (size_t i = 0; i < label_count; i++) {
        if (set->labels[i] >= FASHION_CLASSES) {
            return complain(folder, "has a label that is no class");
        }
    }
    return true;
}

void fashion_set_finish(struct fashion_set *set)
{
    free(set->images);
    free(set->labels);
    *set = (struct fashion_set){0};
}

static void put_image(const uint8_t *from, enum element element, void *pixels, size_t first)
{
    for (size_t i = 0; i < FASHION_PIXELS; i++) {
        float value = ((float)from[i] / 255.0f - PIXEL_MEAN) / PIXEL_DEVIATION;

        element_set(element, pixels, first + i, value);
    }
}

void fashion_set_batch(const struct fashion_set *set, const uint32_t *order, size_t count,
                       enum element element, void *pixels, int32_t *labels)
{
    for (size_t image = 0; image < count; image++) {
        put_image(set->images + (size_t)order[image] * FASHION_PIXELS, element, pixels,
                  image * FASHION_PIXELS);
        labels[image] = set->labels[order[image]];
    }
}
