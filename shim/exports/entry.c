/*
 * cuGetProcAddress: how runtimes find the driver's functions.
 *
 * The real driver is asked first, and its answer holds for everything but what is wrapped or
 * refused. A function has several variants under one name, chosen by the version that the caller
 * asks for and by its kind of default stream. Ours is given only for the variant that it was
 * written for: the one for which the real driver gives the same address. Another variant of a
 * wrapped function, older or newer, would bypass us, so it is refused; not one of a function that
 * is only counted, nor to a library of CUDA one that only the program's calls are taken of. Where
 * nothing is managed, nothing is refused. One function has a second name, of a later version.
 */
#include "shim/driver/caller.h"
#include "shim/driver/driver.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/driver/settings.h"
#include "shim/driver/symbol.h"

#include <string.h>

typedef CUresult (*find_function)(const char *symbol, void **function, int version, uint64_t flags,
                                  int *status);

DRIVER_EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                                        uint64_t flags);
DRIVER_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                           uint64_t flags, int *status);

/* Written while the library is loaded, constant after that. */
static const struct symbol_wrapper *wrappers;
static size_t wrapper_count;

void symbol_publish(const struct symbol_wrapper *table, size_t count)
{
    wrappers = table;
    wrapper_count = count;
}

/* Whether the real driver means this symbol by `found`. */
static bool is_variant(find_function find, const struct symbol *symbol, const void *found)
{
    uint64_t flags = symbol->is_per_thread ? DRIVER_PER_THREAD_STREAM : DRIVER_LEGACY_STREAM;
    void *function = NULL;
    int status = 0;

    return find(symbol->base, &function, symbol->version, flags, &status) == DRIVER_SUCCESS &&
           function == found;
}

/* Since CUDA 12, the shorter name means the other function. */
static const char *other_name(const char *name, int version)
{
    return version >= 12000 && strcmp(name, "cuGraphInstantiate") == 0
               ? "cuGraphInstantiateWithFlags"
               : NULL;
}

static void *wrapper_of(const char *symbol)
{
    for (size_t i = 0; i < wrapper_count; i++) {
        if (strcmp(symbols[wrappers[i].index].name, symbol) == 0) {
            return wrappers[i].function;
        }
    }
    return NULL;
}

/* What the caller gets for a function that the real driver found. */
static void *replace_function(find_function find, enum caller caller, const char *name, int version,
                              void *found)
{
    void *refusal = NULL;

    if (other_name(name, version) != NULL) {
        return wrapper_of(other_name(name, version));
    }

    for (size_t i = 0; i < wrapper_count; i++) {
        const struct symbol *symbol = &symbols[wrappers[i].index];

        if (strcmp(symbol->base, name) == 0) {
            if (is_variant(find, symbol, found)) {
                return wrappers[i].function;
            }
            refusal = symbol_is_refused(caller, symbol) ? symbol->refusal : NULL;
        }
    }
    for (size_t i = 0; i < symbol_count && refusal == NULL; i++) {
        if ((symbols[i].kind == SYMBOL_REFUSE || symbols[i].kind == SYMBOL_REFUSE_PROGRAM) &&
            strcmp(symbols[i].base, name) == 0 && symbol_is_refused(caller, &symbols[i])) {
            refusal = symbols[i].refusal;
        }
    }
    return refusal != NULL && settings_get()->is_managed ? refusal : found;
}

static CUresult get(enum caller caller, const char *symbol, void **function, int version,
                    uint64_t flags, int *status)
{
    find_function find = (find_function)real_find("cuGetProcAddress_v2");
    CUresult result;

    if (find == NULL) {
        if (real_is_open()) {
            log_line("the CUDA driver is older than CUDA 12");
        }
        return DRIVER_NO_DEVICE;
    }
    result = find(symbol, function, version, flags, status);
    if (result == DRIVER_SUCCESS && symbol != NULL && function != NULL && *function != NULL &&
        (caller == CALLER_PROGRAM || caller == CALLER_LIBRARY)) {
        *function = replace_function(find, caller, symbol, version, *function);
    }
    return result;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                             int *status)
{
    return get(CALLER(), symbol, function, version, flags, status);
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    int status = 0;
    CUresult result = get(CALLER(), symbol, function, version, flags, &status);

    /* This variant has no status: what is not found is an error. */
    return result == DRIVER_SUCCESS && status != 0 ? DRIVER_NOT_FOUND : result;
}
