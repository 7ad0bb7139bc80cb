/*
 * The library of a user who tries to have it loaded by a program with more rights: it looks like
 * the plug-in with the cuda device and like a CUDA driver. Whoever opens it creates the file that
 * SECURE_MARK names.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

extern const uint64_t cuda_plugin[4];
int cuInit(unsigned flags);

const uint64_t cuda_plugin[4] = {0};

int cuInit(unsigned flags)
{
    return (int)flags;
}

__attribute__((constructor)) static void leave_mark(void)
{
    const char *path = getenv("SECURE_MARK");

    if (path != NULL) {
        close(open(path, O_WRONLY | O_CREAT, 0666));
    }
}
