/*
 * write_slices FOLDER PTX...: writes the slices of all kernels in files of PTX, as the library
 * makes them, as modules in FOLDER: NAME.plain.ptx, which read parameters alone,
 * NAME.variables.ptx, which also read variables, and NAME.data.ptx, which read data.
 */
#include "interpose/flow/roles.h"
#include "interpose/slice/slice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 4 << 20 };

static const char *const kinds[] = {"plain", "variables", "data"};

/* A slice of that kind; false: the kernel has none, or the same as of another kind. */
static bool make(const struct ptx_module *module, const struct kernel *kernel, size_t kind,
                 struct slice *slice)
{
    struct slice_wish wish = {.variables = kind > 0};
    struct error_text problem;

    if (slice_emit_with(module, kernel, &wish, slice, &problem) != CAPU_OK) {
        return false;
    }
    if (kind == 0 || (kind == 1 && slice->source_count > 0)) {
        return true;
    }
    wish.data_words = kind == 2 ? slice->whole : 0;
    slice_finish(slice);
    return wish.data_words != 0 &&
           slice_emit_with(module, kernel, &wish, slice, &problem) == CAPU_OK;
}

static unsigned write_kind(const char *folder, const char *name, const struct ptx_module *module,
                           const struct kernels *kernels, size_t kind)
{
    char path[4096];
    char head[128];
    unsigned count = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s.%s.ptx", folder, name, kinds[kind]);
    file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        exit(3);
    }
    slice_head(module, head, sizeof(head));
    fputs(head, file);
    for (size_t i = 0; i < kernels->count; i++) {
        struct slice slice;

        if (make(module, &kernels->kernels[i], kind, &slice)) {
            fprintf(file, "%s%s", slice.text, slice.cover != NULL ? slice.cover : "");
            count++;
            slice_finish(&slice);
        }
    }
    if (fclose(file) != 0 || (count == 0 && remove(path) != 0)) {
        perror(path);
        exit(3);
    }
    return count;
}

static unsigned write_file(const char *folder, const char *path)
{
    static char text[TEXT_BYTES];
    const char *slash = strrchr(path, '/');
    char name[256];
    FILE *file = fopen(path, "r");
    size_t bytes = file != NULL ? fread(text, 1, sizeof(text), file) : 0;
    struct ptx_module module;
    struct kernels kernels;
    struct error_text problem;
    unsigned count = 0;

    if (bytes == 0 || bytes == sizeof(text) || fclose(file) != 0 ||
        ptx_parse(text, bytes, &module, &problem) != CAPU_OK ||
        roles_find(&module, &kernels) != CAPU_OK) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(3);
    }
    (void)snprintf(name, sizeof(name), "%s", slash != NULL ? slash + 1 : path);
    *strrchr(name, '.') = '\0';
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        count += write_kind(folder, name, &module, &kernels, kind);
    }
    roles_finish(&kernels);
    ptx_finish(&module);
    return count;
}

int main(int argc, char **argv)
{
    unsigned count = 0;

    for (int i = 2; i < argc; i++) {
        count += write_file(argv[1], argv[i]);
    }
    printf("%u slices\n", count);
    return 0;
}
