/*
 * Memory pools. What a program allocates from one becomes an allocation of the library, in the
 * device's memory. So pools of other memory are refused: the host could not access what it gets.
 */
#include "shim/driver/handlers.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/driver/symbol.h"

#include <stdbool.h>
#include <stddef.h>

static bool is_refused(const char *name, int type, int location)
{
    if (location < LOCATION_HOST && type != POOL_MANAGED) {
        return false;
    }
    symbol_note_refusal("a memory pool of the host or of managed memory");
    log_line("refused: %s for memory of the host or managed memory, which programs cannot use "
             "under a budget (docs/unmodified.md)",
             name);
    return true;
}

CUresult on_cuMemPoolCreate(CUmemoryPool *pool, const struct page_properties *properties)
{
    return properties != NULL &&
                   is_refused("cuMemPoolCreate", properties->type, properties->location.type)
               ? DRIVER_NOT_SUPPORTED
               : real_calls()->cuMemPoolCreate(pool, properties);
}

CUresult on_cuMemGetDefaultMemPool(CUmemoryPool *pool, struct location *location, int type)
{
    return location != NULL && is_refused("cuMemGetDefaultMemPool", type, location->type)
               ? DRIVER_NOT_SUPPORTED
               : real_calls()->cuMemGetDefaultMemPool(pool, location, type);
}

CUresult on_cuMemGetMemPool(CUmemoryPool *pool, struct location *location, int type)
{
    return location != NULL && is_refused("cuMemGetMemPool", type, location->type)
               ? DRIVER_NOT_SUPPORTED
               : real_calls()->cuMemGetMemPool(pool, location, type);
}
