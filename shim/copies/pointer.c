/* What the driver would answer about the program's allocations if they were its own. */
#include "shim/core/alloc.h"
#include "shim/core/core.h"
#include "shim/driver/real.h"

/* False: the address is not ours. */
static bool find(CUdeviceptr address, struct allocation *found, CUresult *result)
{
    const struct allocation *allocation;

    *result = core_enter();
    if (*result != DRIVER_SUCCESS) {
        return true;
    }
    allocation = alloc_find(address);
    if (allocation != NULL) {
        *found = *allocation;
    }
    core_leave();
    return allocation != NULL;
}

CUresult on_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    struct allocation allocation;
    CUresult result;

    if (!find(address, &allocation, &result)) {
        return real_calls()->cuMemGetAddressRange_v2(base, bytes, address);
    }
    if (result == DRIVER_SUCCESS) {
        if (base != NULL) {
            *base = allocation.address;
        }
        if (bytes != NULL) {
            *bytes = allocation.bytes;
        }
    }
    return result;
}

/* An allocation of the driver itself: what it says about that, it would say about ours, but for the
   address and the size. It is never freed. */
static CUresult take_sample(CUdeviceptr *address)
{
    static CUdeviceptr sample;
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    if (sample == 0) {
        result = real_calls()->cuMemAlloc_v2(&sample, 1);
    }
    core_leave();
    *address = sample;
    return result;
}

/* Corrects what the driver has said about the sample. */
static void correct(const struct allocation *allocation, unsigned attribute, CUdeviceptr address,
                    void *value)
{
    if (attribute == POINTER_DEVICE) {
        *(CUdeviceptr *)value = address;
    } else if (attribute == POINTER_BUFFER_ID) {
        *(unsigned long long *)value = allocation->id;
    } else if (attribute == POINTER_RANGE_START) {
        *(CUdeviceptr *)value = allocation->address;
    } else if (attribute == POINTER_RANGE_SIZE) {
        *(size_t *)value = allocation->bytes;
    }
}

CUresult on_cuPointerGetAttribute(void *value, unsigned attribute, CUdeviceptr address)
{
    struct allocation allocation;
    CUdeviceptr sample = 0;
    CUresult result;

    if (!find(address, &allocation, &result)) {
        return real_calls()->cuPointerGetAttribute(value, attribute, address);
    }
    if (result == DRIVER_SUCCESS) {
        result = take_sample(&sample);
    }
    if (result == DRIVER_SUCCESS) {
        result = real_calls()->cuPointerGetAttribute(value, attribute, sample);
    }
    if (result == DRIVER_SUCCESS) {
        correct(&allocation, attribute, address, value);
    }
    return result;
}

CUresult on_cuPointerGetAttributes(unsigned count, unsigned *attributes, void **values,
                                   CUdeviceptr address)
{
    struct allocation allocation;
    CUdeviceptr sample = 0;
    CUresult result;

    if (!find(address, &allocation, &result)) {
        return real_calls()->cuPointerGetAttributes(count, attributes, values, address);
    }
    if (result == DRIVER_SUCCESS) {
        result = take_sample(&sample);
    }
    if (result == DRIVER_SUCCESS) {
        result = real_calls()->cuPointerGetAttributes(count, attributes, values, sample);
    }
    for (unsigned i = 0; result == DRIVER_SUCCESS && i < count; i++) {
        correct(&allocation, attributes[i], address, values[i]);
    }
    return result;
}

CUresult on_cuPointerSetAttribute(const void *value, unsigned attribute, CUdeviceptr address)
{
    struct allocation allocation;
    CUresult result;

    if (!find(address, &allocation, &result)) {
        return real_calls()->cuPointerSetAttribute(value, attribute, address);
    }
    /* Copies of the program's memory wait already where that could be noticed. */
    return result != DRIVER_SUCCESS           ? result
           : attribute == POINTER_SYNC_MEMOPS ? DRIVER_SUCCESS
                                              : DRIVER_INVALID_VALUE;
}
