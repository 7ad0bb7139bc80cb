/* A single rank: the build has found no MPI. */
#include "examples/common/ranks.h"

#include "examples/common/launched.h"

#include <errno.h>
#include <stdio.h>

bool ranks_open(struct ranks *ranks, int *argc, char ***argv)
{
    const char *launcher = launched_by();

    (void)argc;
    (void)argv;
    *ranks = (struct ranks){.peers = {.count = 1}};
    if (launcher != NULL) {
        fprintf(stderr, "%s: started as one of several processes (%s), but built without MPI\n",
                program_invocation_short_name, launcher);
    }
    return launcher == NULL;
}

void ranks_close(struct ranks *ranks, int exit_code)
{
    (void)ranks;
    (void)exit_code;
}

capu_status ranks_join(struct ranks *ranks, capu_context *context)
{
    (void)ranks;
    (void)context;
    return CAPU_OK;
}

void ranks_leave(struct ranks *ranks, capu_status status, const char *text)
{
    (void)ranks;
    (void)status;
    (void)text;
}

capu_status ranks_sum_floats(struct ranks *ranks, const char *name, float *address, size_t count)
{
    (void)ranks;
    (void)name;
    (void)address;
    (void)count;
    return CAPU_OK;
}

capu_status ranks_sum_doubles(struct ranks *ranks, const char *name, double *address, size_t count)
{
    (void)ranks;
    (void)name;
    (void)address;
    (void)count;
    return CAPU_OK;
}

capu_status ranks_copy(struct ranks *ranks, const char *name, void *address, size_t bytes)
{
    (void)ranks;
    (void)name;
    (void)address;
    (void)bytes;
    return CAPU_OK;
}
