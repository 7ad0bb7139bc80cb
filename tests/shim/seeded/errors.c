/*
 * Errors in libcapuchin-interpose, each of which a test has to find. The library is linked once
 * more with some of its functions wrapped (ld --wrap); SHIM_ERROR names the error that is made. If
 * it is not set, the library is as it always is.
 */
#include "interpose/shim/blas.h"
#include "interpose/shim/core.h"
#include "interpose/shim/operands.h"
#include "interpose/shim/reach_parts.h"

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
    if (is_error("short_half") && bytes > 8) {
        bytes /= 2;
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

/* What a slice has found is taken for launches that differ in a parameter, or in their shape. */
capu_status __real_reach_find_inputs(const struct kernel *roles, struct reach *reach);
capu_status __wrap_reach_find_inputs(const struct kernel *roles, struct reach *reach);
capu_status __wrap_reach_find_inputs(const struct kernel *roles, struct reach *reach)
{
    capu_status status = __real_reach_find_inputs(roles, reach);
    size_t count = 0;

    for (size_t i = 0; i < reach->input_count; i++) {
        bool is_number = reach->inputs[i].bytes < 8;

        if (!(is_error("stale_number") && is_number) &&
            !(is_error("stale_pointer") && !is_number)) {
            reach->inputs[count++] = reach->inputs[i];
        }
    }
    reach->input_count = count;
    return status;
}

size_t __real_reach_key(const struct code_kernel *kernel, const struct launch *launch,
                        unsigned char key[REACH_KEY_BYTES_MOST]);
size_t __wrap_reach_key(const struct code_kernel *kernel, const struct launch *launch,
                        unsigned char key[REACH_KEY_BYTES_MOST]);
size_t __wrap_reach_key(const struct code_kernel *kernel, const struct launch *launch,
                        unsigned char key[REACH_KEY_BYTES_MOST])
{
    struct launch other = *launch;

    if (is_error("stale_shape")) {
        memset(other.grid, 0, sizeof(other.grid));
        memset(other.block, 0, sizeof(other.block));
    }
    return __real_reach_key(kernel, &other, key);
}
