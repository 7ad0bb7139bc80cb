/*
 * The files a run writes itself: losses and weights. Every write and every close is checked, and a
 * failure names the file on stderr.
 */
#ifndef CAPU_EXAMPLES_COMMON_FILES_H
#define CAPU_EXAMPLES_COMMON_FILES_H

#include "capuchin/capuchin.h"

#include <stdio.h>

struct loss_log {
    const char *path; /* NULL: no log, and all calls do nothing */
    FILE *file;
};

/* Gives FILE_FAILED, having said why; so do the other functions here. */
capu_status loss_log_open(struct loss_log *log, const char *path);

/* One line: the step and the loss as "%a", which loses no bit. */
capu_status loss_log_write(struct loss_log *log, uint64_t step, float loss);

/* Does nothing if it is not open. */
capu_status loss_log_close(struct loss_log *log);

/* A tensor to save. */
struct weight {
    const char *name;
    const void *address; /* on the device */
    size_t bytes;
};

/* Whether weights_save could open the file, told before the work is done; it stays as it is. */
capu_status weights_check(const char *path);

/*
 * Writes tensors: "CAPUWTS1", a count, then for each the length of its name, the name, its bytes
 * and its contents. Numbers are 64 bits, contents and numbers as they lie in memory.
 */
capu_status weights_save(capu_context *context, const char *path, const struct weight *weights,
                         size_t count);

#endif
