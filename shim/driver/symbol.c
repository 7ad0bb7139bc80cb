/* What trampolines of symbols lead to: the look-up at a symbol's first call, and refusals. */
#include "shim/driver/symbol.h"

#include "shim/driver/driver.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/driver/settings.h"

#include <pthread.h>
#include <string.h>

LOOK_UP("symbol_resolve_and_jump", "symbol_resolve");

/* The function that a symbol's calls go to from now on. */
void *symbol_resolve(struct symbol *symbol)
{
    void *function = real_find(symbol->name);

    if (function == NULL) {
        function = symbol->refusal;
    }
    __atomic_store_n(&symbol->target, function, __ATOMIC_RELEASE);
    return function;
}

/* What was refused so far. */
enum { REFUSALS = 128 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *refusals[REFUSALS];
static size_t refusal_count;

void symbol_note_refusal(const char *base)
{
    size_t i = 0;

    (void)pthread_mutex_lock(&lock);
    while (i < refusal_count && strcmp(refusals[i], base) != 0) {
        i++;
    }
    if (i == refusal_count && refusal_count < REFUSALS) {
        refusals[refusal_count++] = base;
    }
    (void)pthread_mutex_unlock(&lock);
}

const char *symbol_refused(size_t index)
{
    const char *base;

    (void)pthread_mutex_lock(&lock);
    base = index < refusal_count ? refusals[index] : NULL;
    (void)pthread_mutex_unlock(&lock);
    return base;
}

/* What a program can call in place of a refused function; empty: nothing is known. */
static const char *instead_of(const char *base)
{
    static const struct {
        const char *part; /* of the name */
        const char *text;
    } others[] = {
        {"cuCtxCreate", ": use cuDevicePrimaryCtxRetain and cuCtxSetCurrent"},
        {"GreenCtx", ": use the primary context"},
        {"WaitValue", ": use events"},
        {"WriteValue", ": use events"},
        {"BatchMemOp", ": use events"},
        {"Peer", ": use the function for one device"},
        {"cuMemcpyBatch", ": copy one by one"},
        {"cuMemcpy3DBatch", ": copy one by one"},
        {"cuMemcpyAtoD", ": use cuMemcpy2D"},
        {"cuMemcpyDtoA", ": use cuMemcpy2D"},
        {"CaptureToGraph", ": capture into a graph of its own, and add that as a child node"},
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strstr(base, others[i].part) != NULL) {
            return others[i].text;
        }
    }
    return "";
}

int symbol_refuse(struct symbol *symbol)
{
    if (!real_is_open()) {
        return DRIVER_NO_DEVICE;
    }
    if (symbol->kind == SYMBOL_FORWARD || !settings_get()->is_managed) {
        log_line("the CUDA driver has no function %s, which the program calls", symbol->name);
        return DRIVER_NOT_FOUND;
    }
    symbol_note_refusal(symbol->base);
    log_line("refused: %s, which programs cannot use under a budget%s (docs/unmodified.md)",
             symbol->base, instead_of(symbol->base));
    return DRIVER_NOT_SUPPORTED;
}
