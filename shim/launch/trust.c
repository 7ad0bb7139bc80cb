/* Addresses in parameters, see trust.h. A number that happens to be an address adds an allocation
   that the kernel does not touch, which costs memory and nothing else. */
#include "shim/launch/trust.h"

#include "shim/driver/real.h"
#include "shim/driver/settings.h"

#include <string.h>

/* Structures may be packed, so addresses at any offset count. */
static void add_bytes(const unsigned char *bytes, size_t count, struct operands *operands)
{
    uint64_t address;

    for (size_t at = 0; at + sizeof(address) <= count; at++) {
        memcpy(&address, bytes + at, sizeof(address));
        operands_add_allocation(operands, address, CAPU_UPDATE);
    }
}

/* Launches take functions and kernels. */
static CUresult parameter_bytes(CUfunction function, size_t index, size_t *bytes)
{
    size_t offset;
    CUresult result = real_calls()->cuFuncGetParamInfo(function, index, &offset, bytes);

    return result == DRIVER_SUCCESS || result == DRIVER_INVALID_VALUE
               ? result
               : real_calls()->cuKernelGetParamInfo((CUkernel)function, index, &offset, bytes);
}

bool trust_add(CUfunction function, void *const *parameters, const unsigned char *bytes,
               size_t byte_count, struct operands *operands)
{
    size_t count;
    CUresult result = DRIVER_SUCCESS;

    if (!settings_get()->trusts_parameters) {
        return false;
    }
    if (parameters == NULL) {
        if (bytes != NULL) {
            add_bytes(bytes, byte_count, operands);
        }
        return bytes != NULL;
    }
    for (size_t i = 0; (result = parameter_bytes(function, i, &count)) == DRIVER_SUCCESS; i++) {
        add_bytes(parameters[i], count, operands);
    }
    return result == DRIVER_INVALID_VALUE; /* for the first index that there is none of */
}
