/*
 * machine_code IN.ptx OUT: writes a fat binary with machine code of the PTX for 9.0, and nothing
 * else, as nvcc does for -gencode arch=compute_90,code=sm_90. Only the driver of tests/ptx runs it.
 */
#include "tests/unit/interpose/device_code.h"

#include <stdio.h>
#include <stdlib.h>

static struct bytes read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    struct buffer text = {NULL, 0};
    char part[4096];
    size_t count;

    if (file == NULL) {
        perror(path);
        exit(1);
    }
    while ((count = fread(part, 1, sizeof(part), file)) > 0) {
        buffer_put(&text, part, count);
    }
    (void)fclose(file);
    return buffer_bytes(&text);
}

int main(int argc, char **argv)
{
    struct written_image image = {.kind = 2, .architecture = 90};
    struct buffer cubin = {NULL, 0};
    struct buffer fatbin = {NULL, 0};
    FILE *file = argc == 3 ? fopen(argv[2], "w") : NULL;
    struct bytes text;

    if (file == NULL) {
        fprintf(stderr, "usage: machine_code IN.ptx OUT\n");
        return 1;
    }
    text = read_text(argv[1]);
    write_machine_code(&cubin, text);
    image.contents = buffer_bytes(&cubin);
    write_fatbin(&fatbin, &image, 1);
    if (fwrite(fatbin.data, fatbin.count, 1, file) != 1 || fclose(file) != 0) {
        perror(argv[2]);
        return 1;
    }
    free((void *)(uintptr_t)text.data);
    free(cubin.data);
    free(fatbin.data);
    return 0;
}
