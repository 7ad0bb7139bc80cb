/*
 * Errors in libcapuchin-interpose, each of which a test has to find. The library is linked once
 * more with some of its functions wrapped (ld --wrap); SHIM_ERROR names the error that is made. If
 * it is not set, the library is as it always is.
 */
#include "interpose/shim/blas.h"
#include "interpose/shim/core.h"
#include "interpose/shim/operands.h"

#include <stdlib.h>
#include <string.h>

static bool is_error(const char *name)
{
    const char *made = getenv("SHIM_ERROR");

    return made != NULL && strcmp(made, name) == 0;
}

void __real_operands_add(struct operands *operands, uint64_t address, uint64_t bytes,
                         capu_role role);
void __wrap_operands_add(struct operands *operands, uint64_t address, uint64_t bytes,
                         capu_role role);
void __wrap_operands_add(struct operands *operands, uint64_t address, uint64_t bytes,
                         capu_role role)
{
    if (is_error("missed_read") && role == CAPU_READ) {
        return;
    }
    if (is_error("missed_store") && role == CAPU_UPDATE) {
        role = CAPU_READ;
    }
    if (is_error("whole_write") && role == CAPU_UPDATE) {
        role = CAPU_WRITE;
    }
    __real_operands_add(operands, address, bytes, role);
}

bool __real_core_add(uint64_t address, uint64_t bytes, capu_role role);
bool __wrap_core_add(uint64_t address, uint64_t bytes, capu_role role);
bool __wrap_core_add(uint64_t address, uint64_t bytes, capu_role role)
{
    if (is_error("short_word") && bytes > 4) {
        bytes -= 4;
    }
    return __real_core_add(address, bytes, role);
}

/* As if beta were 0. */
void __real_blas_add_written(struct operands *operands, const struct blas_matrix *matrix,
                             bool keeps);
void __wrap_blas_add_written(struct operands *operands, const struct blas_matrix *matrix,
                             bool keeps);
void __wrap_blas_add_written(struct operands *operands, const struct blas_matrix *matrix,
                             bool keeps)
{
    __real_blas_add_written(operands, matrix, keeps && !is_error("beta_missed"));
}
