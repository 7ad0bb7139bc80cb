/* Runs the threads of a launch, block by block. */
#ifndef CAPU_TESTS_PTX_MACHINE_RUN_H
#define CAPU_TESTS_PTX_MACHINE_RUN_H

#include "tests/ptx/machine/machine.h"
#include "tests/ptx/machine/thread.h"

enum { RUN_THREADS_MOST = 1024 };

struct run_kernel {
    const struct machine_function *function;
    ptx_entry entry;
    bool waits;            /* its threads wait for each other, and need fibers */
    uint32_t shared_bytes; /* of the whole module */
    uint32_t local_bytes;  /* per thread, of the whole module */
    unsigned char *variables;
};

/* As machine_run, without its checks of the shape. */
capu_status run_launch(const struct run_kernel *kernel, const struct machine_launch *launch,
                       struct error_text *problem);

/* See machine_where. */
const struct machine_function *run_where(void);

#endif
