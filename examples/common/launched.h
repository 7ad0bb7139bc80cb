/*
 * Whether a launcher of MPI programs has started this process. MPI cannot be asked before it is
 * initialised, and initialising it would slow down every start of a program that runs by itself.
 */
#ifndef CAPU_EXAMPLES_COMMON_LAUNCHED_H
#define CAPU_EXAMPLES_COMMON_LAUNCHED_H

#include <stddef.h>
#include <stdlib.h>

/* The environment variable that says so; NULL: no launcher has started it. Open MPI's mpirun, and
   launchers that speak PMIx or PMI (srun, MPICH's), set one of these. */
static inline const char *launched_by(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (getenv(names[i]) != NULL) {
            return names[i];
        }
    }
    return NULL;
}

#endif
