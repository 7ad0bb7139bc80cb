/* Writes loss logs and weights. */
#include "examples/common/files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char magic[8] = {'C', 'A', 'P', 'U', 'W', 'T', 'S', '1'};

static capu_status fail(const char *path)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, path, strerror(errno));
    return CAPU_FILE_FAILED;
}

/* Closes a file. A full disk may show only now, when the buffer is written. */
static capu_status close_file(FILE *file, const char *path)
{
    return fclose(file) == 0 ? CAPU_OK : fail(path);
}

capu_status loss_log_open(struct loss_log *log, const char *path)
{
    log->path = path;
    log->file = NULL;
    if (path == NULL) {
        return CAPU_OK;
    }
    log->file = fopen(path, "w");
    return log->file != NULL ? CAPU_OK : fail(path);
}

capu_status loss_log_write(struct loss_log *log, uint64_t step, float loss)
{
    if (log->file == NULL) {
        return CAPU_OK;
    }
    return fprintf(log->file, "%" PRIu64 " %a\n", step, (double)loss) > 0 ? CAPU_OK
                                                                          : fail(log->path);
}

capu_status loss_log_close(struct loss_log *log)
{
    FILE *file = log->file;

    log->file = NULL;
    return file != NULL ? close_file(file, log->path) : CAPU_OK;
}

capu_status weights_check(const char *path)
{
    struct stat file;
    bool is_new;
    FILE *opened;

    if (path == NULL) {
        return CAPU_OK;
    }
    is_new = lstat(path, &file) != 0;
    /* Opening something else, such as a device, could have an effect. */
    if (stat(path, &file) == 0 && !S_ISREG(file.st_mode) && !S_ISDIR(file.st_mode)) {
        return CAPU_OK;
    }
    opened = fopen(path, "ab");
    if (opened == NULL) {
        return fail(path);
    }
    fclose(opened);
    if (is_new) {
        remove(path);
    }
    return CAPU_OK;
}

static bool put(FILE *file, const void *bytes, size_t count)
{
    return fwrite(bytes, 1, count, file) == count;
}

static capu_status save_one(capu_context *context, FILE *file, const char *path,
                            const struct weight *weight)
{
    uint64_t name_bytes = strlen(weight->name);
    uint64_t bytes = weight->bytes;
    capu_status status;
    void *contents = malloc(weight->bytes);

    if (contents == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = capu_download(context, contents, weight->address, weight->bytes);
    if (status == CAPU_OK &&
        !(put(file, &name_bytes, sizeof(name_bytes)) && put(file, weight->name, name_bytes) &&
          put(file, &bytes, sizeof(bytes)) && put(file, contents, weight->bytes))) {
        status = fail(path);
    }
    free(contents);
    return status;
}

capu_status weights_save(capu_context *context, const char *path, const struct weight *weights,
                         size_t count)
{
    FILE *file = fopen(path, "wb");
    uint64_t weight_count = count;
    capu_status status = CAPU_OK;

    if (file == NULL) {
        return fail(path);
    }
    if (!put(file, magic, sizeof(magic)) || !put(file, &weight_count, sizeof(weight_count))) {
        status = fail(path);
    }
    for (size_t i = 0; i < count && status == CAPU_OK; i++) {
        status = save_one(context, file, path, &weights[i]);
    }
    if (status != CAPU_OK) {
        fclose(file);
        return status;
    }
    return close_file(file, path);
}
