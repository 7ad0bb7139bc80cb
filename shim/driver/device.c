/* One device per process: the first whose primary context the program gets. */
#include "shim/driver/caller.h"
#include "shim/driver/driver.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/driver/settings.h"
#include "shim/driver/symbol.h"

#include <stdbool.h>

typedef CUresult (*retain_function)(CUcontext *, CUdevice);

DRIVER_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);

enum { NONE = -1 };

static CUdevice first = NONE; /* whose context was given; atomic: set once */

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
    if (settings_get()->is_managed &&
        is_second(__atomic_load_n(&first, __ATOMIC_ACQUIRE), device)) {
        return DRIVER_NOT_SUPPORTED;
    }
    result = retain(context, device);
    if (result == DRIVER_SUCCESS &&
        !__atomic_compare_exchange_n(&first, &other, device, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE) &&
        settings_get()->is_managed && is_second(other, device)) {
        return DRIVER_NOT_SUPPORTED;
    }
    return result;
}
