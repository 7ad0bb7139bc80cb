/* Writes loss logs and weights. */
#include "examples/common/files.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* A file that takes another's name once it is complete. */
struct new_file {
    FILE *file;
    char path[PATH_MAX];
    char target[PATH_MAX]; /* "": a device or a pipe, written directly */
};

static void discard(struct new_file *new)
{
    if (new->file != NULL) {
        fclose(new->file);
    }
    if (new->target[0] != '\0') {
        remove(new->path);
    }
}

/* Finds where links lead, so that they stay. False: errno says why the file cannot be replaced. */
static bool find_target(struct new_file *new, const char *path)
{
    struct stat old;

    new->target[0] = '\0';
    if (strlen(path) + sizeof(".new") > PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    strcpy(new->path, path);
    if (stat(path, &old) != 0) {
        strcpy(new->target, path);
        return errno == ENOENT;
    }
    if (S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        return false;
    }
    return !S_ISREG(old.st_mode) ||
           (access(path, W_OK) == 0 && realpath(path, new->target) != NULL);
}

/* Opens PATH.new, which gets the permissions of the old file. */
static capu_status begin(struct new_file *new, const char *path)
{
    struct stat old;
    bool is_fine = find_target(new, path);

    new->file = NULL;
    if (is_fine && new->target[0] != '\0') {
        is_fine = snprintf(new->path, sizeof(new->path), "%s.new", new->target) < PATH_MAX;
    }
    if (is_fine) {
        new->file = fopen(new->path, "wb");
    }
    if (new->file == NULL) {
        return fail(path);
    }
    if (new->target[0] != '\0' && stat(new->target, &old) == 0 &&
        fchmod(fileno(new->file), old.st_mode & 0777) != 0) {
        discard(new);
        return fail(path);
    }
    return CAPU_OK;
}

/* Closes the file. It takes its name if everything was written. */
static capu_status finish(struct new_file *new, const char *path, capu_status status)
{
    if (status == CAPU_OK) {
        status = close_file(new->file, path);
        new->file = NULL;
    }
    if (status == CAPU_OK && new->target[0] != '\0' && rename(new->path, new->target) != 0) {
        status = fail(path);
    }
    if (status != CAPU_OK) {
        discard(new);
    }
    return status;
}

/* Opening a device or a pipe could have an effect, so only regular files are tried. */
static capu_status check(const char *path)
{
    struct new_file new;
    struct stat found;
    capu_status status;

    if (path == NULL ||
        (stat(path, &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode))) {
        return CAPU_OK;
    }
    status = begin(&new, path);
    if (status == CAPU_OK) {
        discard(&new);
    }
    return status;
}

capu_status loss_log_open(struct loss_log *log, const char *path)
{
    log->path = path;
    log->file = NULL;
    return check(path);
}

capu_status loss_log_write(struct loss_log *log, uint64_t step, float loss)
{
    if (log->path == NULL) {
        return CAPU_OK;
    }
    if (log->file == NULL) {
        log->file = fopen(log->path, "w");
    }
    return log->file != NULL && fprintf(log->file, "%" PRIu64 " %a\n", step, (double)loss) > 0
               ? CAPU_OK
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
    return check(path);
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
    status = capu_download(context, contents, weight->address, weight->bytes, 0);
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
    struct new_file new;
    uint64_t weight_count = count;
    capu_status status = begin(&new, path);

    if (status != CAPU_OK) {
        return status;
    }
    if (!put(new.file, magic, sizeof(magic)) ||
        !put(new.file, &weight_count, sizeof(weight_count))) {
        status = fail(path);
    }
    for (size_t i = 0; i < count && status == CAPU_OK; i++) {
        status = save_one(context, new.file, path, &weights[i]);
    }
    return finish(&new, path, status);
}
