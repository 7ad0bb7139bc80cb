/* One device per process: the first whose primary context the program gets. */
#include "interpose/shim/device.h"

#include "interpose/shim/caller.h"
#include "interpose/shim/log.h"
#include "interpose/shim/real.h"
#include "interpose/shim/real_calls.h"
#include "interpose/shim/symbol.h"

#include <stdbool.h>

typedef CUresult (*retain_function)(CUcontext *, CUdevice);

DRIVER_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);

enum { NONE = -1 };

static CUdevice first = NONE; /* whose context was given; atomic: set once */

unsigned device_architecture_of(CUdevice device)
{
    const struct real_calls *real = real_calls();
    int major = 0;
    int minor = 0;

    (void)real->cuDeviceGetAttribute(&major, DRIVER_CAPABILITY_MAJOR, device);
    (void)real->cuDeviceGetAttribute(&minor, DRIVER_CAPABILITY_MINOR, device);
    return (unsigned)(10 * major + minor);
}

unsigned device_architecture(void)
{
    CUdevice device = __atomic_load_n(&first, __ATOMIC_ACQUIRE);

    if (device == NONE && real_calls()->cuCtxGetDevice(&device) != DRIVER_SUCCESS) {
        device = 0;
    }
    return device_architecture_of(device);
}

/* Whether the process has a device other than this one. */
static bool is_second(CUdevice chosen, CUdevice device)
{
    if (chosen == NONE || chosen == device) {
        return false;
    }
    symbol_note_refusal("a second device");
    log_line("refused: device %d beside device %d; a program under a budget has one device", device,
             chosen);
    return true;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    retain_function retain = (retain_function)real_find("cuDevicePrimaryCtxRetain");
    enum caller caller = CALLER();
    CUdevice other = NONE;
    CUresult result;

    if (retain == NULL) {
        return DRIVER_NO_DEVICE;
    }
    if (caller == CALLER_OWN || caller == CALLER_DRIVER) {
        return retain(context, device);
    }
    if (is_second(__atomic_load_n(&first, __ATOMIC_ACQUIRE), device)) {
        return DRIVER_NOT_SUPPORTED;
    }
    result = retain(context, device);
    if (result == DRIVER_SUCCESS &&
        !__atomic_compare_exchange_n(&first, &other, device, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE) &&
        is_second(other, device)) {
        return DRIVER_NOT_SUPPORTED;
    }
    return result;
}
