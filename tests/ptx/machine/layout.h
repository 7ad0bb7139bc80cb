/*
 * Where the variables of a module lie, and what each function needs with everything it calls. The
 * places of shared and local variables are the same for all kernels of a module, so that functions
 * are translated once; how much of it a kernel itself declares is counted apart.
 */
#ifndef CAPU_TESTS_PTX_MACHINE_LAYOUT_H
#define CAPU_TESTS_PTX_MACHINE_LAYOUT_H

#include "interpose/ptx/ptx.h"

struct layout_function {
    uint32_t *local_offsets; /* of its shared and local variables */
    uint32_t *calls;         /* functions of the module */
    size_t call_count, call_capacity;
    bool waits;            /* for other threads */
    uint32_t shared_bytes; /* of variables that it reaches */
    uint32_t local_bytes;
};

struct layout {
    uint64_t *variable_offsets; /* of the module's: within its memory, or in shared memory */
    uint64_t variable_bytes;
    uint32_t shared_bytes;             /* without dynamic memory, which follows */
    uint32_t local_bytes;              /* per thread */
    struct layout_function *functions; /* as in the module */
    size_t function_count;
};

enum { LAYOUT_VARIABLE_ALIGNMENT = 256, LAYOUT_SHARED_ALIGNMENT = 128 };

/* On failure *layout is empty. Errors: UNSUPPORTED: a variable or a function that is not in the
   module, a recursion; NO_HOST_MEMORY. */
capu_status layout_make(const struct ptx_module *module, struct layout *layout,
                        struct error_text *problem);
void layout_finish(struct layout *layout);

/* The function that a call names; PTX_NONE: it is not in the module. */
uint32_t layout_callee(const struct ptx_module *module, const struct ptx_function *function,
                       const struct ptx_instruction *call);

/* Writes the initial contents to the variables' memory, which is zero. Errors: UNSUPPORTED. */
capu_status layout_initialise(const struct ptx_module *module, const struct layout *layout,
                              unsigned char *memory, struct error_text *problem);

#endif
