/* Copies to and from variables of device code. */
#include "tests/ptx/cudart/code.h"

/* Enters, and finds `bytes` bytes at an offset of a variable. */
static cudaError_t enter_symbol(const void *symbol, size_t offset, size_t bytes, void **address)
{
    CUdeviceptr base = 0;
    size_t total = 0;
    cudaError_t error = cudart_enter();

    if (error == cudaSuccess) {
        error = code_variable(symbol, &base, &total);
    }
    if (error == cudaSuccess && (offset > total || bytes > total - offset)) {
        error = cudaErrorInvalidValue;
    }
    *address = (void *)(uintptr_t)(base + offset);
    return error;
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind)
{
    void *to;
    cudaError_t error = enter_symbol(symbol, offset, bytes, &to);

    return error == cudaSuccess ? cudaMemcpy(to, from, bytes, kind) : cudart_leave(error);
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                 enum cudaMemcpyKind kind)
{
    void *from;
    cudaError_t error = enter_symbol(symbol, offset, bytes, &from);

    return error == cudaSuccess ? cudaMemcpy(to, from, bytes, kind) : cudart_leave(error);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes,
                                    size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *to;
    cudaError_t error = enter_symbol(symbol, offset, bytes, &to);

    return error == cudaSuccess ? cudaMemcpyAsync(to, from, bytes, kind, stream)
                                : cudart_leave(error);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *from;
    cudaError_t error = enter_symbol(symbol, offset, bytes, &from);

    return error == cudaSuccess ? cudaMemcpyAsync(to, from, bytes, kind, stream)
                                : cudart_leave(error);
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
    void *found;
    cudaError_t error = enter_symbol(symbol, 0, 0, &found);

    if (error == cudaSuccess) {
        *address = found;
    }
    return cudart_leave(error);
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    CUdeviceptr address;

    CUDART_ENTER();
    return cudart_leave(code_variable(symbol, &address, bytes));
}
