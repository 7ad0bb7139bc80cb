/*
 * The files that a run writes itself: losses and weights. Every write and close is checked, and an
 * error message names the file.
 */
#ifndef CAPU_EXAMPLES_COMMON_FILES_H
#define CAPU_EXAMPLES_COMMON_FILES_H

#include "capuchin/capuchin.h"

#include <stdio.h>

struct loss_log {
    const char *path; /* NULL: no log, and all calls do nothing */
    FILE *file;
};

/* Checks that the file can be written; the first line replaces it. Returns FILE_FAILED after
   printing an error, like the other functions here. */
capu_status loss_log_open(struct loss_log *log, const char *path);

/* Writes one line: the step, and the loss as "%a", which loses no bit. */
capu_status loss_log_write(struct loss_log *log, uint64_t step, float loss);

/* Does nothing if it is not open. */
capu_status loss_log_close(struct loss_log *log);

/* A tensor to save. */
struct weight {
    const char *name;
    const void *address; /* on the device */
    size_t bytes;
};

/* Checks before training whether weights_save will be able to open the file. Does not change it. */
capu_status weights_check(const char *path);

/*
 * Writes tensors into a new file, PATH.new, which then replaces the old one; if that fails, the old
 * one stays. Devices and pipes are written directly. The file contains "CAPUWTS1", a count, and for
 * each tensor the length of its name, the name, its size in bytes and its contents. Numbers have 64
 * bits; numbers and contents are in the machine's byte order.
 */
capu_status weights_save(capu_context *context, const char *path, const struct weight *weights,
                         size_t count);

#endif
