/* Names and texts of errors. The fake runtime of tests/fake_cudart has this file, too. */
#include "tests/ptx/include/cudart_types.h"

#include <stddef.h>

static const struct {
    cudaError_t error;
    const char *name;
    const char *text;
} errors[] = {
#define DRIVER_ROW(driver_name, name, number, text) {name, #name, text},
#define RUNTIME_ROW(name, number, text) {name, #name, text},
    DRIVER_ERRORS(DRIVER_ROW) CUDART_ERRORS(RUNTIME_ROW)};

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].error == error) {
            return errors[i].name;
        }
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].error == error) {
            return errors[i].text;
        }
    }
    return "unrecognized error code";
}
