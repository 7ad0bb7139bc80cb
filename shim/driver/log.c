/* Messages on standard error, see log.h. */
#include "shim/driver/log.h"

#include "base/hash.h"
#include "base/printable.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Hashes of the last lines. */
enum { REMEMBERED = 256 };

static bool is_new(const char *line, size_t length)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t hashes[REMEMBERED];
    static size_t count;
    uint64_t hash = hash_bytes(line, length);
    bool is_known = false;

    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && i < REMEMBERED && !is_known; i++) {
        is_known = hashes[i] == hash;
    }
    if (!is_known) {
        hashes[count++ % REMEMBERED] = hash;
    }
    (void)pthread_mutex_unlock(&lock);
    return !is_known;
}

void log_line(const char *format, ...)
{
    char line[1024] = "capuchin: ";
    char text[PRINTABLE_BYTES + 1];
    size_t used = strlen(line);
    int error = errno;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line + used, sizeof(line) - used, format, arguments);
    va_end(arguments);
    if (length >= 0) {
        (void)printable(line, text); /* names of kernels are any bytes */
        used = strlen(text);
        text[used] = '\n';
        if (is_new(text, used)) {
            (void)!write(STDERR_FILENO, text, used + 1);
        }
    }
    errno = error;
}
