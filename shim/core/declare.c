/*
 * `capuchin run --operands FILE`: a line for every access that is declared to the library, when it
 * has begun, and one when its work has been enqueued (on the host device: completed):
 *
 *     17 scale: read 0x7f1200000000 4096 of 0x7f1200000000 65536, update 0x7f1200010000 4096 of ...
 *     17 done
 *
 * A number from 1 in order, the kernel or function, and per operand its role, address and bytes,
 * and those of the allocation that it is in. A line is in the file before the work is enqueued, so
 * the last one without "done" is that of the call that a program died in.
 */
#define _GNU_SOURCE /* open_memstream */
#include "shim/core/declare.h"

#include "shim/core/alloc.h"
#include "shim/core/core.h"
#include "shim/driver/log.h"
#include "shim/driver/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock; /* taken after the core's, if that is */
    int file;             /* 0: not opened yet; -1: cannot be written */
    uint64_t number;
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *role_name(uint32_t role)
{
    switch (role) {
    case CAPU_READ:
        return "read";
    case CAPU_WRITE:
        return "write";
    default:
        return "update";
    }
}

/* One call of the system per line: whoever reads the file meanwhile sees whole ones. */
static void put(const char *line, size_t length)
{
    while (length > 0) {
        ssize_t written = write(list.file, line, length);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            log_line("the list of operands cannot be written: %s", strerror(errno));
            (void)close(list.file);
            list.file = -1;
            return;
        }
        line += written;
        length -= (size_t)written;
    }
}

static bool is_open(void)
{
    const char *path = settings_get()->operands_path;

    if (list.file == 0 && path != NULL) {
        list.file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
        if (list.file < 0) {
            log_line("the list of operands %s cannot be written: %s", path, strerror(errno));
        }
    }
    return list.file > 0;
}

static void print_operand(FILE *out, const capu_operand *operand)
{
    const struct allocation *allocation = alloc_find((uintptr_t)operand->address);

    fprintf(out, " %s 0x%" PRIxPTR " %zu", role_name(operand->role), (uintptr_t)operand->address,
            operand->bytes);
    if (allocation != NULL) {
        fprintf(out, " of 0x%" PRIx64 " %" PRIu64, allocation->address, allocation->bytes);
    }
}

char *declare_text(const capu_operand *operands, size_t count)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out;

    if (settings_get()->operands_path == NULL || (out = open_memstream(&text, &length)) == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s", i > 0 ? "," : "");
        print_operand(out, &operands[i]);
    }
    if (fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

void declare_begin(const char *name, const char *text)
{
    char *line = NULL;
    int length;

    (void)pthread_mutex_lock(&list.lock);
    if (is_open()) {
        length = asprintf(&line, "%" PRIu64 " %s:%s\n", ++list.number, name, text);
        if (length > 0) {
            put(line, (size_t)length);
            free(line);
        }
    }
    (void)pthread_mutex_unlock(&list.lock);
}

void declare_end(void)
{
    char line[64];
    int length;

    (void)pthread_mutex_lock(&list.lock);
    if (is_open()) {
        length = snprintf(line, sizeof(line), "%" PRIu64 " done\n", list.number);
        put(line, (size_t)length);
    }
    (void)pthread_mutex_unlock(&list.lock);
}

static void begin(const char *name, const capu_operand *operands, size_t count)
{
    char *text = declare_text(operands, count);

    if (text != NULL) {
        declare_begin(name, text);
    }
    free(text);
}

__attribute__((constructor)) static void watch(void)
{
    core_watch(begin, declare_end);
}
